//! The instruction sets that the shared code is compiled for, and the one in use.

use std::sync::LazyLock;

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
#[cfg(target_arch = "x86_64")]
use super::sse2::Sse2;
use super::{LaneWork, Work};

/// Values of `HAMDEX_INSTRUCTIONS` and their displayed names, the widest first.
const NAMES: &[(&str, &str, Variant)] = &[
    #[cfg(target_arch = "x86_64")]
    ("avx512", "AVX-512", Variant::Avx512),
    #[cfg(target_arch = "x86_64")]
    ("avx2", "AVX2", Variant::Avx2),
    #[cfg(target_arch = "x86_64")]
    ("popcnt", "popcnt", Variant::Popcnt),
    ("portable", "portable code", Variant::Portable),
];

/// The variant of this process; cached, since detection takes a dozen tests.
static BEST: LazyLock<Variant> = LazyLock::new(|| {
    let widest = std::env::var("HAMDEX_INSTRUCTIONS").ok();
    let from = NAMES.iter().position(|(name, ..)| Some(*name) == widest.as_deref()).unwrap_or(0);
    let allowed = NAMES.iter().skip(from).map(|&(.., variant)| variant);
    allowed.clone().find(|variant| variant.available()).unwrap_or(Variant::Portable)
});

/// Returns the instruction set that compares fingerprints on this machine.
///
/// One of `AVX-512`, `AVX2`, `popcnt` and `portable code`; all return the same answers. The
/// environment variable `HAMDEX_INSTRUCTIONS` sets the widest one that a process may use: `avx512`,
/// `avx2`, `popcnt` or `portable`. It is read once; other values are ignored.
///
/// ```
/// assert!(!hamdex::inspect::instructions().is_empty());
/// ```
pub fn instructions() -> &'static str {
    let best = Variant::best();
    NAMES
        .iter()
        .find(|(.., variant)| *variant == best)
        .map_or("portable code", |(_, shown, _)| shown)
}

/// An instruction set that the shared code is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// The baseline of the target: SSE2 on x86-64, NEON on aarch64.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Popcnt,
    /// Also used for AVX-512 without BITALG, where wider code was no faster.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Variant {
    /// Returns true if this machine has the instructions; std caches the answer.
    pub(super) fn available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Popcnt => is_x86_feature_detected!("popcnt"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Self::Popcnt.available() && is_x86_feature_detected!("avx2"),
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
    pub(super) fn best() -> Self {
        *BEST
    }

    /// Returns every variant of this target, the widest first.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|&(.., variant)| variant)
    }

    /// Runs the work with this variant, or with portable code if the machine lacks it.
    #[inline]
    pub(super) fn run<W: Work>(self, work: W) -> W::Output {
        if !self.available() {
            return work.run();
        }
        match self {
            Self::Portable => work.run(),
            // SAFETY: `available` detected every feature that the function is compiled with.
            #[cfg(target_arch = "x86_64")]
            Self::Popcnt => unsafe { popcnt(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512(work) },
        }
    }

    /// Runs work over columns with this variant; see [`Variant::run`].
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn run_lanes(self, work: impl LaneWork) {
        match self {
            // SAFETY: `available` detected every feature that the function is compiled with.
            Self::Avx512 if self.available() => unsafe { avx512_lanes(work) },
            // SAFETY: as above.
            Self::Avx2 if self.available() => unsafe { avx2_lanes(work) },
            Self::Portable | Self::Popcnt | Self::Avx2 | Self::Avx512 => work.run(Sse2),
        }
    }

    /// Runs work over columns; see [`Variant::run`].
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub(super) fn run_lanes(self, work: impl LaneWork) {
        work.run(super::lanes::Plain);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,avx2,avx512f,avx512bw,avx512vl,avx512vpopcntdq,avx512bitalg")]
fn avx512_lanes(work: impl LaneWork) {
    // SAFETY: callers of this function have detected all of these features.
    work.run(unsafe { Avx512::assume() });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,avx2")]
fn avx2_lanes(work: impl LaneWork) {
    // SAFETY: callers of this function have detected these features.
    work.run(unsafe { Avx2::assume() });
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
