//! XOR-popcount filter: members and a query become the few members within a distance.
//!
//! The same safe code is compiled once for every instruction set and picked when it runs, so that
//! no variant can answer differently from another.
#![allow(unsafe_code)]
// Inlining is what compiles the shared code with the features of each variant.
#![allow(clippy::inline_always)]
// A lazy operator is a branch per member, which keeps the loop from being vectorised.
#![allow(clippy::needless_bitwise_bool)]

#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;

pub(crate) use self::lanes::{LANES, Lanes};
use crate::fingerprint::Fingerprint;

/// Names the instructions that fingerprints are compared with on this machine.
///
/// `AVX-512`, `AVX2`, `popcnt` or `portable code`; the answers are the same with each of them.
///
/// ```
/// assert!(!hamdex::instructions().is_empty());
/// ```
pub fn instructions() -> &'static str {
    match Variant::best() {
        Variant::Portable => "portable code",
        #[cfg(target_arch = "x86_64")]
        Variant::Popcnt => "popcnt",
        #[cfg(target_arch = "x86_64")]
        Variant::Avx2 => "AVX2",
        #[cfg(target_arch = "x86_64")]
        Variant::Avx512 => "AVX-512",
    }
}

/// Work whose inner loop gains from wide vectors.
///
/// `run` and all it calls have to be `#[inline(always)]`: code left out of line is compiled
/// without the features that [`dispatch`] found.
pub(crate) trait Work {
    /// What the work returns.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Runs work with the widest instructions that this machine has.
#[inline]
pub(crate) fn dispatch<W: Work>(work: W) -> W::Output {
    Variant::best().run(work)
}

/// [`Work`] that compares sliced members, 32 at once.
pub(crate) trait LaneWork {
    /// Does the work; the same rule of inlining holds.
    fn run<L: Lanes>(self, lanes: L);
}

/// Runs work over sliced members with the widest instructions that this machine has.
#[inline]
pub(crate) fn dispatch_lanes(work: impl LaneWork) {
    Variant::best().run_lanes(work);
}

/// Lends plain code to one of the variants.
struct PlainWork<W>(W);

impl<W: LaneWork> Work for PlainWork<W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.run(lanes::Plain);
    }
}

/// Calls `hit` with index and distance of every member within `distance` of the query.
///
/// Indices rise. Made for rare hits: 64 members are tested at once and only looked at one by one
/// when any of them is near enough.
#[inline]
pub(crate) fn within<F: Fingerprint>(
    members: &[F],
    query: F,
    distance: u32,
    hit: &mut impl FnMut(usize, u32),
) {
    dispatch(Within { members, query, distance, hit });
}

/// [`within`] for callers that are themselves [`Work`].
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
        look_closer(block, first, query, distance, hit);
        first += block.len();
    }
    let (blocks, rest) = rest.as_chunks::<8>();
    for block in blocks {
        look_closer(block, first, query, distance, hit);
        first += block.len();
    }
    // The last block of 8 overlaps the one before it, so that a short rest is tested at once too.
    if members.last_chunk::<8>().is_none_or(|block| any_within(block, query, distance)) {
        each_within(rest, first, query, distance, hit);
    }
}

#[inline(always)]
fn look_closer<F: Fingerprint, const N: usize>(
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
        if let Some(member) = block.get(at) {
            hit(first + at, member.distance(query));
        }
    }
}

/// Returns a bit for each member of the block that is near, the first one lowest.
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

/// Tells whether any member of the block is near, without a branch per member.
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

/// Views 128-bit fingerprints as pairs of 64-bit words, in the machine's own order.
///
/// Vector units count bits in words of 64, and compilers do not split wider integers themselves.
#[inline(always)]
fn halves<F: Fingerprint>(members: &[F], query: F) -> Option<(&[[u64; 2]], [u64; 2])> {
    if F::BITS != 128 {
        return None;
    }
    const { assert!(F::BITS != 128 || size_of::<F>() == size_of::<[u64; 2]>()) };
    const { assert!(F::BITS != 128 || align_of::<F>() >= align_of::<[u64; 2]>()) };
    // SAFETY: size and alignment are checked above, the sealed trait's only type of 128 bits is
    // u128, which is as free of padding as the words, and every bit pattern is a valid word.
    let pairs = unsafe { std::slice::from_raw_parts(members.as_ptr().cast(), members.len()) };
    // SAFETY: as above, for a single fingerprint.
    let query = unsafe { *std::ptr::from_ref(&query).cast() };
    Some((pairs, query))
}

/// Asks for the cache line of an item that will be read soon.
///
/// A hint only: what lies at the place does not matter, nor that anything does. Lines come as far
/// as the second-level cache, which has more of them under way at once than the first: searches at
/// distance 12 and 16 take a fifth less.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    let place = items.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing that the program can see and faults nowhere, and every
    // processor of the target has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
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

/// The instruction sets that the shared code is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// What every machine of the target has; on aarch64 that includes NEON.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Popcnt,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Variant {
    /// Every variant of this target, the widest first.
    const ALL: &[Self] = &[
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Popcnt,
        Self::Portable,
    ];

    /// Tells whether this machine has the instructions; the standard library caches the answer.
    #[inline]
    fn available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Popcnt => is_x86_feature_detected!("popcnt"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vpopcntdq")
                    && is_x86_feature_detected!("avx512bitalg")
            }
        }
    }

    #[inline]
    fn best() -> Self {
        Self::ALL.iter().copied().find(|variant| variant.available()).unwrap_or(Self::Portable)
    }

    /// Runs the work with this variant's instructions, or portably if the machine lacks them.
    #[inline]
    fn run<W: Work>(self, work: W) -> W::Output {
        match self {
            // SAFETY: the guard has found every feature that the function is compiled with.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if self.available() => unsafe { avx512(work) },
            // SAFETY: the guard has found every feature that the function is compiled with.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if self.available() => unsafe { avx2(work) },
            // SAFETY: the guard has found the feature that the function is compiled with.
            #[cfg(target_arch = "x86_64")]
            Self::Popcnt if self.available() => unsafe { popcnt(work) },
            #[cfg(target_arch = "x86_64")]
            Self::Popcnt | Self::Avx2 | Self::Avx512 => work.run(),
            Self::Portable => work.run(),
        }
    }

    /// [`Variant::run`] for work over sliced members.
    #[inline]
    fn run_lanes(self, work: impl LaneWork) {
        match self {
            // SAFETY: the guard has found every feature that the function is compiled with.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if self.available() => unsafe { avx512_lanes(work) },
            _ => self.run(PlainWork(work)),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,avx2,avx512f,avx512bw,avx512vl,avx512vpopcntdq,avx512bitalg")]
fn avx512_lanes(work: impl LaneWork) {
    // SAFETY: whoever calls this function has found all of these features.
    work.run(unsafe { avx512::Avx512::assume() });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,avx2,avx512f,avx512bw,avx512vl,avx512vpopcntdq,avx512bitalg")]
fn avx512<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,avx2")]
fn avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn popcnt<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(test)]
mod tests;
