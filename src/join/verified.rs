//! Verified clusters: groups near pairs that pass a verification, by chains or representatives.
//!
//! Documents with equal fingerprint and evidence are one unit and linked without a verification, so
//! a million copies cost as much as one. Links are merged as they are found and not stored.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::directory::Directory;
use super::representatives::{Unit, under_representatives};
use super::union_find::UnionFind;
use super::{JoinOptions, Pair, join};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::verify::Linkage;

/// Pairs that are verified between two look-ups of what is already linked.
const CHECKED_TOGETHER: usize = 64;

/// Verifies two near documents: returns their similarity, or `None` if they do not pass.
///
/// The arguments are the two positions, the smaller one first, and the Hamming distance between the
/// fingerprints.
///
/// ```
/// use hamdex::join::Verify;
///
/// let lens = [4, 4, 8];
/// let verify: &Verify<'_> =
///     &|a, b, _| Ok((lens[a as usize] == lens[b as usize]).then_some(1.0));
/// assert_eq!((verify(0, 1, 2)?, verify(0, 2, 2)?), (Some(1.0), None));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub type Verify<'a> = dyn Fn(u32, u32, u32) -> Result<Option<f64>> + Sync + 'a;

/// The cluster of every position.
#[derive(Debug)]
pub(crate) struct Labelled {
    /// The position that labels each position's cluster.
    pub(crate) labels: Vec<u32>,
    /// Similarity to the labelling position as the verification returned it; `None` if the two were
    /// not compared. Empty if no two were.
    pub(crate) similarities: Vec<Option<f64>>,
}

