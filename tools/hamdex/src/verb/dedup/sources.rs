//! Sources: rows are counted by where they come from, so that none vanishes unseen.
//!
//! A source is a file, or a value of the field that the user names. A group that swallows a source
//! is seen by what is largest and farthest in it.

use std::collections::HashMap;

use hamdex::Fingerprint;
use hamdex::dedup::Decision;
use serde::Serialize;

use super::label::Label;
use super::write::Members;
use crate::size;

/// Removed rows below which nothing is worth a warning.
const FEW: u64 = 20;

/// A source of which less is left is as good as gone.
const GONE: f64 = 0.01;

/// Values of the field that are told apart; rows of any later one are counted together.
const MOST: usize = 100_000;

/// Names the rows without a value, and those of values beyond [`MOST`].
const NONE: &str = "(none)";
const OTHERS: &str = "(others)";

/// What became of one source.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SourceCounts<'a> {
    pub(super) name: String,
    pub(super) documents: u64,
    pub(super) kept: u64,
    pub(super) removed: u64,
    /// Part of its documents that was removed, to four digits.
    pub(super) removed_share: f64,
    /// The group that holds most of its documents; `None` if no group holds any.
    pub(super) largest_group: Option<LargestGroup>,
    /// Its removed document that is farthest from the kept one: the least similar, or the most
    /// distant where nothing was verified.
    pub(super) farthest: Option<FarthestPair<'a>>,
}

/// A group by what it holds of one source.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct LargestGroup {
    pub(super) cluster: u32,
    /// Documents of the source in it, which may hold others.
    pub(super) documents: u64,
}

/// A removed document and the one that was kept for it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct FarthestPair<'a> {
    pub(super) id: Label<'a>,
    pub(super) kept_id: Label<'a>,
    pub(super) distance: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) similarity: Option<f64>,
}

impl SourceCounts<'_> {
    /// Returns whether most of a source was removed.
    pub(super) fn is_halved(&self) -> bool {
        self.removed * 2 > self.documents && self.removed >= FEW
    }

    /// Returns whether all or nearly all of a source was removed.
    pub(super) fn is_gone(&self) -> bool {
        self.removed > 0 && self.kept as f64 <= GONE * self.documents as f64
    }
}

/// Rows by the value of a field.
#[derive(Debug, Default)]
pub(super) struct Named {
    known: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    /// The source of every document, and of every row with nothing to compare.
    documents: Vec<u32>,
    blanks: Vec<u32>,
}

impl Named {
    pub(super) fn document(&mut self, value: Option<&str>) {
        let source = self.source(value);
        self.documents.push(source);
    }

    pub(super) fn blank(&mut self, value: Option<&str>) {
        let source = self.source(value);
        self.blanks.push(source);
    }

    fn source(&mut self, value: Option<&str>) -> u32 {
        let value = value.unwrap_or(NONE);
        if let Some(&known) = self.known.get(value) {
            return known;
        }
        let value = if self.names.len() < MOST { value } else { OTHERS };
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let source = *self.known.entry(value.into()).or_insert(next);
        if source == next {
            self.names.push(value.into());
        }
        source
    }

    /// Returns whether any row has a value.
    pub(super) fn any(&self) -> bool {
        self.names.iter().any(|name| &**name != NONE)
    }

    /// Number of sources.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn of_document(&self, position: u32) -> usize {
        self.documents.get(position as usize).map_or(usize::MAX, |&source| source as usize)
    }

    pub(super) fn of_blank(&self, position: usize) -> usize {
        self.blanks.get(position).map_or(usize::MAX, |&source| source as usize)
    }
}

