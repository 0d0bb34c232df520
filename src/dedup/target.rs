//! A target: the closest duplicates go, until a number of documents is left.
//!
//! Groups are formed at the widest threshold first. If they remove too many documents, thresholds
//! that rise towards equality decide which of these come back: a document comes back once it
//! passes with no document that is kept. What was kept at a wider threshold stays kept, so every
//! removed document has passed the check with a kept one at each step.
#![expect(clippy::indexing_slicing, reason = "labels and places are positions made here")]

use std::cmp::Ordering;

use rayon::prelude::*;

use super::decisions::measuring;
use super::groups::{Linking, labelled, largest_first};
use super::settings::DedupOptions;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::join::{Labelled, Similarities};
use crate::progress::Progress;
use crate::verify::{EvidenceFile, Linkage, Verification};

/// Steps from the widest threshold to equality.
const STEPS: u32 = 128;

/// Documents and the settings that remove the most of them.
pub(super) struct Target<'a, F> {
    pub(super) fingerprints: &'a [F],
    pub(super) evidence: Option<&'a EvidenceFile>,
    pub(super) settings: &'a DedupOptions,
    pub(super) progress: &'a dyn Progress,
}

impl<F: Fingerprint> Target<'_, F> {
    /// Returns labels as [`labels`](super::labels) does, with `documents` groups if possible.
    ///
    /// `order` lists the positions that take part, those first that are rather to be kept; `None`
    /// is all as they are. The number of groups is larger only if the settings remove no more.
    pub(super) fn labelled(&self, order: Option<&[u32]>, documents: u32) -> Result<Labelled> {
        let settings = self.settings.clone().linkage(Linkage::Representative);
        let all = (order, u32::MAX);
        let widest = labelled(self.fingerprints, self.evidence, &settings, all, self.progress)?;
        let order = self.order(order)?;
        let wanted = documents as usize;
        if left(&widest, &order) >= wanted {
            return Ok(widest);
        }
        let (lower, upper) = self.narrow(&order, wanted, widest)?;
        self.fill(&order, wanted, lower, upper.as_ref())
    }

    /// Lists the positions in the order in which they stand for a group.
    fn order(&self, order: Option<&[u32]>) -> Result<Vec<u32>> {
        Ok(match (self.settings.verification, self.evidence) {
            (Verification::Contains(_), Some(evidence)) => {
                largest_first(evidence, self.fingerprints.len(), order)?
            }
            _ => match order {
                Some(order) => order.to_vec(),
                None => (0..).zip(self.fingerprints).map(|(position, _)| position).collect(),
            },
        })
    }

    /// Finds two neighbouring steps, the first with fewer groups and the second with enough.
    ///
    /// There is no second one if even equal documents have to come back.
    fn narrow(
        &self,
        order: &[u32],
        wanted: usize,
        widest: Labelled,
    ) -> Result<(Labelled, Option<Labelled>)> {
        let (mut few, mut lower, mut upper) = (widest, 0, STEPS + 1);
        while upper - lower > 1 {
            let step = lower.midpoint(upper);
            let found = self.at(step, order, &few)?;
            if left(&found, order) < wanted {
                (few, lower) = (found, step);
            } else {
                upper = step;
            }
        }
        if upper > STEPS {
            return Ok((few, None));
        }
        // The last steps kept more than those that found this one.
        let enough = self.at(upper, order, &few)?;
        if left(&enough, order) < wanted {
            return Ok((enough, None));
        }
        Ok((few, Some(enough)))
    }

    /// Forms groups at a step, around what is kept at a wider one and what passes with none of it.
    fn at(&self, step: u32, order: &[u32], wider: &Labelled) -> Result<Labelled> {
        let is_kept = |&position: &u32| wider.labels[position as usize] == position;
        let (kept, removed): (Vec<u32>, Vec<u32>) = order.iter().copied().partition(is_kept);
        let first = kept.len();
        let places: Vec<u32> = [kept, removed].concat();
        let evidence = self.evidence.filter(|_| self.settings.verification != Verification::None);
        let (verification, distance) = tightened(self.settings, step);
        let linkage = Some(Linkage::Representative);
        let settings = self.settings.clone();
        let settings = DedupOptions { distance, verification, linkage, ..settings };
        let order = Some(&*places);
        let linking = Linking { settings: &settings, evidence, order, progress: self.progress };
        let are_kept = |a: u32, b: u32| (a.max(b) as usize) < first;
        let mut labelled = linking.labelled(self.fingerprints, are_kept)?;
        if evidence.is_none() {
            labelled.similarities = Similarities::default();
        }
        Ok(labelled)
    }

    /// Brings back the documents that are least like the kept one of their group.
    ///
    /// Of those that `upper` keeps, or of all if it is not there. The others join the closest
    /// document that is known to be kept.
    fn fill(
        &self,
        order: &[u32],
        wanted: usize,
        lower: Labelled,
        upper: Option<&Labelled>,
    ) -> Result<Labelled> {
        let missing = wanted - left(&lower, order);
        let comes = |&position: &u32| {
            let at = position as usize;
            lower.labels[at] != position && upper.is_none_or(|upper| upper.labels[at] == position)
        };
        let waiting: Vec<u32> = order.iter().copied().filter(comes).collect();
        let mut measured = waiting
            .into_par_iter()
            .map(|position| self.measured(position, &lower))
            .collect::<Result<Vec<Close>>>()?;
        // Stable, so that the first of equally close ones come back.
        measured.par_sort_by(Close::farthest_first);
        let mut found: Vec<Option<f64>> = vec![None; self.fingerprints.len()];
        for (position, similarity) in lower.similarities.iter() {
            found[position as usize] = Some(similarity);
        }
        let mut labels = lower.labels;
        for close in measured.into_iter().take(missing) {
            labels[close.position as usize] = close.position;
            found[close.position as usize] = None;
        }
        for (&position, upper) in order.iter().filter_map(|at| Some((at, upper?))) {
            let at = position as usize;
            let closer = upper.labels[at];
            let is_removed = labels[at] != position && closer != position;
            if is_removed && labels[closer as usize] == closer {
                labels[at] = closer;
                found[at] = upper.similarities.get(position);
            }
        }
        let similarities = (0..).zip(found).filter_map(|(at, found)| Some((at, found?)));
        Ok(Labelled { labels, similarities: Similarities::new(similarities.collect()) })
    }

    fn measured(&self, position: u32, labels: &Labelled) -> Result<Close> {
        let (a, b) = (position as usize, labels.labels[position as usize] as usize);
        let distance = self.fingerprints[a].distance(self.fingerprints[b]);
        let known = labels.similarities.get(position);
        let similarity = match self.evidence {
            Some(evidence) if known.is_none() => evidence.check_while(
                measuring(self.settings.verification),
                (distance, a, b),
                self.progress,
            )?,
            Some(_) => known,
            None => None,
        };
        Ok(Close { position, distance, similarity: similarity.unwrap_or_default() })
    }
}

