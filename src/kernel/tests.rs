use super::*;

/// Chooses the smaller of two sizes under Miri, which is some thousand times slower.
const fn size<T: Copy>(whole: T, under_miri: T) -> T {
    if cfg!(miri) { under_miri } else { whole }
}

/// `SplitMix64`, so that every run tests the same sets.
struct Random(u64);

impl Random {
    fn next<F: Fingerprint>(&mut self) -> F {
        let mut word = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            u128::from(z ^ (z >> 31))
        };
        let high = word();
        F::truncate((high << 64) | word())
    }
}

fn expected<F: Fingerprint>(members: &[F], query: F, distance: u32) -> Vec<(usize, u32)> {
    let bits = |x: F| (0..128).filter(|&at| (x.widen() >> at) & 1 == 1).count();
    let found = |x: F| u32::try_from(bits(x ^ query)).unwrap();
    let all = members.iter().enumerate().map(|(at, &x)| (at, found(x)));
    all.filter(|&(_, d)| d <= distance).collect()
}

fn variants_agree_with_counting_bit_by_bit<F: Fingerprint>() {
    const SEED: u64 = 7;
    let mut random = Random(SEED);
    let lens = [0, 9, 65, 1, 7, 8, 63, 64, 127, 128, 200, 1000];
    for &len in &lens[..size(lens.len(), 3)] {
        let query: F = random.next();
        let mut members: Vec<F> = (0..len).map(|_| random.next()).collect();
        for at in (0..len).step_by(13) {
            let flips = u32::try_from(at).unwrap() % (F::BITS + 1);
            members[at] = query ^ F::high_mask(flips);
        }
        let distances = [3, F::BITS, 0, 1, F::MAX_DISTANCE, F::BITS - 1];
        for &distance in &distances[..size(distances.len(), 2)] {
            let expected = expected(&members, query, distance);
            for variant in Variant::all() {
                let mut found = Vec::new();
                let mut hit = |at, d| found.push((at, d));
                variant.run(Within { members: &members, query, distance, hit: &mut hit });
                let context = format!("{variant:?} len {len} distance {distance} seed {SEED}");
                assert_eq!(found, expected, "{context}");
            }
            let mut found = Vec::new();
            within(&members, query, distance, &mut |at, d| found.push((at, d)));
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn every_variant_finds_the_same_32_bit_members() {
    variants_agree_with_counting_bit_by_bit::<u32>();
}

#[test]
fn every_variant_finds_the_same_64_bit_members() {
    variants_agree_with_counting_bit_by_bit::<u64>();
}

#[test]
fn every_variant_finds_the_same_128_bit_members() {
    variants_agree_with_counting_bit_by_bit::<u128>();
}

#[test]
fn the_best_variant_is_one_that_the_machine_has() {
    assert!(Variant::best().available());
    assert!(Variant::Portable.available());
}

/// The column of the query, the same at every position.
const QUERY: u16 = 0xabc1;

/// Collects the answers of lanes for some columns.
struct Answers<'a> {
    columns: &'a [[u16; LANES]],
    threshold: u32,
    within: &'a mut u32,
    first_within: &'a mut u32,
}

impl LaneWork for Answers<'_> {
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        *self.first_within = lanes.first_within(&self.columns[0], QUERY, self.threshold);
        let mut sums = lanes.sums(&self.columns[0], QUERY);
        for column in &self.columns[1..] {
            sums = lanes.add(sums, column, QUERY);
        }
        *self.within = lanes.within(sums, self.threshold);
    }
}

#[test]
fn every_variant_compares_sliced_members_alike() {
    const SEED: u64 = 9;
    let mut random = Random(SEED);
    for columns in 1..=size(8, 3) {
        let columns: Vec<[u16; LANES]> = (0..columns)
            .map(|_| {
                std::array::from_fn(|at| {
                    u16::try_from(random.next::<u32>() >> 16).unwrap() & (0xffff >> (at / 2))
                        ^ QUERY
                })
            })
            .collect();
        let apart = |at: usize| -> u32 {
            columns.iter().map(|column| (column[at] ^ QUERY).count_ones()).sum()
        };
        let thresholds = [3, 32, 0, 1, 4, 5, 8, 16, 31, 64, 128];
        for &threshold in &thresholds[..size(thresholds.len(), 2)] {
            let run = |variant: Option<Variant>| {
                let (mut within, mut first_within) = (0, 0);
                let answers = Answers {
                    columns: &columns,
                    threshold,
                    within: &mut within,
                    first_within: &mut first_within,
                };
                match variant {
                    Some(variant) => variant.run_lanes(answers),
                    None => answers.run(lanes::Plain),
                }
                (within, first_within)
            };
            for variant in Variant::all().map(Some).chain([None]) {
                let (within, first_within) = run(variant);
                for (at, first) in columns[0].iter().enumerate() {
                    let context =
                        format!("{variant:?} seed {SEED} lane {at} threshold {threshold}");
                    assert_eq!(within >> at & 1 == 1, apart(at) <= threshold, "{context}");
                    let first = (first ^ QUERY).count_ones();
                    assert_eq!(first_within >> at & 1 == 1, first <= threshold, "{context}");
                }
            }
        }
    }
}

/// Collects the answers of lanes for words.
struct NearWords<'a> {
    rows: [u32; ROWS],
    words: &'a [u32; BESIDE],
    distance: u32,
    found: &'a mut (u64, bool, bool),
}

impl LaneWork for NearWords<'_> {
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let block = self.words.first_chunk().unwrap();
        *self.found = (
            lanes.near(self.rows, block, self.distance),
            lanes.any_near(self.rows, block, self.distance),
            lanes.any_beside(self.words, self.distance),
        );
    }
}

#[test]
fn every_variant_compares_rows_of_words_alike() {
    const SEED: u64 = 13;
    let mut random = Random(SEED);
    for round in (0..400).step_by(size(1, 80)) {
        // From no near words to many.
        let narrow = round / 13;
        let rows: [u32; ROWS] = std::array::from_fn(|_| random.next::<u32>() >> narrow);
        let words: [u32; BESIDE] = std::array::from_fn(|_| random.next::<u32>() >> narrow);
        let distances = [3, 32, 0, 1, 6, 31];
        for &distance in &distances[..size(distances.len(), 2)] {
            let near = |a: u32, b: u32| (a ^ b).count_ones() <= distance;
            let mut mask = 0_u64;
            for (row, &a) in rows.iter().enumerate() {
                for (at, &b) in words[..WORDS].iter().enumerate() {
                    mask |= u64::from(near(a, b)) << (row * WORDS + at);
                }
            }
            let beside =
                (0..WORDS).any(|at| (1..ROWS).any(|step| near(words[at], words[at + step])));
            for variant in Variant::all() {
                let mut found = (0, false, false);
                variant.run_lanes(NearWords { rows, words: &words, distance, found: &mut found });
                let context = format!("{variant:?} round {round} distance {distance} seed {SEED}");
                assert_eq!(found, (mask, mask != 0, beside), "{context}");
            }
        }
    }
}
