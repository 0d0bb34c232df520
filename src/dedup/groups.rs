//! Links fingerprints and their evidence into groups, by chains or by representatives.
#![expect(
    clippy::indexing_slicing,
    reason = "labels are positions; those of callers are checked or documented to panic"
)]

use std::cmp::Reverse;

use rayon::prelude::*;

use super::settings::DedupOptions;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::{self, Bracket, Grouping, JoinOptions, Labelled, Outlines, Similarities};
use crate::progress::Progress;
use crate::verify::spilled::Bits;
use crate::verify::{EvidenceFile, Linkage, Verification};

/// Returns, for every position, the position that names its group.
///
/// That is the first position of the group, or its first in `order`, which lists positions by
/// falling preference. Positions missing from `order` are in no group. With
/// [`Verification::Contains`] it is the largest document of the group by
/// [`Extent`](crate::verify::Extent), and the first among equals. `evidence` is what the
/// verification of `settings` compares; without it the distance decides. Takes about 200 bytes of
/// memory per document, 256 more if most texts are short and many documents near, or what
/// [`DedupOptions::memory`] allows and 10 bytes per document.
///
/// # Errors
///
/// - [`Error::InvalidDistance`](crate::Error::InvalidDistance) if the distance is above the width.
/// - [`Error::InvalidOption`](crate::Error::InvalidOption) if there are more than `u32::MAX`
///   fingerprints, or if `order` has a position out of range.
/// - [`Error::Cancelled`](crate::Error::Cancelled) once the progress sink asks to stop.
/// - Those of reading the evidence.
///
/// ```
/// use hamdex::dedup::{self, DedupOptions};
///
/// let fingerprints = [0b0111_u64, 0xffff, 0b0001, 0b0001];
/// let settings = DedupOptions::new(2);
/// let labels = dedup::labels(&fingerprints, None, &settings, None, &())?;
/// assert_eq!(labels, [0, 1, 0, 0]);
/// let last_first = dedup::labels(&fingerprints, None, &settings, Some(&[3, 2, 1, 0]), &())?;
/// assert_eq!(last_first, [3, 1, 3, 3]);
/// assert_eq!(dedup::groups(&last_first).get(0), Some(&[0, 2, 3][..]));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn labels<F: Fingerprint>(
    fingerprints: &[F],
    evidence: Option<&EvidenceFile>,
    settings: &DedupOptions,
    order: Option<&[u32]>,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    if let Some(position) = order.and_then(|order| order.iter().max())
        && *position as usize >= fingerprints.len()
    {
        let count = fingerprints.len();
        let reason = format!("position {position} is out of range: there are {count} documents");
        return Err(Error::InvalidOption { name: "order", reason });
    }
    let all = (order, u32::MAX);
    labelled(fingerprints, evidence, settings, all, progress).map(|labelled| labelled.labels)
}

/// Does what [`labels`] does, and also returns the similarities that the checks computed.
///
/// Documents from position `kept` on are always kept, so no pair of them passes. This holds even
/// for a check that counts text common to many documents and now sees fewer of them.
pub(super) fn labelled<F: Fingerprint>(
    fingerprints: &[F],
    evidence: Option<&EvidenceFile>,
    settings: &DedupOptions,
    (order, kept): (Option<&[u32]>, u32),
    progress: &dyn Progress,
) -> Result<Labelled> {
    let evidence = evidence.filter(|_| settings.verification != Verification::None);
    let largest = evidence
        .filter(|_| matches!(settings.verification, Verification::Contains(_)))
        .map(|evidence| largest_first(evidence, fingerprints.len(), order))
        .transpose()?;
    let order = largest.as_deref().or(order);
    let linking = Linking { settings, evidence, order, progress };
    let are_kept = |a: u32, b: u32| linking.position(a).min(linking.position(b)) >= kept;
    linking.labelled(fingerprints, are_kept)
}

/// Lists positions by falling extent, so that containing documents precede contained ones.
pub(super) fn largest_first(
    evidence: &EvidenceFile,
    documents: usize,
    order: Option<&[u32]>,
) -> Result<Vec<u32>> {
    let extents = (0..documents).into_par_iter().map(|position| evidence.extent(position));
    let extents = extents.collect::<Result<Vec<_>>>()?;
    let mut largest: Vec<u32> = match order {
        Some(order) => order.to_vec(),
        None => (0..).take(documents).collect(),
    };
    largest.par_sort_by_key(|&position| Reverse(extents[position as usize]));
    Ok(largest)
}

/// What decides whether two documents are linked.
pub(super) struct Linking<'a> {
    pub(super) settings: &'a DedupOptions,
    /// `None` if the distance decides.
    pub(super) evidence: Option<&'a EvidenceFile>,
    /// Positions by falling preference; `None` is all in their own order.
    pub(super) order: Option<&'a [u32]>,
    pub(super) progress: &'a dyn Progress,
}

