//! Results: the noted ids become duplicates.jsonl, clusters.jsonl and the report's largest groups.

use std::collections::BTreeMap;

use hamdex::Fingerprint;
use hamdex::dedup::{Cluster, Decision, Decisions, Known};
use serde::Serialize;

use super::pass::{Dropped, Kept};
use super::report::Group;
use super::row::Label;
use crate::failure::Result;
use crate::input::{Inputs, Origins};
use crate::job::Choice;
use crate::output::Output;
use crate::size;
use crate::verb::clusters::Line as ClusterLine;

/// Groups that the report names.
const LARGEST: usize = 10;

/// A row of duplicates.jsonl.
#[derive(Serialize)]
struct Duplicate<'a> {
    id: Label<'a>,
    at: String,
    kept_id: Label<'a>,
    /// `None` for a document of an index.
    kept_at: Option<String>,
    /// `None` for rows that share a value.
    distance: Option<u32>,
    /// Similarity with the kept document; `None` where nothing was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    /// `None` for a duplicate of a document in the index.
    cluster: Option<u32>,
    /// The field whose value the two share.
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_by: Option<&'a str>,
    /// Share of the letters that is not boilerplate, of a row that is nearly all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<f64>,
}

/// A row that is removed for another reason than a near one.
#[derive(Clone, Copy)]
enum Other<'a> {
    /// It shares a value with the row of this ordinal.
    Repeat(u64),
    Dropped(&'a Dropped),
}

/// Decisions with the ids of the documents that they are about.
#[derive(Debug)]
pub(super) struct Members<'a, F> {
    pub(super) choice: &'a Choice<F>,
    pub(super) kept: &'a Kept,
    pub(super) inputs: &'a Inputs,
    pub(super) origins: &'a Origins,
    pub(super) unique_by: Option<&'a str>,
}

impl<'a, F: Fingerprint> Members<'a, F> {
    fn decisions(&self) -> &'a Decisions<F> {
        &self.choice.decisions
    }

    /// Returns the number of a document's source.
    pub(super) fn source(&self, position: u32) -> u32 {
        if let Some(named) = &self.choice.named {
            return named.of_document(position);
        }
        let found = self.origins.find(self.origin(position));
        found.and_then(|(at, _)| u32::try_from(at).ok()).unwrap_or(u32::MAX)
    }

    pub(super) fn name(&self, position: u32) -> hamdex::Result<Label<'a>> {
        self.kept.ids.get(position).map(Label::owned)
    }

    /// Returns what a state shows of a kept document later.
    pub(super) fn known(&self, position: u32) -> hamdex::Result<Known> {
        let label = String::from_utf8_lossy(&self.kept.ids.get(position)?).into_owned();
        Ok(Known { label, place: self.at(self.origin(position)) })
    }

    fn at(&self, origin: u64) -> String {
        self.inputs.at(self.origins, origin)
    }

    fn origin(&self, position: u32) -> u64 {
        self.choice.origins.get(position as usize).unwrap_or_default()
    }

    /// Writes a line for every removed row, in the order of the inputs, if a file is named.
    ///
    /// `noted` is called with distance and similarity of each near-duplicate.
    pub(super) fn write_duplicates(
        &self,
        mut file: Option<&mut Output>,
        noted: &mut dyn FnMut(u32, Option<f64>),
    ) -> Result<()> {
        let mut write = |duplicate: &Duplicate<'_>| match &mut file {
            Some(file) => file.json(duplicate),
            None => Ok(()),
        };
        let repeats = self.choice.repeats.iter().map(|(&row, &kept)| (row, Other::Repeat(kept)));
        let dropped = self.kept.dropped.iter().map(|row| (row.origin, Other::Dropped(row)));
        let mut others: Vec<(u64, Other<'_>)> = repeats.chain(dropped).collect();
        others.sort_unstable_by_key(|&(row, _)| row);
        let mut others = others.into_iter().peekable();
        for position in self.kept.ids.positions() {
            let origin = self.origin(position);
            while let Some((row, other)) = others.next_if(|&(row, _)| row < origin) {
                write(&self.other(row, other))?;
            }
            let (id, at) = (self.name(position)?, self.at(origin));
            let (kept_id, kept_at, distance, similarity, cluster) =
                match self.decisions().of(position) {
                    Decision::Kept { .. } => continue,
                    Decision::Stored { key, distance, similarity } => {
                        let trail = self.choice.trail.as_ref();
                        let (id, at) = match trail.and_then(|trail| trail.known(key)) {
                            Some(known) => {
                                (Label::of(known.label.as_bytes()), Some(known.place.clone()))
                            }
                            None => (Label::stored(key), None),
                        };
                        (id, at, distance, similarity, None)
                    }
                    Decision::Duplicate { kept, distance, similarity, cluster } => {
                        let kept_at = Some(self.at(self.origin(kept)));
                        (self.name(kept)?, kept_at, distance, similarity, Some(cluster))
                    }
                };
            let similarity = similarity.map(size::similarity);
            noted(distance, similarity);
            let distance = Some(distance);
            let unique_by = None;
            write(&Duplicate {
                id,
                at,
                kept_id,
                kept_at,
                distance,
                similarity,
                cluster,
                unique_by,
                left: None,
            })?;
        }
        others.try_for_each(|(row, other)| write(&self.other(row, other)))
    }

    fn other(&self, row: u64, other: Other<'a>) -> Duplicate<'a> {
        match other {
            Other::Repeat(kept) => self.repeat(row, kept),
            Other::Dropped(Dropped { label, left, .. }) => Duplicate {
                id: Label::of(label.as_bytes()),
                at: self.at(row),
                kept_id: Label::of(&[]),
                kept_at: None,
                distance: None,
                similarity: None,
                cluster: None,
                unique_by: None,
                left: Some(size::similarity(*left)),
            },
        }
    }

    /// Returns the record of a row that shares a value with another one.
    fn repeat(&self, row: u64, kept: u64) -> Duplicate<'a> {
        let label = |origin: u64| {
            Label::of(self.kept.labels.get(&origin).map_or(&[], |label| label.as_bytes()))
        };
        Duplicate {
            id: label(row),
            at: self.at(row),
            kept_id: label(kept),
            kept_at: Some(self.at(kept)),
            distance: None,
            similarity: None,
            cluster: None,
            unique_by: self.unique_by,
            left: None,
        }
    }

    /// Writes a line for every group, the largest first.
    pub(super) fn write_clusters(&self, file: &mut Output) -> Result<()> {
        for cluster in self.decisions().clusters() {
            let names = cluster.members.iter().map(|&position| self.name(position));
            let names = names.collect::<hamdex::Result<Vec<Label<'_>>>>()?;
            let diameter = self.decisions().diameter(cluster);
            file.json(&ClusterLine::new(cluster.number as usize, names, diameter))?;
        }
        Ok(())
    }

    /// Counts the groups by size.
    pub(super) fn sizes(&self) -> BTreeMap<usize, u64> {
        let mut sizes = BTreeMap::new();
        for cluster in self.decisions().clusters() {
            *sizes.entry(cluster.members.len()).or_insert(0) += 1;
        }
        sizes
    }

    /// Names the largest groups.
    pub(super) fn largest(&self) -> Result<Vec<Group<'a>>> {
        let group = |Cluster { number, kept, members, .. }: Cluster<'_>| {
            Ok(Group { cluster: number, size: members.len(), kept_id: self.name(kept)? })
        };
        self.decisions().clusters().take(LARGEST).map(group).collect()
    }
}
