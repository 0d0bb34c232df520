//! A million Levenshtein distances against a million Hamming distances: why there are fingerprints.

use std::hint::black_box;
use std::time::Instant;

use hamdex::verify::edit_similarity;

use super::{Job, print};
use crate::data::Random;

pub(super) const NAME: &str = "hamdex, two distances";

const PAIRS: usize = 1_000_000;

/// Texts to draw pairs from.
const TEXTS: usize = 2000;

/// Characters of a text, those of a microblog post.
const CHARS: usize = 140;

pub(super) fn run(job: &Job) {
    let mut random = Random(1);
    let letters: Vec<char> = ('一'..).take(2000).collect();
    let mut pick = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap_or(0);
    let texts: Vec<String> = (0..TEXTS)
        .map(|_| (0..CHARS).filter_map(|_| letters.get(pick(letters.len()))).collect())
        .collect();
    let pairs: Vec<(usize, usize)> = (0..PAIRS).map(|_| (pick(TEXTS), pick(TEXTS))).collect();
    let fingerprints = crate::data::mixed(1, TEXTS as u64);
    let mut row = job.row("distance");
    row.count = PAIRS as u64;
    row.note = format!("{PAIRS} pairs of texts of {CHARS} characters, and of 64-bit fingerprints");
    for _ in 0..job.repetitions {
        let start = Instant::now();
        for (a, b) in &pairs {
            if let (Some(a), Some(b)) = (texts.get(*a), texts.get(*b)) {
                black_box(edit_similarity(a, b, 0.0));
            }
        }
        row.add("levenshtein_seconds", start.elapsed().as_secs_f64());
        let start = Instant::now();
        for (a, b) in &pairs {
            if let (Some(a), Some(b)) = (fingerprints.get(*a), fingerprints.get(*b)) {
                black_box((a ^ b).count_ones());
            }
        }
        row.add("hamming_seconds", start.elapsed().as_secs_f64());
    }
    print(&row);
}
