use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Reference: compares every document with every other.
fn by_definition(fps: &[u64], digests: &[u64], distance: u32, verify: &Verify<'_>) -> Vec<u32> {
    let count = u32::try_from(fps.len()).unwrap();
    let mut labels: Vec<u32> = (0..count).collect();
    for a in 0..count {
        for b in a + 1..count {
            let (i, j) = (a as usize, b as usize);
            let apart = fps[i].distance(fps[j]);
            let equal = apart == 0 && digests[i] == digests[j];
            if equal || (apart <= distance && verify(a, b, apart).unwrap().is_some()) {
                let (one, other) = (labels[i].min(labels[j]), labels[i].max(labels[j]));
                labels.iter_mut().filter(|label| **label == other).for_each(|l| *l = one);
            }
        }
    }
    labels
}

#[test]
fn clusters_equal_the_reference() {
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..200 {
        let count = rng.usize(0..80);
        let centres: Vec<u64> = (0..4).map(|_| rng.u64(..)).collect();
        let fps: Vec<u64> = (0..count)
            .map(|_| {
                let flips = rng.u32(0..4);
                (0..flips).fold(centres[rng.usize(0..4)], |fp, _| fp ^ (1 << rng.u32(0..64)))
            })
            .collect();
        let digests: Vec<u64> = (0..count).map(|_| rng.u64(0..8)).collect();
        let verify = |a: u32, b: u32, _| {
            assert!(a < b);
            Ok((digests[a as usize].abs_diff(digests[b as usize]) <= 1).then_some(1.0))
        };
        for distance in [0, 1, 3, 6] {
            let labels =
                verified_clusters(&fps, &digests, distance, Linkage::Chain, &(), &verify).unwrap();
            let expected = by_definition(&fps, &digests, distance, &verify);
            assert_eq!(labels, expected, "round {round}, distance {distance}");
        }
    }
}

#[test]
fn a_chain_is_cut_where_the_representative_is_too_far() {
    // Neighbours pass, and documents two steps apart; others do not.
    let fps: Vec<u64> = (0..7).map(|step| (1 << step) - 1).collect();
    let digests: Vec<u64> = (0..7).collect();
    let verify = |a: u32, b: u32, _| Ok((a.abs_diff(b) <= 2).then_some(1.0));
    let run = |linkage| verified_clusters(&fps, &digests, 3, linkage, &(), &verify).unwrap();
    assert_eq!(run(Linkage::Chain), [0; 7]);
    assert_eq!(run(Linkage::Representative), [0, 0, 0, 3, 3, 3, 6]);
}

#[test]
fn a_representative_is_within_the_distance_of_its_documents() {
    // A chain connects all of them, and every pair passes.
    let fps: Vec<u64> = (0..7).map(|step| (1 << step) - 1).collect();
    let digests: Vec<u64> = (0..7).collect();
    let verify = |_, _, _| Ok(Some(1.0));
    for (distance, expected) in
        [(1, [0, 0, 2, 2, 4, 4, 6]), (2, [0, 0, 0, 3, 3, 3, 6]), (6, [0; 7])]
    {
        let run =
            |linkage| verified_clusters(&fps, &digests, distance, linkage, &(), &verify).unwrap();
        assert_eq!(run(Linkage::Chain), [0; 7]);
        assert_eq!(run(Linkage::Representative), expected, "distance {distance}");
    }
}

#[test]
fn the_verification_receives_the_distance_to_the_representative() {
    let fps = [0b000_u64, 0b001, 0b011, 0b111];
    let verify = |_, _, distance| Ok((distance <= 2).then_some(1.0));
    let digests = [1, 2, 3, 4];
    let run = |linkage| verified_clusters(&fps, &digests, 3, linkage, &(), &verify).unwrap();
    assert_eq!(run(Linkage::Representative), [0, 0, 0, 3]);
}

#[test]
fn equal_fingerprints_of_different_documents_are_checked() {
    let fps = [9_u64; 6];
    let digests = [1, 2, 1, 3, 2, 1];
    let verify =
        |a: u32, b: u32, _| Ok((digests[a as usize] + digests[b as usize] == 3).then_some(1.0));
    let labels = verified_clusters(&fps, &digests, 3, Linkage::Chain, &(), &verify).unwrap();
    assert_eq!(labels, [0, 0, 0, 3, 0, 0]);
}

#[test]
fn copies_cost_no_checks() {
    let fps: Vec<u64> = (0..100_000).map(|at| at % 2).collect();
    let digests = vec![5; fps.len()];
    let calls = AtomicU64::new(0);
    let verify = |_, _, _| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(Some(1.0))
    };
    let labels =
        verified_clusters(&fps, &digests, 1, Linkage::Representative, &(), &verify).unwrap();
    assert!(labels.iter().all(|&label| label == 0));
    assert!(calls.into_inner() <= 2);
}

#[test]
fn no_document_and_one_document_are_accepted() {
    let verify = |_, _, _| Ok(Some(1.0));
    for linkage in [Linkage::Chain, Linkage::Representative] {
        let run = |fps: &[u64]| verified_clusters(fps, &[0][..fps.len()], 3, linkage, &(), &verify);
        assert_eq!(run(&[]).unwrap(), [0_u32; 0]);
        assert_eq!(run(&[7]).unwrap(), [0]);
    }
}

#[test]
fn failed_verifications_and_missing_digests_stop_the_join() {
    let broken = |_, _, _| Err(Error::corrupt("evidence", "broken"));
    let run = |fps: &[u64], digests: &[u64]| {
        verified_clusters(fps, digests, 1, Linkage::Chain, &(), &broken)
    };
    assert!(matches!(run(&[0, 1], &[1, 2]), Err(Error::Corrupt { .. })));
    assert!(matches!(run(&[1, 1], &[1, 2]), Err(Error::Corrupt { .. })));
    assert!(matches!(run(&[1, 1], &[1]), Err(Error::InvalidOption { name: "digests", .. })));
    assert!(matches!(
        verified_clusters(&[1_u64], &[1], 65, Linkage::Chain, &(), &broken),
        Err(Error::InvalidDistance { .. })
    ));
}

#[test]
fn units_with_equal_fingerprints_cost_one_verification_each() {
    let fps = [9_u64; 2000];
    let digests: Vec<u64> = (0..2000).collect();
    let calls = AtomicU64::new(0);
    let verify = |_, _, _| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(Some(1.0))
    };
    let labels = verified_clusters(&fps, &digests, 3, Linkage::Chain, &(), &verify).unwrap();
    assert!(labels.iter().all(|&label| label == 0));
    assert_eq!(calls.into_inner(), 1999);
}
