//! Benchmarks of the engine's parts, in one program, so that the engine is compiled once.
//!
//! `cargo bench --bench engine -- resident` runs those with that word in their name.
//!
//! This file has the work of a search before it reads: permuting the query and choosing prefixes.
//! It also compares the XOR-popcount filter with a plain loop, for every width. At a quarter of the
//! width no table helps for a set this small, so the join compares all pairs and its time is that of
//! the filter. Throughput is in pairs; both use one thread.

mod join;
mod resident;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use hamdex::Fingerprint;
use hamdex::plan::{Plan, probe_masks};

/// Fingerprints of which all pairs are compared.
const PAIRED: u32 = 4096;

/// Fingerprints that fit into the second-level cache together with the permuted ones.
const PERMUTED: u32 = 1 << 14;

/// Distinct fingerprints: multiples of an odd number.
fn set<F: Fingerprint>(len: u32, mix: fn(u128) -> u128) -> Vec<F> {
    let odd = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
    (1..=u128::from(len)).map(|x| F::truncate(mix(odd.wrapping_mul(x)))).collect()
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
    let set = set::<F>(PAIRED, |x| x ^ (x >> 61));
    let pairs = u64::from(PAIRED) * u64::from(PAIRED - 1) / 2;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread starts");
    let mut group = c.benchmark_group("all_pairs");
    group.throughput(Throughput::Elements(pairs));
    group.bench_function(BenchmarkId::new("filter", F::BITS), |b| {
        let join = || hamdex::join::self_join(&set, F::MAX_DISTANCE, &(), &|_| Ok(()));
        pool.install(|| b.iter(join));
    });
    group.bench_function(BenchmarkId::new("plain loop", F::BITS), |b| {
        b.iter(|| plain(&set, F::MAX_DISTANCE));
    });
    group.finish();
}

fn permutation<F: Fingerprint>(c: &mut Criterion) {
    let mut group = c.benchmark_group("permutation");
    group.throughput(Throughput::Elements(u64::from(PERMUTED)));
    let set = set::<F>(PERMUTED, |x| x >> 7);
    let mut permuted = set.clone();
    for (blocks, lead) in [(4, 1), (6, 3)] {
        let plan = Plan::uniform(F::BITS, blocks, lead).expect("these blocks fit every width");
        let table = plan.tables().last().expect("a plan has tables");
        let of = |way: &str| format!("{way}/{lead} of {blocks} blocks");
        group.bench_function(BenchmarkId::new(of("one by one"), F::BITS), |b| {
            b.iter(|| set.iter().fold(F::ZERO, |sum, f| sum ^ table.permutation().apply(*f)));
        });
        group.bench_function(BenchmarkId::new(of("all"), F::BITS), |b| {
            b.iter(|| {
                table.permutation().apply_all(&set, &mut permuted);
                black_box(&permuted);
            });
        });
    }
    group.finish();
}

fn probes(c: &mut Criterion) {
    let mut group = c.benchmark_group("probe_masks");
    for (bits, radius) in [(16, 1), (16, 3), (24, 3), (32, 4)] {
        let masks = probe_masks(bits, radius).count();
        group.throughput(Throughput::Elements(masks as u64));
        group.bench_function(BenchmarkId::new(format!("{bits} bits"), radius), |b| {
            b.iter(|| probe_masks(black_box(bits), radius).fold(0, |sum, mask| sum ^ mask));
        });
    }
    group.finish();
}

criterion_group!(
    parts,
    filter<u32>,
    filter<u64>,
    filter<u128>,
    permutation<u32>,
    permutation<u64>,
    permutation<u128>,
    probes
);
criterion::criterion_main!(join::benches, parts, resident::benches);
