//! The work of a search before it reads: permuting the query and choosing prefixes.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use hamdex::Fingerprint;
use hamdex::plan::Plan;
use hamdex::plan::probe_masks;

/// Fingerprints that fit into the second-level cache together with the permuted ones.
const LEN: usize = 1 << 14;

/// Distinct fingerprints: multiples of an odd number.
fn set<F: Fingerprint>() -> Vec<F> {
    let odd = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
    (1..=LEN as u128).map(|x| F::truncate(odd.wrapping_mul(x) >> 7)).collect()
}

fn permutation<F: Fingerprint>(c: &mut Criterion) {
    let mut group = c.benchmark_group("permutation");
    group.throughput(Throughput::Elements(LEN as u64));
    let set = set::<F>();
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

criterion_group!(benches, permutation<u32>, permutation<u64>, permutation<u128>, probes);
