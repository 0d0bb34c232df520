//! Batches of words: their rarities are looked up together.
//!
//! The lookups miss the caches. Back to back, the processor overlaps the misses.
#![expect(clippy::indexing_slicing, reason = "a full batch is flushed at once")]

/// Words of one batch.
pub(super) const SIZE: usize = 32;

/// Words whose rarities are not looked up yet.
#[derive(Debug, Default)]
pub(super) struct Batch<'t> {
    words: [&'t str; SIZE],
    len: usize,
}

impl<'t> Batch<'t> {
    /// Adds a word, and calls `take` with the batch once it is full.
    #[inline]
    pub(super) fn push(&mut self, word: &'t str, take: &mut impl FnMut(&[&'t str])) {
        self.words[self.len] = word;
        self.len += 1;
        if self.len == SIZE {
            self.flush(take);
        }
    }

    /// Calls `take` with the remaining words.
    pub(super) fn flush(&mut self, take: &mut impl FnMut(&[&'t str])) {
        take(&self.words[..self.len]);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_passed_on_once_and_in_order() {
        let text: String = ('a'..='z').cycle().take(200).collect();
        for words in [0, 1, SIZE - 1, SIZE, SIZE + 1, 200] {
            let mut taken = String::new();
            let mut take = |words: &[&str]| taken.extend(words.iter().copied());
            let mut batch = Batch::default();
            for at in 0..words {
                batch.push(&text[at..=at], &mut take);
            }
            batch.flush(&mut take);
            batch.flush(&mut take);
            assert_eq!(taken, text[..words]);
        }
    }
}
