//! Representatives: each unit joins the first earlier near unit that it passes with.
//!
//! The rule is sequential, but its verifications run in parallel. Units are processed in halves:
//! the earlier half among itself, then the later half against the representatives of the earlier
//! one, then the remaining units among themselves. So two halves cost one join of two sets, and
//! units that have joined a representative are not compared again. Many copies of one template cost
//! one comparison each, and many distinct documents cost one join. What does not fit the memory is
//! processed in blocks in the same way: a block against all earlier representatives, then alone.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::directory::Directory;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::join::sets::join;
use crate::join::{JoinOptions, Pair, Verify};
use crate::progress::{self, Progress};
use crate::verify::{BigramOutline, Verification};

/// Units that are processed one after another.
const BLOCK: usize = 1024;

/// Representatives scanned between two cancellation checks.
const SCAN_CHUNK: usize = 1 << 14;

/// Minimum number of verifications that run in parallel.
const PARALLEL_MIN: usize = 8;

/// Sample size of each side when the share of near pairs is estimated.
const SAMPLE: usize = 128;

/// Two sets are scanned if at least one pair in this many is near.
///
/// Finding a pair by a join costs as much as scanning 32 pairs by distance.
const DENSE: usize = 32;

/// Number of brackets that a byte can name.
const BRACKETS: usize = 256;

/// With at most this many representatives units are scanned.
const FEW: usize = 256;

/// A document that can join a representative or become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit<F> {
    pub(super) position: u32,
    /// The caller's number of the unit, distinct among those that are compared.
    pub(super) number: u32,
    pub(super) fingerprint: F,
}

impl<F> Unit<F> {
    /// Returns the position and the number.
    fn names(&self) -> (u32, u32) {
        (self.position, self.number)
    }
}

/// Receives the number of a unit, the position of its representative, and their similarity.
pub(super) type Label<'a> = dyn FnMut(u32, u32, Option<f64>) + 'a;

/// Tells that a representative and a unit certainly do not pass.
///
/// Takes the position and the number of each, and their distance.
pub(super) type Rejects<'a> = dyn Fn((u32, u32), (u32, u32), u32) -> bool + Sync + 'a;

/// Returns the bracket of a position; documents pass only if theirs are equal or neighbours.
pub(crate) type Bracket<'a> = dyn Fn(u32) -> u8 + Sync + 'a;

/// The index of a representative and its similarity to the unit that joins it.
type Joined = (u32, f64);

/// Outlines that show of most pairs that they do not pass; 256 bytes per document of a block.
#[derive(Clone, Copy)]
pub(crate) struct Outlines<'a> {
    pub(crate) read: &'a (dyn Fn(u32) -> Result<BigramOutline> + Sync),
    pub(crate) verification: Verification,
}

impl Outlines<'_> {
    /// Bytes of memory per document of a block, which is compared with another one.
    pub(crate) const BYTES: usize = 2 * size_of::<BigramOutline>();

    /// Returns true if two of the outlines that were read show that the pair does not pass.
    pub(super) fn reject(&self, read: &[BigramOutline], a: u32, b: u32) -> bool {
        let pair = read.get(a as usize).zip(read.get(b as usize));
        pair.is_some_and(|(a, b)| a.rejects(b, self.verification))
    }
}

/// Decides whether a unit joins another.
///
/// Units are given by ascending position. A representative is labelled with its position and no
/// similarity. Each unit is labelled once, in no particular order. Labels equal those of the
/// sequential rule for any number of threads.
pub(super) struct Rule<'a> {
    /// The distance, and the costs of joins.
    pub(super) options: JoinOptions,
    pub(super) progress: &'a dyn Progress,
    pub(super) verify: &'a Verify<'a>,
    pub(super) rejects: &'a Rejects<'a>,
    pub(super) bracket: Option<&'a Bracket<'a>>,
    /// Near pairs that are buffered, so that a unit meets its representatives in order.
    pub(super) waiting: usize,
}

