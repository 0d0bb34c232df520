//! Verified clusters: groups near pairs that pass a verification, by chains or representatives.
//!
//! Documents with equal fingerprint and evidence are one unit and linked without a verification, so
//! a million copies cost as much as one. Links are merged as they are found and not stored.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::directory::Directory;
use super::representatives::{Bracket, Outlines, Rule, Unit, WAITING};
use super::union_find::UnionFind;
use super::units::Units;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::sets::join;
use crate::join::{JoinOptions, Pair};
use crate::progress::{self, Progress};
use crate::verify::{BigramOutline, Linkage};

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
    /// Similarities to the labelling position, of those that were compared with it.
    pub(crate) similarities: Similarities,
}

/// Similarities of some positions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Similarities {
    /// Ascending.
    positions: Vec<u32>,
    values: Vec<f64>,
}

impl Similarities {
    /// Takes positions in any order, each once.
    pub(crate) fn new(mut found: Vec<(u32, f64)>) -> Self {
        found.par_sort_unstable_by_key(|&(position, _)| position);
        let positions = found.iter().map(|&(position, _)| position).collect();
        Self { positions, values: found.into_iter().map(|(_, value)| value).collect() }
    }

    pub(crate) fn get(&self, position: u32) -> Option<f64> {
        let at = self.positions.binary_search(&position).ok()?;
        self.values.get(at).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, f64)> {
        self.positions.iter().copied().zip(self.values.iter().copied())
    }
}

/// The documents to group, by place, and how many of them are processed together.
pub(crate) struct Documents<'a, F> {
    pub(crate) count: u32,
    pub(crate) fingerprint: &'a (dyn Fn(u32) -> F + Sync),
    /// Returns a hash of what `verify` compares.
    pub(crate) digest: &'a (dyn Fn(u32) -> Result<u64> + Sync),
    /// Documents of a block; memory is about 300 bytes for each at 64 bits, and that of outlines.
    pub(crate) block: u32,
    /// Returns true if two documents certainly do not pass; takes what `verify` takes.
    pub(crate) rejects: &'a (dyn Fn(u32, u32, u32) -> bool + Sync),
    /// Returns the bracket of a document; `None` if any two may pass.
    pub(crate) bracket: Option<&'a Bracket<'a>>,
    /// Rejects pairs under representatives before `verify` is asked; `None` rejects none.
    pub(crate) outlines: Option<Outlines<'a>>,
}

impl<F: Fingerprint> Documents<'_, F> {
    /// Returns the blocks in order.
    fn blocks(&self) -> impl DoubleEndedIterator<Item = Range<u32>> + Clone {
        let (count, block) = (self.count, self.block.max(1));
        (0..count.div_ceil(block)).map(move |at| {
            let first = at * block;
            first..first.saturating_add(block).min(count)
        })
    }

    /// Returns true if two units certainly do not pass, by place and number.
    fn reject(
        &self,
        read: &[BigramOutline],
        (a, our): (u32, u32),
        (b, their): (u32, u32),
        apart: u32,
    ) -> bool {
        (self.rejects)(a, b, apart) || self.outlines.is_some_and(|of| of.reject(read, our, their))
    }

    /// Reads the outlines of some documents.
    fn read_outlines(&self, places: &[u32]) -> Result<Vec<BigramOutline>> {
        let Some(outlines) = self.outlines else { return Ok(Vec::new()) };
        places.par_iter().map(|&place| (outlines.read)(place)).collect()
    }

    /// Reads the documents of some blocks, one after another.
    fn units(&self, blocks: &[Range<u32>]) -> Result<Units<F>> {
        let places = || blocks.iter().cloned().flatten();
        let fps: Vec<F> = places().map(self.fingerprint).collect();
        let digests = blocks.iter().map(|block| {
            block.clone().into_par_iter().map(self.digest).collect::<Result<Vec<_>>>()
        });
        Ok(Units::new(&fps, &digests.collect::<Result<Vec<_>>>()?.concat()))
    }
}

