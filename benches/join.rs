//! Self-join compared with a comparison of all pairs, on the same sets.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use hamdex::join::{self, UnionFind};

/// `SplitMix64` with a fixed seed.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Four fifths are random, the others copies of them with up to 3 flipped bits.
fn set(len: usize, equal_bits: u32) -> Vec<u64> {
    let mut random = Random(1);
    let mut set: Vec<u64> =
        (0..len - len / 5).map(|_| random.word().unbounded_shr(equal_bits)).collect();
    let mut copy = |original: u64| {
        let flips = random.word() % 4;
        (0..flips).fold(original, |fp, _| fp ^ (1 << (random.word() % 64)))
    };
    let copies: Vec<u64> = set.iter().step_by(4).map(|&original| copy(original)).collect();
    set.extend(copies);
    set
}

fn naive(set: &[u64], distance: u32) -> u64 {
    let mut found = 0;
    let mut rest = set;
    while let Some((a, later)) = rest.split_first() {
        for b in later {
            found += u64::from((a ^ b).count_ones() <= distance);
        }
        rest = later;
    }
    found
}

fn joined(set: &[u64], distance: u32) -> u64 {
    join::self_join(set, distance, &(), &|_| Ok(())).expect("nothing cancels this join").pairs
}

fn self_join(c: &mut Criterion) {
    let mut group = c.benchmark_group("self_join");
    group.sample_size(10);
    for len in [10_000, 100_000] {
        let set = set(len, 0);
        group.throughput(Throughput::Elements(len as u64));
        for distance in [3, 8] {
            let id = BenchmarkId::new(format!("tables/k={distance}"), len);
            group.bench_function(id, |b| b.iter(|| joined(&set, distance)));
        }
        // The larger set would need 5 billion comparisons for each of ten samples.
        if len == 10_000 {
            let id = BenchmarkId::new("naive/k=3", len);
            group.bench_function(id, |b| b.iter(|| naive(&set, 3)));
        }
    }
    group.finish();
}

fn skew(c: &mut Criterion) {
    let mut group = c.benchmark_group("skewed_self_join");
    group.sample_size(10);
    let len = 100_000;
    group.throughput(Throughput::Elements(len as u64));
    for equal_bits in [0, 16, 24, 32] {
        let set = set(len, equal_bits);
        let id = BenchmarkId::new("equal leading bits", equal_bits);
        group.bench_function(id, |b| b.iter(|| joined(&set, 3)));
    }
    group.finish();
}

fn clusters(c: &mut Criterion) {
    let mut group = c.benchmark_group("clusters");
    group.sample_size(10);
    let len = 100_000;
    group.throughput(Throughput::Elements(len as u64));
    let set = set(len, 0);
    group.bench_function(BenchmarkId::new("clusters/k=3", len), |b| {
        b.iter(|| join::clusters(&set, 3, &()).expect("nothing cancels this join"));
    });
    let count = u32::try_from(len).expect("the length fits");
    group.bench_function(BenchmarkId::new("union_find", len), |b| {
        b.iter(|| {
            let mut sets = UnionFind::new(count);
            let mut random = Random(2);
            let mut item = || u32::try_from(random.word() % u64::from(count)).unwrap_or(0);
            (0..count).filter(|_| sets.union(item(), item())).count()
        });
    });
    group.finish();
}

/// A small set with a large one: the work depends on both, not on the pairs inside one.
fn cross_join(c: &mut Criterion) {
    let mut group = c.benchmark_group("cross_join");
    group.sample_size(10);
    let stored = set(1_000_000, 0);
    for len in [10_000, 100_000] {
        let queries: Vec<u64> = stored.iter().take(len).map(|f| f ^ 0b101).collect();
        group.throughput(Throughput::Elements((len + stored.len()) as u64));
        group.bench_function(BenchmarkId::new("tables/k=3", len), |b| {
            b.iter(|| {
                let report = join::cross_join(&queries, &stored, 3, &(), &|_| Ok(()));
                report.expect("nothing cancels this join").pairs
            });
        });
    }
    group.finish();
}

criterion_group!(benches, self_join, skew, clusters, cross_join);