impl Linking<'_> {
    /// Returns the position at a place in the order.
    fn position(&self, place: u32) -> u32 {
        self.order.map_or(place, |order| order[place as usize])
    }

    /// Groups the documents of the order. Others are in no group.
    ///
    /// No pair of places in the order passes of which `are_kept` says that both documents are kept.
    pub(super) fn labelled<F: Fingerprint>(
        &self,
        fingerprints: &[F],
        are_kept: impl Fn(u32, u32) -> bool + Sync,
    ) -> Result<Labelled> {
        let grouped = self.of_places(fingerprints, are_kept)?;
        let Some(order) = self.order else { return Ok(grouped) };
        let mut labels: Vec<u32> = (0..).zip(fingerprints).map(|(position, _)| position).collect();
        for (&position, &label) in order.iter().zip(&grouped.labels) {
            labels[position as usize] = self.position(label);
        }
        let similarities = grouped.similarities.iter();
        let similarities = similarities.map(|(place, found)| (self.position(place), found));
        Ok(Labelled { labels, similarities: Similarities::new(similarities.collect()) })
    }

    /// Groups places in the order, by which labels name them too.
    fn of_places<F: Fingerprint>(
        &self,
        fingerprints: &[F],
        are_kept: impl Fn(u32, u32) -> bool + Sync,
    ) -> Result<Labelled> {
        let DedupOptions { distance, verification, .. } = *self.settings;
        let options = JoinOptions::new(distance).costs(self.settings.costs);
        let linkage = self.settings.linking();
        let at = |place: u32| self.position(place) as usize;
        let fingerprint = |place: u32| fingerprints[at(place)];
        let count = self.order.map_or(fingerprints.len(), <[u32]>::len);
        let count = u32::try_from(count).map_err(|_| Error::InvalidOption {
            name: "fingerprints",
            reason: format!("{count} are too many; the maximum is {}", u32::MAX),
        })?;
        let (block, outlined) = self.settings.block(count, self.evidence, fingerprint);
        if self.evidence.is_none() && linkage == Linkage::Chain && block >= count {
            let ordered: Vec<F> = (0..count).map(fingerprint).collect();
            let labels = join::clusters(&ordered, options, self.progress)?;
            return Ok(Labelled { labels, similarities: Similarities::default() });
        }
        let digest =
            |place: u32| self.evidence.map_or(Ok(0), |evidence| evidence.digest(at(place)));
        let verify = |a: u32, b: u32, apart: u32| match self.evidence {
            _ if are_kept(a, b) => Ok(None),
            None => Ok((apart <= distance).then_some(0.0)),
            Some(evidence) => {
                let pair = (apart, at(a), at(b));
                evidence.check_within(verification, distance, pair, self.progress)
            }
        };
        let read = outlined.map(|evidence| move |place: u32| evidence.bigrams(at(place)));
        let outlines = read.as_ref().map(|read| Outlines { read, verification });
        let rejects = |a: u32, b: u32, apart: u32| {
            let pair = (apart, at(a), at(b));
            self.evidence.is_some_and(|of| of.rejects(verification, distance, pair))
        };
        let bracket = self.evidence.and_then(|of| of.brackets(verification));
        let bracket = bracket.map(|bracket| move |place: u32| bracket(at(place)));
        let bracket = bracket.as_ref().map(|bracket| bracket as &Bracket<'_>);
        let (fingerprint, digest, rejects) = (&fingerprint, &digest, &rejects);
        let grouping = Grouping { count, fingerprint, digest, block, rejects, bracket, outlines };
        join::labelled(&grouping, options, linkage, self.progress, &verify)
    }
}

/// Groups of at least two positions, the largest first.
///
/// Groups of equal size are ordered by their first position. Takes 4 bytes per member and 8 per
/// group.
///
/// ```
/// use hamdex::dedup;
///
/// let groups = dedup::groups(&[0, 1, 0, 3, 1, 1]);
/// assert_eq!(groups.iter().collect::<Vec<_>>(), [&[1, 4, 5][..], &[0, 2]]);
/// assert_eq!((groups.len(), groups.is_empty(), groups.get(2)), (2, false, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups {
    /// The positions of one group after another.
    members: Vec<u32>,
    /// Where each group ends.
    ends: Vec<usize>,
}

impl Groups {
    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if no two positions are in one group.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the positions of a group, ascending; `None` after the last group.
    pub fn get(&self, group: usize) -> Option<&[u32]> {
        let &end = self.ends.get(group)?;
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.members.get(start..end)
    }

    /// Returns the positions of each group.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.len()).map(|group| self.get(group).expect("the group exists"))
    }
}

