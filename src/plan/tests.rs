use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::fingerprint::Fingerprint;

const NAMES: [&str; 4] = ["4", "10", "16", "20"];

/// Visits every set of at most `flips` bits and returns their number.
fn for_each_flip_set<F: Fingerprint>(flips: u32, mut visit: impl FnMut(F)) -> u64 {
    let mut count = 0;
    for mask in probe_masks(F::BITS, flips) {
        visit(F::truncate(mask));
        count += 1;
    }
    count
}

/// Returns true if the probes of a schedule find a fingerprint that differs by `flips`.
fn finds<F: Fingerprint>(plan: &Plan, radii: &[Option<u32>], flips: F) -> bool {
    plan.tables().iter().zip(radii).any(|(table, radius)| {
        let prefix = table.permutation().apply(flips) & F::high_mask(table.prefix_bits());
        radius.is_some_and(|radius| prefix.distance(F::ZERO) <= radius)
    })
}

fn radii(plan: &Plan, distance: u32) -> Vec<Option<u32>> {
    plan.schedule(distance, 1_000_000, &Costs::default()).radii().to_vec()
}

fn every_plan(bits: u32) -> Vec<Plan> {
    let levels = (2..=24).flat_map(|blocks| (1..blocks).map(move |lead| vec![(blocks, lead)]));
    let nested = [vec![(4, 1), (4, 1)], vec![(3, 1), (4, 2)], vec![(3, 2), (3, 1), (3, 1)]];
    let plans = levels.chain(nested).filter_map(|levels| Plan::nested(bits, &levels).ok());
    let plans: Vec<Plan> = plans.collect();
    assert!(plans.len() > 60, "{bits}");
    plans
}

fn check_bijections<F: Fingerprint>() {
    for plan in every_plan(F::BITS) {
        for table in plan.tables() {
            let permutation = table.permutation();
            let mut seen = F::ZERO;
            for bit in 0..F::BITS {
                let word = F::truncate(1 << bit);
                let moved = permutation.apply(word);
                assert_eq!(moved.distance(F::ZERO), 1, "{plan} bit {bit}");
                assert_eq!(permutation.invert(moved), word, "{plan} bit {bit}");
                seen = seen | moved;
                let leads = moved & F::high_mask(table.prefix_bits()) != F::ZERO;
                assert_eq!(leads, table.lead() >> bit & 1 == 1, "{plan} bit {bit}");
            }
            assert_eq!(seen, F::ONES, "{plan}");
            assert_eq!(table.lead().count_ones(), table.prefix_bits(), "{plan}");
        }
    }
}

#[test]
fn permutations_lose_no_bit_in_any_plan_of_any_width() {
    check_bijections::<u32>();
    check_bijections::<u64>();
    check_bijections::<u128>();
}

#[test]
fn named_plans_find_every_flip_of_three_bits_at_64() {
    for name in NAMES {
        let plan = Plan::named(name, 64).unwrap();
        let exact = vec![Some(0); plan.tables().len()];
        let sets = for_each_flip_set(3, |flips: u64| {
            assert!(finds(&plan, &exact, flips), "{name} misses {flips:016x}");
        });
        assert_eq!(sets, 43_745);
        assert_eq!(plan.complete_to(), 3, "{name}");
        let mut missed = 0;
        for_each_flip_set(4, |flips: u64| missed += u64::from(!finds(&plan, &exact, flips)));
        assert!(missed > 0, "{name} claims less than it does");
        for distance in 0..=3 {
            let radii = radii(&plan, distance);
            for_each_flip_set(distance, |flips: u64| {
                assert!(finds(&plan, &radii, flips), "{name} {distance} misses {flips:016x}");
            });
        }
    }
}

#[test]
fn named_plans_find_every_flip_of_five_bits_at_32() {
    for name in NAMES {
        let plan = Plan::named(name, 32).unwrap();
        for distance in 0..=5 {
            let radii = radii(&plan, distance);
            for_each_flip_set(distance, |flips: u32| {
                assert!(finds(&plan, &radii, flips), "{name} {distance} misses {flips:08x}");
            });
        }
    }
}

