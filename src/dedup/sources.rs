//! Counts kept and removed documents by source, so that no source disappears unnoticed.
//!
//! A source is a file, a host, or any other value that rows share. Its largest group and farthest
//! pair show which group removes most of it.

use std::collections::HashMap;

use super::decisions::{Decision, Decisions};
use crate::fingerprint::Fingerprint;

/// Fewest removed documents of a source that are worth a warning.
const FEW: u64 = 20;

/// Largest share of kept documents at which a source is reported as gone.
const GONE: f64 = 0.01;

/// Sources that a message names.
const NAMED: usize = 3;

/// Kept and removed documents of one source.
///
/// ```
/// use hamdex::dedup::SourceCounts;
///
/// let counts = SourceCounts::new("example.org", 30, 70);
/// assert_eq!((counts.documents(), counts.removed_share()), (100, 0.7));
/// assert!(counts.is_halved() && !counts.is_gone());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SourceCounts {
    /// Name of the source.
    pub name: String,
    /// Number of kept documents.
    pub kept: u64,
    /// Number of removed documents.
    pub removed: u64,
    /// The cluster with most of its documents; `None` if no cluster has any.
    pub largest_group: Option<LargestGroup>,
    /// Its removed document that differs most from the kept one.
    pub farthest: Option<FarthestPair>,
}

/// The cluster with most documents of one source. See [`Sources`] for an example.
///
/// ```
/// use hamdex::dedup::{Dedup, LargestGroup, DedupOptions, Sources};
///
/// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
/// for fingerprint in [0b0000, 0b0001, 0xff00] {
///     dedup.push(fingerprint, &[], ())?;
/// }
/// let counts = Sources::of_names(["a.org"]).counts(&dedup.finish(&())?, |_| 0);
/// let LargestGroup { cluster, documents, .. } = counts[0].largest_group.unwrap();
/// assert_eq!((cluster, documents), (1, 2));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargestGroup {
    /// Number of the cluster, from 1.
    pub cluster: u32,
    /// Documents of the source in it; it may also have documents of other sources.
    pub documents: u64,
}

/// A removed document and the one kept instead. See [`Sources`] for an example.
///
/// ```
/// use hamdex::dedup::{Dedup, FarthestPair, DedupOptions, Sources};
///
/// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
/// for fingerprint in [0b0000, 0b0001, 0b0111] {
///     dedup.push(fingerprint, &[], ())?;
/// }
/// let counts = Sources::of_names(["a.org"]).counts(&dedup.finish(&())?, |_| 0);
/// let FarthestPair { removed, kept, distance, .. } = counts[0].farthest.unwrap();
/// assert_eq!((removed, kept, distance), (2, 0, 3));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FarthestPair {
    /// Position of the removed document.
    pub removed: u32,
    /// Position of the kept document.
    pub kept: u32,
    /// Distance of the two in bits.
    pub distance: u32,
    /// Similarity of the two, to four digits; `None` if nothing was verified.
    pub similarity: Option<f64>,
}

impl SourceCounts {
    /// Creates the counts of a source that were computed elsewhere.
    pub fn new(name: impl Into<String>, kept: u64, removed: u64) -> Self {
        Self { name: name.into(), kept, removed, largest_group: None, farthest: None }
    }

    /// Returns the number of documents, kept and removed.
    pub fn documents(&self) -> u64 {
        self.kept + self.removed
    }

    /// Returns the share of removed documents, rounded to four digits.
    ///
    /// ```
    /// use hamdex::dedup::SourceCounts;
    ///
    /// assert_eq!(SourceCounts::new("example.org", 2, 1).removed_share(), 0.3333);
    /// assert_eq!(SourceCounts::new("example.org", 0, 0).removed_share(), 0.0);
    /// ```
    pub fn removed_share(&self) -> f64 {
        four_digits(self.exact_share())
    }

    /// Returns true if most documents, and at least 20, were removed.
    pub fn is_halved(&self) -> bool {
        self.removed * 2 > self.documents() && self.removed >= FEW
    }

    /// Returns true if at least 99 % of the documents were removed.
    ///
    /// ```
    /// use hamdex::dedup::SourceCounts;
    ///
    /// assert!(SourceCounts::new("example.org", 1, 99).is_gone());
    /// assert!(!SourceCounts::new("example.org", 1, 98).is_gone());
    /// ```
    pub fn is_gone(&self) -> bool {
        self.removed > 0 && self.kept as f64 <= GONE * self.documents() as f64
    }