/// Returns, for every position, the position that labels its cluster.
///
/// Two documents are linked if their fingerprints are within the distance and `verify` passes them,
/// or if fingerprint and digest are equal. `options` is a distance, or a [`JoinOptions`] with costs;
/// its memory limit is ignored. `digests` holds one hash per document of what `verify`
/// compares.
///
/// With [`Linkage::Chain`] a cluster is a connected component of links, labelled by its smallest
/// position. With [`Linkage::Representative`] documents are processed by ascending position. Each
/// joins the first representative within the distance that it passes with, or becomes a
/// representative, whose position is the label. So a chain A-B-C-D does not put A and D together.
///
/// `verify` is called from several threads, and not for pairs that are already connected. The
/// result does not depend on the order of calls. Memory is about 200 bytes per document and 32 MiB
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
/// // Fingerprints may be near, but only texts of the same length pass.
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
    options: impl Into<JoinOptions>,
    linkage: Linkage,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Vec<u32>> {
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
    let documents = Documents {
        count,
        fingerprint: &|place| fps[place as usize],
        digest: &|place| Ok(digests[place as usize]),
        block: u32::MAX,
        rejects: &|_, _, _| false,
        bracket: None,
        outlines: None,
    };
    Ok(labelled(&documents, options.into(), linkage, progress, verify)?.labels)
}

