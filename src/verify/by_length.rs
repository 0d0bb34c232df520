//! Thresholds by length: long texts must be more similar than short ones.
//!
//! A changed name is a fifth of a sentence, and the sentence is still the same. Two pages that
//! differ in a fifth share little more than a template. The threshold rises evenly with every
//! doubling of the length, without a jump. Long texts have many features, so near ones have nearer
//! fingerprints while different ones do not: the distance falls as the threshold rises.

use crate::text::letters;

/// Steps from the threshold of short texts to that of long ones.
pub(crate) const STEPS: usize = 24;
const STEPS_32: u32 = 24;

/// Lengths in letters at which each step starts: eight steps per doubling, from 200 to 1,600.
const LENGTHS: [usize; STEPS] = [
    218, 238, 259, 283, 308, 336, 367, 400, 436, 476, 519, 566, 617, 673, 734, 800, 872, 951, 1037,
    1131, 1234, 1345, 1467, 1600,
];

/// Sixteenths by which the distance of long texts is below that of short ones.
///
/// Of 2,571 pairs of pages and sources in twelve languages with 1,600 letters and more and an edit
/// similarity of 0.9, 99.0 % are within 12 of 64 bits, 99.5 % within 13, and 99.8 % within 16.
const LESS_OF_16: u32 = 3;

/// Bytes from which a text has at least 1,600 letters.
const LONG: usize = 4 * 1600;

/// Returns the step of a pair: how far its threshold is above that of short texts.
///
/// The longer text decides. Chinese characters, kana and Hangul syllables count as two letters.
pub(super) fn step(a: &str, b: &str) -> usize {
    if a.len().max(b.len()) >= LONG {
        return STEPS;
    }
    step_of(letters(a).max(letters(b)))
}

/// Returns the step for the number of letters of the longer text.
pub(super) fn step_of(letters: usize) -> usize {
    LENGTHS.partition_point(|&length| length <= letters)
}

/// Returns the threshold at a step, from `short` to `long`.
pub(crate) fn threshold(short: f64, long: f64, step: usize) -> f64 {
    short + (long - short) * step as f64 / STEPS as f64
}

/// Returns the largest distance of a pair at a step; `distance` is that of short texts.
pub(crate) fn reach(distance: u32, step: usize) -> u32 {
    let steps = u32::try_from(step).map_or(0, |step| STEPS_32.saturating_sub(step));
    // The part by which it falls shrinks with every step.
    let part = distance * LESS_OF_16 / 16;
    distance - part + part * steps / STEPS_32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_fall_by_three_sixteenths_as_thresholds_rise() {
        let of = |distance| [0, 1, 6, 12, 23, 24].map(|step| reach(distance, step));
        assert_eq!(of(16), [16, 15, 15, 14, 13, 13]);
        assert_eq!((of(0), of(3)), ([0; 6], [3; 6]));
        assert_eq!(of(32), [32, 31, 30, 29, 26, 26]);
    }

    #[test]
    fn thresholds_rise_with_the_longer_text_from_200_to_1600_letters() {
        let of = |a: usize, b: usize| step(&"a".repeat(a), &"b".repeat(b));
        assert_eq!([of(0, 0), of(1, 217), of(218, 9), of(400, 400)], [0, 0, 1, 8]);
        assert_eq!([of(1599, 1), of(1600, 1), of(1, 9000)], [23, 24, 24]);
        assert_eq!(step(&"晴".repeat(109), ""), 1);
        assert_eq!(step(&"é".repeat(217), ""), 0);
        for (at, &length) in LENGTHS.iter().enumerate() {
            let exact = 200.0 * 2_f64.powf((at + 1) as f64 / 8.0);
            assert!((exact - length as f64).abs() <= 0.51, "{exact} {length}");
        }
        let of = |step| threshold(0.8, 0.9, step);
        assert_eq!((of(0), of(STEPS)), (0.8, 0.9));
        assert!((of(12) - 0.85).abs() < 1e-9);
    }
}
