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
use crate::join::{self, Labelled};
use crate::progress::Progress;
use crate::verify::{EvidenceFile, Linkage, Verification};

/// Returns, for every position, the position that names its group.
///
/// That is the first position of the group, or its first in `order`, which lists positions by
/// falling preference. Positions missing from `order` are in no group. With
/// [`Verification::Contains`] it is the largest document of the group by
/// [`Extent`](crate::verify::Extent), and the first among equals. `evidence` is what the
/// verification of `settings` compares; without it the distance decides. Takes about 60 bytes of
/// memory per document.
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
/// assert_eq!(dedup::groups(&last_first), [[0, 2, 3]]);
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
    let linking = Linking { settings, evidence, kept, progress };
    let largest = evidence
        .filter(|_| matches!(settings.verification, Verification::Contains(_)))
        .map(|evidence| largest_first(evidence, fingerprints.len(), order));
    let order = largest.as_deref().or(order);
    let Some(order) = order else { return linking.labelled(fingerprints, &|position| position) };
    let at = |place: u32| order[place as usize];
    let ordered: Vec<F> = order.iter().map(|&position| fingerprints[position as usize]).collect();
    let grouped = linking.labelled(&ordered, &at)?;
    let labels = (0..).zip(fingerprints).map(|(position, _)| position).collect();
    let mut all = Labelled { labels, similarities: Vec::new() };
    if !grouped.similarities.is_empty() {
        all.similarities.resize(fingerprints.len(), None);
    }
    for (&position, label) in order.iter().zip(grouped.labels) {
        all.labels[position as usize] = at(label);
    }
    for (&position, similarity) in order.iter().zip(grouped.similarities) {
        all.similarities[position as usize] = similarity;
    }
    Ok(all)
}

/// Lists positions by falling extent, so that containing documents precede contained ones.
pub(super) fn largest_first(
    evidence: &EvidenceFile,
    documents: usize,
    order: Option<&[u32]>,
) -> Vec<u32> {
    let mut largest: Vec<u32> = match order {
        Some(order) => order.to_vec(),
        None => (0..).take(documents).collect(),
    };
    largest.par_sort_by_key(|&position| Reverse(evidence.extent(position as usize)));
    largest
}

/// What decides whether two documents are linked.
struct Linking<'a> {
    settings: &'a DedupOptions,
    evidence: Option<&'a EvidenceFile>,
    /// Position of the first document that is always kept.
    kept: u32,
    progress: &'a dyn Progress,
}

impl Linking<'_> {
    /// Groups fingerprints; `at` maps each one's index to the position of its document.
    fn labelled<F: Fingerprint>(
        &self,
        fingerprints: &[F],
        at: &(dyn Fn(u32) -> u32 + Sync),
    ) -> Result<Labelled> {
        let DedupOptions { distance, verification, .. } = *self.settings;
        let linkage = self.settings.linking();
        if self.evidence.is_none() && linkage == Linkage::Chain {
            let labels = join::clusters(fingerprints, distance, self.progress)?;
            return Ok(Labelled { labels, similarities: Vec::new() });
        }
        let piece = |place: u32| {
            self.evidence.map_or(0, |evidence| u64::from(evidence.piece(at(place) as usize)))
        };
        let digests: Vec<u64> = (0..).zip(fingerprints).map(|(place, _)| piece(place)).collect();
        let verify = |a: u32, b: u32, apart: u32| match self.evidence {
            _ if at(a).min(at(b)) >= self.kept => Ok(None),
            None => Ok((apart <= distance).then_some(0.0)),
            Some(evidence) => {
                let (a, b) = (at(a) as usize, at(b) as usize);
                evidence.check_within(verification, distance, (apart, a, b), self.progress)
            }
        };
        join::labelled(fingerprints, &digests, distance, linkage, self.progress, &verify)
    }
}

/// Converts labels to groups of at least two positions.
///
/// The largest group is first; ties are ordered by first position.
///
/// # Panics
///
/// Panics if a label is not a position; the result of [`labels`] has only positions.
///
/// ```
/// use hamdex::dedup;
///
/// assert_eq!(dedup::groups(&[0, 1, 0, 3, 1, 1]), [vec![1, 4, 5], vec![0, 2]]);
/// ```
pub fn groups(labels: &[u32]) -> Vec<Vec<u32>> {
    let mut sizes = vec![0_u32; labels.len()];
    for &label in labels {
        sizes[label as usize] += 1;
    }
    let mut members: Vec<(u32, u32)> = labels
        .iter()
        .zip(0..)
        .filter(|&(&label, _)| sizes[label as usize] > 1)
        .map(|(&label, position)| (label, position))
        .collect();
    members.sort_unstable();
    let mut groups: Vec<Vec<u32>> = members
        .chunk_by(|a, b| a.0 == b.0)
        .map(|group| group.iter().map(|&(_, position)| position).collect())
        .collect();
    groups.sort_by_key(|group| (Reverse(group.len()), group[0]));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Evidence, EvidenceWriter};

    #[test]
    fn groups_come_largest_first_and_leave_out_single_documents() {
        assert_eq!(groups(&[0, 1, 0, 3, 1, 1]), [vec![1, 4, 5], vec![0, 2]]);
        assert_eq!(groups(&[0, 0, 2, 2]), [vec![0, 1], vec![2, 3]]);
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
