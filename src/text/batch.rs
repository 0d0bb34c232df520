//! Batches: words wait until what is known of them is looked up for many at a time.
//!
//! The memory that it is read from is far away, and a processor fetches many words of it as
//! quickly as one if nothing else lies between.
#![expect(clippy::indexing_slicing, reason = "a full batch is handed on at once")]

/// Words that are handed on together.
pub(super) const SIZE: usize = 32;

/// Words on their way to their rarities.
#[derive(Debug, Default)]
pub(super) struct Batch<'t> {
    words: [&'t str; SIZE],
    len: usize,
}

impl<'t> Batch<'t> {
    /// Adds a word; `take` gets all that wait once they are many.
    #[inline]
    pub(super) fn push(&mut self, word: &'t str, take: &mut impl FnMut(&[&'t str])) {
        self.words[self.len] = word;
        self.len += 1;
        if self.len == SIZE {
            self.flush(take);
        }
    }

    /// Hands on what still waits.
    pub(super) fn flush(&mut self, take: &mut impl FnMut(&[&'t str])) {
        take(&self.words[..self.len]);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_handed_on_once_and_in_order() {
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
