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
}

impl Tokens {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    /// Appends a token; `apart` puts the separator before it.
    pub(super) fn push(&mut self, token: &str, apart: bool) {
        if apart && !self.spans.is_empty() {
            self.text.push(SEPARATOR);
        }
        let start = self.text.len();
        self.text.push_str(token);
        self.spans.push(start..self.text.len());
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

    /// Returns the tokens of the n-gram that begins at token `index`.
    pub(super) fn parts(&self, index: usize, n: usize) -> impl ExactSizeIterator<Item = &str> {
        self.window(index, n).iter().map(|span| self.text.get(span.clone()).unwrap_or_default())
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ngrams(words: &[&str], n: usize, apart: bool) -> Vec<String> {
        let mut tokens = Tokens::default();
        for word in words {
            tokens.push(word, apart);
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
    fn parts_are_the_tokens_of_the_ngram() {
        let mut tokens = Tokens::default();
        for word in ["a", "bc", "d"] {
            tokens.push(word, true);
        }
        assert_eq!(tokens.parts(1, 2).collect::<Vec<_>>(), ["bc", "d"]);
        assert_eq!(tokens.parts(2, 2).collect::<Vec<_>>(), ["d"]);
        assert_eq!(tokens.parts(9, 2).len(), 0);
        assert_eq!(tokens.ngram(9, 2), "");
    }
}
