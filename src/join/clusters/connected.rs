//! Clusters: connected components of near pairs, labelled by their smallest position.
//!
//! Links join distinct fingerprints in a union-find and are not stored, so memory is linear for any
//! number of pairs.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::directory::Directory;
use super::union_find::UnionFind;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::sets::{distinct, join};
use crate::join::{JoinOptions, Pair};
use crate::progress::{self, Progress};

/// Returns, for every position, the smallest position in its cluster.
///
/// A cluster is a connected component of near pairs, so two of its members may be further apart
/// than the distance. Equal fingerprints share a cluster, also at distance 0. The result depends only
/// on the input, not on the number of threads. `options` is a distance, or a [`JoinOptions`] with
/// costs and a memory limit of the join.
///
/// Memory is that of [`self_join`](crate::join::self_join) and up to 20 bytes per fingerprint.
/// Progress and cancellation are those of the join.
///
/// # Errors
///
/// - Returns [`Error::InvalidDistance`] if the distance exceeds the width of `F`.
/// - Returns [`Error::InvalidOption`] if there are more than `u32::MAX` fingerprints.
/// - Returns [`Error::Cancelled`] if `progress` requests it.
///
/// ```
/// use hamdex::join;
///
/// let clusters = join::clusters(&[0b0111_u64, 0xffff, 0b0001, 0b0001], 2, &())?;
/// assert_eq!(clusters, [0, 1, 0, 0]);
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn clusters<F: Fingerprint>(
    fps: &[F],
    options: impl Into<JoinOptions>,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    u32::try_from(fps.len()).map_err(|_| Error::InvalidOption {
        name: "fps",
        reason: format!("{} fingerprints are too many; the maximum is {}", fps.len(), u32::MAX),
    })?;
    let distinct = distinct(fps);
    let count = u32::try_from(distinct.len()).expect("at most one distinct value per position");
    let directory = Directory::new(&distinct);
    let sets = Mutex::new(UnionFind::new(count));
    join([&distinct], options.into(), progress, &|pairs: &[Pair<F>]| {
        let link = |pair: &Pair<F>| (directory.place(pair.a), directory.place(pair.b));
        let links: Vec<_> = pairs.iter().map(link).collect();
        let mut sets = sets.lock().unwrap_or_else(PoisonError::into_inner);
        for (a, b) in links {
            sets.union(a, b);
        }
        Ok(())
    })?;
    progress::check(progress)?;
    let mut sets = sets.into_inner().unwrap_or_else(PoisonError::into_inner);
    let roots: Vec<u32> = (0..count).map(|item| sets.root(item)).collect();
    drop(sets);
    let mut labels: Vec<u32> =
        fps.par_iter().map(|&fp| roots[directory.place(fp) as usize]).collect();
    let mut smallest = vec![u32::MAX; distinct.len()];
    for (position, label) in (0..).zip(&mut labels) {
        let smallest = &mut smallest[*label as usize];
        *smallest = position.min(*smallest);
        *label = *smallest;
    }
    Ok(labels)
}