fn check_random_flips<F: Fingerprint>() {
    let names = ["4", "10", "16", "20", "2x1", "3x1", "5x1", "7x1", "9x1", "16x1", "6x2", "7x4"];
    let mut state = 0x0123_4567_89ab_cdef_u64;
    let mut random = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        u32::try_from(state >> 32).unwrap()
    };
    for name in names {
        let plan = Plan::parse(name, F::BITS, 0, None).unwrap();
        for distance in 0..=F::MAX_DISTANCE {
            let radii = radii(&plan, distance);
            for round in 0..400 {
                // Half of the sets are concentrated in few blocks, where probes are most likely to
                // miss.
                let span = if round % 2 == 0 { F::BITS } else { F::BITS / 2 };
                let start = random() % F::BITS;
                let mut flips = F::ZERO;
                while flips.distance(F::ZERO) < distance {
                    let bit = (start + random() % span) % F::BITS;
                    flips = flips | F::truncate(1 << bit);
                }
                assert!(finds(&plan, &radii, flips), "{name} {distance} misses {}", flips.hex());
            }
        }
    }
}

#[test]
fn schedules_find_random_flips_at_every_distance_and_width() {
    check_random_flips::<u32>();
    check_random_flips::<u64>();
    check_random_flips::<u128>();
}

#[test]
fn single_level_plans_are_complete_up_to_the_blocks_that_do_not_lead() {
    for bits in [32, 64, 128] {
        for plan in every_plan(bits) {
            let slack = plan.levels.iter().map(|level| level.blocks - level.lead).min().unwrap();
            assert_eq!(plan.complete_to(), slack.min(bits / 4), "{plan} for {bits} bits");
        }
    }
}

#[test]
fn nine_blocks_stay_nine_blocks() {
    let plan = Plan::uniform(64, 9, 1).unwrap();
    let prefixes: Vec<u32> = plan.tables().iter().map(Table::prefix_bits).collect();
    assert_eq!(prefixes, [8, 7, 7, 7, 7, 7, 7, 7, 7]);
    let plan = Plan::uniform(64, 9, 6).unwrap();
    assert_eq!((plan.tables().len(), plan.complete_to()), (84, 3));
    let all = plan.tables().iter().fold(0, |all, table| all | table.lead());
    assert_eq!(all, u128::from(u64::MAX));
}

#[test]
fn incomplete_plans_are_refused() {
    for (text, distance, complete) in [("4x1r0", 4, 3), ("4x1r1", 8, 7), ("6x3r0", 4, 3)] {
        let refused = Plan::parse(text, 64, distance, None);
        let Err(Error::IncompletePlan { plan, complete: stated, wanted }) = refused else {
            panic!("{text} was accepted at distance {distance}");
        };
        assert_eq!((plan.as_str(), stated, wanted), (text, complete, distance));
        assert!(Plan::parse(text, 64, complete, None).is_ok());
    }
    assert!(Plan::parse("4x1", 64, 16, None).is_ok());
    let refused = Plan::parse("4x1", 64, 17, None);
    assert!(matches!(refused, Err(Error::InvalidDistance { distance: 17, max: 16, .. })));
}

#[test]
fn plans_that_cannot_be_built_are_rejected() {
    let cases = [
        ("", 64),
        ("5", 64),
        ("x", 64),
        ("4x", 64),
        ("4x1r", 64),
        ("4x1rr1", 64),
        ("+4x1", 64),
        ("4x1 ", 64),
        ("4x1/", 64),
        ("4x1r1/4x1", 64),
        ("4x-1", 64),
        ("４x1", 64),
        ("auto", 64),
        ("99999999999x1", 64),
        ("4x0", 64),
        ("4x4", 64),
        ("4x5", 64),
        ("65x1", 64),
        ("33x1", 32),
        ("10x5", 64),
        ("12x1/12x1", 64),
        ("4x3/17x1", 64),
        ("4x1r17", 64),
        ("4x1", 63),
        ("4", 0),
    ];
    for (text, bits) in cases {
        let refused = Plan::parse(text, bits, 0, None);
        assert!(matches!(refused, Err(Error::InvalidPlan { .. })), "{text:?} {bits} {refused:?}");
    }
    assert!(matches!(Plan::nested(64, &[]), Err(Error::InvalidPlan { .. })));
    assert!(matches!(Plan::named("5", 64), Err(Error::InvalidPlan { .. })));
}

