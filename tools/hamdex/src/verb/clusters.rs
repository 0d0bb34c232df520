//! `clusters`: an index or documents become groups that chains of near pairs connect.

use std::path::PathBuf;

use clap::Args;
use hamdex::{Fingerprint, join};
use serde::Serialize;

use super::gather::{self, Gathered, Target};
use crate::failure::Result;
use crate::key::Name;
use crate::options::{DISTANCE, DistanceArg, PipelineArgs, RowArgs, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::width::for_width;

/// List groups of near-duplicates
///
/// Prints JSON Lines {"cluster","size","ids"}, largest first. A group holds everything that
/// chains of pairs within k bits connect, so its ends may be further apart.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hamdex clusters articles.jsonl.gz -k 6 | head -10")]
pub(crate) struct ClustersArgs {
    /// An index, or documents: .jsonl, .txt, .html, directories, raw .u64, - for standard input
    #[arg(required = true, value_name = "INDEX|INPUT")]
    inputs: Vec<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    pipeline: PipelineArgs,
    #[command(flatten)]
    rows: RowArgs,
    /// Kind of check of near documents
    #[arg(long, value_name = "KIND", value_parser = ["none"], hide = true)]
    verify: Option<String>,
}

/// One group as it is written.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    /// Number of the cluster, from 1.
    pub(super) cluster: usize,
    pub(super) size: usize,
    pub(super) ids: Vec<Name<'a>>,
}

impl ClustersArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let target = Target::of(&self.inputs, &self.width, &self.pipeline)?;
        let mut output = Output::open(self.output.as_deref(), &session.console)?;
        let found = match target {
            Target::Index(path, header) => for_width!(header.bits, F => {
                let index = stored::read_only::<F>(&path)?;
                let distance = self.distance.distance.unwrap_or(index.distance());
                let clusters = index.clusters(distance, &session.console)?;
                session.console.end_phase();
                for (cluster, number) in clusters.iter().zip(1..) {
                    let ids: Vec<_> = cluster.keys.iter().map(|key| Name::of(key)).collect();
                    output.json(&Line { cluster: number, size: ids.len(), ids })?;
                }
                clusters.len()
            }),
            Target::Documents => {
                let (inputs, bits) = gather::resolve(&self.inputs, &self.rows, &self.width)?;
                for_width!(bits, F => {
                    let gathered = gather::gather::<F>(session, &inputs, &self.rows, &self.pipeline)?;
                    self.of_documents(session, &gathered, &mut output)?
                })
            }
        };
        output.finish()?;
        session.console.say(&format!("{} clusters", size::thousands(found as u64)));
        Ok(())
    }

    fn of_documents<F: Fingerprint>(
        &self,
        session: &Session,
        gathered: &Gathered<F>,
        output: &mut Output,
    ) -> Result<usize> {
        let distance = self.distance.distance.unwrap_or(DISTANCE);
        let labels = join::clusters(&gathered.fingerprints, distance, &session.console)?;
        session.console.end_phase();
        let groups = groups(&labels);
        for (group, number) in groups.iter().zip(1..) {
            let ids = group.iter().map(|&position| Name::of(gathered.key(position as usize)));
            output.json(&Line { cluster: number, size: group.len(), ids: ids.collect() })?;
        }
        Ok(groups.len())
    }
}

/// Turns labels into groups of two and more: the largest first, then by first position.
pub(super) fn groups(labels: &[u32]) -> Vec<Vec<u32>> {
    let mut sizes = vec![0_u32; labels.len()];
    for &label in labels {
        if let Some(size) = sizes.get_mut(label as usize) {
            *size += 1;
        }
    }
    let mut members: Vec<(u32, u32)> = labels
        .iter()
        .zip(0..)
        .filter(|&(&label, _)| sizes.get(label as usize).is_some_and(|&size| size > 1))
        .map(|(&label, position)| (label, position))
        .collect();
    members.sort_unstable();
    let mut groups: Vec<Vec<u32>> = members
        .chunk_by(|a, b| a.0 == b.0)
        .map(|group| group.iter().map(|&(_, position)| position).collect())
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_largest_first_and_leave_out_single_documents() {
        assert_eq!(groups(&[0, 1, 0, 3, 1, 1]), [vec![1, 4, 5], vec![0, 2]]);
        assert_eq!(groups(&[0, 0, 2, 2]), [vec![0, 1], vec![2, 3]]);
        assert!(groups(&[0, 1, 2]).is_empty());
        assert!(groups(&[]).is_empty());
    }
}
