//! Lower bounds of the number of edits, from counts of letters and n-grams.
//!
//! An edit changes at most n of the n-grams of each text (Ukkonen 1992), so the surplus of n-grams
//! of one text gives a lower bound. Counting takes linear time, the distance itself quadratic time.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a counter for every letter and every n-gram"
)]

/// Characters below which the distance costs no more than the counts.
const LEAST_CHARS: usize = 512;

/// Bytes above which 4-grams distinguish texts better than 3-grams.
const LONG_BYTES: usize = 1 << 12;

/// Bits of the index of the largest table of counts, which takes 4 MiB.
const MOST_BITS: u32 = 20;

/// Which bound rejected a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Rejection {
    /// The letters, in any order.
    Letters,
    /// The n-grams, in any order.
    Grams,
}

/// Returns a lower bound of the edits, or which bound shows that there are more than `most`.
pub(super) fn least(a: &str, b: &str, most: usize) -> Result<usize, Rejection> {
    let longest = a.len().max(b.len());
    if longest < LEAST_CHARS {
        return Ok(0);
    }
    if letters(a, b) > most {
        return Err(Rejection::Letters);
    }
    let n = if longest < LONG_BYTES { 3 } else { 4 };
    let bits = (2 * longest).next_power_of_two().ilog2().min(MOST_BITS);
    let least = least_edits(a, b, n, bits);
    if least > most { Err(Rejection::Grams) } else { Ok(least) }
}

/// Returns a lower bound of the edits, from the letters in any order.
///
/// There are 256 counters, which letters may share.
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

/// Adds `step` to the counter of every byte. Two sets of counters take turns, so that equal bytes
/// in a row do not wait for each other.
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

/// Returns the byte that distinguishes the letters of a script.
fn low_byte(letter: char) -> u8 {
    let [.., low] = u32::from(letter).to_be_bytes();
    low
}

/// Sums the surplus of each side and returns the larger sum.
fn more_or_fewer(counts: &[i32]) -> usize {
    let (mut more, mut fewer) = (0_u32, 0_u32);
    for &count in counts {
        more += count.max(0).unsigned_abs();
        fewer += count.min(0).unsigned_abs();
    }
    more.max(fewer) as usize
}

/// Returns a lower bound of the edits, from n-grams.
///
/// N-grams may share a counter, which lowers the bound and never raises it.
fn least_edits(a: &str, b: &str, n: u32, bits: u32) -> usize {
    let mut counts = vec![0_i32; 1 << bits];
    let mut add = |text: &str, step: i32| {
        let mut gram = 0_u32;
        for c in text.chars() {
            // The first n - 1 n-grams are shorter.
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
    fn bounds_equal_the_worked_examples() {
        assert_eq!(letters("kitten", "sitting"), 3);
        assert_eq!(letters("abcabc", "cbacba"), 0);
        assert_eq!((letters("", "abcd"), letters("雨ab", "雪a")), (4, 2));
        assert_eq!(least_edits("same", "same", 3, 12), 0);
        // One edit in the middle changes n of the n-grams of each text.
        assert_eq!(least_edits("abcdefghijklmnop", "abcdefghXjklmnop", 4, 16), 1);
        assert_eq!(letters("天晴雨雪风", "雪天晴雨风"), 0);
    }

    #[test]
    fn every_bound_rejects_a_pair() {
        let letters = "abcdefgh".repeat(100);
        let (other, turned) = ("12345678".repeat(100), "hgfedcba".repeat(100));
        assert_eq!(least(&letters, &letters, 0), Ok(0));
        assert_eq!(least(&letters, &other, 799), Err(Rejection::Letters));
        assert_eq!(least(&letters, &turned, 200), Err(Rejection::Grams));
        assert_eq!(least(&letters, &turned, 400), Ok(267));
        assert_eq!(least(&letters[..400], &other[..400], 1), Ok(0));
    }
}