/// Returns, for every position, the position that labels its cluster.
///
/// Two documents are linked if their fingerprints are within `distance` and `verify` passes them,
/// or if fingerprint and digest are equal. `digests` holds one hash per document of what `verify`
/// compares.
///
/// With [`Linkage::Chain`] a cluster is a connected component of links, labelled by its smallest
/// position. With [`Linkage::Representative`] documents are processed by ascending position. Each
/// joins the first representative within `distance` that it passes with, or becomes a
/// representative, whose position is the label. So a chain A-B-C-D does not put A and D together.
///
/// `verify` is called from several threads, and not for pairs that are already connected. The
/// result does not depend on the order of calls. Memory is about 110 bytes per document and 32 MiB
/// for buffered pairs.
///
/// # Errors
///
/// - Returns [`Error::InvalidDistance`] if the distance exceeds the width of `F`.
/// - Returns [`Error::InvalidOption`] if there are more than `u32::MAX` fingerprints, or not one
///   digest per fingerprint.
/// - Returns [`Error::Cancelled`] if `progress` requests it.
/// - Returns any error of `verify`.
///
/// ```
/// use hamdex::join::{self, Linkage};
///
// Fingerprints may be near, but only texts of the same length pass.
/// let texts = ["rain", "snow", "sunshine", "rain"];
/// let lens = texts.map(|text| text.len() as u64);
/// let same = |a: u32, b: u32, _| Ok((lens[a as usize] == lens[b as usize]).then_some(1.0));
/// let fingerprints = [0b0001_u64, 0b0011, 0b0001, 0xffff];
/// let clusters =
///     join::verified_clusters(&fingerprints, &lens, 2, Linkage::Chain, &(), &same)?;
/// assert_eq!(clusters, [0, 0, 2, 3]);
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn verified_clusters<F: Fingerprint>(
    fps: &[F],
    digests: &[u64],
    distance: u32,
    linkage: Linkage,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Vec<u32>> {
    labelled(fps, digests, distance, linkage, progress, verify).map(|labelled| labelled.labels)
}

/// [`verified_clusters`] that also returns the similarities of the verifications.
pub(crate) fn labelled<F: Fingerprint>(
    fps: &[F],
    digests: &[u64],
    distance: u32,
    linkage: Linkage,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Labelled> {
    let (bits, max) = (F::BITS, F::BITS);
    if distance > max {
        return Err(Error::InvalidDistance { distance, bits, max });
    }
    let units = Units::new(fps, digests)?;
    let of_unit = match linkage {
        Linkage::Chain => units.chained(distance, progress, verify)?,
        Linkage::Representative => units.represented(fps, distance, progress, verify)?,
    };
    let of = units.of.iter().map(|&unit| of_unit[unit as usize]);
    let (labels, similarities) = of.unzip();
    Ok(Labelled { labels, similarities })
}

/// Documents grouped into units of one fingerprint and one digest.
struct Units<F> {
    /// Distinct fingerprints, ascending.
    distinct: Vec<F>,
    /// First unit of each distinct fingerprint, and the end of the last.
    starts: Vec<u32>,
    /// The smallest position of each unit.
    firsts: Vec<u32>,
    /// The unit of each position.
    of: Vec<u32>,
}

impl<F: Fingerprint> Units<F> {
    fn new(fps: &[F], digests: &[u64]) -> Result<Self> {
        let invalid = |name, reason| Error::InvalidOption { name, reason };
        let count = u32::try_from(fps.len()).map_err(|_| {
            let reason =
                format!("{} fingerprints are too many; the maximum is {}", fps.len(), u32::MAX);
            invalid("fps", reason)
        })?;
        if digests.len() != fps.len() {
            let reason = format!("{} for {} fingerprints", digests.len(), fps.len());
            return Err(invalid("digests", reason));
        }
        let mut sorted: Vec<(F, u64, u32)> =
            fps.iter().zip(digests).zip(0..count).map(|((&f, &d), at)| (f, d, at)).collect();
        sorted.par_sort_unstable();
        let mut units = Self {
            distinct: Vec::new(),
            starts: Vec::new(),
            firsts: Vec::new(),
            of: vec![0; fps.len()],
        };
        for unit in sorted.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (fingerprint, _, first) = unit[0];
            let number = units.count();
            if units.distinct.last() != Some(&fingerprint) {
                units.distinct.push(fingerprint);
                units.starts.push(number);
            }
            units.firsts.push(first);
            for &(_, _, position) in unit {
                units.of[position as usize] = number;
            }
        }
        units.starts.push(units.count());
        Ok(units)
    }

    /// Returns, for each unit, the smallest position of its connected component.
    fn chained(
        &self,
        distance: u32,
        progress: &dyn Progress,
        verify: &Verify<'_>,
    ) -> Result<Vec<(u32, Option<f64>)>> {
        let sets = Mutex::new(UnionFind::new(self.count()));
        let links = Links { units: self, sets, progress, verify };
        links.join_equal()?;
        links.join_near(distance)?;
        progress::check(progress)?;
        let mut sets = links.sets.into_inner().unwrap_or_else(PoisonError::into_inner);
        let roots: Vec<u32> = (0..self.count()).map(|unit| sets.root(unit)).collect();
        let mut smallest = vec![u32::MAX; roots.len()];
        for (&root, &first) in roots.iter().zip(&self.firsts) {
            let smallest = &mut smallest[root as usize];
            *smallest = first.min(*smallest);
        }
        let label = |&root: &u32| (smallest[root as usize], None);
        Ok(roots.iter().map(label).collect())
    }

    /// Returns the representative of each unit.
    ///
    /// A unit that passes with a representative is linked to it, so no chains are needed.
    fn represented(
        &self,
        fps: &[F],
        distance: u32,
        progress: &dyn Progress,
        verify: &Verify<'_>,
    ) -> Result<Vec<(u32, Option<f64>)>> {
        progress::check(progress)?;
        let unit = |(number, &position): (u32, &u32)| Unit {
            position,
            number,
            fingerprint: fps[position as usize],
        };
        let mut rising: Vec<Unit<F>> = (0..).zip(&self.firsts).map(unit).collect();
        rising.par_sort_unstable_by_key(|unit| unit.position);
        progress.begin("grouping", Some(rising.len() as u64));
        let mut labels = vec![(0, None); rising.len()];
        let mut label = |number: u32, label, similarity| {
            labels[number as usize] = (label, similarity);
        };
        under_representatives(&rising, distance, progress, verify, &mut label)?;
        Ok(labels)
    }

    /// Returns the number of units, which is at most the number of positions.
    fn count(&self) -> u32 {
        u32::try_from(self.firsts.len()).expect("each unit has a distinct position")
    }

    /// Returns the units of a distinct fingerprint.
    fn at(&self, distinct: u32) -> std::ops::Range<u32> {
        let at = distinct as usize;
        self.starts[at]..self.starts[at + 1]
    }

    /// Returns the positions of two units, the smaller one first.
    fn positions(&self, a: u32, b: u32) -> (u32, u32) {
        let first = |unit: u32| self.firsts[unit as usize];
        (first(a).min(first(b)), first(a).max(first(b)))
    }
}

/// The units that are linked so far.
struct Links<'a, F> {
    units: &'a Units<F>,
    sets: Mutex<UnionFind>,
    progress: &'a dyn Progress,
    verify: &'a Verify<'a>,
}

