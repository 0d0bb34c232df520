//! Learning rarities: one pass over a corpus counts the documents that hold each word.
//!
//! Lossy counting bounds the memory. At a limit, a clearing removes words whose count cannot exceed
//! the number of clearings so far. A count is too low by at most that number, and only words with
//! such low counts are missing.
//!
//! Manku and Motwani, "Approximate frequency counts over data streams", VLDB 2002.

use super::idf_table::{IdfTable, WordMap};
use crate::sketch::IDF_SCALE;
use crate::text::pipeline::Pipeline;

/// A counter of documents per word, which builds an [`IdfTable`].
///
/// The same documents in the same order give the same table. Memory is bounded by
/// [`IdfLearner::limit`].
///
/// ```
/// use hamdex::text::{IdfLearner, Pipeline, Weights};
/// use hamdex::PipelineOptions;
///
/// let options = PipelineOptions::new().weights(Weights::TfIdf);
/// let pipeline = Pipeline::new(&options)?;
/// let mut learner = IdfLearner::new();
/// for text in ["the saucer landed", "the pilots left", "the end of the story"] {
///     learner.add(&pipeline, text);
/// }
/// let table = learner.finish();
/// assert!(table.step("saucer") > table.step("the"));
///
/// let weighed = Pipeline::new(&options.idf(table))?;
/// assert_eq!(weighed.features("the saucer")[0].text, "saucer");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct IdfLearner {
    counts: WordMap<Count>,
    documents: u64,
    limit: usize,
    clearings: u32,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    documents: u32,
    /// Maximum number of documents missed before the word was added.
    missed: u32,
}

impl IdfLearner {
    /// Default of [`IdfLearner::limit`]: two million words.
    pub const WORDS: usize = 2_000_000;

    /// Creates a learner without any documents.
    pub fn new() -> Self {
        Self { counts: WordMap::default(), documents: 0, limit: Self::WORDS, clearings: 0 }
    }

    /// Sets the maximum number of words in memory. Default: two million.
    ///
    /// At least 1000; a word takes about 35 bytes.
    #[must_use]
    pub fn limit(mut self, words: usize) -> Self {
        self.limit = words.max(1000);
        self
    }

    /// Counts the words of one document, as cut by the pipeline.
    pub fn add(&mut self, pipeline: &Pipeline, text: &str) {
        self.add_words(&pipeline.word_hashes(text));
    }

    /// Counts one document, given by its [word hashes](Pipeline::word_hashes).
    ///
    /// Cutting takes most of the time; with this call, several threads can do it. A document
    /// without words does not count.
    ///
    /// ```
    /// use hamdex::text::{IdfLearner, Pipeline};
    /// use hamdex::PipelineOptions;
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("code")?)?;
    /// let mut learner = IdfLearner::new().limit(100_000);
    /// learner.add_words(&pipeline.word_hashes("let a = b;"));
    /// assert_eq!(learner.documents(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn add_words(&mut self, words: &[u64]) {
        self.documents += u64::from(!words.is_empty());
        for &word in words {
            let fresh = Count { documents: 0, missed: self.clearings };
            let count = self.counts.entry(word).or_insert(fresh);
            count.documents = count.documents.saturating_add(1);
            if self.counts.len() >= self.limit {
                self.clear_rarest();
            }
        }
    }

    /// Removes words that cannot be common until half of the limit is free.
    fn clear_rarest(&mut self) {
        while self.counts.len() > self.limit / 2 {
            self.clearings += 1;
            let clearings = self.clearings;
            self.counts.retain(|_, count| count.documents.saturating_add(count.missed) > clearings);
        }
    }

    /// Returns the number of documents with words so far.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Builds the table from the counts.
    ///
    /// A word in `n` of `N` documents has the inverse document frequency `ln((N + 1) / (n + 1))`.
    pub fn finish(self) -> IdfTable {
        let step = |documents: u64| step(self.documents, documents);
        let rarest = step(1 + u64::from(self.clearings));
        let steps = self.counts.iter().map(|(&word, count)| {
            let likely = u64::from(count.documents) + u64::from(count.missed) / 2;
            (word, step(likely))
        });
        IdfTable::new(self.documents, rarest, steps.collect())
    }
}

impl Default for IdfLearner {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns an inverse document frequency in steps; 255 steps are one document in 10^13.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped first
fn step(all: u64, documents: u64) -> u8 {
    let idf = ((all as f64 + 1.0) / (documents.min(all) as f64 + 1.0)).ln();
    (idf * f64::from(IDF_SCALE)).round().clamp(1.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::rarity::idf_table::word_hash;

    #[test]
    fn steps_follow_the_share_of_documents() {
        let mut learner = IdfLearner::new();
        for n in 0..1000_u64 {
            let mut words = vec![word_hash("the"), word_hash(&format!("name {n}"))];
            if n % 10 == 0 {
                words.push(word_hash("tenth"));
            }
            learner.add_words(&words);
        }
        learner.add_words(&[]);
        assert_eq!(learner.documents(), 1000);
        let table = learner.finish();
        assert_eq!(table.step("the"), 1);
        assert_eq!(table.step("tenth"), 18, "8 ln(1001 / 101)");
        assert_eq!(table.step("name 7"), 50, "8 ln(1001 / 2)");
        assert_eq!(table.step("unheard of"), 50);
        assert_eq!(table.words(), 2, "the rarest need no entry");
    }

    #[test]
    fn nothing_learnt_makes_all_words_alike() {
        let table = IdfLearner::new().finish();
        assert_eq!([table.step("a"), table.step("b")], [1, 1]);
        let mut once = IdfLearner::new();
        once.add_words(&[word_hash("a")]);
        assert_eq!(once.finish().step("b"), 1);
    }

    #[test]
    fn memory_is_bounded_and_common_words_survive() {
        let mut learner = IdfLearner::new().limit(1000);
        let mut exact = IdfLearner::new();
        let mut random = fastrand::Rng::with_seed(5);
        for n in 0..20_000_u64 {
            let mut words: Vec<u64> =
                (0..5).map(|word| word_hash(&format!("{n} {word}"))).collect();
            // Word w is in one of w documents.
            let common = (1..=200_u64).filter(|&word| random.u64(0..word) == 0);
            words.extend(common.map(|word| word_hash(&format!("common {word}"))));
            learner.add_words(&words);
            exact.add_words(&words);
            assert!(learner.counts.len() < 1000);
        }
        assert!(learner.clearings > 10, "{}", learner.clearings);
        let (table, exact) = (learner.finish(), exact.finish());
        assert_eq!(table.documents(), exact.documents());
        for word in 1..=200 {
            let word = format!("common {word}");
            assert!(table.step(&word).abs_diff(exact.step(&word)) <= 16, "{word}");
            assert!(word.len() > 8 || table.step(&word).abs_diff(exact.step(&word)) <= 2, "{word}");
        }
        assert!(table.step("1 1") >= table.step("common 200"));
    }
}