/// How close a duplicate is to the document that is kept for it.
#[derive(Debug, Clone, Copy)]
struct Close {
    position: u32,
    distance: u32,
    similarity: f64,
}

impl Close {
    fn farthest_first(&self, other: &Self) -> Ordering {
        let similarity = self.similarity.total_cmp(&other.similarity);
        similarity.then(other.distance.cmp(&self.distance))
    }
}

/// Returns the number of documents in the order that stand for their group.
fn left(labelled: &Labelled, order: &[u32]) -> usize {
    order.iter().filter(|&&position| labelled.labels[position as usize] == position).count()
}

/// Returns verification and distance at a step; without a verification the distance falls.
fn tightened(settings: &DedupOptions, step: u32) -> (Verification, u32) {
    let distance = settings.distance;
    let towards = |threshold: f64, top: f64| {
        let part = f64::from(step) / f64::from(STEPS);
        let raised = if step == STEPS { top } else { threshold + (top - threshold) * part };
        raised.max(threshold)
    };
    let verification = match settings.verification {
        Verification::None => {
            let less = u64::from(distance) * u64::from(step) / u64::from(STEPS);
            let less = u32::try_from(less).unwrap_or(distance);
            return (Verification::None, distance - less);
        }
        Verification::Jaccard(threshold) => Verification::Jaccard(towards(threshold, 1.0)),
        Verification::Zhou { k, threshold } => {
            Verification::Zhou { k, threshold: towards(threshold, 1.0 + k) }
        }
        Verification::Edit(threshold) => Verification::Edit(towards(threshold, 1.0)),
        Verification::EditByLength { short, long, boilerplate } => Verification::EditByLength {
            short: towards(short, 1.0),
            long: towards(long, 1.0),
            boilerplate,
        },
        Verification::Contains(threshold) => Verification::Contains(towards(threshold, 1.0)),
    };
    (verification, distance)
}

#[cfg(test)]
mod tests {
    use super::super::{Decision, Dedup};
    use super::*;
    use crate::Error;
    use crate::verify::edit_similarity;

