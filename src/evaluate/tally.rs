//! Tally: counts near pairs by distance and similarity.
//!
//! Memory does not depend on the number of pairs, because each pair is only counted.
#![expect(clippy::indexing_slicing, reason = "every distance and step has a cell")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::{self, Copies};
use crate::progress::{self, Progress};
use crate::verify::{Evidence, EvidenceFile, Verification, by_length};

/// Steps of similarity from 0 to 1.
const STEPS: usize = 1000;

/// Lowest edit similarity that is measured; lower ones would take most of the time.
const LEAST_EDIT: f64 = 0.5;

/// The pairs that a setting finds, and the correct ones.
///
/// ```
/// use hamdex::evaluate::Count;
///
/// let count = Count { found: 8, correct: 6 };
/// assert_eq!(count.precision(), Some(0.75));
/// assert_eq!(count.recall(12), Some(0.5));
/// assert_eq!(count.f1(12), Some(0.6));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Pairs that a setting finds.
    pub found: u64,
    /// Labelled near-duplicates among them.
    pub correct: u64,
}

impl Count {
    /// Returns the correct share of the found pairs, if there are any.
    pub fn precision(self) -> Option<f64> {
        share(self.correct, self.found)
    }

    /// Returns the found share of the labelled near-duplicates, if there are any.
    pub fn recall(self, positives: u64) -> Option<f64> {
        share(self.correct, positives)
    }

    /// Returns the harmonic mean of precision and recall; `None` if neither exists.
    pub fn f1(self, positives: u64) -> Option<f64> {
        share(2 * self.correct, self.found + positives)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Labelled pairs of positions, each once, the lower position first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// Near-duplicates; pairs in neither list are not near-duplicates.
    pub near: Vec<(u32, u32)>,
    /// Pairs that are not counted.
    pub ignored: Vec<(u32, u32)>,
}

/// Counts by distance, then by step of length and step of similarity.
#[derive(Debug)]
struct Histogram {
    counts: Vec<Vec<Count>>,
}

/// Steps of length of the threshold by length, including that of short texts.
const LENGTHS: usize = by_length::STEPS + 1;

/// Offset of the steps of length for pairs that are alike only in boilerplate.
const BY_BOILERPLATE: usize = LENGTHS;

/// The counts of all near pairs of some fingerprints.
///
/// The [module](super) has an example.
#[derive(Debug)]
pub struct Tally {
    positives: u64,
    /// By distance alone.
    plain: Histogram,
    jaccard: Option<Histogram>,
    edit: Option<Histogram>,
}

impl Histogram {
    /// Sums all pairs within a distance whose similarity is at least `least`.
    ///
    /// `least` depends on the distance and the step of length.
    fn up_to(&self, distance: u32, least: impl Fn(u32, usize) -> f64) -> Count {
        let mut sum = Count::default();
        for (counts, apart) in self.counts.iter().zip(0..=distance) {
            for (counts, length) in counts.chunks(STEPS + 1).zip(0..) {
                for count in counts.iter().skip(first_step(least(apart, length))) {
                    sum.found += count.found;
                    sum.correct += count.correct;
                }
            }
        }
        sum
    }
}

/// Returns the step of a similarity.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn step(similarity: f64) -> usize {
    // A cast of a float saturates; the small term compensates for rounding errors.
    ((similarity * STEPS as f64 + 1e-6) as usize).min(STEPS)
}

/// Returns the first step with similarities of at least `least`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn first_step(least: f64) -> usize {
    (least * STEPS as f64 - 1e-6).ceil().max(0.0) as usize
}

