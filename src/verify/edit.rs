//! Edit similarity: two texts become the part of the longer one that need not be changed.

use rapidfuzz::distance::levenshtein;

/// Characters of the differing middles up to which the distance is exact.
const EXACT_CHARS: usize = 1 << 16;

/// Edits that are tried first: near texts are settled in a narrow band of the table.
const FEW_EDITS: usize = 64;

/// Returns 1 - edits / characters of the longer text, if it is `threshold` at least.
///
/// Edits are insertions, deletions and substitutions of single characters (Levenshtein); the
/// work ends as soon as too many are certain. Two empty texts are equal: 1.
///
/// The distance is that of Hyyrö's bit vectors, bounded to a band as wide as the threshold allows:
/// 0.1 s for two texts of 100,000 characters. Common beginnings and ends are taken off first. Where 65,536 characters or more are left
/// between them, the middles are cut into as many equal pieces as it takes, and pieces are
/// compared one to one: the similarity of such a text may come out too low, never too high.
///
/// ```
/// use hamdex::verify::edit_similarity;
///
/// assert_eq!(edit_similarity("0123456789", "012345678", 0.9), Some(0.9));
/// assert_eq!(edit_similarity("0123456789", "01234567", 0.9), None);
/// ```
pub fn edit_similarity(a: &str, b: &str, threshold: f64) -> Option<f64> {
    let lens = (a.chars().count(), b.chars().count());
    let longest = lens.0.max(lens.1);
    let similarity = |edits: usize| {
        if longest == 0 { 1.0 } else { longest.saturating_sub(edits) as f64 / longest as f64 }
    };
    // A difference in length is so many edits at least.
    if similarity(lens.0.abs_diff(lens.1)) < threshold {
        return None;
    }
    let (a, b) = differing(a, b);
    let edits = edits_up_to(a, b, most_edits(longest, threshold))?;
    Some(similarity(edits)).filter(|similarity| *similarity >= threshold)
}

/// So many edits leave the similarity at the threshold, or one more than that by rounding.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn most_edits(longest: usize, threshold: f64) -> usize {
    // A cast of a float saturates, and the text cannot have more edits than characters.
    (((1.0 - threshold) * longest as f64).ceil() as usize).min(longest)
}

/// Takes off what both begin and end with.
fn differing<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str) {
    let same = |(x, y): &(char, char)| x == y;
    let begin: usize = a.chars().zip(b.chars()).take_while(same).map(|(x, _)| x.len_utf8()).sum();
    let (a, b) = (a.get(begin..).unwrap_or(a), b.get(begin..).unwrap_or(b));
    let backwards = a.chars().rev().zip(b.chars().rev());
    let end: usize = backwards.take_while(same).map(|(x, _)| x.len_utf8()).sum();
    (a.get(..a.len() - end).unwrap_or(a), b.get(..b.len() - end).unwrap_or(b))
}

/// Counts the edits between two middles; `None` when there are more than `most`.
fn edits_up_to(a: &str, b: &str, most: usize) -> Option<usize> {
    let lens = (a.chars().count(), b.chars().count());
    let pieces = lens.0.max(lens.1).div_ceil(EXACT_CHARS).max(1);
    let (mut a, mut b) = (Pieces::new(a, lens.0, pieces), Pieces::new(b, lens.1, pieces));
    let mut edits = 0;
    for _ in 0..pieces {
        let left = most.checked_sub(edits)?;
        let args = levenshtein::Args::default().score_cutoff(left).score_hint(left.min(FEW_EDITS));
        edits += levenshtein::distance_with_args(a.next().chars(), b.next().chars(), &args)?;
    }
    Some(edits)
}