impl<F: Fingerprint> Links<'_, F> {
    /// Links units with equal fingerprints.
    ///
    /// A linked unit is verified only with units that are not linked yet. So a group whose units
    /// all pass with the first costs one verification per unit.
    fn join_equal(&self) -> Result<()> {
        let count = u32::try_from(self.units.distinct.len()).expect("positions have 32 bits");
        (0..count).into_par_iter().try_for_each(|at| {
            let units = self.units.at(at);
            if units.len() < 2 {
                return Ok(());
            }
            let mut apart: Vec<u32> = units.collect();
            while let Some(seed) = apart.pop() {
                let mut pending = vec![seed];
                while let Some(a) = pending.pop().filter(|_| !apart.is_empty()) {
                    let checked = apart.par_iter().map(|&b| {
                        progress::check(self.progress)?;
                        let (first, second) = self.units.positions(a, b);
                        Ok((b, (self.verify)(first, second, 0)?.is_some()))
                    });
                    let checked = checked.collect::<Result<Vec<_>>>()?;
                    apart.clear();
                    for (b, passed) in checked {
                        if passed {
                            self.sets().union(a, b);
                            pending.push(b);
                        } else {
                            apart.push(b);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Links units with near fingerprints.
    fn join_near(&self, distance: u32) -> Result<()> {
        let directory = Directory::new(&self.units.distinct);
        join(
            [&self.units.distinct],
            JoinOptions::new(distance),
            self.progress,
            &|pairs: &[Pair<F>]| {
                let mut waiting = Waiting::new(self);
                for pair in pairs {
                    let (a, b) = (directory.place(pair.a), directory.place(pair.b));
                    if self.are_one_set(a, b) {
                        continue;
                    }
                    for a in self.units.at(a) {
                        for b in self.units.at(b) {
                            waiting.push(a, b, pair.distance)?;
                        }
                    }
                }
                waiting.check()
            },
        )?;
        Ok(())
    }

    /// Returns true if all units of two distinct fingerprints are linked; false if they are few.
    fn are_one_set(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.units.at(a), self.units.at(b));
        // Fewer pairs are looked up together by `Waiting::check`.
        if a.len() * b.len() <= CHECKED_TOGETHER {
            return false;
        }
        let mut sets = self.sets();
        let mut roots = a.chain(b).map(|unit| sets.root(unit));
        let first = roots.next();
        roots.all(|root| Some(root) == first)
    }

    fn sets(&self) -> MutexGuard<'_, UnionFind> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer of near units that are not verified yet.
struct Waiting<'a, 'b, F> {
    links: &'a Links<'b, F>,
    pairs: Vec<(u32, u32, u32)>,
}

impl<'a, 'b, F: Fingerprint> Waiting<'a, 'b, F> {
    fn new(links: &'a Links<'b, F>) -> Self {
        Self { links, pairs: Vec::with_capacity(CHECKED_TOGETHER) }
    }

    fn push(&mut self, a: u32, b: u32, distance: u32) -> Result<()> {
        self.pairs.push((a, b, distance));
        if self.pairs.len() >= CHECKED_TOGETHER { self.check() } else { Ok(()) }
    }

    fn check(&mut self) -> Result<()> {
        let mut sets = self.links.sets();
        self.pairs.retain(|&(a, b, _)| sets.root(a) != sets.root(b));
        drop(sets);
        for (a, b, distance) in self.pairs.drain(..) {
            progress::check(self.links.progress)?;
            let (first, second) = self.links.units.positions(a, b);
            if (self.links.verify)(first, second, distance)?.is_some() {
                self.links.sets().union(a, b);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