    /// Texts that change by one letter, and by one more, and so on; every third one twice.
    fn texts() -> Vec<String> {
        let mut texts = Vec::new();
        for family in 'a'..='e' {
            for changes in 0..6 {
                let text: String =
                    (0..20).map(|at| if at < changes { 'x' } else { family }).collect();
                texts.push(text.clone());
                if changes % 3 == 2 {
                    texts.push(text);
                }
            }
        }
        texts
    }

    fn settings() -> DedupOptions {
        DedupOptions::new(4).verify(Verification::Edit(0.7))
    }

    /// Kept positions, and of the others the kept one, of texts with equal fingerprints.
    fn decide(texts: &[String], leave: Option<u32>) -> (Vec<u32>, Vec<(u32, u32)>) {
        let mut dedup = Dedup::<u64>::new(&settings()).unwrap();
        for text in texts {
            dedup.push(7, text.as_bytes(), ()).unwrap();
        }
        if let Some(documents) = leave {
            dedup.leave_at_least(documents);
        }
        let decisions = dedup.finish(&()).unwrap();
        let mut kept = Vec::new();
        let mut removed = Vec::new();
        for (decision, position) in decisions.iter().zip(0..) {
            match decision {
                Decision::Duplicate { kept, .. } => removed.push((position, kept)),
                Decision::Kept { .. } | Decision::Stored { .. } => kept.push(position),
            }
        }
        (kept, removed)
    }

    #[test]
    fn any_number_between_the_widest_threshold_and_all_is_met() {
        let texts = texts();
        let (widest, _) = decide(&texts, None);
        for wanted in 0..=texts.len() + 3 {
            let (kept, removed) = decide(&texts, u32::try_from(wanted).ok());
            let expected = wanted.clamp(widest.len(), texts.len());
            assert_eq!((kept.len(), removed.len()), (expected, texts.len() - expected));
            for (position, of) in removed {
                assert!(kept.contains(&of), "{position} is removed for {of}, which is not kept");
                let alike = edit_similarity(&texts[position as usize], &texts[of as usize], 0.7);
                assert!(alike.is_some(), "{position} is not like {of}");
            }
        }
    }

    #[test]
    fn copies_go_before_documents_that_differ() {
        let texts = texts();
        let distinct: std::collections::HashSet<&String> = texts.iter().collect();
        let (kept, removed) = decide(&texts, u32::try_from(distinct.len()).ok());
        assert_eq!(kept.len(), distinct.len());
        for (position, of) in removed {
            assert_eq!(texts[position as usize], texts[of as usize], "{position} is no copy");
        }
        let (kept, _) = decide(&texts, u32::try_from(distinct.len() - 9).ok());
        let of_kept: std::collections::HashSet<&String> =
            kept.iter().map(|&position| &texts[position as usize]).collect();
        assert_eq!(of_kept.len(), kept.len(), "two copies are kept and others are removed");
    }

    #[test]
    fn without_a_verification_the_nearest_fingerprints_go_first() {
        let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3)).unwrap();
        for fingerprint in [0b0000, 0b0111, 0b1_0000_0000, 0b1_0000_0001, 0] {
            dedup.push(fingerprint, &[], ()).unwrap();
        }
        dedup.leave_at_least(3);
        let decisions = dedup.finish(&()).unwrap();
        let kept: Vec<bool> = (0..5)
            .map(|at| matches!(decisions.of(at), super::super::Decision::Kept { .. }))
            .collect();
        assert_eq!(kept, [true, true, false, true, false]);
    }

    #[test]
    fn documents_that_are_left_out_do_not_count() {
        let mut dedup = Dedup::<u64>::new(&DedupOptions::new(1)).unwrap();
        for fingerprint in [5, 5, 5, 0xff00] {
            dedup.push(fingerprint, &[], ()).unwrap();
        }
        dedup.exclude(0);
        dedup.leave_at_least(3);
        let decisions = dedup.finish(&()).unwrap();
        assert_eq!(decisions.removed(), 0);
    }

    #[test]
    fn a_state_refuses_a_target() {
        let mut dedup = Dedup::<u64>::new(&DedupOptions::new(1)).unwrap();
        dedup.push(5, &[], ()).unwrap();
        dedup.leave_at_least(1);
        let refused = dedup.finish_behind(std::iter::empty(), &());
        assert!(matches!(refused, Err(Error::InvalidOption { name: "leave_at_least", .. })));
    }
}
