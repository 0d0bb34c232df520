//! Perturbing: makes a near-duplicate of a text with about a given similarity.
//!
//! Without labelled pairs, settings can be evaluated on texts of known similarity.

use std::ops::Range;

/// Marks between sentences.
const ENDS: [char; 8] = ['.', '!', '?', '。', '！', '？', '；', '\n'];

/// Characters of a word in scripts without spaces.
const WORD: usize = 2;

/// Noise that people and web pages append to a text.
const NOISE: [&str; 6] = [
    " http://t.co/Xy3kQ9",
    "//@someone:",
    " @someone",
    "//@someone://@another:",
    " https://example.org/a?from=feed",
    "\n",
];

/// A generator of realistic edits of a text, deterministic for a seed.
///
/// Changes, inserts and deletes characters and words, swaps neighbouring sentences, and appends
/// links and forwarded tails.
///
/// ```
/// use hamdex::advice::Perturber;
/// use hamdex::verify::edit_similarity;
///
/// let text = "tomorrow it will rain in the north, so take a coat and an umbrella with you";
/// let changed = Perturber::new(7).perturb(text, 0.9);
/// assert!(edit_similarity(text, &changed, 0.7).is_some());
/// assert_eq!(Perturber::new(7).perturb(text, 0.9), changed);
/// ```
#[derive(Debug, Clone)]
pub struct Perturber {
    rng: fastrand::Rng,
}

impl Perturber {
    /// Creates a generator; equal seeds give equal edits.
    pub fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed) }
    }

    /// Returns the text, edited to about an edit similarity from 0 to 1.
    ///
    /// Noise appended to the end does not count. Edits can overlap, so the result is slightly more
    /// similar than requested. An empty text stays empty.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn perturb(&mut self, text: &str, similarity: f64) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        // A cast of a float saturates, and the loop ends when no characters are left.
        let mut budget = ((1.0 - similarity).clamp(0.0, 1.0) * chars.len() as f64).round() as usize;
        while budget > 0 && !chars.is_empty() {
            let spent = match self.rng.u8(0..8) {
                0..4 => self.change_character(&mut chars),
                4..7 => self.change_word(&mut chars, budget),
                _ => self.swap_sentences(&mut chars, budget),
            };
            budget = budget.saturating_sub(spent.max(1));
        }
        let mut changed: String = chars.into_iter().collect();
        if !changed.is_empty() && self.rng.u8(0..4) == 0 {
            changed.push_str(self.rng.choice(NOISE).unwrap_or_default());
        }
        changed
    }

    /// Changes, inserts or deletes one character; returns the number of edits.
    fn change_character(&mut self, chars: &mut Vec<char>) -> usize {
        let at = self.rng.usize(0..chars.len().max(1));
        // A letter of the text keeps its script.
        let Some(letter) = self.rng.choice(chars.iter().copied()) else { return 1 };
        match self.rng.u8(0..3) {
            0 => chars.insert(at, letter),
            1 => drop(chars.drain(at..(at + 1).min(chars.len()))),
            _ => {
                if let Some(place) = chars.get_mut(at) {
                    *place = letter;
                }
            }
        }
        1
    }

    /// Deletes, repeats or replaces one word, if the budget allows it.
    fn change_word(&mut self, chars: &mut Vec<char>, budget: usize) -> usize {
        let (from, to) = (self.word(chars), self.word(chars));
        let other: Vec<char> = chars.get(from.clone()).unwrap_or_default().to_vec();
        if from.len().max(to.len()) > budget {
            return self.change_character(chars);
        }
        match self.rng.u8(0..3) {
            0 => {
                chars.drain(to.clone());
                to.len()
            }
            1 => {
                chars.splice(to.start..to.start, other);
                from.len()
            }
            _ => {
                chars.splice(to.clone(), other);
                from.len().max(to.len())
            }
        }
    }

    /// Picks a random word: ASCII letters and digits, or else two characters.
    fn word(&mut self, chars: &[char]) -> Range<usize> {
        let at = self.rng.usize(0..chars.len().max(1));
        let is_word = |c: &char| c.is_ascii_alphanumeric();
        if !chars.get(at).is_some_and(is_word) {
            return at..(at + WORD).min(chars.len());
        }
        let before = chars.iter().take(at).rev().take_while(|c| is_word(c)).count();
        let after = chars.iter().skip(at).take_while(|c| is_word(c)).count();
        // Includes the space after it, so that a deletion does not leave two spaces.
        let space = usize::from(chars.get(at + after) == Some(&' '));
        at - before..at + after + space
    }

    /// Swaps two neighbouring sentences, if the budget allows it.
    fn swap_sentences(&mut self, chars: &mut Vec<char>, budget: usize) -> usize {
        let mut ends: Vec<usize> = (0..)
            .zip(chars.iter())
            .filter(|(_, c)| ENDS.contains(c))
            .map(|(at, _)| at + 1)
            .collect();
        ends.insert(0, 0);
        let sentences = ends.windows(3).filter_map(|ends| match ends {
            &[start, middle, end] => Some((start, middle, end)),
            _ => None,
        });
        // Moving the shorter one deletes and inserts it.
        let cost =
            |&(start, middle, end): &(usize, usize, usize)| 2 * (middle - start).min(end - middle);
        let affordable: Vec<_> = sentences.filter(|of| cost(of) <= budget).collect();
        let Some(of @ (start, middle, end)) = self.rng.choice(affordable) else {
            return self.change_character(chars);
        };
        if let Some(both) = chars.get_mut(start..end) {
            both.rotate_left(middle - start);
        }
        cost(&of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::edit_similarity;

    const ENGLISH: &str = "It will rain in the north. It stays dry in the south! Take a coat with \
                           you, and an umbrella. Tomorrow will be a better day for all of us.";
    const CHINESE: &str = "明天北方有雨。南方天气晴朗！出门请带好雨伞和外套，注意安全。后天会是更好的一天，祝大家愉快。";

    #[test]
    fn similarities_are_about_those_requested() {
        let mut perturber = Perturber::new(1);
        for text in [ENGLISH, CHINESE] {
            for similarity in [0.7, 0.8, 0.9, 1.0] {
                let mut sum = 0.0;
                for _ in 0..200 {
                    let changed = perturber.perturb(text, similarity);
                    let bare = NOISE.iter().find_map(|noise| changed.strip_suffix(noise));
                    let found = edit_similarity(text, bare.unwrap_or(&changed), 0.0).unwrap();
                    assert!(found > similarity - 0.1, "{found} for {similarity}: {changed}");
                    sum += found / 200.0;
                }
                assert!(
                    (similarity - 0.02..similarity + 0.08).contains(&sum),
                    "{sum} for {similarity}"
                );
            }
        }
    }

    #[test]
    fn texts_of_any_length_can_be_changed() {
        let mut perturber = Perturber::new(2);
        assert_eq!(perturber.perturb("", 0.0), "");
        for text in ["a", "雨", " ", ".", "..", "a b", "\u{1f600}"] {
            for similarity in [0.0, 0.5, 1.0, f64::NAN] {
                perturber.perturb(text, similarity);
            }
        }
    }
}
