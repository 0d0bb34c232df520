//! N-grams of tokens: each feature is a run of consecutive tokens.
//!
//! Tokens are concatenated once, so that every n-gram is a slice and is not copied.
#![expect(clippy::indexing_slicing, reason = "callers count the tokens")]

/// Separates the words of an n-gram; no token contains a control character.
pub(in crate::text) const SEPARATOR: char = '\u{1f}';

/// The tokens of one text, concatenated.
#[derive(Debug, Default)]
pub(in crate::text) struct Tokens {
    bytes: Vec<u8>,
    /// Offsets of the tokens, each followed by its separator, and of the end.
    starts: Vec<usize>,
    rarities: Vec<u32>,
    /// Whether there are separators.
    apart: bool,
}

impl Tokens {
    /// Clears the tokens; with `apart`, a separator follows each token from now on.
    pub(super) fn clear(&mut self, apart: bool) {
        self.bytes.clear();
        self.starts.clear();
        self.starts.push(0);
        self.rarities.clear();
        self.apart = apart;
    }

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    #[inline]
    pub(super) fn push(&mut self, token: &str, rarity: u32) {
        self.push_alike(token);
        self.rarities.push(rarity);
    }

    /// Adds a token without a rarity.
    #[inline]
    pub(super) fn push_alike(&mut self, token: &str) {
        self.bytes.extend_from_slice(token.as_bytes());
        if self.apart {
            self.bytes.push(SEPARATOR as u8);
        }
        self.starts.push(self.bytes.len());
    }

    /// Returns the number of n-grams: one for fewer than `n` tokens, none without tokens.
    pub(super) fn ngrams(&self, n: usize) -> usize {
        let tokens = self.len();
        if tokens == 0 { 0 } else { (tokens + 1).saturating_sub(n).max(1) }
    }

    /// Returns the n-gram that begins at token `index`; it is shorter at the end.
    #[inline]
    pub(super) fn ngram(&self, index: usize, n: usize) -> &[u8] {
        let end = index.saturating_add(n).min(self.len());
        &self.bytes[self.starts[index]..self.starts[end] - usize::from(self.apart)]
    }

    /// Returns the rarity of the n-gram that begins at token `index`: the mean of its tokens.
    pub(super) fn rarity(&self, index: usize, n: usize) -> u32 {
        let end = index.saturating_add(n).min(self.rarities.len());
        let parts = &self.rarities[index..end];
        let count = u32::try_from(parts.len()).expect("n has 32 bits");
        parts.iter().copied().fold(0_u32, u32::saturating_add) / count
    }

    /// Shrinks buffers larger than `bytes`.
    pub(in crate::text) fn release_above(&mut self, bytes: usize) {
        if self.bytes.capacity() > bytes || self.starts.capacity() * size_of::<usize>() > bytes {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ngrams(words: &[&str], n: usize, apart: bool) -> Vec<String> {
        let mut tokens = Tokens::default();
        tokens.clear(apart);
        for word in words {
            tokens.push(word, 0);
        }
        let ngram = |index| String::from_utf8(tokens.ngram(index, n).to_vec()).unwrap();
        (0..tokens.ngrams(n)).map(|index| ngram(index).replace(SEPARATOR, "|")).collect()
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
    fn rarity_of_an_ngram_is_the_mean_of_its_tokens() {
        let mut tokens = Tokens::default();
        tokens.clear(true);
        for (word, rarity) in [("a", 1), ("bc", 5), ("d", 9)] {
            tokens.push(word, rarity);
        }
        assert_eq!((tokens.rarity(1, 2), tokens.rarity(0, 3), tokens.rarity(2, 2)), (7, 5, 9));
        assert_eq!((tokens.ngram(1, 9), tokens.len()), (&b"bc\x1fd"[..], 3));
    }
}
