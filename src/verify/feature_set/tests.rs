use std::collections::HashSet;

use super::*;

fn hashes(rng: &mut fastrand::Rng, count: usize) -> Vec<u64> {
    let mut hashes: Vec<u64> = (0..count).map(|_| rng.u64(..)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn union(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.dedup();
    all
}

fn exact(a: &[u64], b: &[u64]) -> f64 {
    let (a, b): (HashSet<_>, HashSet<_>) = (a.iter().collect(), b.iter().collect());
    a.intersection(&b).count() as f64 / a.union(&b).count().max(1) as f64
}

/// Compares decoded and encoded sets, which must agree.
fn both(a: &[u64], b: &[u64]) -> f64 {
    let (a, b) = (FeatureSet::from_hashes(a), FeatureSet::from_hashes(b));
    let decoded = a.jaccard(&b);
    let encoded = jaccard_encoded(&a.encode(), &b.encode()).unwrap();
    assert_eq!(decoded.to_bits(), encoded.to_bits());
    assert_eq!(b.jaccard(&a).to_bits(), decoded.to_bits(), "not symmetric");
    decoded
}

#[test]
fn small_sets_are_compared_exactly() {
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..500 {
        let [common, left, right] = [0, 1, 2].map(|_| rng.usize(0..300));
        let common = hashes(&mut rng, common);
        let a = union(&common, &hashes(&mut rng, left));
        let b = union(&common, &hashes(&mut rng, right));
        // 900 hashes of 24 bits collide once in forty rounds, which changes the result by 1 in 900.
        assert!((both(&a, &b) - exact(&a, &b)).abs() < 0.005, "round {round}");
    }
}

#[test]
fn large_sets_are_estimated_within_the_stated_error() {
    let mut rng = fastrand::Rng::with_seed(2);
    for (common, left, right) in [
        (3000, 500, 500),
        (900, 100, 900),
        (20_000, 2000, 0),
        (90_000, 10_000, 10_000),
        (50_000, 1000, 20_000),
    ] {
        let mut errors = Vec::new();
        for _ in 0..40 {
            let common = hashes(&mut rng, common);
            let a = union(&common, &hashes(&mut rng, left));
            let b = union(&common, &hashes(&mut rng, right));
            errors.push(both(&a, &b) - exact(&a, &b));
        }
        let mean = errors.iter().sum::<f64>() / 40.0;
        let spread = (errors.iter().map(|e| e * e).sum::<f64>() / 40.0).sqrt();
        assert!(mean.abs() < 0.008, "bias {mean} of {common} {left} {right}");
        assert!(spread < 0.022, "error {spread} of {common} {left} {right}");
    }
}

#[test]
fn huge_sets_with_nothing_in_common_have_no_similarity() {
    let mut rng = fastrand::Rng::with_seed(3);
    let (a, b) = (hashes(&mut rng, 2_000_000), hashes(&mut rng, 2_000_000));
    assert!(both(&a, &b) < 0.01);
    assert!(both(&a, &hashes(&mut rng, 2000)) < 0.01);
    assert!(both(&a, &a) > 1.0 - 1e-12);
}

#[test]
fn empty_sets_share_nothing() {
    assert!(both(&[], &[]) < 1e-12);
    assert!(both(&[], &[7]) < 1e-12);
    assert!(FeatureSet::from_hashes(&[]).is_empty());
    assert_eq!(FeatureSet::from_hashes(&[]).encode(), [0]);
}

#[test]
fn bytes_equal_the_documented_ones() {
    let set = FeatureSet::from_hashes(&[1 << 40, (1 << 40) + 5, 3 << 40, u64::MAX]);
    let bytes = set.encode();
    assert_eq!(bytes, [4, 1, 1, 0xfb, 0xff, 0xff, 0x07]);
    assert_eq!(set.len(), 4);
    assert_eq!(FeatureSet::decode(&bytes).unwrap(), set);
}

#[test]
fn sets_of_every_size_read_back_in_about_three_bytes_a_feature() {
    let mut rng = fastrand::Rng::with_seed(4);
    for (count, most) in [(1, 6), (50, 160), (1000, 3000), (2000, 2700), (65_537, 3300)] {
        let set = FeatureSet::from_hashes(&hashes(&mut rng, count));
        let bytes = set.encode();
        assert!(bytes.len() <= most, "{} bytes for {count}", bytes.len());
        assert_eq!(FeatureSet::decode(&bytes).unwrap(), set);
        assert_eq!(set.len() as usize, count);
    }
}

#[test]
fn damaged_bytes_are_refused_or_read_as_another_set_of_one_form() {
    let mut rng = fastrand::Rng::with_seed(5);
    let good = FeatureSet::from_hashes(&hashes(&mut rng, 40)).encode();
    for cut in 0..good.len() {
        let _ = FeatureSet::decode(&good[..cut]).map(|set| assert_eq!(set.encode(), good[..cut]));
    }
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let _ = FeatureSet::decode(&bad).map(|set| assert_eq!(set.encode(), bad));
    }
    for _ in 0..20_000 {
        let bad: Vec<u8> = (0..rng.usize(0..40)).map(|_| rng.u8(..)).collect();
        let _ = FeatureSet::decode(&bad).map(|set| assert_eq!(set.encode(), bad));
    }
}

#[test]
fn more_features_than_the_size_allows_are_refused() {
    for bytes in [&[][..], &[1], &[0, 0], &[1, 0, 0], &[2, 0xff, 0xff, 0xff, 0x0f], &[1, 0x80]] {
        assert!(matches!(FeatureSet::decode(bytes), Err(Error::Corrupt { .. })), "{bytes:?}");
    }
    let mut long = vec![0xff, 0x7f];
    long.resize(2 + KEPT_FEATURES, 0);
    assert!(FeatureSet::decode(&long).is_ok());
    long.push(0);
    assert!(FeatureSet::decode(&long).is_err());
}
