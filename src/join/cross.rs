//! Cross join: two sets become all near pairs with one member of each.

use super::options::{JoinOptions, JoinReport};
use super::{Pair, distinct, join};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress::Progress;

/// Finds all pairs of a fingerprint of one set and one of another within a distance.
///
/// In every pair `a` is of the first set and `b` of the second; they may be equal, at distance 0.
/// Both are sets: what is repeated in one of them counts once, so each pair comes once. For the
/// rest this is [`self_join`](super::self_join), whose memory and batches it has, with the sizes
/// of both sets added up. The work grows with the pairs, never with the pairs inside a set.
///
/// # Errors
///
/// As [`self_join`](super::self_join).
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