    fn exact_share(&self) -> f64 {
        self.removed as f64 / self.documents().max(1) as f64
    }
}

/// Counts kept and removed documents by source.
///
/// [`Sources::number`] numbers the names, [`Sources::count`] counts a document as kept or removed,
/// and [`Sources::counts`] adds the largest group and the farthest pair. Takes 50 bytes of memory
/// per source, and its name.
///
/// ```
/// use hamdex::dedup::{self, Dedup, DedupOptions, Sources};
///
/// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
/// let mut sources = Sources::new();
/// let mut numbers = Vec::new();
/// for (fingerprint, host) in [(0b0000, "a.org"), (0b0001, "b.org"), (0xff00, "a.org")] {
///     dedup.push(fingerprint, &[], ())?;
///     numbers.push(sources.number(Some(host)));
/// }
/// let decisions = dedup.finish(&())?;
/// for (&number, decision) in numbers.iter().zip(decisions.iter()) {
///     sources.count(number, matches!(decision, dedup::Decision::Kept { .. }));
/// }
/// let counts = sources.counts(&decisions, |position| numbers[position as usize]);
/// assert_eq!((counts[0].name.as_str(), counts[0].removed), ("b.org", 1));
/// assert_eq!(counts[0].farthest.map(|pair| (pair.removed, pair.kept)), Some((1, 0)));
/// assert_eq!(counts[0].largest_group.map(|group| group.documents), Some(1));
/// assert_eq!((counts[1].name.as_str(), counts[1].kept), ("a.org", 2));
/// assert_eq!(dedup::gone_sources(&counts).as_deref(), Some("b.org"));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sources {
    known: HashMap<Box<str>, u32>,
    counts: Vec<SourceCounts>,
}

impl Sources {
    /// Most sources that are counted separately; later ones are counted together.
    pub const MOST: usize = 100_000;

    /// Name of the source of documents without a value.
    pub const NONE: &str = "(none)";

    /// Name of the source of values beyond [`Sources::MOST`].
    pub const OTHERS: &str = "(others)";

    /// Creates a counter that has no sources yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a counter with sources numbered from 0.
    ///
    /// Names may repeat.
    ///
    /// ```
    /// use hamdex::dedup::Sources;
    ///
    /// let mut sources = Sources::of_names(["a.jsonl", "b.jsonl"]);
    /// sources.count(1, true);
    /// ```
    pub fn of_names(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let counts = names.into_iter().map(|name| SourceCounts::new(name, 0, 0));
        Self { known: HashMap::new(), counts: counts.collect() }
    }

    /// Returns the number of a source by name, adding new ones.
    ///
    /// ```
    /// use hamdex::dedup::Sources;
    ///
    /// let mut sources = Sources::new();
    /// assert_eq!((sources.number(Some("a.org")), sources.number(None)), (0, 1));
    /// assert_eq!(sources.number(Some("a.org")), 0);
    /// assert!(sources.has_values());
    /// ```
    pub fn number(&mut self, value: Option<&str>) -> u32 {
        let value = value.unwrap_or(Self::NONE);
        if let Some(&known) = self.known.get(value) {
            return known;
        }
        let value = if self.counts.len() < Self::MOST { value } else { Self::OTHERS };
        let next = u32::try_from(self.counts.len()).expect("fewer than 2^32 names fit into memory");
        let number = *self.known.entry(value.into()).or_insert(next);
        if number == next {
            self.counts.push(SourceCounts::new(value, 0, 0));
        }
        number
    }

    /// Returns true if any document has a value.
    pub fn has_values(&self) -> bool {
        self.counts.iter().any(|source| source.name != Self::NONE)
    }

    /// Counts a document of a source as kept or removed.
    pub fn count(&mut self, number: u32, keeps: bool) {
        if let Some(SourceCounts { kept, removed, .. }) = self.counts.get_mut(number as usize) {
            *(if keeps { kept } else { removed }) += 1;
        }
    }

