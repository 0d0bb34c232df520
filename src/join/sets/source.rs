//! Source: a set that a join reads from end to end, possibly many times.

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::bits::Digits;
use crate::error::Result;
use crate::fingerprint::Fingerprint;

/// Number of members passed to a visitor at once.
pub(in crate::join) const CHUNK: usize = 16 << 10;
/// Approximate sample size for choosing the blocks of a set.
const SAMPLE: u64 = 2048;

/// A set of distinct fingerprints, in memory or not.
pub(in crate::join) trait Source<F: Fingerprint>: Sync {
    /// Returns an upper bound of the number of members.
    fn len(&self) -> usize;

    /// Calls `visit` with all members in chunks, from several threads at once.
    fn scan(&self, visit: &(dyn Fn(&[F]) -> Result<()> + Sync)) -> Result<()>;

    /// Returns a sample from the whole set, the same one in every run.
    fn sample(&self) -> Result<Vec<F>> {
        let bound = match self.len() as u64 {
            len if len <= SAMPLE => u64::MAX,
            len => u64::MAX / len * SAMPLE,
        };
        let sample = Mutex::new(Vec::new());
        self.scan(&|members| {
            let chosen: Vec<F> = members.iter().copied().filter(|&f| mix(f) <= bound).collect();
            sample.lock().unwrap_or_else(PoisonError::into_inner).extend(chosen);
            Ok(())
        })?;
        Ok(sample.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Hashes a fingerprint to an evenly distributed number.
fn mix<F: Fingerprint>(fingerprint: F) -> u64 {
    let wide = fingerprint.widen();
    let word =
        <u64 as Fingerprint>::truncate(wide ^ (wide >> 64)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

impl<F: Fingerprint> Source<F> for &[F] {
    fn len(&self) -> usize {
        <[F]>::len(self)
    }

    fn scan(&self, visit: &(dyn Fn(&[F]) -> Result<()> + Sync)) -> Result<()> {
        self.par_chunks(CHUNK).try_for_each(visit)
    }
}

/// The members of a set that are in some adjacent buckets.
pub(super) struct Part<'a, F, T: ?Sized> {
    pub(super) source: &'a T,
    /// The bits that select a bucket.
    pub(super) bucket: &'a Digits<F>,
    /// First and last bucket of the part.
    pub(super) buckets: RangeInclusive<usize>,
    pub(super) len: usize,
}

impl<F: Fingerprint, T: Source<F> + ?Sized> Source<F> for Part<'_, F, T> {
    fn len(&self) -> usize {
        self.len
    }

    fn scan(&self, visit: &(dyn Fn(&[F]) -> Result<()> + Sync)) -> Result<()> {
        let spare = Mutex::new(Vec::<Vec<F>>::new());
        let spares = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        self.source.scan(&|members| {
            let mut room = spares().pop().unwrap_or_default();
            room.resize(members.len().max(room.len()), F::ZERO);
            let mut count = 0;
            // Without a branch: which members are chosen cannot be predicted.
            self.bucket.for_each(members, |member, bucket| {
                room[count] = member;
                count += usize::from(self.buckets.contains(&bucket));
            });
            let visited = if count == 0 { Ok(()) } else { visit(&room[..count]) };
            spares().push(room);
            visited
        })
    }
}

/// Reads a whole source into memory, in any order, in place of what is there.
pub(super) fn load<F: Fingerprint>(source: &dyn Source<F>, to: &mut Vec<F>) -> Result<()> {
    to.clear();
    to.reserve_exact(source.len());
    let all = Mutex::new(to);
    source.scan(&|members| {
        all.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(members);
        Ok(())
    })
}
