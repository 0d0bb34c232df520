//! Joins: find all near pairs of a set of fingerprints, or the clusters that they form.
//!
//! Every strategy finds the same pairs. Estimated cost alone decides which strategy is used and how
//! often a set is split.
//!
//! # Approach
//!
//! The bits are cut into one or two sections, and each into blocks. A pair that differs in at most
//! e bits of a section with m blocks agrees on at least m - e of them. For each choice of m - e
//! blocks the set is bucketed by some of these bits and grouped by the others, in pieces that fit
//! the cache. Only members of a group are compared, with the widest vector instructions of the
//! machine. A group that stays large is split again on its other bits. Block boundaries follow the
//! variance of the bits. A cost estimate chooses sections and blocks from the size of the set and k;
//! at large k, comparing all pairs may be the cheapest.
//!
//! # References
//!
//! - Manku, Jain, Das Sarma: Detecting near-duplicates for web crawling. WWW 2007.
//! - Tabei, Uno, Sugiyama, Tsuda: Single versus multiple sorting in all pairs similarity search.
//!   ACML 2010.
//! - Qin, Wang, Xiao, Wang: GPH, similarity search in Hamming space. ICDE 2018.
#![doc = include_str!("JOINS.md")]
#![expect(
    clippy::indexing_slicing,
    reason = "indices are computed in this module; a wrong one must panic, not lose pairs"
)]

mod clusters;
mod options;
mod sets;
mod stored;

pub(crate) use self::clusters::{
    Bracket, Documents as Grouping, Labelled, Outlines, Similarities, labelled,
};
pub use self::clusters::{
    Copies, Diameter, UnionFind, Verify, clusters, diameter, verified_clusters,
};
pub use self::options::{JoinOptions, JoinReport};
pub(crate) use self::sets::Trial;
pub use self::stored::{Cluster, DocumentPair};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress::Progress;
pub use crate::verify::Linkage;

/// Two fingerprints within the distance of a join.
///
/// ```
/// use hamdex::join::Pair;
///
/// let pair = Pair { a: 0b0001_u64, b: 0b0111, distance: 2 };
/// assert_eq!((pair.a ^ pair.b).count_ones(), pair.distance);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair<F> {
    /// The smaller fingerprint; in a cross join, the one from the first set.
    pub a: F,
    /// The larger fingerprint; in a cross join, the one from the second set.
    pub b: F,
    /// The number of differing bits; 0 only in a cross join.
    pub distance: u32,
}

/// Finds all pairs of distinct fingerprints within a distance.
///
/// Repeated fingerprints in `fps` are joined once and form no pair with each other. Each pair is
/// passed to `visit` once, with `a < b`, in batches of up to a few thousand. Batches are in no
/// particular order and are passed from several threads at once. Exact for every distance up to the
/// width of `F`. Cost grows with the number of pairs, so a distance at which everything is near is
/// quadratic.
///
/// `options` is a distance, or a [`JoinOptions`] with a memory limit. Without a limit, memory holds
/// the distinct fingerprints, one copy of them, and another copy each time a skewed group is split
/// again. Progress is reported in fingerprints, counted once for the whole join. Cancellation is
/// checked every few thousand fingerprints. Runs on the current rayon pool.
///
/// # Errors
///
/// - Returns [`Error::InvalidDistance`](crate::Error::InvalidDistance) if the distance exceeds the
///   width of `F`.
/// - Returns [`Error::Cancelled`](crate::Error::Cancelled) if `progress` requests it.
/// - Returns any error of `visit`; the other threads stop soon after.
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
    sets::join([&sets::distinct(fps)], options.into(), progress, visit)
}

/// Finds all near pairs between two sets of fingerprints.
///
/// In every pair `a` is from the first set and `b` from the second; they may be equal, at distance
/// 0. Repeated fingerprints within a set are joined once. Batches, memory and progress are as in
/// [`self_join`], with the sizes of both sets added. Cost grows with the number of pairs between
/// the sets; pairs within a set cost nothing.
///
/// # Errors
///
/// Returns the errors of [`self_join`].
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
    let (a, b) = (sets::distinct(a), sets::distinct(b));
    sets::join([&a, &b], options.into(), progress, visit)
}
