//! Collecting: the first pass keeps of every document what the choice needs, and no text.

use std::cmp::{Ordering, Reverse};
use std::path::Path;

use hamdex::Fingerprint;
use rayon::prelude::*;

use super::Keep;
use crate::evidence::{Keeper, Kept};
use crate::failure::Result;
use crate::input::{Document, Passed, Reading, Rejects, Stamp};

/// Documents in the order of the inputs.
#[derive(Debug)]
pub(super) struct Documents<F> {
    pub(super) fingerprints: Vec<F>,
    /// Ordinal of each document's row over all inputs, rising.
    pub(super) origins: Vec<u64>,
    pub(super) ranks: Ranks,
    pub(super) evidence: Kept,
}

/// What decides between the documents of a group.
#[derive(Debug)]
pub(super) enum Ranks {
    Order,
    Length(Vec<u64>),
    Newest(Vec<Stamp>),
}

impl<F> Documents<F> {
    pub(super) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Keeps the documents for which the test holds.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        retain(&mut self.fingerprints, &keep);
        retain(&mut self.origins, &keep);
        self.evidence.retain(&keep);
        match &mut self.ranks {
            Ranks::Order => {}
            Ranks::Length(lengths) => retain(lengths, &keep),
            Ranks::Newest(stamps) => retain(stamps, &keep),
        }
    }
}

impl Ranks {
    /// Positions of `len` documents, those first that are rather to be kept; of equals the first.
    pub(super) fn best_first(&self, len: usize) -> Option<Vec<u32>> {
        let mut order: Vec<u32> = (0..).zip(0..len).map(|(position, _)| position).collect();
        match self {
            Self::Order => return None,
            Self::Length(lengths) => order.par_sort_by_key(|&at| Reverse(lengths.get(at as usize))),
            Self::Newest(stamps) => {
                let stamp = |at: u32| stamps.get(at as usize);
                order.par_sort_by(|&a, &b| match (stamp(a), stamp(b)) {
                    (Some(a), Some(b)) => b.order(a),
                    _ => Ordering::Equal,
                });
            }
        }
        Some(order)
    }
}

fn retain<T>(values: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
    let mut positions = 0..;
    values.retain(|_| positions.next().is_some_and(&keep));
}

/// The documents and how much else there was.
#[derive(Debug)]
pub(super) struct Collected<F> {
    pub(super) documents: Documents<F>,
    /// Files of directories that are no text.
    pub(super) binary: u64,
    pub(super) passed: Passed,
}

/// Reads all inputs once.
pub(super) fn collect<F: Fingerprint>(
    reading: &Reading<'_>,
    keep: &Keep,
    tmp: Option<&Path>,
    rejects: &mut Rejects,
) -> Result<Collected<F>> {
    let mut documents = Documents {
        fingerprints: Vec::new(),
        origins: Vec::new(),
        ranks: match keep {
            Keep::First => Ranks::Order,
            Keep::Longest => Ranks::Length(Vec::new()),
            Keep::Newest(_) => Ranks::Newest(Vec::new()),
        },
        evidence: Kept::default(),
    };
    let mut keeper = Keeper::new(reading.wanted, tmp)?;
    let totals = reading.run::<F>(rejects, &mut |document: Document<'_, F>| {
        documents.fingerprints.push(document.fingerprint);
        documents.origins.push(document.origin);
        match &mut documents.ranks {
            Ranks::Order => {}
            Ranks::Length(lengths) => lengths.push(document.length),
            Ranks::Newest(stamps) => stamps.push(document.stamp),
        }
        keeper.push(&document.proofs)
    })?;
    documents.evidence = keeper.finish()?;
    Ok(Collected { documents, binary: totals.binary, passed: totals.passed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rank_comes_first_and_of_equals_the_first() {
        assert_eq!(Ranks::Order.best_first(3), None);
        let lengths = Ranks::Length(vec![5, 7, 9, 9, 7, 100]);
        assert_eq!(lengths.best_first(6).unwrap(), [5, 2, 3, 1, 4, 0]);
        let stamps = ["2020", "2020", "2024", "", "2021"].map(|stamp| match stamp {
            "" => Stamp::Missing,
            stamp => Stamp::Text(stamp.into()),
        });
        assert_eq!(Ranks::Newest(stamps.into()).best_first(5).unwrap(), [2, 4, 0, 1, 3]);
    }
}
