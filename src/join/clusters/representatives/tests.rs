use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::Error;

/// Reference: the sequential rule, one unit and one representative after another.
fn one_by_one(fps: &[u64], distance: u32, verify: &Verify<'_>) -> Vec<Labelled> {
    let mut representatives: Vec<u32> = Vec::new();
    let mut labels = Vec::new();
    for Unit { position, number: unit, .. } in units(fps) {
        let near = representatives.iter().find_map(|&kept| {
            let apart = fps[kept as usize].distance(fps[position as usize]);
            let similarity =
                if apart <= distance { verify(kept, position, apart) } else { Ok(None) };
            Some((kept, similarity.unwrap()?))
        });
        if near.is_none() {
            representatives.push(position);
        }
        let (label, similarity) = near.map_or((position, None), |(kept, s)| (kept, Some(s)));
        labels.push((unit, label, similarity.map(f64::to_bits)));
    }
    labels.sort_unstable();
    labels
}

/// Number and label of a unit, and the bits of their similarity.
type Labelled = (u32, u32, Option<u64>);

fn in_threads(threads: usize, fps: &[u64], distance: u32, verify: &Verify<'_>) -> Vec<Labelled> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let found = pool.install(|| labels(&units(fps), distance, &(), verify));
    let mut labels = found.unwrap();
    labels.sort_unstable();
    labels
}

/// Returns one unit per position.
fn units(fps: &[u64]) -> Vec<Unit<u64>> {
    let unit = |(position, &fingerprint)| Unit { position, number: position + 1, fingerprint };
    (0..).zip(fps).map(unit).collect()
}

fn labels(
    units: &[Unit<u64>],
    distance: u32,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Vec<Labelled>> {
    let (options, rejects, bracket) = (JoinOptions::new(distance), &|_, _, _| false, None);
    labels_by(&Rule { options, progress, verify, rejects, bracket, waiting: WAITING }, units)
}

fn labels_by(rule: &Rule<'_>, units: &[Unit<u64>]) -> Result<Vec<Labelled>> {
    let mut labels = Vec::new();
    let mut label = |number, label, similarity: Option<f64>| {
        labels.push((number, label, similarity.map(f64::to_bits)));
    };
    rule.among(units, &mut label)?;
    Ok(labels)
}

#[test]
fn rejected_pairs_are_never_verified_and_change_no_label() {
    let seed = 6;
    let mut rng = fastrand::Rng::with_seed(seed);
    let dense: Vec<u64> = (0..3 * BLOCK).map(|_| rng.u64(0..64)).collect();
    let spread = |fps: &u64| fps.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (fps % 3);
    let sparse: Vec<u64> = (0..3 * BLOCK).map(|_| spread(&rng.u64(0..900))).collect();
    for fps in [dense, sparse] {
        // Numbers are positions and one more, so a number is even where its position is odd.
        let verify = |a: u32, b: u32, _| Ok((a % 2 == b % 2 && (a ^ b) % 5 < 2).then_some(1.0));
        let strict = |a: u32, b: u32, apart: u32| {
            assert_eq!(a % 2, b % 2, "seed {seed}: {a} {b}");
            verify(a, b, apart)
        };
        let rejects = |(_, a): (u32, u32), (_, b): (u32, u32), _| a % 2 != b % 2;
        let (distance, progress, waiting) = (2, &(), WAITING);
        let rule = Rule {
            options: JoinOptions::new(distance),
            progress,
            verify: &strict,
            rejects: &rejects,
            bracket: None,
            waiting,
        };
        let mut found = labels_by(&rule, &units(&fps)).unwrap();
        found.sort_unstable();
        assert!(found == one_by_one(&fps, distance, &verify), "seed {seed}");
    }
}

#[test]
fn brackets_change_no_label() {
    let seed = 12;
    let mut rng = fastrand::Rng::with_seed(seed);
    let dense: Vec<u64> = (0..3 * BLOCK).map(|_| rng.u64(0..64)).collect();
    let spread = |fps: &u64| fps.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (fps % 3);
    let sparse: Vec<u64> = (0..4 * BLOCK).map(|_| spread(&rng.u64(0..2000))).collect();
    for fps in [dense, sparse] {
        for brackets in [1, 2, 3, 256] {
            let bracket =
                |position: u32| u8::try_from(position.wrapping_mul(37) % brackets).unwrap();
            let verify = |a: u32, b: u32, _| {
                let neighbours = bracket(a).abs_diff(bracket(b)) <= 1;
                Ok((neighbours && (a ^ b) % 5 < 2).then_some(1.0))
            };
            let rule = Rule {
                options: JoinOptions::new(2),
                progress: &(),
                verify: &verify,
                rejects: &|_, _, _| false,
                bracket: Some(&bracket),
                waiting: WAITING,
            };
            let mut found = labels_by(&rule, &units(&fps)).unwrap();
            found.sort_unstable();
            assert!(found == one_by_one(&fps, 2, &verify), "seed {seed}: {brackets}");
        }
    }
}

#[test]
fn labels_are_those_of_the_sequential_rule_for_any_number_of_threads() {
    let mut rng = fastrand::Rng::with_seed(1);
    for count in [0, 1, 2, 3, 50, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
        let few: Vec<u64> =
            (0..count).map(|_| (0..3).fold(0, |f, _| f | 1 << rng.u32(0..12))).collect();
        let chained: Vec<u64> = (0..count).map(|at| (1 << (at % 64)) - 1).collect();
        // Few pairs are near, so that joins find them.
        let families: Vec<u64> = (0..count).map(|_| rng.u64(0..200)).collect();
        let sparse: Vec<u64> = families
            .iter()
            .map(|family| family.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1 << rng.u32(0..64))
            .collect();
        for fps in [few, chained, sparse, vec![7; count]] {
            for part in [1, 3, 40] {
                // Accepts some of the pairs and is not transitive.
                let verify = |a: u32, b: u32, apart: u32| {
                    let mixed =
                        (u64::from(a) << 32 | u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let passes = (mixed >> 40).is_multiple_of(part + u64::from(apart));
                    Ok(passes.then(|| f64::from(a) + f64::from(b) / 1e6))
                };
                for distance in [0, 2, 6] {
                    let expected = one_by_one(&fps, distance, &verify);
                    for threads in [1, 4] {
                        let found = in_threads(threads, &fps, distance, &verify);
                        assert!(found == expected, "{count} {part} {distance} {threads}");
                    }
                }
            }
        }
    }
}

/// Requests cancellation after this number of verifications.
struct StopAfter<'a>(&'a AtomicUsize, usize);

impl Progress for StopAfter<'_> {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= self.1
    }
}

#[test]
fn no_verification_starts_after_cancellation() {
    let checks = AtomicUsize::new(0);
    let verify = |_, _, _| {
        checks.fetch_add(1, Ordering::SeqCst);
        Ok(None)
    };
    let units = units(&vec![7; 5000]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let stopped = pool.install(|| labels(&units, 0, &StopAfter(&checks, 2000), &verify));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    // Each thread may be between its cancellation check and its verification.
    assert!(checks.into_inner() < 2000 + 4);
}