impl Tally {
    /// Counts the pairs within the distance `largest`, and the labelled ones.
    ///
    /// `features` and `texts` are the evidence for verifications by feature sets and by cleaned
    /// texts; without one, these verifications are not measured. The time grows with the number of
    /// pairs within `largest`, for which more than a quarter of the width is not useful.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidDistance`](crate::Error::InvalidDistance) if `largest` is above the width.
    /// - [`Error::InvalidOption`](crate::Error::InvalidOption) if there are more than `u32::MAX`
    ///   fingerprints, or if a label names a document beyond the last one.
    /// - [`Error::Cancelled`](crate::Error::Cancelled) if the progress sink asks to stop.
    /// - Errors of reading the evidence.
    pub fn measure<F: Fingerprint>(
        fingerprints: &[F],
        features: Option<&EvidenceFile>,
        texts: Option<&EvidenceFile>,
        labels: &Labels,
        largest: u32,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let labelled = labels.near.iter().chain(&labels.ignored);
        let last = labelled.map(|&(a, b)| a.max(b)).max();
        if let Some(last) = last.filter(|&last| last as usize >= fingerprints.len()) {
            let reason =
                format!("a label names document {last}, but there are {}", fingerprints.len());
            return Err(Error::InvalidOption { name: "labels", reason });
        }
        let plain = Counter::new(largest, None);
        let jaccard = features
            .map(|evidence| Counter::new(largest, Some((Verification::Jaccard(0.0), evidence))));
        let edit = texts.map(|evidence| {
            Counter::new(largest, Some((Verification::Edit(LEAST_EDIT), evidence)))
        });
        let counters: Vec<&Counter<'_>> =
            [Some(&plain), jaccard.as_ref(), edit.as_ref()].into_iter().flatten().collect();
        let add = |distance: u32, a: u32, b: u32| {
            counters.iter().try_for_each(|counter| counter.add(distance, a, b))
        };
        let copies = Copies::new(fingerprints)?;
        let groups: Vec<&[u32]> = copies.groups().filter(|group| group.len() > 1).collect();
        groups.into_par_iter().try_for_each(|group| {
            group.iter().zip(1..).try_for_each(|(&a, later)| {
                progress::check(progress)?;
                group[later..].iter().try_for_each(|&b| add(0, a, b))
            })
        })?;
        join::self_join(fingerprints, largest, progress, &|batch| {
            batch.par_iter().try_for_each(|pair| {
                progress::check(progress)?;
                copies.of(pair.a).iter().try_for_each(|&a| {
                    copies
                        .of(pair.b)
                        .iter()
                        .try_for_each(|&b| add(pair.distance, a.min(b), a.max(b)))
                })
            })
        })?;
        let finish = |counter: Counter<'_>| counter.finish(fingerprints, labels);
        Ok(Self {
            positives: labels.near.len() as u64,
            plain: finish(plain)?,
            jaccard: jaccard.map(finish).transpose()?,
            edit: edit.map(finish).transpose()?,
        })
    }

    /// Returns the number of labelled near-duplicates, found or not.
    pub fn positives(&self) -> u64 {
        self.positives
    }

    /// Returns the count of a setting, if its similarity was measured.
    ///
    /// Thresholds are rounded up to steps of 0.001; those of `edit` are at least 0.5.
    pub fn at(&self, distance: u32, verification: Verification) -> Option<Count> {
        Some(match verification {
            Verification::None => self.plain.up_to(distance, |_, _| 0.0),
            Verification::Jaccard(threshold) => {
                self.jaccard.as_ref()?.up_to(distance, |_, _| threshold)
            }
            Verification::Edit(threshold) => {
                self.edit.as_ref()?.up_to(distance, |_, _| threshold.max(LEAST_EDIT))
            }
            Verification::EditByLength { short, long, boilerplate } => {
                let least = |apart, length: usize| {
                    if boilerplate.is_some() && length >= BY_BOILERPLATE {
                        return f64::INFINITY;
                    }
                    let length = length % BY_BOILERPLATE;
                    if apart > verification.reach(distance, length) {
                        return f64::INFINITY;
                    }
                    by_length::threshold(short, long, length).max(LEAST_EDIT)
                };
                self.edit.as_ref()?.up_to(distance, least)
            }
            Verification::Zhou { k, threshold } => {
                let least = |apart: u32, _| (threshold - 1.0 / f64::from(1 + apart)) / k.max(1e-9);
                self.jaccard.as_ref()?.up_to(distance, least)
            }
            Verification::Contains(_) => return None,
        })
    }
}

/// A counter of pairs, shared by threads.
struct Counter<'a> {
    measure: Option<(Verification, &'a EvidenceFile)>,
    cells: Vec<Vec<AtomicU64>>,
}