    /// Returns all sources, those with the largest removed share first.
    ///
    /// Ties are ordered by number. `source` maps the position of a document to the number of its
    /// source. Takes one pass over the decisions, and memory for the sources of one cluster.
    pub fn counts<F: Fingerprint>(
        &self,
        decisions: &Decisions<F>,
        source: impl Fn(u32) -> u32,
    ) -> Vec<SourceCounts> {
        let mut counts = self.counts.clone();
        let source = |position: u32| source(position) as usize;
        largest_groups(decisions, &source, &mut counts);
        farthest_pairs(decisions, &source, &mut counts);
        sort_sources(&mut counts);
        counts
    }
}

/// Sorts sources by removed share, largest first; ties keep their order.
///
/// ```
/// use hamdex::dedup::{SourceCounts, sort_sources};
///
/// let mut counts = [("a", 9, 1), ("b", 1, 9)].map(|(name, kept, removed)| {
///     SourceCounts::new(name, kept, removed)
/// });
/// sort_sources(&mut counts);
/// assert_eq!(counts[0].name, "b");
/// ```
pub fn sort_sources(counts: &mut [SourceCounts]) {
    counts.sort_by(|a, b| b.exact_share().total_cmp(&a.exact_share()));
}

/// Names up to three sources that are gone, and counts the rest.
///
/// Returns `None` if no source [is gone](SourceCounts::is_gone). Keeps the order of `counts`.
///
/// ```
/// use hamdex::dedup::{SourceCounts, gone_sources};
///
/// let counts = ["a", "b", "c", "d"].map(|name| SourceCounts::new(name, 0, 9));
/// assert_eq!(gone_sources(&counts).as_deref(), Some("a, b, c and 1 more"));
/// ```
pub fn gone_sources(counts: &[SourceCounts]) -> Option<String> {
    let gone: Vec<&str> = counts
        .iter()
        .filter(|source| source.is_gone())
        .map(|source| source.name.as_str())
        .collect();
    let named = gone.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match gone.len() {
        0 => None,
        count if count <= NAMED => Some(named),
        count => Some(format!("{named} and {} more", thousands((count - NAMED) as u64))),
    }
}

/// Returns warnings for the first three sources that lost most documents.
///
/// ```
/// use hamdex::dedup::{SourceCounts, source_warnings};
///
/// let warnings = source_warnings(&[SourceCounts::new("b.org", 0, 2500)]);
/// assert!(warnings[0].starts_with("2,500 of the 2,500 documents of b.org were removed"));
/// ```
pub fn source_warnings(counts: &[SourceCounts]) -> Vec<String> {
    let halved = counts.iter().filter(|source| source.is_halved());
    let sentence = |source: &SourceCounts| {
        let gone = if source.is_gone() { ", next to all that this source had" } else { "" };
        format!(
            "{} of the {} documents of {} were removed{gone}",
            thousands(source.removed),
            thousands(source.documents()),
            source.name
        )
    };
    halved.take(NAMED).map(sentence).collect()
}

fn largest_groups<F: Fingerprint>(
    decisions: &Decisions<F>,
    source: &impl Fn(u32) -> usize,
    counts: &mut [SourceCounts],
) {
    let mut inside: HashMap<usize, u64> = HashMap::new();
    for cluster in decisions.clusters() {
        inside.clear();
        for &position in cluster.members {
            *inside.entry(source(position)).or_default() += 1;
        }
        for (&source, &documents) in &inside {
            let Some(counts) = counts.get_mut(source) else { continue };
            if counts.largest_group.is_none_or(|largest| largest.documents < documents) {
                counts.largest_group = Some(LargestGroup { cluster: cluster.number, documents });
            }
        }
    }
}

fn farthest_pairs<F: Fingerprint>(
    decisions: &Decisions<F>,
    source: &impl Fn(u32) -> usize,
    counts: &mut [SourceCounts],
) {
    // Most documents are in no cluster, and looking that up is cheaper than a decision.
    let clustered = (0..).zip(decisions.fingerprints()).map(|(position, _)| position);
    for removed in clustered.filter(|&position| decisions.cluster(position).is_some()) {
        let Decision::Duplicate { kept, distance, similarity, .. } = decisions.of(removed) else {
            continue;
        };
        let Some(counts) = counts.get_mut(source(removed)) else { continue };
        let similarity = similarity.map(four_digits);
        let is_farther = |known: &FarthestPair| match (similarity, known.similarity) {
            (Some(ours), Some(theirs)) if ours.total_cmp(&theirs).is_ne() => ours < theirs,
            _ => distance > known.distance,
        };
        if counts.farthest.as_ref().is_none_or(is_farther) {
            counts.farthest = Some(FarthestPair { removed, kept, distance, similarity });
        }
    }
}