#[test]
fn plans_print_as_the_text_that_parses_back() {
    let texts = ["4", "10", "16", "20", "6x2", "4x1r0", "5x2r3", "4x1/4x1r1", "3x1/4x1/2x1"];
    for text in texts {
        let plan = Plan::parse(text, 64, 0, None).unwrap();
        assert_eq!(plan.to_string(), text);
        assert_eq!(Plan::parse(&plan.to_string(), 64, 0, None).unwrap(), plan);
    }
    for (text, canonical) in [("4x1", "4"), ("6x3", "20"), ("04x1", "4"), ("4x1/4x1", "16")] {
        assert_eq!(Plan::parse(text, 128, 0, None).unwrap().to_string(), canonical);
    }
    assert_ne!(
        Plan::named("4", 64).unwrap(),
        Plan::named("4", 64).unwrap().with_radius(0).unwrap()
    );
}

#[test]
fn recursion_gives_the_designs_of_the_paper() {
    // tau is the binary logarithm of slightly more candidates than the design leaves.
    for (tau, tables) in [(35.0, 1), (18.1, 4), (9.0, 10), (6.5, 16), (6.0, 20), (3.5, 20)] {
        assert_eq!(table_count(64, 3, 34.0, tau), Some(tables), "{tau}");
    }
    for (tau, name) in [(35.0, "4"), (18.1, "4"), (9.0, "10"), (6.5, "16"), (3.5, "20")] {
        assert_eq!(Plan::recursive(64, 3, 34.0, tau).unwrap().to_string(), name, "{tau}");
    }
    assert_eq!(table_count(64, 16, 34.0, 1.0), None);
    assert!(matches!(Plan::recursive(64, 16, 34.0, 1.0), Err(Error::InvalidPlan { .. })));
    assert!(matches!(Plan::recursive(64, 17, 34.0, 1.0), Err(Error::InvalidDistance { .. })));
    assert!(Plan::recursive(64, 0, 20.0, 10.0).is_ok());
    assert!(Plan::recursive(32, 1, f64::NAN, 10.0).is_err());
}

#[test]
fn tighter_recursions_never_need_fewer_tables() {
    for bits in [32, 64, 128] {
        for distance in 1..=5 {
            let counts: Vec<u64> = (0..30)
                .map(|tau| table_count(bits, distance, 30.0, f64::from(tau)).unwrap_or(u64::MAX))
                .collect();
            assert!(counts.is_sorted_by(|a, b| a >= b), "{bits} {distance} {counts:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(0x6861_6d64_6578),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn permutations_invert_and_keep_distances(a: u128, b: u128, plan in 0..40_usize) {
        fn check<F: Fingerprint>(plan: &Plan, a: u128, b: u128) -> Result<(), TestCaseError> {
            let (a, b) = (F::truncate(a), F::truncate(b));
            for table in plan.tables() {
                let permutation = table.permutation();
                let (c, d) = (permutation.apply(a), permutation.apply(b));
                prop_assert_eq!(permutation.invert(c), a);
                prop_assert_eq!(c.distance(d), a.distance(b));
                let agree = (c ^ d) & F::high_mask(table.prefix_bits()) == F::ZERO;
                prop_assert_eq!(agree, (a ^ b) & F::truncate(table.lead()) == F::ZERO);
            }
            Ok(())
        }
        let texts = ["4", "10", "16", "20", "7x3", "9x1", "3x1/3x1", "5x4"];
        let text = texts[plan % texts.len()];
        check::<u32>(&Plan::parse(text, 32, 0, None).unwrap(), a, b)?;
        check::<u64>(&Plan::parse(text, 64, 0, None).unwrap(), a, b)?;
        check::<u128>(&Plan::parse(text, 128, 0, None).unwrap(), a, b)?;
    }
}
