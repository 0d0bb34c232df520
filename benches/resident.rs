//! Fingerprints in memory: scans in and out of cache, and searches by tables.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use hamdex::Fingerprint;
use hamdex::resident::ResidentTables;

/// `SplitMix64`: the same fingerprints in every run.
fn fingerprint(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn wide(number: u64) -> u128 {
    u128::from(fingerprint(number)) << 64 | u128::from(fingerprint(!number))
}

fn tables<F: Fingerprint>(len: u64, make: impl Fn(u64) -> F) -> ResidentTables<F> {
    let set: Vec<F> = (0..len).map(make).collect();
    ResidentTables::build(&set).expect("there is memory for this set")
}

/// 16 thousand fit into the second-level cache, 16 million into no cache.
fn scan(c: &mut Criterion) {
    let mut group = c.benchmark_group("resident_scan");
    group.sample_size(20);
    for len in [1 << 14, 1 << 20, 1 << 24] {
        let tables = tables(len, fingerprint);
        group.throughput(Throughput::Elements(len));
        group.bench_function(BenchmarkId::new("k=3", len), |b| {
            b.iter(|| tables.scan(7, 3).expect("64 bits reach that far"));
        });
    }
    // At these distances comparing all is cheapest, for many queries together.
    let queries: Vec<u64> = (0..256).map(|n| fingerprint(!n)).collect();
    let tables = tables(1 << 14, fingerprint);
    group.throughput(Throughput::Elements((queries.len() as u64) << 14));
    // At 12 almost no query finds anything; at 20 a query finds thirty.
    for distance in [12, 20] {
        group.bench_function(BenchmarkId::new(format!("batch, k={distance}"), 1 << 14), |b| {
            b.iter(|| tables.search_batch(&queries, distance).expect("64 bits reach that far"));
        });
    }
    group.finish();
}

/// Ten million fingerprints of 128 bits: searches, and the scan of the same tables.
fn wide_search(c: &mut Criterion) {
    let mut group = c.benchmark_group("resident_128_bits");
    group.sample_size(20);
    let len = 10_000_000;
    let tables = tables(len, wide);
    let mut number = 0;
    let mut query = || {
        number = (number + 1) % len;
        wide(number) ^ (0b111 << (number % 125))
    };
    for distance in [3, 12, 20] {
        group.bench_function(BenchmarkId::new("search", format!("k={distance}")), |b| {
            b.iter(|| tables.search(query(), distance).expect("128 bits reach that far"));
        });
    }
    group.bench_function(BenchmarkId::new("scan", "k=20"), |b| {
        b.iter(|| tables.scan(query(), 20).expect("128 bits reach that far"));
    });
    group.finish();
}

fn search(c: &mut Criterion) {
    let mut group = c.benchmark_group("resident_search");
    group.sample_size(20);
    for len in [1 << 14, 1 << 20] {
        let tables = tables(len, fingerprint);
        for distance in [3, 6, 8] {
            let (mut found, mut number) = (Vec::new(), 0);
            group.bench_function(BenchmarkId::new(format!("k={distance}"), len), |b| {
                b.iter(|| {
                    // Three bits from a stored fingerprint, a different one each time.
                    number = (number + 1) % len;
                    let query = fingerprint(number) ^ (0b111 << (number % 61));
                    tables.search_into(query, distance, &mut found).expect("64 bits reach");
                    found.len()
                });
            });
        }
    }
    group.finish();
}

fn batch(c: &mut Criterion) {
    let mut group = c.benchmark_group("resident_batch");
    group.sample_size(10);
    let tables = tables(1 << 20, fingerprint);
    let queries: Vec<u64> = (0..1 << 16).map(|n| fingerprint(n * 16) ^ 0b111).collect();
    group.throughput(Throughput::Elements(queries.len() as u64));
    group.bench_function("k=3", |b| {
        b.iter(|| tables.search_batch(&queries, 3).expect("64 bits reach that far"));
    });
    group.finish();
}

criterion_group!(benches, scan, search, batch, wide_search);
