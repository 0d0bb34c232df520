//! Waits: how long ranges took of late, and the threads that wait for files together.
//!
//! A range that no memory holds takes as long as the disk needs, and most disks read several blocks in
//! the time of one. So while ranges are slow, a search reads them on more threads than there are
//! processors. What comparing the members should take is subtracted: a long range is no slow file.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::TOGETHER;

/// Nanoseconds of a range that waits for a file: more than a block of a fast local disk takes, and the
/// threads gain little there.
const SLOW: u64 = 150_000;
/// Threads that wait together.
const THREADS: usize = 8;
/// Share of the last measurement in the mean, as one in this many.
const LAST: u64 = 8;
/// Largest measurement in nanoseconds: a thread that lost its processor once is no slow file.
const MOST: u64 = 2 * SLOW;

/// Returns how many of a search's ranges one thread reads in sequence.
pub(super) fn together(ranges: u64) -> usize {
    let each = ranges / (4 * THREADS as u64);
    usize::try_from(each).unwrap_or(TOGETHER).clamp(1, TOGETHER)
}

/// The mean time of the last ranges, and threads for slow ones.
#[derive(Debug, Default)]
pub(in crate::index) struct Waits {
    nanos: AtomicU64,
    pool: OnceLock<Option<ThreadPool>>,
}

impl Waits {
    /// Adds the time that one thread took for some ranges, and what comparing their members takes.
    pub(super) fn learn(&self, ranges: u64, took: Duration, comparing: Duration) {
        let waited = took.saturating_sub(comparing);
        let Some(each) = waited.as_nanos().checked_div(ranges.into()) else { return };
        let each = u64::try_from(each).map_or(MOST, |each| each.min(MOST));
        let before = self.nanos.load(Ordering::Relaxed);
        let mean = before - before / LAST + each / LAST;
        self.nanos.store(mean, Ordering::Relaxed);
    }

    /// Returns the threads that read ranges together, if these wait for files.
    ///
    /// They belong to the handle, because a fork does not inherit them. The model checker runs one thread
    /// at a time, and knows no others.
    pub(super) fn pool(&self) -> Option<&ThreadPool> {
        if cfg!(feature = "model") || self.nanos.load(Ordering::Relaxed) < SLOW {
            return None;
        }
        let name = |at| format!("hamdex-read-{at}");
        let build = || ThreadPoolBuilder::new().num_threads(THREADS).thread_name(name).build().ok();
        self.pool.get_or_init(build).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_that_are_slow_again_and_again_are_waited_for_together() {
        let waits = Waits::default();
        let fast = Duration::from_micros(20);
        waits.learn(0, Duration::from_secs(1), Duration::ZERO);
        assert!(waits.pool().is_none(), "nothing was measured: {waits:?}");
        waits.learn(4, fast, Duration::ZERO);
        waits.learn(1, Duration::MAX, Duration::ZERO);
        assert!(waits.pool().is_none(), "one slow range: {waits:?}");
        for _ in 0..16 {
            waits.learn(4, Duration::from_micros(800), Duration::from_micros(600));
        }
        assert!(waits.pool().is_none(), "long ranges: {waits:?}");
        for _ in 0..16 {
            waits.learn(4, Duration::from_micros(800), Duration::from_micros(20));
        }
        assert!(waits.pool().is_some_and(|pool| pool.current_num_threads() == THREADS));
        for _ in 0..8 {
            waits.learn(4, fast, Duration::ZERO);
        }
        assert!(waits.pool().is_none(), "fast again: {waits:?}");
    }
}
