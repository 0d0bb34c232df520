//! Reads: how many blocks the engine took from files, because its cache did not hold them.

use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

/// Returns what the body returns, with the blocks that it read from files on this thread.
pub(crate) fn counting_reads<R>(body: impl FnOnce() -> R) -> (R, u64) {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut context = PerfContext::default();
    context.reset();
    let result = body();
    let blocks = context.metric(PerfMetric::BlockReadCount);
    set_perf_stats(PerfStatsLevel::Disable);
    (result, blocks)
}
