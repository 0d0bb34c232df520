//! Results: the noted ids become duplicates.jsonl, clusters.jsonl and the report's largest groups.

use std::path::Path;

use hamdex::{Fingerprint, Verification};
use serde::Serialize;

use super::choose::Choice;
use super::collect::Documents;
use super::near::Stored;
use super::pass::{Fate, Ids};
use super::report::Group;
use crate::evidence;
use crate::failure::Result;
use crate::key::Name;
use crate::output::Output;
use crate::verb::clusters::Line as ClusterLine;
use crate::verb::linking;

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

/// Members of each cluster by their place among the noted ids.
#[derive(Debug)]
pub(super) struct Members {
    slots: Vec<Vec<usize>>,
    /// The same members by their position among the documents.
    positions: Vec<Vec<u32>>,
    /// Where the id of each cluster's kept document is.
    kept: Vec<usize>,
}

impl Members {
    pub(super) fn new(choice: &Choice, ids: &Ids) -> Self {
        let mut members = Self {
            slots: vec![Vec::new(); choice.clusters()],
            positions: vec![Vec::new(); choice.clusters()],
            kept: vec![0; choice.clusters()],
        };
        for (slot, (_, fate)) in ids.iter().enumerate() {
            let Fate::Member(position) = fate else { continue };
            let Some(cluster) = choice.cluster(position) else { continue };
            let at = cluster as usize - 1;
            if let Some(slots) = members.slots.get_mut(at) {
                slots.push(slot);
            }
            if let Some(positions) = members.positions.get_mut(at) {
                positions.extend(u32::try_from(position));
            }
            if choice.kept(cluster) == position
                && let Some(kept) = members.kept.get_mut(at)
            {
                *kept = slot;
            }
        }
        members
    }

    fn kept_id<'a>(&self, cluster: u32, ids: &'a Ids) -> Name<'a> {
        let slot = (cluster as usize).checked_sub(1).and_then(|at| self.kept.get(at));
        Name::of(slot.map_or(&[], |&slot| ids.get(slot)))
    }

    /// Writes a line for every removed document, in the order of the inputs.
    ///
    /// `noted` is told distance and similarity of each.
    #[allow(clippy::too_many_arguments)] // what a line is made of
    pub(super) fn write_duplicates<F: Fingerprint>(
        &self,
        directory: &Path,
        documents: &Documents<F>,
        choice: &Choice,
        stored: &Stored,
        ids: &Ids,
        verification: Verification,
        noted: &mut dyn FnMut(u32, Option<f64>),
    ) -> Result<Output> {
        let mut file = Output::file(&directory.join("duplicates.jsonl"))?;
        let evidence = documents.evidence.of(verification);
        let measuring = evidence::measuring(verification);
        let fingerprint = |at: usize| documents.fingerprints.get(at).copied().unwrap_or_default();
        for (id, fate) in ids.iter() {
            let id = Name::of(id);
            let duplicate = match fate {
                Fate::Stored(origin) => stored.of(origin).map(|(key, distance, similarity)| {
                    Duplicate { id, kept_id: Name::of(key), distance, similarity, cluster: None }
                }),
                Fate::Member(position) => {
                    let of =
                        choice.cluster(position).map(|cluster| (cluster, choice.kept(cluster)));
                    match of {
                        Some((cluster, kept)) if kept != position => {
                            let distance = fingerprint(position).distance(fingerprint(kept));
                            let similarity = match evidence {
                                Some(evidence) => {
                                    evidence.check(measuring, distance, position, kept)?
                                }
                                None => None,
                            };
                            Some(Duplicate {
                                id,
                                kept_id: self.kept_id(cluster, ids),
                                distance,
                                similarity: similarity.map(|value| (value * 1e4).round() / 1e4),
                                cluster: Some(cluster),
                            })
                        }
                        _ => None,
                    }
                }
            };
            if let Some(duplicate) = duplicate {
                noted(duplicate.distance, duplicate.similarity);
                file.json(&duplicate)?;
            }
        }
        Ok(file)
    }

    /// Writes a line for every group, the largest first.
    pub(super) fn write_clusters<F: Fingerprint>(
        &self,
        directory: &Path,
        documents: &Documents<F>,
        ids: &Ids,
    ) -> Result<Output> {
        let mut file = Output::file(&directory.join("clusters.jsonl"))?;
        for ((slots, positions), number) in self.slots.iter().zip(&self.positions).zip(1..) {
            let names = slots.iter().map(|&slot| Name::of(ids.get(slot))).collect();
            let diameter = linking::diameter(&documents.fingerprints, positions);
            file.json(&ClusterLine::new(number, names, diameter))?;
        }
        Ok(file)
    }

    /// Sizes of all groups, the largest first.
    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().map(Vec::len)
    }

    /// Names the largest groups.
    pub(super) fn largest<'a>(&self, ids: &'a Ids) -> Vec<Group<'a>> {
        let group = |(slots, cluster): (&Vec<usize>, u32)| Group {
            cluster,
            size: slots.len(),
            kept_id: self.kept_id(cluster, ids),
        };
        self.slots.iter().zip(1..).take(LARGEST).map(group).collect()
    }
}
