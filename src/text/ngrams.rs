//! N-grams: tokens become features, each a run of neighbouring tokens.
//!
//! Tokens are laid end to end once, so that every n-gram is a slice and none is copied.

use std::ops::Range;

/// Between the words of an n-gram; a control character is in no token.
pub(super) const SEPARATOR: char = '\u{1f}';

/// The tokens of one text, laid end to end.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    text: String,
    spans: Vec<Range<usize>>,
    rarities: Vec<u32>,
}

impl Tokens {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
        self.rarities.clear();
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Appends a token; `apart` puts the separator before it.
    pub(super) fn push(&mut self, token: &str, rarity: u32, apart: bool) {
        if apart && !self.spans.is_empty() {
            self.text.push(SEPARATOR);
        }
        let start = self.text.len();
        self.text.push_str(token);
        self.spans.push(start..self.text.len());
        self.rarities.push(rarity);
    }

    /// Number of n-grams: one for a text of fewer tokens, none for a text without any.
    pub(super) fn ngrams(&self, n: usize) -> usize {
        let tokens = self.spans.len();
        if tokens == 0 { 0 } else { (tokens + 1).saturating_sub(n).max(1) }
    }

    /// Returns the n-gram that begins at token `index`; empty beyond the last.
    #[inline]
    pub(super) fn ngram(&self, index: usize, n: usize) -> &str {
        let spans = self.window(index, n);
        match (spans.first(), spans.last()) {
            (Some(first), Some(last)) => self.text.get(first.start..last.end).unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns how rare the n-gram is that begins at token `index`: as its tokens on average.
    pub(super) fn rarity(&self, index: usize, n: usize) -> u32 {
        let end = index.saturating_add(n).min(self.rarities.len());
        let parts = self.rarities.get(index..end).unwrap_or_default();
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX).max(1);
        parts.iter().copied().fold(0_u32, u32::saturating_add) / count
    }

    #[inline]
    fn window(&self, index: usize, n: usize) -> &[Range<usize>] {
        let end = index.saturating_add(n).min(self.spans.len());
        self.spans.get(index..end).unwrap_or_default()
    }

    /// Gives back memory that one huge text took.
    pub(super) fn release_above(&mut self, bytes: usize) {
        super::pipeline::release(&mut self.text, bytes);
        if self.spans.capacity() * size_of::<Range<usize>>() > bytes {
            self.spans = Vec::new();
            self.rarities = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ngrams(words: &[&str], n: usize, apart: bool) -> Vec<String> {
        let mut tokens = Tokens::default();
        for word in words {
            tokens.push(word, 0, apart);
        }
        (0..tokens.ngrams(n)).map(|index| tokens.ngram(index, n).replace(SEPARATOR, "|")).collect()
    }

    #[test]
    fn neighbours_are_joined_by_the_separator_or_directly() {
        assert_eq!(ngrams(&["a", "bc", "d"], 1, true), ["a", "bc", "d"]);
        assert_eq!(ngrams(&["a", "bc", "d"], 2, true), ["a|bc", "bc|d"]);
        assert_eq!(ngrams(&["中", "文", "字"], 2, false), ["中文", "文字"]);
        assert_ne!(ngrams(&["ab", "c"], 2, true), ngrams(&["a", "bc"], 2, true));
    }

    #[test]
    fn text_of_fewer_tokens_is_one_feature_and_an_empty_one_none() {
        assert_eq!(ngrams(&["a", "b"], 2, true), ["a|b"]);
        assert_eq!(ngrams(&["a", "b"], 5, true), ["a|b"]);
        assert_eq!(ngrams(&["a"], usize::MAX, true), ["a"]);
        assert_eq!(ngrams(&[], 3, true), [""; 0]);
    }

    #[test]
    fn ngram_is_as_rare_as_its_tokens_on_average() {
        let mut tokens = Tokens::default();
        for (word, rarity) in [("a", 1), ("bc", 5), ("d", 9)] {
            tokens.push(word, rarity, true);
        }
        assert_eq!((tokens.rarity(1, 2), tokens.rarity(0, 3), tokens.rarity(2, 2)), (7, 5, 9));
        assert_eq!((tokens.rarity(9, 2), tokens.ngram(9, 2), tokens.len()), (0, "", 3));
    }
}