/// [`verified_clusters`] that also returns the similarities of the verifications.
///
/// The block size decides what it costs in memory and time, never the result.
pub(crate) fn labelled<F: Fingerprint>(
    documents: &Documents<'_, F>,
    options: JoinOptions,
    linkage: Linkage,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Labelled> {
    let (distance, bits, max) = (options.distance, F::BITS, F::BITS);
    let options = options.memory(usize::MAX);
    if distance > max {
        return Err(Error::InvalidDistance { distance, bits, max });
    }
    match linkage {
        Linkage::Chain => chained(documents, options, progress, verify),
        Linkage::Representative => represented(documents, options, progress, verify),
    }
}

/// Labels every document with the smallest place of its connected component.
fn chained<F: Fingerprint>(
    documents: &Documents<'_, F>,
    options: JoinOptions,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Labelled> {
    let sets = Mutex::new(UnionFind::new(documents.count));
    for later in documents.blocks() {
        for earlier in documents.blocks().take_while(|earlier| earlier.start <= later.start) {
            let own = earlier == later;
            let blocks = [earlier.clone(), later.clone()];
            let units = documents.units(if own { &blocks[1..] } else { &blocks })?;
            let boundary = if own { 0 } else { earlier.end - earlier.start };
            let place = |local: u32| match local.checked_sub(boundary) {
                Some(local) => later.start + local,
                None => earlier.start + local,
            };
            // A block is compared with itself once.
            let across = |a: u32, b: u32, apart: u32| {
                if own || (a < boundary && b >= boundary) {
                    verify(place(a), place(b), apart)
                } else {
                    Ok(None)
                }
            };
            let links =
                Links { units: &units, place: &place, sets: &sets, progress, verify: &across };
            links.join_copies();
            links.join_equal()?;
            links.join_near(options)?;
        }
    }
    progress::check(progress)?;
    let mut sets = sets.into_inner().unwrap_or_else(PoisonError::into_inner);
    let labels = (0..documents.count).map(|place| sets.root(place)).collect();
    Ok(Labelled { labels, similarities: Similarities::default() })
}

/// Labels every document with the place of its representative.
///
/// A document that passes with a representative is linked to it, so no chains are needed.
fn represented<F: Fingerprint>(
    documents: &Documents<'_, F>,
    options: JoinOptions,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Labelled> {
    progress::check(progress)?;
    progress.begin("grouping", Some(u64::from(documents.count)));
    let bracket = documents.bracket;
    let waiting = (documents.block as usize).clamp(1 << 12, WAITING);
    let mut labels: Vec<u32> = Vec::with_capacity(documents.count as usize);
    let mut similarities = Vec::new();
    for block in documents.blocks() {
        let units = documents.units(std::slice::from_ref(&block))?;
        let mut of_unit = vec![(0, None); units.firsts.len()];
        let mut label = |number: u32, label, similarity| {
            of_unit[number as usize] = (label, similarity);
        };
        let unit = |position: u32, number: u32| {
            let fingerprint = (documents.fingerprint)(position);
            Unit { position, number, fingerprint }
        };
        let numbered = (0..).zip(&units.firsts);
        let mut left: Vec<Unit<F>> =
            numbered.map(|(number, &first)| unit(block.start + first, number)).collect();
        left.par_sort_unstable_by_key(|unit| unit.position);
        let places: Vec<u32> = units.firsts.iter().map(|&first| block.start + first).collect();
        let mut outlines = documents.read_outlines(&places)?;
        let copies = units.of.len() - left.len();
        let mut earlier = (0..).zip(&labels).filter(|&(place, &label)| place == label);
        while !left.is_empty() {
            let some = earlier.by_ref().take(documents.block as usize);
            let some: Vec<u32> = some.map(|(place, _)| place).collect();
            if some.is_empty() {
                break;
            }
            // Numbers of these follow those of the block, as do their outlines.
            let kept: Vec<Unit<F>> =
                some.iter().zip(units.count()..).map(|(&place, at)| unit(place, at)).collect();
            outlines.truncate(places.len());
            outlines.append(&mut documents.read_outlines(&some)?);
            let rejects =
                |a: (u32, u32), b: (u32, u32), apart| documents.reject(&outlines, a, b, apart);
            let rule = Rule { options, progress, verify, rejects: &rejects, bracket, waiting };
            left = rule.apart(&kept, &left, &mut label)?;
        }
        let rejects =
            |a: (u32, u32), b: (u32, u32), apart| documents.reject(&outlines, a, b, apart);
        let rule = Rule { options, progress, verify, rejects: &rejects, bracket, waiting };
        rule.among(&left, &mut label)?;
        for (place, &unit) in block.zip(&units.of) {
            let (label, similarity) = of_unit[unit as usize];
            labels.push(label);
            similarities.extend(similarity.map(|similarity| (place, similarity)));
        }
        progress.advance(copies as u64);
    }
    Ok(Labelled { labels, similarities: Similarities::new(similarities) })
}

/// The documents that are linked so far.
struct Links<'a, F> {
    units: &'a Units<F>,
    /// Maps a position within the blocks to its place among all documents.
    place: &'a (dyn Fn(u32) -> u32 + Sync),
    /// Sets of places; a unit is represented by its first document.
    sets: &'a Mutex<UnionFind>,
    progress: &'a dyn Progress,
    verify: &'a Verify<'a>,
}

impl<F: Fingerprint> Links<'_, F> {
    /// Links the documents of each unit.
    fn join_copies(&self) {
        let mut sets = self.sets();
        for (position, &unit) in (0..).zip(&self.units.of) {
            sets.union(self.item(unit), (self.place)(position));
        }
    }

    /// Returns the place of a unit's first document.
    fn item(&self, unit: u32) -> u32 {
        (self.place)(self.units.firsts[unit as usize])
    }

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
                            self.sets().union(self.item(a), self.item(b));
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
    fn join_near(&self, options: JoinOptions) -> Result<()> {
        let directory = Directory::new(&self.units.distinct);
        join([&self.units.distinct], options, self.progress, &|pairs: &[Pair<F>]| {
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
        })?;
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
        let mut roots = a.chain(b).map(|unit| sets.root(self.item(unit)));
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
        let (mut sets, item) = (self.links.sets(), |unit| self.links.item(unit));
        self.pairs.retain(|&(a, b, _)| sets.root(item(a)) != sets.root(item(b)));
        drop(sets);
        for (a, b, distance) in self.pairs.drain(..) {
            progress::check(self.links.progress)?;
            let (first, second) = self.links.units.positions(a, b);
            if (self.links.verify)(first, second, distance)?.is_some() {
                self.links.sets().union(item(a), item(b));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
