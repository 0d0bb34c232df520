use super::*;

/// Reference: tries every set of flips.
fn brute_force(tables: &[(u128, u32)], bits: u32, limit: u32) -> u32 {
    let defeated =
        |flips: u128| tables.iter().all(|&(lead, radius)| (flips & lead).count_ones() > radius);
    (0..1_u128 << bits)
        .filter(|&flips| defeated(flips))
        .map(u128::count_ones)
        .min()
        .map_or(limit + 1, |flips| flips.min(limit + 1))
}

/// A small generator with a fixed seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

#[test]
fn defeat_agrees_with_trying_every_set_of_flips() {
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let bits = u32::try_from(1 + random.below(10)).unwrap();
        let count = random.below(7);
        let tables: Vec<(u128, u32)> = (0..count)
            .map(|_| {
                let lead = u128::from(random.below(1 << bits));
                (lead, u32::try_from(random.below(4)).unwrap())
            })
            .collect();
        for limit in [0, 3, 10] {
            let wanted = brute_force(&tables, bits, limit);
            assert_eq!(defeat(&tables, bits, limit), Some(wanted), "seed {seed} {tables:x?}");
        }
    }
}

#[test]
fn withstanding_means_needing_more_flips() {
    for seed in 0..1_000 {
        let mut random = Random(seed);
        let leads: Vec<u128> = (0..6).map(|_| u128::from(random.below(1 << 12))).collect();
        let needs: Vec<u32> =
            leads.iter().map(|_| u32::try_from(random.below(4)).unwrap()).collect();
        let cover = Cover::new(&leads);
        let flips = cover.smallest(&needs, 12).unwrap();
        for distance in 0..12 {
            let proved = cover.withstands(&needs, distance, &mut NODES.clone());
            assert_eq!(proved, Some(flips > distance), "seed {seed} distance {distance}");
        }
    }
}

#[test]
fn tables_that_cannot_be_defeated_are_complete_at_every_distance() {
    assert_eq!(defeat(&[(0b111, 3)], 8, 8), Some(9));
    assert_eq!(defeat(&[(0b111, 2)], 8, 8), Some(3));
    assert_eq!(defeat(&[(0, 0)], 8, 8), Some(9));
    assert_eq!(defeat(&[(u128::MAX, u32::MAX)], 128, 32), Some(33));
}

#[test]
fn no_tables_find_nothing() {
    assert_eq!(defeat(&[], 64, 16), Some(0));
    let cover = Cover::new(&[0xff, 0xff00]);
    assert_eq!(cover.smallest(&[0, 0], 16), Some(0));
    assert_eq!(cover.withstands(&[0, 0], 0, &mut NODES.clone()), Some(false));
}

#[test]
fn bits_of_the_same_leads_become_one_atom() {
    let cover = Cover::new(&[0xff0, 0x0ff]);
    assert_eq!(cover.sizes, [4, 4, 4]);
    assert_eq!(cover.tables, [0b011, 0b110]);
}

#[test]
fn an_exhausted_search_claims_nothing() {
    // Fano's plane with radius 1 needs a search: neither bound decides it.
    let leads =
        [0b000_0111, 0b001_1001, 0b110_0001, 0b010_1010, 0b101_0010, 0b100_1100, 0b011_0100];
    let cover = Cover::new(&leads);
    let full = cover.smallest(&[2; 7], 7).unwrap();
    let tables: Vec<(u128, u32)> = leads.iter().map(|&lead| (lead, 1)).collect();
    assert_eq!(full, brute_force(&tables, 7, 7));
    assert_eq!(cover.withstands(&[2; 7], full - 1, &mut 0), None);
    assert_eq!(defeat(&[(1, 0); MAX_TABLES + 1], 8, 8), None);
}