impl Rule<'_> {
    fn is_near<F: Fingerprint>(&self, kept: &Unit<F>, unit: &Unit<F>) -> bool {
        let apart = kept.fingerprint.distance(unit.fingerprint);
        apart <= self.options.distance && !(self.rejects)(kept.names(), unit.names(), apart)
    }

    fn passes<F: Fingerprint>(&self, kept: &Unit<F>, unit: &Unit<F>) -> Result<Option<f64>> {
        progress::check(self.progress)?;
        let apart = kept.fingerprint.distance(unit.fingerprint);
        (self.verify)(kept.position, unit.position, apart)
    }

    /// Verifies near units with a representative, in parallel if there are many.
    fn all_pass<F: Fingerprint>(
        &self,
        kept: &Unit<F>,
        units: &[Unit<F>],
    ) -> Result<Vec<Option<f64>>> {
        let passes = |unit: &Unit<F>| self.passes(kept, unit);
        if units.len() < PARALLEL_MIN {
            return units.iter().map(passes).collect();
        }
        units.par_iter().map(passes).collect()
    }

    /// Applies the rule to the units alone; returns the representatives by ascending position.
    pub(super) fn among<F: Fingerprint>(
        &self,
        units: &[Unit<F>],
        label: &mut Label<'_>,
    ) -> Result<Vec<Unit<F>>> {
        progress::check(self.progress)?;
        if units.len() <= BLOCK {
            return self.one_by_one(units, label);
        }
        let (earlier, later) = units.split_at(units.len() / 2);
        let mut kept = self.among(earlier, label)?;
        let left = self.apart(&kept, later, label)?;
        kept.append(&mut self.among(&left, label)?);
        Ok(kept)
    }

    /// Applies the sequential rule to a few units.
    fn one_by_one<F: Fingerprint>(
        &self,
        units: &[Unit<F>],
        label: &mut Label<'_>,
    ) -> Result<Vec<Unit<F>>> {
        let mut left = units.to_vec();
        let mut kept = Vec::new();
        // The remaining units joined no earlier one, so the first of them is a representative.
        while let Some((&first, rest)) = left.split_first() {
            kept.push(first);
            label(first.number, first.position, None);
            let is_near = |unit: &Unit<F>| self.is_near(&first, unit);
            let (near, mut others): (Vec<_>, Vec<_>) = rest.iter().copied().partition(is_near);
            let passed = self.all_pass(&first, &near)?;
            for (unit, passed) in near.into_iter().zip(passed) {
                if passed.is_some() {
                    label(unit.number, first.position, passed);
                } else {
                    others.push(unit);
                }
            }
            // Two ascending runs, which a stable sort merges.
            others.sort_by_key(|unit| unit.position);
            left = others;
        }
        self.progress.advance(units.len() as u64);
        Ok(kept)
    }

    /// Labels the units that join an earlier representative and returns the others.
    pub(super) fn apart<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
        label: &mut Label<'_>,
    ) -> Result<Vec<Unit<F>>> {
        let found = match self.bracket {
            Some(bracket) if kept.len() > FEW => self.first_by_brackets(kept, units, bracket)?,
            _ => self.first(kept, units)?,
        };
        let mut left = Vec::new();
        for (unit, first) in units.iter().zip(found) {
            match first {
                Some((at, similarity)) => {
                    label(unit.number, kept[at as usize].position, Some(similarity));
                }
                None => left.push(*unit),
            }
        }
        self.progress.advance((units.len() - left.len()) as u64);
        Ok(left)
    }

    /// Returns for each unit the index of the first representative that it passes with.
    fn first<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
    ) -> Result<Vec<Option<Joined>>> {
        if kept.len() <= FEW || self.is_dense(kept, units) {
            self.first_by_scan(kept, units)
        } else {
            self.first_by_join(kept, units)
        }
    }

    /// Returns the result of [`first`](Self::first), found bracket by bracket.
    fn first_by_brackets<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
        bracket: &Bracket<'_>,
    ) -> Result<Vec<Option<Joined>>> {
        let (our_brackets, their_brackets) =
            (by_bracket(kept, bracket), by_bracket(units, bracket));
        let mut found = vec![None; units.len()];
        for (bracket, theirs) in
            their_brackets.iter().enumerate().filter(|(_, all)| !all.is_empty())
        {
            let neighbours = bracket.saturating_sub(1)..=(bracket + 1).min(BRACKETS - 1);
            let mut ours = our_brackets[neighbours].concat();
            ours.sort_unstable();
            let some_kept: Vec<Unit<F>> = ours.iter().map(|&at| kept[at as usize]).collect();
            let some: Vec<Unit<F>> = theirs.iter().map(|&at| units[at as usize]).collect();
            for (&at, first) in theirs.iter().zip(self.first(&some_kept, &some)?) {
                found[at as usize] = first.map(|(at, similar)| (ours[at as usize], similar));
            }
        }
        Ok(found)
    }

    /// Returns true if so many pairs are near that scanning is cheaper than a join.
    fn is_dense<F: Fingerprint>(&self, kept: &[Unit<F>], units: &[Unit<F>]) -> bool {
        let some = |all: &[Unit<F>]| -> Vec<F> {
            let step = (all.len() / SAMPLE).max(1);
            all.iter().step_by(step).map(|unit| unit.fingerprint).collect()
        };
        let (kept, units) = (some(kept), some(units));
        let near = |a: F| units.iter().filter(|&&b| a.distance(b) <= self.options.distance).count();
        let pairs: usize = kept.iter().map(|&a| near(a)).sum();
        pairs * DENSE >= kept.len() * units.len()
    }

    /// Returns the result of [`first`](Self::first), computed pair by pair.
    fn first_by_scan<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
    ) -> Result<Vec<Option<Joined>>> {
        let first = |unit: &Unit<F>| {
            for (some, begin) in kept.chunks(SCAN_CHUNK).zip((0..).step_by(SCAN_CHUNK)) {
                progress::check(self.progress)?;
                for (kept, at) in some.iter().zip(begin..) {
                    if self.is_near(kept, unit)
                        && let Some(similarity) = self.passes(kept, unit)?
                    {
                        return Ok(Some((at, similarity)));
                    }
                }
            }
            Ok(None)
        };
        units.par_iter().map(first).collect()
    }

    /// Verifies near pairs of a unit and a representative, by ascending representative.
    ///
    /// Stops at the first representative that passes.
    fn check_in_order<F: Fingerprint>(
        &self,
        mut pairs: Vec<(u32, u32)>,
        (kept, units): (&[Unit<F>], &[Unit<F>]),
        first: &[First],
    ) -> Result<()> {
        pairs.par_sort_unstable();
        let of_units: Vec<&[(u32, u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        of_units.par_iter().try_for_each(|pairs| {
            for &(unit, representative) in *pairs {
                let (kept, first) = (&kept[representative as usize], &first[unit as usize]);
                if first.is_at_most(representative) {
                    break;
                }
                if let Some(similarity) = self.passes(kept, &units[unit as usize])? {
                    first.offer((representative, similarity));
                    break;
                }
            }
            Ok(())
        })
    }

    /// Returns the result of [`first`](Self::first), computed by a join.
    fn first_by_join<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
    ) -> Result<Vec<Option<Joined>>> {
        let (ours, theirs) = (Side::new(kept), Side::new(units));
        let (our_places, their_places) = (ours.directory(), theirs.directory());
        let first: Vec<First> = units.iter().map(|_| First::default()).collect();
        let waiting = Mutex::new(Vec::new());
        let check = |pairs| self.check_in_order(pairs, (kept, units), &first);
        let visit = |pairs: &[Pair<F>]| {
            let mut near: Vec<(u32, u32)> = Vec::new();
            for pair in pairs {
                let (a, b) = (our_places.place(pair.a), their_places.place(pair.b));
                for &unit in theirs.units(b) {
                    let names = units[unit as usize].names();
                    let perhaps = ours.units(a).iter().filter(|&&representative| {
                        let kept = kept[representative as usize].names();
                        !(self.rejects)(kept, names, pair.distance)
                    });
                    near.extend(perhaps.map(|&representative| (unit, representative)));
                    if near.len() >= self.waiting {
                        check(std::mem::take(&mut near))?;
                    }
                }
            }
            let mut all = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(&mut near);
            let full =
                if all.len() >= self.waiting { std::mem::take(&mut *all) } else { Vec::new() };
            drop(all);
            check(full)
        };
        join([&ours.distinct, &theirs.distinct], self.options, &Silent(self.progress), &visit)?;
        check(waiting.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        progress::check(self.progress)?;
        Ok(first.into_iter().map(First::into_inner).collect())
    }
}

/// Returns the indices of the units of each bracket, ascending.
fn by_bracket<F>(units: &[Unit<F>], bracket: &Bracket<'_>) -> Vec<Vec<u32>> {
    let mut brackets = vec![Vec::new(); BRACKETS];
    for (unit, at) in units.iter().zip(0..) {
        brackets[usize::from(bracket(unit.position))].push(at);
    }
    brackets
}

/// Near pairs that are buffered if memory allows: 16 MiB.
pub(super) const WAITING: usize = 1 << 21;

/// The first representative found so far that a unit joins.
#[derive(Debug)]
struct First {
    /// Its index, which only decreases; [`NOWHERE`] if there is none.
    representative: AtomicU32,
    /// Locked by threads that change the index.
    similarity: Mutex<f64>,
}

/// Larger than the index of any representative.
const NOWHERE: u32 = u32::MAX;

impl Default for First {
    fn default() -> Self {
        Self { representative: AtomicU32::new(NOWHERE), similarity: Mutex::default() }
    }
}

impl First {
    fn place(&self) -> u32 {
        // A stale value only costs a superfluous verification.
        self.representative.load(Ordering::Relaxed)
    }

    fn is_at_most(&self, representative: u32) -> bool {
        self.place() <= representative
    }

    fn offer(&self, (representative, similarity): Joined) {
        let mut stored = self.similarity.lock().unwrap_or_else(PoisonError::into_inner);
        if representative < self.place() {
            self.representative.store(representative, Ordering::Relaxed);
            *stored = similarity;
        }
    }

    fn into_inner(self) -> Option<Joined> {
        let similarity = self.similarity.into_inner().unwrap_or_else(PoisonError::into_inner);
        let representative = self.representative.into_inner();
        (representative != NOWHERE).then_some((representative, similarity))
    }
}

/// The distinct fingerprints of some units, and the units of each.
struct Side<F> {
    distinct: Vec<F>,
    starts: Vec<u32>,
    /// Indices of the units by fingerprint, ascending for each.
    places: Vec<u32>,
}

impl<F: Fingerprint> Side<F> {
    fn new(units: &[Unit<F>]) -> Self {
        let mut sorted: Vec<(F, u32)> =
            units.iter().map(|unit| unit.fingerprint).zip(0..).collect();
        sorted.par_sort_unstable();
        let (mut distinct, mut starts) = (Vec::new(), Vec::new());
        for (&(fingerprint, _), at) in sorted.iter().zip(0..) {
            if distinct.last() != Some(&fingerprint) {
                distinct.push(fingerprint);
                starts.push(at);
            }
        }
        let places: Vec<u32> = sorted.into_iter().map(|(_, place)| place).collect();
        starts.push(u32::try_from(places.len()).expect("positions have 32 bits"));
        Self { distinct, starts, places }
    }

    fn directory(&self) -> Directory<'_, F> {
        Directory::new(&self.distinct)
    }

    /// Returns the indices of the units of a distinct fingerprint.
    fn units(&self, distinct: u32) -> &[u32] {
        let at = distinct as usize;
        &self.places[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Forwards cancellation, but not the progress of the inner joins.
struct Silent<'a>(&'a dyn Progress);

impl Progress for Silent<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

#[cfg(test)]
mod tests;
