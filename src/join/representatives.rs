//! Representatives: every unit joins the first near one before it that it passes with.
//!
//! The rule is sequential, its checks are not. Units are taken by halves: first the earlier half
//! among themselves, then the later one is held against the representatives that came of it, and
//! what joined none of them is taken among itself. So every two halves are one join of two sets,
//! and what has joined a representative is compared no more: many copies of one template cost a
//! comparison each, and many different documents what a join of them costs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::directory::Directory;
use super::{JoinOptions, Pair, Verify, join};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};

/// Units that are taken one after another.
const BLOCK: usize = 1024;

/// Representatives passed over by distance between two looks at whether to go on.
const PASSED_TOGETHER: usize = 1 << 14;

/// Checks from which on other threads take their part.
const TOGETHER: usize = 8;

/// Members of each side by which the number of near pairs is estimated.
const SAMPLE: usize = 128;

/// Two sets are compared one by one if at least one pair in 32 is near.
///
/// A pair that a join finds costs as much as passing over 32 by distance.
const CROWDED: usize = 32;

/// Representatives up to which units are compared with them one by one.
const FEW: usize = 256;

/// A document that others may join, or that may join one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit<F> {
    pub(super) position: u32,
    /// What the caller knows it by.
    pub(super) number: u32,
    pub(super) fingerprint: F,
}

/// Calls `label` with each unit's number, its representative's position and their similarity.
///
/// Units come by rising position, and a representative has its own as label, without a similarity.
/// Each unit is labelled once, in no order; labels are those of the sequential rule for any number
/// of threads.
pub(super) fn under_representatives<F: Fingerprint>(
    units: &[Unit<F>],
    distance: u32,
    progress: &dyn Progress,
    verify: &Verify<'_>,
    label: &mut Label<'_>,
) -> Result<()> {
    let rule = Rule { distance, progress, verify };
    rule.among(units, label).map(drop)
}

/// Takes the number of a unit, the position of its representative, and their similarity.
pub(super) type Label<'a> = dyn FnMut(u32, u32, Option<f64>) + 'a;

/// The place of a representative and the similarity of a unit that joins it.
type Joined = (u32, f64);

/// When a unit joins another.
struct Rule<'a> {
    distance: u32,
    progress: &'a dyn Progress,
    verify: &'a Verify<'a>,
}

