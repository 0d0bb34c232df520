//! Variants: the instruction sets that the shared code is compiled for, and which one runs.

use std::sync::LazyLock;

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
#[cfg(target_arch = "x86_64")]
use super::sse2::Sse2;
use super::{LaneWork, Work};

/// What `HAMDEX_INSTRUCTIONS` may name, beside what is shown for it, the widest first.
const NAMES: &[(&str, &str, Variant)] = &[
    #[cfg(target_arch = "x86_64")]
    ("avx512", "AVX-512", Variant::Avx512),
    #[cfg(target_arch = "x86_64")]
    ("avx2", "AVX2", Variant::Avx2),
    #[cfg(target_arch = "x86_64")]
    ("popcnt", "popcnt", Variant::Popcnt),
    ("portable", "portable code", Variant::Portable),
];

/// What runs in this process: asked for once, since detection is a dozen tests.
static BEST: LazyLock<Variant> = LazyLock::new(|| {
    let widest = std::env::var("HAMDEX_INSTRUCTIONS").ok();
    let from = NAMES.iter().position(|(name, ..)| Some(*name) == widest.as_deref()).unwrap_or(0);
    let allowed = NAMES.iter().skip(from).map(|&(.., variant)| variant);
    allowed.clone().find(|variant| variant.available()).unwrap_or(Variant::Portable)
});

/// Names the instructions that fingerprints are compared with on this machine.
///
/// `AVX-512`, `AVX2`, `popcnt` or `portable code`; the answers are the same with each of them. The
/// environment variable `HAMDEX_INSTRUCTIONS` names the widest that a process may use: `avx512`,
/// `avx2`, `popcnt` or `portable`. It is read once, and any other value is ignored.
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

/// The instruction sets that the shared code is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// What every machine of the target has: SSE2 on x86-64, NEON on aarch64.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Popcnt,
    /// Also for AVX-512 without BITALG, whose own lanes were no faster.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Variant {
    /// Returns whether this machine has the instructions; the standard library caches the answer.
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

    /// Every variant of this target, the widest first.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|&(.., variant)| variant)
    }

    /// Runs the work with this variant's instructions, or portably if the machine lacks them.
    #[inline]
    pub(super) fn run<W: Work>(self, work: W) -> W::Output {
        if !self.available() {
            return work.run();
        }
        match self {
            Self::Portable => work.run(),
            // SAFETY: every feature that the function is compiled with has been found.
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

    /// [`Variant::run`] for work over sliced members.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn run_lanes(self, work: impl LaneWork) {
        match self {
            // SAFETY: every feature that the function is compiled with has been found.
            Self::Avx512 if self.available() => unsafe { avx512_lanes(work) },
            // SAFETY: as above.
            Self::Avx2 if self.available() => unsafe { avx2_lanes(work) },
            Self::Portable | Self::Popcnt | Self::Avx2 | Self::Avx512 => work.run(Sse2),
        }
    }

    /// [`Variant::run`] for work over sliced members.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub(super) fn run_lanes(self, work: impl LaneWork) {
        work.run(super::lanes::Plain);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,avx2,avx512f,avx512bw,avx512vl,avx512vpopcntdq,avx512bitalg")]
fn avx512_lanes(work: impl LaneWork) {
    // SAFETY: whoever calls this function has found all of these features.
    work.run(unsafe { Avx512::assume() });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,avx2")]
fn avx2_lanes(work: impl LaneWork) {
    // SAFETY: whoever calls this function has found these features.
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
