//! Bounds: counts of letters and n-grams prove that two texts need too many edits.
//!
//! An edit changes at most n of the n-grams of each text (Ukkonen 1992), so n-grams that one text
//! has more often than the other give a number of edits that is never too high. Counting takes
//! time in proportion to the texts, the distance itself in proportion to their product.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a counter for every letter and every n-gram"
)]

/// Characters below which the distance costs no more than the counts.
const LEAST_CHARS: usize = 512;

/// Bytes above which n-grams of four separate texts better than n-grams of three.
const LONG_BYTES: usize = 1 << 12;

/// Bits of the largest table of counts: 4 MiB.
const MOST_BITS: u32 = 20;

/// What proves that two texts differ too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Refusal {
    /// The letters, in any order.
    Letters,
    /// The n-grams, in any order.
    Grams,
}

/// Returns a number of edits that two texts need at least, or why they need more than `most`.
pub(super) fn least(a: &str, b: &str, most: usize) -> Result<usize, Refusal> {
    let longest = a.len().max(b.len());
    if longest < LEAST_CHARS {
        return Ok(0);
    }
    if letters(a, b) > most {
        return Err(Refusal::Letters);
    }
    let n = if longest < LONG_BYTES { 3 } else { 4 };
    let bits = (2 * longest).next_power_of_two().ilog2().min(MOST_BITS);
    let least = least_edits(a, b, n, bits);
    if least > most { Err(Refusal::Grams) } else { Ok(least) }
}

/// Returns a number of edits that two texts need at least, by their letters in any order.
///
/// Different letters may share one of 256 counters.
pub(super) fn letters(a: &str, b: &str) -> usize {
    let mut counts = [0_i32; 256];
    for (text, step) in [(a, 1), (b, -1)] {
        if text.is_ascii() {
            add_ascii(text.as_bytes(), step, &mut counts);
            continue;
        }
        for letter in text.chars() {
            counts[usize::from(low_byte(letter))] += step;
        }
    }
    more_or_fewer(&counts)
}

/// Adds a step to the counter of every byte; two sets take turns, so that none waits for its last.
fn add_ascii(text: &[u8], step: i32, counts: &mut [i32; 256]) {
    let mut others = [0_i32; 128];
    let (pairs, rest) = text.as_chunks::<2>();
    for &[a, b] in pairs {
        counts[usize::from(a)] += step;
        others[usize::from(b)] += step;
    }
    for &byte in rest {
        counts[usize::from(byte)] += step;
    }
    for (count, other) in counts.iter_mut().zip(others) {
        *count += other;
    }
}

/// The byte that tells letters of one script apart.
fn low_byte(letter: char) -> u8 {
    let [.., low] = u32::from(letter).to_be_bytes();
    low
}

/// Adds up what one side has more often and what the other has, and returns the larger sum.
fn more_or_fewer(counts: &[i32]) -> usize {
    let (mut more, mut fewer) = (0_u32, 0_u32);
    for &count in counts {
        more += count.max(0).unsigned_abs();
        fewer += count.min(0).unsigned_abs();
    }
    more.max(fewer) as usize
}

/// Returns a number of edits that two texts need at least, by their n-grams.
///
/// Different n-grams may share a counter, which makes the bound lower and never too high.
fn least_edits(a: &str, b: &str, n: u32, bits: u32) -> usize {
    let mut counts = vec![0_i32; 1 << bits];
    let mut add = |text: &str, step: i32| {
        let mut gram = 0_u32;
        for c in text.chars() {
            // The first n - 1 grams are short.
            gram = gram << 8 | u32::from(low_byte(c));
            let whole = gram & (u32::MAX >> (u32::BITS - 8 * n));
            let slot = whole.wrapping_mul(0x9e37_79b1) >> (u32::BITS - bits);
            counts[slot as usize] += step;
        }
    };
    add(a, 1);
    add(b, -1);
    more_or_fewer(&counts).div_ceil(n as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_worked_examples() {
        assert_eq!(letters("kitten", "sitting"), 3);
        assert_eq!(letters("abcabc", "cbacba"), 0);
        assert_eq!((letters("", "abcd"), letters("雨ab", "雪a")), (4, 2));
        assert_eq!(least_edits("same", "same", 3, 12), 0);
        // One edit in the middle changes n of the n-grams of each text.
        assert_eq!(least_edits("abcdefghijklmnop", "abcdefghXjklmnop", 4, 16), 1);
        assert_eq!(letters("天晴雨雪风", "雪天晴雨风"), 0);
    }

    #[test]
    fn every_refusal_has_texts_that_need_it() {
        let letters = "abcdefgh".repeat(100);
        let (other, turned) = ("12345678".repeat(100), "hgfedcba".repeat(100));
        assert_eq!(least(&letters, &letters, 0), Ok(0));
        assert_eq!(least(&letters, &other, 799), Err(Refusal::Letters));
        assert_eq!(least(&letters, &turned, 200), Err(Refusal::Grams));
        assert_eq!(least(&letters, &turned, 400), Ok(267));
        assert_eq!(least(&letters[..400], &other[..400], 1), Ok(0));
    }
}
