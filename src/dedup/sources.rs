//! Sources: documents are counted by where they come from, so that none vanishes unseen.
//!
//! A source is a file, a host, or any other value that rows share. What is largest and farthest in
//! a source shows the group that swallows it.

use std::collections::HashMap;

use super::decisions::{Decision, Decisions};
use crate::fingerprint::Fingerprint;

/// Removed documents below which nothing is worth a warning.
const FEW: u64 = 20;

/// A source of which no more than this share is left is as good as gone.
const GONE: f64 = 0.01;

/// Sources that a sentence names.
const NAMED: usize = 3;

/// What became of the documents of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceCounts {
    /// Name of the source.
    pub name: String,
    /// Documents that were kept.
    pub kept: u64,
    /// Documents that were removed.
    pub removed: u64,
    /// The group that holds most of its documents; `None` if no group holds any.
    pub largest_group: Option<LargestGroup>,
    /// Its removed document that is farthest from the kept one.
    pub farthest: Option<FarthestPair>,
}

/// A group by what it holds of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargestGroup {
    /// Number of the cluster, from 1.
    pub cluster: u32,
    /// Documents of the source in it; the cluster may hold others.
    pub documents: u64,
}

/// A removed document and the one that was kept for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FarthestPair {
    /// Position of the removed document.
    pub removed: u32,
    /// Position of the kept document.
    pub kept: u32,
    /// Bits that the two differ in.
    pub distance: u32,
    /// Similarity of the two to four digits; `None` where nothing was verified.
    pub similarity: Option<f64>,
}

impl SourceCounts {
    /// Names a source whose documents another engine has counted.
    pub fn new(name: impl Into<String>, kept: u64, removed: u64) -> Self {
        Self { name: name.into(), kept, removed, largest_group: None, farthest: None }
    }

    /// Returns the number of documents, kept and removed ones.
    pub fn documents(&self) -> u64 {
        self.kept + self.removed
    }

    /// Returns the share of the documents that was removed, to four digits.
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

    /// Returns whether most documents of the source were removed, 20 at least.
    pub fn is_halved(&self) -> bool {
        self.removed * 2 > self.documents() && self.removed >= FEW
    }

    /// Returns whether all or nearly all documents of the source were removed.
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

/// Counts documents by their sources.
///
/// [`Sources::number`] gives every name a number, [`Sources::count`] counts what becomes of a
/// document, and [`Sources::counts`] adds what the decisions say. Memory is that of the names and 50
/// bytes each.
///
/// ```
/// use hamdex::dedup::{self, Dedup, Settings, Sources};
///
/// let mut dedup = Dedup::<u64>::new(&Settings::new(3))?;
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
    /// Most values that are counted separately; documents of any later one are counted together.
    pub const MOST: usize = 100_000;

    /// Names the documents without a value.
    pub const NONE: &str = "(none)";

    /// Names the documents of values beyond [`Sources::MOST`].
    pub const OTHERS: &str = "(others)";

    /// Begins without any source.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins with sources that are numbered from 0 as they come; names may be equal.
    pub fn of_names(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let counts = names.into_iter().map(|name| SourceCounts::new(name, 0, 0));
        Self { known: HashMap::new(), counts: counts.collect() }
    }

    /// Returns the number of the source with a name, a new one for a new name.
    pub fn number(&mut self, value: Option<&str>) -> u32 {
        let value = value.unwrap_or(Self::NONE);
        if let Some(&known) = self.known.get(value) {
            return known;
        }
        let value = if self.counts.len() < Self::MOST { value } else { Self::OTHERS };
        let next = u32::try_from(self.counts.len()).expect("names of 2^32 sources fit nowhere");
        let number = *self.known.entry(value.into()).or_insert(next);
        if number == next {
            self.counts.push(SourceCounts::new(value, 0, 0));
        }
        number
    }

    /// Returns whether any document has a value.
    pub fn has_values(&self) -> bool {
        self.counts.iter().any(|source| source.name != Self::NONE)
    }

    /// Counts a document of a source as kept or removed.
    pub fn count(&mut self, number: u32, keeps: bool) {
        if let Some(SourceCounts { kept, removed, .. }) = self.counts.get_mut(number as usize) {
            *(if keeps { kept } else { removed }) += 1;
        }
    }

    /// Returns all sources, those first that lost the largest share.
    ///
    /// Of sources that lost equal shares the one with the smaller number comes first. `source`
    /// returns the number of the source of each document, by its position. Takes one pass over
    /// the decisions and holds a number for each source of one cluster.
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

/// Sorts sources by the share that each lost, the largest first.
///
/// Equal shares keep their order.
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

/// Names up to three sources that are all but gone and counts the others.
///
/// Returns `None` if there is no such source. The order is that of `counts`.
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

/// Returns a sentence for each of the first three sources that lost most documents.
///
/// ```
/// use hamdex::dedup::{SourceCounts, source_warnings};
///
/// let told = source_warnings(&[SourceCounts::new("b.org", 0, 2500)]);
/// assert!(told[0].starts_with("2,500 of the 2,500 documents of b.org were removed"));
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
    // Most documents are in no cluster, which costs less to see than a decision.
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

/// Rounds a share or a similarity to the four digits that results have.
fn four_digits(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Writes a count with thousands separators: `262,144`.
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
    use crate::dedup::{Dedup, Settings};

    #[test]
    fn half_of_a_source_is_worth_a_word_if_it_is_many() {
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
        let mut dedup = Dedup::<u64>::new(&Settings::new(4)).unwrap();
        let mut sources = Sources::of_names(["a", "b", "b"]);
        // Two groups of three and one document alone.
        let rows = [(0, 0), (1, 1), (0xf, 1), (!0, 1), (!1, 0), (!3, 2), (0xffff << 20, 2)];
        for (fingerprint, _) in rows {
            dedup.push(fingerprint, &[], ()).unwrap();
        }
        let decisions = dedup.finish(&()).unwrap();
        for (&(_, source), decision) in rows.iter().zip(decisions.iter()) {
            sources.count(source, matches!(decision, Decision::Kept { .. }));
        }
        let counts = sources.counts(&decisions, |position| rows[position as usize].1);
        let told: Vec<_> = counts.iter().map(|c| (c.name.as_str(), c.kept, c.removed)).collect();
        assert_eq!(told, [("b", 1, 2), ("a", 1, 1), ("b", 1, 1)]);
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