/// Converts labels to groups of at least two positions.
///
/// # Panics
///
/// Panics if a label is not a position; the result of [`labels`] has only positions.
///
/// ```
/// use hamdex::dedup;
///
/// assert_eq!(dedup::groups(&[0, 1, 0, 3, 1, 1]).get(0), Some(&[1, 4, 5][..]));
/// ```
pub fn groups(labels: &[u32]) -> Groups {
    let Some(last) = labels.len().checked_sub(1) else { return Groups::default() };
    let mut shared = Bits::new(u32::try_from(last).expect("positions have 32 bits"));
    for (position, &label) in (0..).zip(labels) {
        assert!(label as usize <= last, "label {label} is not a position");
        if label != position {
            shared.set(label);
        }
    }
    let labelled = labels.iter().zip(0..);
    let mut members: Vec<(u32, u32)> = labelled
        .filter(|&(&label, _)| shared.has(label))
        .map(|(&label, position)| (label, position))
        .collect();
    drop(shared);
    members.par_sort_unstable();
    let groups = members.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
    let mut groups: Vec<&[(u32, u32)]> = groups.collect();
    groups.par_sort_unstable_by_key(|group| (Reverse(group.len()), group[0].1));
    let mut all = Groups::default();
    for group in groups {
        all.members.extend(group.iter().map(|&(_, position)| position));
        all.ends.push(all.members.len());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Evidence, EvidenceWriter};

    #[test]
    fn groups_come_largest_first_and_leave_out_single_documents() {
        let listed = |labels: &[u32]| -> Vec<Vec<u32>> {
            groups(labels).iter().map(<[u32]>::to_vec).collect()
        };
        assert_eq!(listed(&[0, 1, 0, 3, 1, 1]), [vec![1, 4, 5], vec![0, 2]]);
        assert_eq!(listed(&[0, 0, 2, 2]), [vec![0, 1], vec![2, 3]]);
        assert!(groups(&[0, 1, 2]).is_empty());
        assert!(groups(&[]).is_empty());
    }

    #[test]
    fn what_the_order_leaves_out_stands_alone_and_links_nothing() {
        let chain = [0b0000_u64, 0b0011, 0b1111];
        let labels = |order: &[u32]| {
            super::labels(&chain, None, &DedupOptions::new(2), Some(order), &()).unwrap()
        };
        assert_eq!(labels(&[2, 1, 0]), [2, 2, 2]);
        assert_eq!(labels(&[2, 0]), [0, 1, 2]);
        assert_eq!(labels(&[1, 2]), [0, 1, 1]);
    }

    #[test]
    fn an_order_with_a_position_beyond_the_last_is_refused() {
        let refused = super::labels(&[1_u64, 2], None, &DedupOptions::new(1), Some(&[0, 2]), &());
        assert!(matches!(refused, Err(Error::InvalidOption { name: "order", .. })));
    }

    #[test]
    fn outlines_are_read_if_they_save_more_than_they_cost() {
        let evidence = |text: &str| {
            let mut writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
            writer.push(text.as_bytes()).unwrap();
            writer.finish().unwrap()
        };
        let (short, long) = (evidence("sun"), evidence(&"sun and rain ".repeat(100)));
        // Of a million documents, `alike` in a row are equal and no two others are near.
        let block = |memory: usize, evidence, alike: u64| {
            let settings = DedupOptions::new(3).memory(memory);
            let fingerprint =
                |place: u32| (u64::from(place) / alike).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (block, outlined) = settings.block(1_000_000, evidence, fingerprint);
            (1_000_000_u32.div_ceil(block), outlined.is_some())
        };
        assert_eq!(block(usize::MAX, Some(&short), 10_000), (1, true));
        assert_eq!(block(100 << 20, Some(&short), 10_000), (10, true));
        assert_eq!(block(100 << 20, Some(&short), 1), (6, false));
        assert_eq!(block(usize::MAX, Some(&short), 1), (1, false));
        assert_eq!(block(usize::MAX, Some(&long), 10_000), (1, false));
        assert_eq!(block(usize::MAX, None, 10_000), (1, false));
    }

    #[test]
    fn evidence_is_that_of_the_position_in_any_order() {
        let mut writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
        for text in ["0123456789", "abcdefghij", "012345678x"] {
            writer.push(text.as_bytes()).unwrap();
        }
        let evidence = writer.finish().unwrap();
        let settings = DedupOptions::new(3).verify(Verification::Edit(0.9));
        let labels = |order: Option<&[u32]>| {
            super::labels(&[5_u64; 3], Some(&evidence), &settings, order, &()).unwrap()
        };
        assert_eq!(labels(None), [0, 1, 0]);
        assert_eq!(labels(Some(&[1, 2, 0])), [2, 1, 2]);
    }
}
