use super::super::defeat;
use super::*;
use crate::Error;

const ENTRIES: u64 = 10_000_000;

fn schedule(plan: &str, bits: u32, distance: u32) -> Schedule {
    let plan = Plan::parse(plan, bits, distance, None).unwrap();
    plan.schedule(distance, ENTRIES, &Costs::default())
}

#[test]
fn four_blocks_need_the_probes_of_the_general_pigeonhole() {
    // The radii plus the number of blocks sum to one more than the distance.
    for (distance, probes) in
        [(0, 1), (1, 2), (3, 4), (4, 20), (6, 52), (7, 68), (8, 188), (10, 428), (12, 1_108)]
    {
        assert_eq!(schedule("4", 64, distance).probes(), probes, "distance {distance}");
    }
}

#[test]
fn designs_of_the_paper_probe_every_table_once_at_distance_three() {
    for (name, tables) in [("4", 4), ("10", 10), ("16", 16), ("20", 20)] {
        let schedule = schedule(name, 64, 3);
        assert_eq!(schedule.radii(), vec![Some(0); tables], "{name}");
    }
}

#[test]
fn overlapping_leads_need_fewer_probes_than_equal_radii() {
    // Three pairs that cover all five blocks get one flip, the others none: at most 3 · 27 + 7.
    let schedule = schedule("5x2", 64, 4);
    assert!(schedule.probes() < 10 * 27, "{schedule:?}");
}

#[test]
fn two_disjoint_leads_of_many_tables_are_enough_when_that_is_cheaper() {
    // Of 70 tables, two with 32 bits each are probed: radii 2 and 2 sum to 6 with the blocks.
    let schedule = schedule("8x4", 64, 5);
    assert_eq!(schedule.radii().iter().flatten().collect::<Vec<_>>(), [&2, &2]);
    assert_eq!(schedule.probes(), 2 * (1 + 32 + 496));
}

#[test]
fn every_schedule_is_proved_at_every_distance() {
    for bits in [32, 64, 128] {
        for name in ["4", "10", "16", "20", "2x1", "3x1", "9x1", "5x3", "7x2", "3x1/3x1"] {
            let plan = Plan::parse(name, bits, 0, None).unwrap();
            for distance in 0..=bits / 4 {
                let schedule = plan.schedule(distance, 1_000_000, &Costs::default());
                let tables = plan.tables().iter().zip(schedule.radii());
                let used: Vec<(u128, u32)> =
                    tables.filter_map(|(table, radius)| Some((table.lead(), (*radius)?))).collect();
                let flips = defeat(&used, bits, distance);
                assert_eq!(flips, Some(distance + 1), "{name} {bits} {distance} {schedule:?}");
            }
        }
    }
}

#[test]
fn fixed_radii_are_used_while_they_suffice() {
    for (name, complete) in [("4x1r0", 3), ("4x1r1", 7), ("4x1r2", 11), ("5x2r1", 4)] {
        let plan = Plan::parse(name, 64, 0, None).unwrap();
        assert_eq!(plan.complete_to(), complete, "{name}");
        for distance in 0..=complete {
            let schedule = plan.schedule(distance, ENTRIES, &Costs::default());
            assert!(schedule.radii().iter().flatten().all(|&r| r <= plan.radius()), "{name}");
        }
        let refused = plan.require(complete + 1);
        assert!(matches!(refused, Err(Error::IncompletePlan { .. })), "{name}");
        // The schedule still finds everything, with deeper probes.
        let deeper = plan.schedule(complete + 1, ENTRIES, &Costs::default());
        assert!(deeper.radii().iter().flatten().any(|&r| r > plan.radius()), "{name}");
    }
}

#[test]
fn figures_saturate_instead_of_overflowing() {
    let schedule = schedule("5x4", 128, 32);
    assert!(schedule.nanos().is_finite() && schedule.probes() > 1 << 40, "{schedule:?}");
    let empty = Plan::named("4", 64).unwrap();
    let schedule = empty.schedule(3, 0, &Costs::default());
    assert_eq!(schedule.probes(), 4);
    assert!(schedule.candidates().abs() < f64::EPSILON);
}

#[test]
fn a_distance_beyond_the_width_is_that_of_the_width() {
    for (name, bits) in [("4", 64), ("16", 64), ("4x1r1", 32), ("8x4", 128)] {
        let plan = Plan::parse(name, bits, 0, None).unwrap();
        let schedule = |distance| plan.schedule(distance, ENTRIES, &Costs::default());
        for beyond in [bits + 1, 300, u32::MAX] {
            assert_eq!(schedule(beyond), schedule(bits), "{name} {beyond}");
        }
    }
}

#[test]
fn expensive_seeks_lead_to_fewer_probes() {
    let plan = Plan::named("16", 64).unwrap();
    let cheap = Costs { seek_ns: 1.0, ..Costs::default() };
    let dear = Costs { seek_ns: 1e6, ..Costs::default() };
    for distance in 3..8 {
        let (few, many) =
            (plan.schedule(distance, 1 << 34, &dear), plan.schedule(distance, 1 << 34, &cheap));
        assert!(few.probes() <= many.probes(), "distance {distance}");
    }
}