/// Cuts a text into pieces of equal numbers of characters.
struct Pieces<'a> {
    rest: &'a str,
    chars: usize,
    count: usize,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str, chars: usize, count: usize) -> Self {
        Self { rest: text, chars, count }
    }

    fn next(&mut self) -> &'a str {
        let take = self.chars.div_ceil(self.count.max(1));
        let end = self.rest.char_indices().nth(take).map_or(self.rest.len(), |(at, _)| at);
        let (piece, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.chars -= take;
        self.count = self.count.saturating_sub(1);
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook's table, row by row (Wagner and Fischer 1974).
    fn textbook(a: &[char], b: &[char]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut diagonal = row[0];
            row[0] = i + 1;
            for (j, y) in b.iter().enumerate() {
                let best = (diagonal + usize::from(x != y)).min(row[j].min(row[j + 1]) + 1);
                diagonal = row[j + 1];
                row[j + 1] = best;
            }
        }
        row[b.len()]
    }

    fn edited(
        rng: &mut fastrand::Rng,
        text: &[char],
        edits: usize,
        alphabet: &[char],
    ) -> Vec<char> {
        let mut text = text.to_vec();
        for _ in 0..edits {
            let at = rng.usize(0..=text.len());
            let letter = alphabet[rng.usize(0..alphabet.len())];
            match rng.u8(0..3) {
                0 => text.insert(at, letter),
                1 if at < text.len() => drop(text.remove(at)),
                _ if at < text.len() => text[at] = letter,
                _ => (),
            }
        }
        text
    }

    #[test]
    fn similarities_are_those_of_the_textbook_table() {
        let mut rng = fastrand::Rng::with_seed(1);
        let alphabet: Vec<char> = "ab c天晴雨\u{1f600}".chars().collect();
        for round in 0..3000 {
            let (len, edits) = (rng.usize(0..200), rng.usize(0..40));
            let a: Vec<char> = (0..len).map(|_| alphabet[rng.usize(0..alphabet.len())]).collect();
            let b = edited(&mut rng, &a, edits, &alphabet);
            let longest = a.len().max(b.len());
            let edits = textbook(&a, &b);
            let expected =
                if longest == 0 { 1.0 } else { (longest - edits) as f64 / longest as f64 };
            let [a, b]: [String; 2] = [a, b].map(|text| text.into_iter().collect());
            for threshold in [0.0, 0.5, 0.8, 0.9, 0.95, 1.0, expected, expected + 1e-9] {
                let found = edit_similarity(&a, &b, threshold);
                assert_eq!(found, Some(expected).filter(|s| *s >= threshold), "round {round}");
            }
        }
    }

    #[test]
    fn round_thresholds_let_round_similarities_pass() {
        for tenths in 0..=10_usize {
            let a = "a".repeat(10);
            let b = "b".repeat(tenths) + &"a".repeat(10 - tenths);
            let threshold = format!("0.{}", 10 - tenths).replace("0.10", "1");
            let threshold = threshold.parse().unwrap();
            assert_eq!(edit_similarity(&a, &b, threshold), Some(threshold));
        }
    }

    #[test]
    fn empty_texts_are_equal_and_like_nothing_else() {
        assert_eq!(edit_similarity("", "", 1.0), Some(1.0));
        assert_eq!(edit_similarity("", "a", 0.0), Some(0.0));
        assert_eq!(edit_similarity("", "a", 0.1), None);
    }

    #[test]
    fn texts_of_many_pieces_are_never_found_too_similar() {
        let mut rng = fastrand::Rng::with_seed(2);
        let alphabet: Vec<char> = ('a'..='z').chain('一'..='丐').collect();
        let a: Vec<char> = (0..200_000).map(|_| alphabet[rng.usize(0..alphabet.len())]).collect();
        let edits = 2000;
        let b = edited(&mut rng, &a, edits, &alphabet);
        let [a, b]: [String; 2] = [a, b].map(|text| text.into_iter().collect());
        let found = edit_similarity(&a, &b, 0.9).unwrap();
        // A letter may be replaced by itself, so edits are some fewer than 2,000.
        assert!((0.985..0.991).contains(&found), "{found}");
        let mut joined = a.clone();
        joined.push_str(&b);
        assert_eq!(edit_similarity(&a, &joined, 0.9), None);
    }
}