impl Rule<'_> {
    fn is_near<F: Fingerprint>(&self, kept: &Unit<F>, unit: &Unit<F>) -> bool {
        kept.fingerprint.distance(unit.fingerprint) <= self.distance
    }

    fn passes<F: Fingerprint>(&self, kept: &Unit<F>, unit: &Unit<F>) -> Result<Option<f64>> {
        progress::check(self.progress)?;
        let apart = kept.fingerprint.distance(unit.fingerprint);
        (self.verify)(kept.position, unit.position, apart)
    }

    /// Checks near units against a representative, in parallel if they are many.
    fn all_pass<F: Fingerprint>(
        &self,
        kept: &Unit<F>,
        units: &[Unit<F>],
    ) -> Result<Vec<Option<f64>>> {
        let passes = |unit: &Unit<F>| self.passes(kept, unit);
        if units.len() < TOGETHER {
            return units.iter().map(passes).collect();
        }
        units.par_iter().map(passes).collect()
    }

    /// Applies the rule to units alone, and returns the representatives, by rising position.
    fn among<F: Fingerprint>(
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

    /// The rule as it is written, for a few units.
    fn one_by_one<F: Fingerprint>(
        &self,
        units: &[Unit<F>],
        label: &mut Label<'_>,
    ) -> Result<Vec<Unit<F>>> {
        let mut left = units.to_vec();
        let mut kept = Vec::new();
        // What is left is like none before it, so its first is a representative.
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
            // Two rising runs, which a stable sort merges.
            others.sort_by_key(|unit| unit.position);
            left = others;
        }
        self.progress.advance(units.len() as u64);
        Ok(kept)
    }

    /// Labels the units that join a representative before them, and returns the others.
    fn apart<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
        label: &mut Label<'_>,
    ) -> Result<Vec<Unit<F>>> {
        let found = if kept.len() <= FEW || self.is_crowded(kept, units) {
            self.first_by_scan(kept, units)?
        } else {
            self.first_by_join(kept, units)?
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

    /// Returns true if a join would find so large a part of all pairs that a scan is cheaper.
    fn is_crowded<F: Fingerprint>(&self, kept: &[Unit<F>], units: &[Unit<F>]) -> bool {
        let some = |all: &[Unit<F>]| -> Vec<F> {
            let step = (all.len() / SAMPLE).max(1);
            all.iter().step_by(step).map(|unit| unit.fingerprint).collect()
        };
        let (kept, units) = (some(kept), some(units));
        let near = |a: F| units.iter().filter(|&&b| a.distance(b) <= self.distance).count();
        let pairs: usize = kept.iter().map(|&a| near(a)).sum();
        pairs * CROWDED >= kept.len() * units.len()
    }

    /// Returns for each unit the place of the first representative that it passes with.
    fn first_by_scan<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
    ) -> Result<Vec<Option<Joined>>> {
        let first = |unit: &Unit<F>| {
            for (some, begin) in kept.chunks(PASSED_TOGETHER).zip((0..).step_by(PASSED_TOGETHER)) {
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

    /// Checks pairs of a unit and a representative, by their places, in the order of the latter.
    ///
    /// What comes after the first that passes need not be read.
    fn check_rising<F: Fingerprint>(
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

    /// Does what [`first_by_scan`](Self::first_by_scan) does, over the near pairs alone.
    fn first_by_join<F: Fingerprint>(
        &self,
        kept: &[Unit<F>],
        units: &[Unit<F>],
    ) -> Result<Vec<Option<Joined>>> {
        let (ours, theirs) = (Side::new(kept), Side::new(units));
        let (our_places, their_places) = (ours.directory(), theirs.directory());
        let first: Vec<First> = units.iter().map(|_| First::default()).collect();
        let waiting = Mutex::new(Vec::new());
        let check = |pairs| self.check_rising(pairs, (kept, units), &first);
        let visit = |pairs: &[Pair<F>]| {
            let mut near: Vec<(u32, u32)> = Vec::new();
            for pair in pairs {
                let (a, b) = (our_places.place(pair.a), their_places.place(pair.b));
                for &unit in theirs.units(b) {
                    near.extend(ours.units(a).iter().map(|&representative| (unit, representative)));
                    if near.len() >= WAITING {
                        check(std::mem::take(&mut near))?;
                    }
                }
            }
            let mut all = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(&mut near);
            let full = if all.len() >= WAITING { std::mem::take(&mut *all) } else { Vec::new() };
            drop(all);
            check(full)
        };
        join(
            [&ours.distinct, &theirs.distinct],
            JoinOptions::new(self.distance),
            &Silent(self.progress),
            &visit,
        )?;
        check(waiting.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        progress::check(self.progress)?;
        Ok(first.into_iter().map(First::into_inner).collect())
    }
}

/// Near pairs that wait, so that a unit meets its representatives in their order: 16 MiB.
const WAITING: usize = 1 << 21;

/// The first representative found so far that a unit joins.
#[derive(Debug)]
struct First {
    /// Its place, which falls only; [`NOWHERE`] while there is none.
    representative: AtomicU32,
    /// Held by those that change the place.
    similarity: Mutex<f64>,
}

/// Above the place of every representative.
const NOWHERE: u32 = u32::MAX;

impl Default for First {
    fn default() -> Self {
        Self { representative: AtomicU32::new(NOWHERE), similarity: Mutex::default() }
    }
}

impl First {
    fn place(&self) -> u32 {
        // A place that has fallen meanwhile costs a check that changes nothing.
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

/// The distinct fingerprints of some units, and where their units are.
struct Side<F> {
    distinct: Vec<F>,
    starts: Vec<u32>,
    /// Places of the units, by fingerprint, rising for each.
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

    /// Places of the units of one of the distinct fingerprints.
    fn units(&self, distinct: u32) -> &[u32] {
        let at = distinct as usize;
        &self.places[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Hands on the wish to stop, and none of the steps of the joins.
struct Silent<'a>(&'a dyn Progress);

impl Progress for Silent<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

#[cfg(test)]
mod tests;
