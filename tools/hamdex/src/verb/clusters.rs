//! `clusters`: an index or documents become groups that chains of near pairs connect.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use hamdex::dedup::{self, DedupOptions, groups};
use hamdex::join::{self, Diameter};
use hamdex::verify::DuplicateRule;
use hamdex::{Fingerprint, each_width, for_width};
use hamdex_io::host::Host;
use serde::Serialize;

use super::gather::{self, Gathered, Target};
use crate::advise::{self, Overrides, Resolved};
use crate::costs;
use crate::failure::Result;
use crate::input::{Ids, Inputs, Wanted};
use crate::key::Name;
use crate::options::verification::{LinkageArg, VerifyArg};
use crate::options::{DistanceArg, MemoryArg, PipelineArgs, RowArgs, TmpArg, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;

/// List groups of near-duplicates
///
/// Prints JSON Lines {"cluster","size","ids","diameter"}, largest first. A group holds all
/// documents connected by chains of pairs that are within k bits and pass the verification, so its
/// ends may be farther apart. The diameter is the largest distance in a group; --linkage
/// representative cuts such chains. Without -k, a sample of the texts chooses distance and
/// verification.
///
/// After a kill, FILE of -o is absent or the earlier one; the same command starts again.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex clusters articles.jsonl.gz -k 6 | head -10")]
pub(crate) struct ClustersArgs {
    /// An index, or documents: .jsonl, .txt, .html, directories, raw .u64, - for standard input
    #[arg(required_unless_present = "files_from", value_name = "INDEX|INPUT")]
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
    verify: VerifyArg,
    #[command(flatten)]
    linkage: LinkageArg,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    tmp: TmpArg,
}

/// One group of the output.
#[derive(Serialize)]
pub(super) struct Line<N> {
    /// Number of the cluster, from 1.
    pub(super) cluster: usize,
    pub(super) size: usize,
    pub(super) ids: Vec<N>,
    /// Largest Hamming distance within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    diameter: Option<u32>,
    /// A lower bound, if the group is too large for an exact diameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    diameter_at_least: Option<u32>,
}

impl<N> Line<N> {
    pub(super) fn new(cluster: usize, ids: Vec<N>, diameter: Diameter) -> Self {
        Self {
            cluster,
            size: ids.len(),
            ids,
            diameter: diameter.exact.then_some(diameter.bits),
            diameter_at_least: (!diameter.exact).then_some(diameter.bits),
        }
    }
}

impl ClustersArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let target = Target::of(&self.inputs, &self.width, &self.pipeline)?;
        let mut output = Output::open(self.output.as_deref(), &session.console, session.overwrite)?;
        let found = match target {
            Target::Index(path, header) => {
                self.verify.require_stored(header.keeps_features)?;
                let verify = self.verify.or_as_made(&header, &session.console)?;
                self.linkage.require(verify)?;
                let index = stored::read_only(&path)?;
                let distance = self.distance.distance.unwrap_or(index.distance());
                let near = DuplicateRule::new(distance)
                    .verify(verify.check())
                    .linkage(self.linkage.or_chain())
                    .memory(self.memory.memory.0);
                let clusters = each_width!(AnyIndex, &index, index => {
                    index.clusters(near, &session.console)
                })?;
                session.console.end_phase();
                for (cluster, number) in clusters.iter().zip(1..) {
                    let ids = cluster.keys.iter().map(|key| Name::of(key)).collect::<Vec<_>>();
                    output.json(&Line::new(number, ids, cluster.diameter))?;
                }
                clusters.len()
            }
            Target::Documents => {
                let (inputs, bits) =
                    gather::resolve(session, &self.inputs, &self.rows, &self.width, &self.tmp)?;
                let (distance, verify) = (self.distance.distance, self.verify.verify);
                let overrides = Overrides::over_texts(&self.pipeline, distance, verify, bits);
                let resolved = advise::resolve(&session.console, &inputs, &overrides)?;
                resolved.say(&session.console);
                for_width!(bits, F => {
                    self.of_documents::<F>(session, &inputs, &resolved, &mut output)
                })?
            }
        };
        output.finish()?;
        let clusters = if found == 1 { "cluster" } else { "clusters" };
        session.console.say(&format!("{} {clusters}", size::thousands(found as u64)));
        Ok(())
    }

    fn of_documents<F: Fingerprint>(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        resolved: &Resolved,
        output: &mut Output,
    ) -> Result<usize> {
        let wanted = Wanted::by(resolved.verification);
        let pipeline = resolved.pipeline.as_ref();
        let gathered: Gathered<F> = gather::gather(
            session,
            inputs,
            &self.rows,
            (&self.tmp, self.memory.memory.0),
            pipeline,
            (wanted, Ids::Labels),
        )?;
        let Gathered { fingerprints, evidence, .. } = &gathered;
        let linkage = self.linkage.or_chain();
        let settings = DedupOptions::new(resolved.distance)
            .verify(resolved.verification)
            .linkage(linkage)
            .memory(self.memory.memory.0)
            .costs(costs::kept()?);
        let evidence = evidence.of(resolved.verification);
        let labels = dedup::labels(fingerprints, evidence, &settings, None, &session.console)?;
        session.console.end_phase();
        let groups = groups(&labels);
        for (group, number) in groups.iter().zip(1..) {
            let keys = group.iter().map(|&at| gathered.key(at as usize));
            let keys = keys.collect::<hamdex::Result<Vec<_>>>()?;
            let ids = keys.iter().map(|key| Name::of(key)).collect::<Vec<_>>();
            let members: Vec<F> =
                group.iter().filter_map(|&at| fingerprints.get(at as usize).copied()).collect();
            output.json(&Line::new(number, ids, join::diameter(&members)))?;
        }
        Ok(groups.len())
    }
}
