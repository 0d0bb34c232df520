//! Tests of bit sums: worked examples, and comparisons with a loop over bits.

use super::*;
use crate::sketch::feature_hash;

/// The twelve weighted words of the sentence 美国"51区"雇员称内部有9架飞碟,曾看见灰色外星人.
const SENTENCE: [(&str, i64); 12] = [
    ("美国", 4),
    ("51区", 5),
    ("雇员", 3),
    ("称", 1),
    ("内部", 2),
    ("有", 1),
    ("9架", 3),
    ("飞碟", 5),
    ("曾", 1),
    ("看见", 3),
    ("灰色", 4),
    ("外星人", 5),
];

fn hashed<F: Fingerprint>(words: &[(&str, i64)]) -> Vec<(F, i64)> {
    words.iter().map(|&(word, weight)| (feature_hash(word.as_bytes(), 0), weight)).collect()
}

fn naive_sums(features: &[(u64, i64)]) -> Vec<i128> {
    (0..64)
        .map(|bit| {
            let sign = |hash: u64| if hash >> (63 - bit) & 1 == 1 { 1 } else { -1 };
            features.iter().map(|&(hash, weight)| sign(hash) * i128::from(weight)).sum()
        })
        .collect()
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn sums_of(features: &[(u64, i64)]) -> BitSums<u64> {
    let mut sums = BitSums::new();
    sums.extend(features.iter().copied());
    sums
}

#[test]
fn features_added_together_have_the_sums_of_single_ones() {
    for size in [0, 1, 100, 3_000] {
        let mut state = size;
        let features: Vec<(u64, u32)> = (0..size)
            .map(|n| (splitmix(&mut state), if n == 50 { u32::MAX } else { (n % 90) as u32 }))
            .collect();
        let singly = sums_of(&features.iter().map(|&(f, w)| (f, w.into())).collect::<Vec<_>>());
        let mut together = BitSums::new();
        for part in features.chunks(128) {
            together.add_weighted(part.iter().copied());
        }
        let sums = |of: &BitSums<u64>| (0..64).map(|bit| of.sum(bit)).collect::<Vec<_>>();
        assert_eq!(sums(&together), sums(&singly), "{size}");
        assert_eq!(together.signature(), singly.fingerprint(), "{size}");
    }
}

#[test]
fn many_features_added_together_have_the_sums_of_single_ones_at_every_width() {
    fn check<F: Fingerprint>() {
        let mut state = 1;
        let features: Vec<(F, u32)> = (0..1_000_u32)
            .map(|n| (feature_hash(&splitmix(&mut state).to_be_bytes(), 0), n * n))
            .collect();
        let (mut singly, mut together) = (BitSums::<F>::new(), BitSums::<F>::new());
        singly.extend(features.iter().map(|&(feature, weight)| (feature, weight.into())));
        for _ in 0..2 {
            together.clear();
            features.chunks(300).for_each(|part| together.add_weighted(part.iter().copied()));
            for bit in 0..F::BITS {
                assert_eq!(together.sum(bit), singly.sum(bit), "{bit} of {}", F::BITS);
            }
            assert_eq!(together.signature(), singly.fingerprint());
            assert_eq!(together.sum(0), singly.sum(0), "signing changes no sum");
        }
    }
    check::<u32>();
    check::<u64>();
    check::<u128>();
}

#[test]
fn six_bit_example_gives_its_sums_and_its_fingerprint() {
    let features = [(0b10_0101_u32, 4), (0b10_1011, 5)];
    let mut sums = BitSums::new();
    sums.extend(features);
    let low: Vec<i128> = (26..32).map(|bit| sums.sum(bit)).collect();
    assert_eq!(low, [9, -9, 1, -1, 1, 9]);
    assert_eq!(simhash(features), Some(0b10_1011));

    let mut first = BitSums::new();
    first.add(0b10_0101_u32, 4);
    let low: Vec<i128> = (26..32).map(|bit| first.sum(bit)).collect();
    assert_eq!(low, [4, -4, -4, 4, -4, 4]);
}

#[test]
fn sentence_of_twelve_weighted_words_keeps_its_fingerprint() {
    assert_eq!(simhash(hashed::<u64>(&SENTENCE)), Some(0x5f37_5e6c_4a72_4391));
    assert_eq!(simhash(hashed::<u32>(&SENTENCE)), Some(0x4a72_4391));
    assert_eq!(simhash(hashed::<u128>(&SENTENCE)), Some(0x313b_d3ea_ef0c_7087_7d4a_3af6_0470_aa99));
}

#[test]
fn order_of_features_does_not_matter() {
    let forward = hashed::<u64>(&SENTENCE);
    for start in 0..forward.len() {
        let mut turned = forward.clone();
        turned.rotate_left(start);
        assert_eq!(simhash(turned.clone()), simhash(forward.clone()));
        turned.reverse();
        assert_eq!(simhash(turned), simhash(forward.clone()));
    }
}

#[test]
fn no_features_and_no_weights_give_no_fingerprint() {
    assert_eq!(simhash::<u64>([]), None);
    assert_eq!(simhash([(u64::MAX, 0)]), None);
    assert_eq!(BitSums::<u128>::new().fingerprint(), None);
}

#[test]
fn single_feature_is_its_own_fingerprint() {
    assert_eq!(simhash([(0x0123_4567_89ab_cdef_u64, 1)]), Some(0x0123_4567_89ab_cdef));
    assert_eq!(simhash([(7_u128, i64::MAX)]), Some(7));
    assert_eq!(simhash([(7_u32, -1)]), Some(!7));
}

#[test]
fn tie_gives_a_zero_bit() {
    assert_eq!(simhash([(0b01_u64, 3), (0b10, 3)]), Some(0));
    assert_eq!(simhash([(0b11_u64, 3), (0b10, 3)]), Some(0b10));
    assert_eq!(simhash([(5_u64, 2), (5, -2)]), Some(0));
}

#[test]
fn sliced_sums_equal_the_loop_over_bits() {
    for (seed, size) in [0, 1, 2, 3, 4, 7, 8, 64, 65, 1_000].into_iter().enumerate() {
        for span in [1, 5, 111, i64::MAX] {
            let mut state = seed as u64;
            let features: Vec<(u64, i64)> = (0..size)
                .map(|_| {
                    let hash = splitmix(&mut state);
                    (hash, splitmix(&mut state).cast_signed() % span + 1)
                })
                .collect();
            let expected = naive_sums(&features);
            let sums = sums_of(&features);
            let got: Vec<i128> = (0..64).map(|bit| sums.sum(bit)).collect();
            assert_eq!(got, expected, "seed {seed}, size {size}, span {span}");
            let bits = expected.iter().fold(0, |f, &sum| f << 1 | u64::from(sum > 0));
            let weighty = features.iter().any(|&(_, weight)| weight != 0);
            assert_eq!(sums.fingerprint(), weighty.then_some(bits), "seed {seed}, size {size}");
        }
    }
}

#[test]
fn extreme_weights_stay_exact() {
    let features =
        [(u64::MAX, i64::MIN), (u64::MAX, i64::MIN), (u64::MAX, i64::MAX), (0, i64::MIN)];
    let sums = sums_of(&features);
    assert_eq!(sums.sum(0), i128::from(i64::MIN) + i128::from(i64::MAX));
    assert_eq!(sums.fingerprint(), Some(0));
    assert_eq!(sums.sum(64), 0);
}

#[test]
fn bits_above_their_thresholds_equal_those_of_a_loop_over_bits() {
    for (size, most) in [(0, 1), (1, 1), (1, 9), (60, 3), (2_000, 1), (5, i64::MAX), (300, 1 << 40)]
    {
        let mut state = size;
        let features: Vec<(u64, i64)> = (0..size)
            .map(|_| (splitmix(&mut state), splitmix(&mut state).cast_signed() % most))
            .collect();
        let mut sums = sums_of(&features);
        let total: i128 = features.iter().map(|&(_, weight)| i128::from(weight).abs()).sum();
        let shares = sums.shares();
        assert_eq!(shares.is_none(), total == 0);
        let random: Vec<i16> = (0..64).map(|_| offset(splitmix(&mut state) >> 48)).collect();
        // Offsets within one unit of the shares, where one unit decides.
        let close = shares.clone().unwrap_or(vec![0; 64]).into_iter().zip(0..);
        let close = close.map(|(share, n)| offset((u64::from(share) + n % 3).saturating_sub(1)));
        let close: Vec<i16> = close.collect();
        let weight = total.min(1 << 64);
        let trust = (weight << 16) / (weight + 128);
        for offsets in [random, close, vec![i16::MIN; 64], vec![i16::MAX; 64], vec![0; 64]] {
            let wanted = (0..64).fold(0_u64, |wanted, bit| {
                let count = i128::midpoint(sums.sum(63 - bit), total);
                let offset = (i128::from(offsets[bit as usize]) * trust) >> 16;
                let above = exceeds(count, total, offset + (1 << 15));
                wanted | u64::from(above) << bit
            });
            assert_eq!(sums.signature_above(&offsets), (total > 0).then_some(wanted), "{size}");
        }
        assert_eq!(sums.signature_above(&[0; 64]), sums.fingerprint());
        for (share, bit) in shares.unwrap_or_default().into_iter().zip(0..) {
            let count = i128::midpoint(sums.sum(63 - bit), total);
            let exact = count as f64 / total as f64 * 65_536.0;
            assert!((f64::from(share) - exact.min(65_535.0)).abs() <= 1.0, "{share} {exact}");
        }
    }
}

/// Returns the offset whose threshold is nearest to this part of 2^16.
fn offset(part: u64) -> i16 {
    let part = i32::try_from(part.min(65_535)).unwrap();
    i16::try_from(part - (1 << 15)).unwrap()
}

/// Returns true if `count * 2^16 > total * part`; both are far below 2^111.
fn exceeds(count: i128, total: i128, part: i128) -> bool {
    count << 16 > total * part
}