/// Rounds to four digits, as results do.
fn four_digits(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Formats a count with thousands separators: `262,144`.
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::{Dedup, DedupOptions};

    #[test]
    fn a_source_is_halved_if_more_than_half_and_twenty_are_removed() {
        let counts = |documents, removed| SourceCounts::new("", documents - removed, removed);
        assert!(counts(39, 20).is_halved());
        assert!(!counts(40, 20).is_halved());
        assert!(!counts(20, 19).is_halved());
    }

    #[test]
    fn a_source_is_gone_with_its_last_hundredth() {
        let counts = |documents, removed| SourceCounts::new("", documents - removed, removed);
        assert!(counts(1, 1).is_gone() && counts(300, 297).is_gone());
        assert!(!counts(300, 296).is_gone() && !counts(0, 0).is_gone());
    }

    #[test]
    fn three_sources_are_named_and_others_are_counted() {
        let gone = |count: usize| {
            let counts: Vec<_> =
                (0..count).map(|n| SourceCounts::new(n.to_string(), 0, 1000)).collect();
            (gone_sources(&counts), source_warnings(&counts).len())
        };
        assert_eq!(gone(0), (None, 0));
        assert_eq!(gone(3), (Some("0, 1, 2".to_owned()), 3));
        assert_eq!(gone(5), (Some("0, 1, 2 and 2 more".to_owned()), 3));
        assert_eq!(gone_sources(&[SourceCounts::new("a", 1, 1)]), None);
    }

    #[test]
    fn values_become_sources_up_to_a_number() {
        let mut sources = Sources::new();
        assert!(!sources.has_values());
        let none = sources.number(None);
        assert!(!sources.has_values() && sources.number(None) == none);
        for n in 0..Sources::MOST {
            sources.number(Some(&n.to_string()));
        }
        let late = sources.number(Some("one more"));
        assert!(sources.has_values());
        assert_eq!(sources.number(Some("another")), late);
        assert_eq!(sources.number(Some(&(Sources::MOST - 1).to_string())), late);
        let name = |number: u32| sources.counts[number as usize].name.clone();
        assert_eq!([name(late), name(none)], [Sources::OTHERS, Sources::NONE]);
        assert_eq!(name(8), "7");
    }

    #[test]
    fn a_source_knows_its_largest_group_and_its_farthest_pair() {
        let mut dedup = Dedup::<u64>::new(&DedupOptions::new(4)).unwrap();
        let mut sources = Sources::of_names(["a", "b", "b"]);
        // Two groups of three and a document in no group.
        let rows = [(0, 0), (1, 1), (0xf, 1), (!0, 1), (!1, 0), (!3, 2), (0xffff << 20, 2)];
        for (fingerprint, _) in rows {
            dedup.push(fingerprint, &[], ()).unwrap();
        }
        let decisions = dedup.finish(&()).unwrap();
        for (&(_, source), decision) in rows.iter().zip(decisions.iter()) {
            sources.count(source, matches!(decision, Decision::Kept { .. }));
        }
        let counts = sources.counts(&decisions, |position| rows[position as usize].1);
        let names: Vec<_> = counts.iter().map(|c| (c.name.as_str(), c.kept, c.removed)).collect();
        assert_eq!(names, [("b", 1, 2), ("a", 1, 1), ("b", 1, 1)]);
        let [b, a, last] = counts.as_slice() else { panic!("{counts:?}") };
        assert_eq!(b.largest_group, Some(LargestGroup { cluster: 1, documents: 2 }));
        assert_eq!(a.largest_group, Some(LargestGroup { cluster: 1, documents: 1 }));
        assert_eq!(last.largest_group, Some(LargestGroup { cluster: 2, documents: 1 }));
        let pair = |removed, kept, distance| {
            Some(FarthestPair { removed, kept, distance, similarity: None })
        };
        assert_eq!(b.farthest, pair(2, 0, 4));
        assert_eq!(a.farthest, pair(4, 3, 1));
        assert_eq!(last.farthest, pair(5, 3, 2));
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!([0, 999, 1_000, 262_144].map(thousands), ["0", "999", "1,000", "262,144"]);
    }
}
