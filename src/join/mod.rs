//! Joins: a set of fingerprints becomes all its near pairs, or its clusters of them.
//!
//! Every way to compare finds the same pairs; which one is taken, and how often a set is split,
//! is decided by cost alone.
//!
//! # Approach
//!
//! The bits are cut into m blocks. Two fingerprints within k bits differ in at most k blocks, so
//! they agree on all blocks of one choice of m - k at least. For each choice the set is parted by
//! those blocks, piece by piece within the cache, and only members that agree on them are
//! compared, with the widest vector instructions of the machine. A group that stays large is split
//! again in the same way on its other bits. Blocks are cut by how much the bits vary, and m is chosen by an estimate of
//! cost from the size of the set and k; where k is large, comparing all pairs may be the cheapest.
//!
//! # References
//!
//! - Manku, Jain, Das Sarma: Detecting near-duplicates for web crawling. WWW 2007.
//! - Tabei, Uno, Sugiyama, Tsuda: Single versus multiple sorting in all pairs similarity search.
//!   ACML 2010.
#![doc = include_str!("JOINS.md")]
#![expect(
    clippy::indexing_slicing,
    reason = "places and counts are made here; one that slips must panic, not lose pairs"
)]

mod across;
mod all_pairs;
mod blocks;
mod checked;
mod clusters;
mod column;
mod copies;
mod cost;
mod diameter;
mod directory;
mod distinct;
mod documents;
mod groups;
mod options;
mod pairing;
mod partition;
mod parts;
mod permutation;
mod postings;
mod representatives;
mod sink;
mod source;
mod sweep;
mod union_find;
mod verified;

#[cfg(test)]
mod tests;

pub use self::clusters::clusters;
pub use self::copies::Copies;
pub use self::diameter::{Diameter, diameter};
pub use self::documents::{Cluster, DocumentPair};
pub use self::options::{JoinOptions, JoinReport};
use self::source::Source;
pub use self::union_find::UnionFind;
pub(crate) use self::verified::{Labelled, labelled};
pub use self::verified::{Verify, verified_clusters};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress::Progress;
pub use crate::verify::Linkage;

/// Two fingerprints within the distance of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair<F> {
    /// The smaller fingerprint; in a cross join the one of the first set.
    pub a: F,
    /// The larger fingerprint; in a cross join the one of the second set.
    pub b: F,
    /// The number of bits in which they differ; 0 only in a cross join.
    pub distance: u32,
}

/// Finds all pairs of distinct fingerprints within a distance.
///
/// The join is over the set of fingerprints: one that is repeated in `fps` counts once, and equal
/// ones are no pair. Each pair is found once, with `a < b`, and given to `visit` in batches of
/// some thousands at most; batches come in no order and from several threads at once. Returns how
/// many pairs there were and how many comparisons it took. Exact for every distance up to the
/// width of `F`; the work grows with the number of pairs, so a distance at which everything is
/// near is quadratic.
///
/// `options` is a distance, or a distance and a bound of memory. Without a bound, memory is the
/// distinct fingerprints and one copy of them, and one more for each time that a skewed group is
/// split again. Progress is counted in fingerprints, once for the whole join, and moves while
/// pairs are compared; cancellation is looked at every few thousand fingerprints. Threads are
/// those of rayon's current pool.
///
/// # Errors
///
/// - [`Error::InvalidDistance`](crate::Error::InvalidDistance) if the distance is above the width of `F`.
/// - [`Error::Cancelled`](crate::Error::Cancelled) once the progress sink asks to stop.
/// - Whatever `visit` fails with; the other threads stop soon after.
///
/// ```
/// use std::sync::Mutex;
///
/// use hamdex::join::{self, Pair};
///
/// let pairs = Mutex::new(Vec::new());
/// let report = join::self_join(&[0b0111_u64, 0b0001, 0b0001, 0xffff], 2, &(), &|batch| {
///     pairs.lock().unwrap().extend_from_slice(batch);
///     Ok(())
/// })?;
/// assert_eq!(report.pairs, 1);
/// assert_eq!(*pairs.lock().unwrap(), [Pair { a: 0b0001, b: 0b0111, distance: 2 }]);
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn self_join<F: Fingerprint>(
    fps: &[F],
    options: impl Into<JoinOptions>,
    progress: &dyn Progress,
    visit: &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
) -> Result<JoinReport> {
    join([&distinct::distinct(fps)], options.into(), progress, visit)
}

/// Finds all pairs of a fingerprint of one set and one of another within a distance.
///
/// In every pair `a` is of the first set and `b` of the second; they may be equal, at distance 0.
/// Both are sets: what is repeated in one of them counts once, so each pair comes once. For the
/// rest this is [`self_join`], whose memory and batches it has, with the sizes
/// of both sets added up. The work grows with the pairs, never with the pairs inside a set.
///
/// # Errors
///
/// As [`self_join`].
///
/// ```
/// use std::sync::Mutex;
///
/// use hamdex::join::{self, Pair};
///
/// let (queries, stored) = ([0b0011_u64, 0xff00], [0b0111_u64, 0b0011, 0xffff_0000]);
/// let pairs = Mutex::new(Vec::new());
/// let report = join::cross_join(&queries, &stored, 1, &(), &|batch| {
///     pairs.lock().unwrap().extend_from_slice(batch);
///     Ok(())
/// })?;
/// assert_eq!(report.pairs, 2);
/// let mut pairs = pairs.into_inner().unwrap();
/// pairs.sort();
/// assert_eq!(pairs[0], Pair { a: 0b0011, b: 0b0011, distance: 0 });
/// assert_eq!(pairs[1], Pair { a: 0b0011, b: 0b0111, distance: 1 });
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn cross_join<F: Fingerprint>(
    a: &[F],
    b: &[F],
    options: impl Into<JoinOptions>,
    progress: &dyn Progress,
    visit: &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
) -> Result<JoinReport> {
    let (a, b) = (distinct::distinct(a), distinct::distinct(b));
    join([&a, &b], options.into(), progress, visit)
}

/// Joins one set, or two, of distinct fingerprints.
fn join<F: Fingerprint, const S: usize>(
    sets: [&[F]; S],
    options: JoinOptions,
    progress: &dyn Progress,
    visit: &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
) -> Result<JoinReport> {
    let held: usize = sets.map(<[F]>::len).iter().sum();
    // In memory already, the sets only need room for one table.
    let fits = options.memory / F::BYTES / 2 >= held;
    let run = sink::Run::new::<S>(options, if fits { 0 } else { held }, progress, visit);
    if !run.begin(held)? {
        return Ok(JoinReport::default());
    }
    let units = held as u64;
    if fits {
        return sweep::pairs(&run, &sink::Space::ROOT, sets, units);
    }
    let sources = sets.each_ref().map(|set| set as &dyn Source<F>);
    parts::pairs(&run, &sink::Space::ROOT, sources, units)
}

/// [`join`] of sources, whose members are distinct too.
fn join_sources<F: Fingerprint, const S: usize>(
    sources: [&dyn Source<F>; S],
    options: JoinOptions,
    progress: &dyn Progress,
    visit: &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
) -> Result<JoinReport> {
    let members = sources.map(Source::len).iter().sum();
    let run = sink::Run::new::<S>(options, 0, progress, visit);
    if !run.begin(members)? {
        return Ok(JoinReport::default());
    }
    parts::pairs(&run, &sink::Space::ROOT, sources, members as u64)
}