impl<'a> Counter<'a> {
    fn new(largest: u32, measure: Option<(Verification, &'a EvidenceFile)>) -> Self {
        let steps = match measure {
            None => 1,
            Some((Verification::Edit(_), _)) => 2 * LENGTHS * (STEPS + 1),
            Some(_) => STEPS + 1,
        };
        let row = |_| (0..steps).map(|_| AtomicU64::new(0)).collect();
        Self { measure, cells: (0..=largest).map(row).collect() }
    }

    /// Returns the cell of a pair within its distance; 0 if only distances are counted.
    fn step(&self, distance: u32, a: u32, b: u32) -> Result<usize> {
        let Some((verification, evidence)) = self.measure else { return Ok(0) };
        let found = evidence.check(verification, distance, a as usize, b as usize)?;
        let Some(found) = found.map(step) else { return Ok(0) };
        if verification.needs() != Evidence::Text {
            return Ok(found);
        }
        let (a, b) = (a as usize, b as usize);
        let by_boilerplate = if evidence.is_by_boilerplate(a, b)? { BY_BOILERPLATE } else { 0 };
        let length = evidence.step_by_length(a, b) + by_boilerplate;
        Ok(length * (STEPS + 1) + found)
    }

    fn add(&self, distance: u32, a: u32, b: u32) -> Result<()> {
        let step = self.step(distance, a, b)?;
        self.cells[distance as usize][step].fetch_add(1, Relaxed);
        Ok(())
    }

    /// Counts the labelled pairs among all found ones.
    fn finish<F: Fingerprint>(self, fingerprints: &[F], labels: &Labels) -> Result<Histogram> {
        let count = |cell: &AtomicU64| Count { found: cell.load(Relaxed), correct: 0 };
        let mut counts: Vec<Vec<Count>> =
            self.cells.iter().map(|row| row.iter().map(count).collect()).collect();
        let fingerprint = |at: u32| fingerprints[at as usize];
        for (pairs, near) in [(&labels.near, true), (&labels.ignored, false)] {
            for &(a, b) in pairs {
                let distance = fingerprint(a).distance(fingerprint(b));
                // A labelled pair may be beyond the largest distance.
                let Some(row) = counts.get_mut(distance as usize) else { continue };
                let count = &mut row[self.step(distance, a, b)?];
                if near {
                    count.correct += 1;
                } else {
                    // The caller may have listed a pair twice.
                    count.found = count.found.saturating_sub(1);
                }
            }
        }
        Ok(Histogram { counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarities_at_their_threshold_are_counted() {
        for thousandths in 0..=1000_u32 {
            let similarity = f64::from(thousandths) / 1000.0;
            assert_eq!(step(similarity), thousandths as usize);
            assert_eq!(first_step(similarity), thousandths as usize);
        }
        assert_eq!(first_step(0.8801), 881);
        assert_eq!((step(2.0), first_step(-1.0)), (STEPS, 0));
    }

    #[test]
    fn precision_recall_and_f1_follow_from_the_counts() {
        let half = Count { found: 4, correct: 2 };
        assert_eq!(
            (half.precision(), half.recall(4), half.f1(4)),
            (Some(0.5), Some(0.5), Some(0.5))
        );
        let none = Count::default();
        assert_eq!((none.precision(), none.recall(0), none.f1(0)), (None, None, None));
        assert_eq!((none.recall(3), none.f1(3)), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn copies_and_ignored_pairs_are_counted_as_pairs() {
        let fingerprints = [0_u64, 0, 1, 1];
        let labels = Labels { near: vec![(0, 1), (0, 2)], ignored: vec![(1, 2)] };
        let tally = Tally::measure(&fingerprints, None, None, &labels, 2, &()).unwrap();
        let at = |distance| tally.at(distance, Verification::None).unwrap();
        assert_eq!(at(0), Count { found: 2, correct: 1 });
        assert_eq!(at(1), Count { found: 5, correct: 2 });
        assert_eq!((tally.positives(), tally.at(1, Verification::Edit(0.9))), (2, None));
    }

    #[test]
    fn labels_of_documents_beyond_the_last_are_refused() {
        let labels = Labels { near: vec![(0, 1)], ignored: vec![(2, 0)] };
        let refused = Tally::measure(&[0_u64, 1], None, None, &labels, 2, &());
        assert!(matches!(refused, Err(Error::InvalidOption { name: "labels", .. })));
    }

    #[test]
    fn counts_of_settings_follow_from_the_histograms() {
        let mut counts = vec![vec![Count::default(); STEPS + 1]; 4];
        counts[0][1000] = Count { found: 2, correct: 2 };
        counts[3][800] = Count { found: 5, correct: 1 };
        let tally = Tally {
            positives: 4,
            plain: Histogram { counts: vec![vec![Count { found: 9, correct: 4 }]] },
            jaccard: Some(Histogram { counts }),
            edit: None,
        };
        let at = |distance, verification: &str| tally.at(distance, verification.parse().unwrap());
        assert_eq!(at(0, "none"), Some(Count { found: 9, correct: 4 }));
        assert_eq!(at(2, "jaccard:0.5"), Some(Count { found: 2, correct: 2 }));
        assert_eq!(at(3, "jaccard:0.8"), Some(Count { found: 7, correct: 3 }));
        assert_eq!(at(3, "jaccard:0.801"), Some(Count { found: 2, correct: 2 }));
        assert_eq!(at(3, "edit:0.8"), None);
        assert_eq!(at(3, "edit:0.8,0.9"), None);
        // 1 / (1 + 3) + 2 * 0.8 = 1.85 and 1 + 2 = 3.
        assert_eq!(at(3, "zhou:2,1.85").unwrap().found, 7);
        assert_eq!(at(3, "zhou:2,1.86").unwrap().found, 2);
    }
}
