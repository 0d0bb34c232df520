//! A million Levenshtein distances against a million Hamming distances: why fingerprints.

use std::hint::black_box;
use std::time::Instant;

use hamdex::verify::edit_similarity;

use super::{Job, print};
use crate::data::Random;
use crate::shape::{self, Shape};

pub(crate) const NAME: &str = "hamdex, two distances";

const MILLION: usize = 1_000_000;

/// Number of texts from which pairs are drawn.
const TEXTS: usize = 2000;

/// Characters of a text, as in a microblog post.
const CHARS: usize = 140;

/// Maximum time for texts, as a multiple of the budget of a repetition.
const BUDGETS: f64 = 4.0;

pub(super) fn run(job: &Job) {
    let mut random = Random(1);
    let letters: Vec<char> = ('一'..).take(2000).collect();
    let mut pick = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap_or(0);
    let texts: Vec<String> = (0..TEXTS)
        .map(|_| (0..CHARS).filter_map(|_| letters.get(pick(letters.len()))).collect())
        .collect();
    let pairs: Vec<(usize, usize)> = (0..MILLION).map(|_| (pick(TEXTS), pick(TEXTS))).collect();
    let fingerprints = shape::mixed::<u64>(Shape::Random, 1, TEXTS as u64);
    let mut row = job.row("distance");
    row.count = MILLION as u64;
    for _ in 0..job.repetitions {
        let start = Instant::now();
        let mut done = 0;
        for some in pairs.chunks(1000) {
            for (a, b) in some {
                if let (Some(a), Some(b)) = (texts.get(*a), texts.get(*b)) {
                    black_box(edit_similarity(a, b, 0.0));
                }
            }
            done += some.len();
            if start.elapsed().as_secs_f64() > BUDGETS * job.budget {
                break;
            }
        }
        // Scaled from a part of the pairs, because all pairs take the same time.
        let scale = MILLION as f64 / done as f64;
        row.add("levenshtein_seconds", start.elapsed().as_secs_f64() * scale);
        row.add("levenshtein_pairs", done as f64);
        let start = Instant::now();
        for (a, b) in &pairs {
            if let (Some(a), Some(b)) = (fingerprints.get(*a), fingerprints.get(*b)) {
                black_box((a ^ b).count_ones());
            }
        }
        row.add("hamming_seconds", start.elapsed().as_secs_f64());
    }
    row.note = format!(
        "random Chinese texts of {CHARS} characters, time scaled from {:.0} pairs; fingerprints \
         of 64 bits, all pairs",
        row.median("levenshtein_pairs").unwrap_or(0.0)
    );
    print(&row);
}