/// Counts all sources, those first that lost the largest share.
pub(super) fn sources<'a, F: Fingerprint>(members: &Members<'a, F>) -> Vec<SourceCounts<'a>> {
    let named = members.choice.named.as_ref();
    let name = |at: usize| match named {
        Some(named) => named.names.get(at).map_or_else(String::new, ToString::to_string),
        None => members.inputs.sources.get(at).map_or_else(String::new, |from| from.name.clone()),
    };
    let counts = members.kept.sources.iter().enumerate().map(|(at, &(kept, removed))| {
        let documents = kept + removed;
        let removed_share = size::similarity(removed as f64 / documents.max(1) as f64);
        SourceCounts {
            name: name(at),
            documents,
            kept,
            removed,
            removed_share,
            largest_group: None,
            farthest: None,
        }
    });
    let mut counts: Vec<SourceCounts<'a>> = counts.collect();
    largest_groups(members, &mut counts);
    farthest_pairs(members, &mut counts);
    let share = |counts: &SourceCounts<'_>| counts.removed as f64 / counts.documents.max(1) as f64;
    counts.sort_by(|a, b| share(b).total_cmp(&share(a)));
    counts
}

fn largest_groups<F: Fingerprint>(members: &Members<'_, F>, counts: &mut [SourceCounts<'_>]) {
    let mut inside: HashMap<usize, u64> = HashMap::new();
    for cluster in members.choice.decisions.clusters() {
        inside.clear();
        for &position in cluster.members {
            *inside.entry(members.source(position)).or_default() += 1;
        }
        for (&source, &documents) in &inside {
            let Some(counts) = counts.get_mut(source) else { continue };
            if counts.largest_group.is_none_or(|largest| largest.documents < documents) {
                counts.largest_group = Some(LargestGroup { cluster: cluster.number, documents });
            }
        }
    }
}

fn farthest_pairs<'a, F: Fingerprint>(members: &Members<'a, F>, counts: &mut [SourceCounts<'a>]) {
    for (id, position) in members.kept.ids.iter() {
        let Decision::Duplicate { kept, distance, similarity, .. } =
            members.choice.decisions.of(position)
        else {
            continue;
        };
        let Some(counts) = counts.get_mut(members.source(position)) else { continue };
        let similarity = similarity.map(size::similarity);
        let is_farther = |known: &FarthestPair<'_>| match (similarity, known.similarity) {
            (Some(ours), Some(theirs)) if ours.total_cmp(&theirs).is_ne() => ours < theirs,
            _ => distance > known.distance,
        };
        if counts.farthest.as_ref().is_none_or(is_farther) {
            let (id, kept_id) = (Label::of(id), members.name(kept));
            counts.farthest = Some(FarthestPair { id, kept_id, distance, similarity });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(documents: u64, removed: u64) -> SourceCounts<'static> {
        SourceCounts {
            name: String::new(),
            documents,
            kept: documents - removed,
            removed,
            removed_share: 0.0,
            largest_group: None,
            farthest: None,
        }
    }

    #[test]
    fn half_of_a_source_is_worth_a_word_if_it_is_many() {
        assert!(counts(39, 20).is_halved());
        assert!(!counts(40, 20).is_halved());
        assert!(!counts(20, 19).is_halved());
    }

    #[test]
    fn a_source_is_gone_with_its_last_hundredth() {
        assert!(counts(1, 1).is_gone() && counts(300, 297).is_gone());
        assert!(!counts(300, 296).is_gone() && !counts(0, 0).is_gone());
    }

    #[test]
    fn values_become_sources_up_to_a_number() {
        let mut named = Named::default();
        assert!(!named.any());
        named.document(None);
        named.blank(None);
        assert!(!named.any() && named.len() == 1);
        for n in 0..MOST {
            named.document(Some(&n.to_string()));
        }
        named.document(Some("one more"));
        named.blank(Some("7"));
        assert!(named.any());
        let last = u32::try_from(MOST).unwrap();
        assert_eq!(&*named.names[named.of_document(last + 1)], OTHERS);
        assert_eq!(named.of_document(last), named.of_document(last + 1));
        assert_eq!(&*named.names[named.of_blank(1)], "7");
        assert_eq!(&*named.names[named.of_blank(0)], NONE);
    }
}
