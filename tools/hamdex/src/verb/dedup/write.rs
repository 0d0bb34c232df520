//! Results: the noted ids become duplicates.jsonl, clusters.jsonl and the report's largest groups.

use std::collections::BTreeMap;
use std::path::Path;

use hamdex::Fingerprint;
use hamdex::dedup::{Cluster, Decision, Decisions};
use serde::Serialize;

use super::pass::Ids;
use super::report::Group;
use crate::failure::Result;
use crate::key::Name;
use crate::output::Output;
use crate::verb::clusters::Line as ClusterLine;

/// Groups that the report names.
const LARGEST: usize = 10;

/// A row of duplicates.jsonl.
#[derive(Serialize)]
struct Duplicate<'a> {
    id: Name<'a>,
    kept_id: Name<'a>,
    distance: u32,
    /// Similarity with the kept document; `None` where nothing was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    /// `None` for a duplicate of a document in the index.
    cluster: Option<u32>,
}

/// Decisions with the ids of the documents that they are about.
#[derive(Debug)]
pub(super) struct Members<'a, F> {
    decisions: &'a Decisions<F>,
    ids: &'a Ids,
}

impl<'a, F: Fingerprint> Members<'a, F> {
    pub(super) fn new(decisions: &'a Decisions<F>, ids: &'a Ids) -> Self {
        Self { decisions, ids }
    }

    fn name(&self, position: u32) -> Name<'a> {
        Name::of(self.ids.slot(position).map_or(&[], |slot| self.ids.get(slot)))
    }

    /// Writes a line for every removed document, in the order of the inputs, if a file is named.
    ///
    /// `noted` is told distance and similarity of each.
    pub(super) fn write_duplicates(
        &self,
        path: Option<&Path>,
        noted: &mut dyn FnMut(u32, Option<f64>),
    ) -> Result<Option<Output>> {
        let mut file = path.map(Output::file).transpose()?;
        let mut write = |duplicate: &Duplicate<'_>| match &mut file {
            Some(file) => file.json(duplicate),
            None => Ok(()),
        };
        for (id, position) in self.ids.iter() {
            let id = Name::of(id);
            match self.decisions.of(position) {
                Decision::Kept { .. } => {}
                Decision::Stored { key, distance, similarity } => {
                    let kept_id = Name::of(key);
                    noted(distance, similarity);
                    write(&Duplicate { id, kept_id, distance, similarity, cluster: None })?;
                }
                Decision::Duplicate { kept, distance, similarity, cluster } => {
                    let similarity = similarity.map(|value| (value * 1e4).round() / 1e4);
                    noted(distance, similarity);
                    write(&Duplicate {
                        id,
                        kept_id: self.name(kept),
                        distance,
                        similarity,
                        cluster: Some(cluster),
                    })?;
                }
            }
        }
        Ok(file)
    }

    /// Writes a line for every group, the largest first.
    pub(super) fn write_clusters(&self, path: &Path) -> Result<Output> {
        let mut file = Output::file(path)?;
        for cluster in self.decisions.clusters() {
            let names = cluster.members.iter().map(|&position| self.name(position)).collect();
            let diameter = self.decisions.diameter(cluster);
            file.json(&ClusterLine::new(cluster.number as usize, names, diameter))?;
        }
        Ok(file)
    }

    /// Counts the groups by size.
    pub(super) fn sizes(&self) -> BTreeMap<usize, u64> {
        let mut sizes = BTreeMap::new();
        for cluster in self.decisions.clusters() {
            *sizes.entry(cluster.members.len()).or_insert(0) += 1;
        }
        sizes
    }

    /// Names the largest groups.
    pub(super) fn largest(&self) -> Vec<Group<'a>> {
        let group = |Cluster { number, kept, members }: Cluster<'_>| Group {
            cluster: number,
            size: members.len(),
            kept_id: self.name(kept),
        };
        self.decisions.clusters().take(LARGEST).map(group).collect()
    }
}
