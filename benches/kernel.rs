//! The XOR-popcount filter compared with a plain loop, for every width.
//!
//! At a quarter of the width no table helps for a set this small, so the join compares all pairs
//! and its time is that of the filter. Throughput is in pairs; both use one thread.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use hamdex::{Fingerprint, join};

const LEN: u32 = 4096;

/// Distinct fingerprints: multiples of an odd number.
fn set<F: Fingerprint>() -> Vec<F> {
    let odd = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
    (1..=u128::from(LEN)).map(|x| odd.wrapping_mul(x)).map(|x| F::truncate(x ^ (x >> 61))).collect()
}

fn plain<F: Fingerprint>(set: &[F], distance: u32) -> u64 {
    let mut found = 0;
    let mut rest = set;
    while let Some((a, later)) = rest.split_first() {
        for b in later {
            found += u64::from(a.distance(*b) <= distance);
        }
        rest = later;
    }
    found
}

fn filter<F: Fingerprint>(c: &mut Criterion) {
    let set = set::<F>();
    let pairs = u64::from(LEN) * u64::from(LEN - 1) / 2;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread starts");
    let mut group = c.benchmark_group("all_pairs");
    group.throughput(Throughput::Elements(pairs));
    group.bench_function(BenchmarkId::new("filter", F::BITS), |b| {
        let join = || join::self_join(&set, F::MAX_DISTANCE, &(), &|_| Ok(()));
        pool.install(|| b.iter(join));
    });
    group.bench_function(BenchmarkId::new("plain loop", F::BITS), |b| {
        b.iter(|| plain(&set, F::MAX_DISTANCE));
    });
    group.finish();
}

criterion_group!(benches, filter<u32>, filter<u64>, filter<u128>);
