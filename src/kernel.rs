//! XOR-popcount filter: returns the members within a distance of a query.
//!
//! The same safe code is compiled once per instruction set and selected at run time, so all
//! variants return the same answers.
#![allow(unsafe_code)]
// Inlining compiles the shared code with the features of each variant.
#![allow(clippy::inline_always)]
#![expect(clippy::indexing_slicing, reason = "a bit of a mask is the number of a member")]
// Lazy operators branch per member, which prevents vectorisation.
#![allow(clippy::needless_bitwise_bool)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod sse2;
mod variant;

pub(crate) use self::lanes::{BESIDE, LANES, Lanes, ROWS, WORDS, any_beside, any_near, near};
use self::variant::Variant;
pub use self::variant::instructions;
use crate::fingerprint::Fingerprint;

/// Work whose inner loop benefits from wide vectors.
///
/// `run` and everything it calls must be `#[inline(always)]`. Code that is not inlined is compiled
/// without the features that [`dispatch`] detected.
pub(crate) trait Work {
    /// The result of the work.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Runs work with the widest instructions of this machine.
#[inline]
pub(crate) fn dispatch<W: Work>(work: W) -> W::Output {
    Variant::best().run(work)
}

/// [`Work`] that compares 32 members at once, stored in columns.
pub(crate) trait LaneWork {
    /// Does the work; the inlining rule of [`Work`] applies.
    fn run<L: Lanes>(self, lanes: L);
}

/// Runs work over columns with the widest instructions of this machine.
#[inline]
pub(crate) fn dispatch_lanes(work: impl LaneWork) {
    Variant::best().run_lanes(work);
}

/// Calls `hit` with index and distance of each member within `distance` of the query.
///
/// Indices ascend. Optimised for rare hits: 64 members are tested at once, and single members only
/// if one of the 64 is near.
#[inline]
pub(crate) fn within<F: Fingerprint>(
    members: &[F],
    query: F,
    distance: u32,
    hit: &mut impl FnMut(usize, u32),
) {
    dispatch(Within { members, query, distance, hit });
}

/// [`within`] for callers that implement [`Work`].
#[inline(always)]
pub(crate) fn within_inlined<F: Fingerprint>(
    members: &[F],
    query: F,
    distance: u32,
    hit: &mut impl FnMut(usize, u32),
) {
    let mut first = 0;
    let (blocks, rest) = members.as_chunks::<64>();
    for block in blocks {
        test_block(block, first, query, distance, hit);
        first += block.len();
    }
    let (blocks, rest) = rest.as_chunks::<8>();
    for block in blocks {
        test_block(block, first, query, distance, hit);
        first += block.len();
    }
    // The last block of 8 overlaps the block before it, so that a short rest is tested at once too.
    if members.last_chunk::<8>().is_none_or(|block| any_within(block, query, distance)) {
        each_within(rest, first, query, distance, hit);
    }
}

#[inline(always)]
fn test_block<F: Fingerprint, const N: usize>(
    block: &[F; N],
    first: usize,
    query: F,
    distance: u32,
    hit: &mut impl FnMut(usize, u32),
) {
    if !any_within(block, query, distance) {
        return;
    }
    let mut hits = mask_within(block, query, distance);
    while hits != 0 {
        let at = hits.trailing_zeros() as usize;
        hits &= hits - 1;
        hit(first + at, block[at].distance(query));
    }
}

/// Returns a mask of the near members; the lowest bit is the first member.
#[inline(always)]
fn mask_within<F: Fingerprint, const N: usize>(block: &[F; N], query: F, distance: u32) -> u64 {
    const { assert!(N <= 64) };
    if let Some((pairs, query)) = halves(block, query) {
        let distance = u64::from(distance);
        let near = |&pair: &[u64; 2]| pair_distance(pair, query) <= distance;
        return (0..).zip(pairs).fold(0, |mask, (at, pair)| mask | (u64::from(near(pair)) << at));
    }
    let near = |member: &F| member.distance(query) <= distance;
    (0..).zip(block).fold(0, |mask, (at, member)| mask | (u64::from(near(member)) << at))
}

#[inline(always)]
fn each_within<F: Fingerprint>(
    block: &[F],
    first: usize,
    query: F,
    distance: u32,
    hit: &mut impl FnMut(usize, u32),
) {
    for (at, member) in block.iter().enumerate() {
        let found = member.distance(query);
        if found <= distance {
            hit(first + at, found);
        }
    }
}

/// Returns true if a member of the block is near; branchless.
#[inline(always)]
fn any_within<F: Fingerprint>(block: &[F], query: F, distance: u32) -> bool {
    if let Some((block, query)) = halves(block, query) {
        let distance = u64::from(distance);
        return block
            .iter()
            .fold(false, |any, &pair| any | (pair_distance(pair, query) <= distance));
    }
    block.iter().fold(false, |any, member| any | (member.distance(query) <= distance))
}

#[inline(always)]
fn pair_distance([a, b]: [u64; 2], [c, d]: [u64; 2]) -> u64 {
    u64::from((a ^ c).count_ones()) + u64::from((b ^ d).count_ones())
}

/// Views 128-bit fingerprints as pairs of 64-bit words in native byte order.
///
/// Vector units count bits in 64-bit words, and compilers do not split wider integers.
#[inline(always)]
fn halves<F: Fingerprint>(members: &[F], query: F) -> Option<(&[[u64; 2]], [u64; 2])> {
    if F::BITS != 128 {
        return None;
    }
    const { assert!(F::BITS != 128 || size_of::<F>() == size_of::<[u64; 2]>()) };
    const { assert!(F::BITS != 128 || align_of::<F>() >= align_of::<[u64; 2]>()) };
    // SAFETY: size and alignment are asserted above. The only 128-bit type of the sealed trait is
    // u128, which has no padding, and every bit pattern is a valid pair of words.
    let pairs = unsafe { std::slice::from_raw_parts(members.as_ptr().cast(), members.len()) };
    // SAFETY: as above, for a single fingerprint.
    let query = unsafe { *std::ptr::from_ref(&query).cast() };
    Some((pairs, query))
}

/// Prefetches the cache line of an item that is read soon.
///
/// Only a hint: the address need not be valid. Lines are loaded into the second-level cache, which
/// allows more outstanding loads than the first. Searches at distance 12 and 16 take a fifth less
/// time.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    let place = items.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no visible effect and never faults, and every processor of the target
    // has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: prefetching has no visible effect and never faults. The standard library's function
    // for it is not stable on this architecture.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{place}]", place = in(reg) place,
            options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

struct Within<'a, F, H> {
    members: &'a [F],
    query: F,
    distance: u32,
    hit: &'a mut H,
}

impl<F: Fingerprint, H: FnMut(usize, u32)> Work for Within<'_, F, H> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        within_inlined(self.members, self.query, self.distance, self.hit);
    }
}

#[cfg(test)]
mod tests;
