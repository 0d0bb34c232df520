//! Pipeline: a text becomes its fingerprint, step by step as the options say.
//!
//! Equal text under an equal descriptor gives an equal fingerprint, on any thread.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use super::ngrams::{SEPARATOR, Tokens};
use super::options::{PipelineOptions, Segment};
use super::{clean, descriptor, html, idf, normalise, segment};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::sketch::{BitSums, feature_hash};

/// What a thread keeps of each buffer between texts.
const KEPT_BYTES: usize = 4 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// Turns texts into fingerprints; cheap to clone and shared by threads.
///
/// ```
/// use hamdex::text::Pipeline;
/// use hamdex::{Fingerprint, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
/// let a = pipeline.fingerprint::<u64>("你妈妈喊你回家吃饭哦,回家罗回家罗").expect("has words");
/// let b = pipeline.fingerprint::<u64>("你妈妈叫你回家吃饭啦,回家罗回家罗").expect("has words");
/// assert!(a.fingerprint.distance(b.fingerprint) <= 16);
/// assert_eq!(pipeline.fingerprint::<u64>("……"), None);
///
/// let same = Pipeline::from_descriptor(pipeline.descriptor())?;
/// assert_eq!(same.descriptor(), pipeline.descriptor());
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

struct Inner {
    options: PipelineOptions,
    ngram: usize,
    descriptor: String,
}

/// A fingerprint and how much text stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sketch<F> {
    /// The `SimHash` fingerprint of the features.
    pub fingerprint: F,
    /// Number of distinct features; below some ten, a single word decides.
    pub features: usize,
}

/// One feature of a text, as it counts in the fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The token, or the tokens of an n-gram with spaces between words.
    pub text: String,
    /// Its weight in the bit sums.
    pub weight: i64,
}

impl Pipeline {
    /// Makes a pipeline, loading the tables that its options need.
    ///
    /// The first pipeline of a process that needs the Chinese dictionary takes a moment to load
    /// it; all others share it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] when the n-gram length is out of range.
    pub fn new(options: &PipelineOptions) -> Result<Self> {
        options.validate()?;
        let ngram = usize::try_from(options.ngram).unwrap_or(usize::MAX);
        let descriptor = descriptor::describe(options);
        Ok(Self { inner: Arc::new(Inner { options: options.clone(), ngram, descriptor }) })
    }

    /// Rebuilds the pipeline that a descriptor names.
    ///
    /// # Errors
    ///
    /// [`Error::HeaderMismatch`] when this library cannot give the same fingerprints: the
    /// descriptor is of another version, names other tables, or is none at all.
    pub fn from_descriptor(descriptor: &str) -> Result<Self> {
        let mismatch = |wanted: String| Error::HeaderMismatch {
            what: "pipeline",
            stored: descriptor.to_owned(),
            wanted,
        };
        let options = descriptor::options(descriptor)
            .ok_or_else(|| mismatch(format!("{};...", descriptor::HEAD)))?;
        let pipeline = Self::new(&options)?;
        if pipeline.descriptor() == descriptor {
            Ok(pipeline)
        } else {
            Err(mismatch(pipeline.descriptor().to_owned()))
        }
    }

    /// Returns the line that names all the fingerprints depend on.
    pub fn descriptor(&self) -> &str {
        &self.inner.descriptor
    }

    /// Returns the fingerprint of a text; `None` when nothing in it is a feature.
    pub fn fingerprint<F: Fingerprint>(&self, text: &str) -> Option<Sketch<F>> {
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, scratch);
            let mut sums = BitSums::new();
            let mut features = 0;
            self.for_each_feature(scratch, |feature, hash, weight| {
                features += 1;
                sums.add(self.widened(feature, hash), weight);
            });
            scratch.release_huge();
            sums.fingerprint().map(|fingerprint| Sketch { fingerprint, features })
        })
    }

    /// Returns the distinct features of a text, the weightiest first.
    pub fn features(&self, text: &str) -> Vec<Feature> {
        let mut features = SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, scratch);
            let mut features = Vec::new();
            self.for_each_feature(scratch, |feature, _, weight| {
                features.push(Feature { text: feature.replace(SEPARATOR, " "), weight });
            });
            scratch.release_huge();
            features
        });
        features.sort_unstable_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.text.cmp(&b.text)));
        features
    }

    /// Returns the 64-bit hashes of a text's distinct features, rising.
    ///
    /// Empty when nothing in the text is a feature. Two texts share as large a part of their
    /// hashes as of their features: this is what a check of candidates compares.
    ///
    /// ```
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("code")?)?;
    /// assert_eq!(pipeline.distinct_hashes("a b c d").len(), 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn distinct_hashes(&self, text: &str) -> Vec<u64> {
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, scratch);
            let mut hashes: Vec<u64> = scratch.ngrams.iter().map(|ngram| ngram.hash).collect();
            hashes.dedup();
            scratch.release_huge();
            hashes
        })
    }

    /// Returns the text as it is cut: main content, normal form, noise taken out.
    ///
    /// ```
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    /// assert_eq!(pipeline.cleaned("今天是晴天.//A:xxx//B:xxx"), "今天是晴天");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn cleaned(&self, text: &str) -> String {
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, scratch);
            let cleaned = scratch.normal.clone();
            scratch.release_huge();
            cleaned
        })
    }

    /// Reads a text into the scratch: its tokens, and every n-gram's hash in rising order.
    fn read(&self, text: &str, scratch: &mut Scratch) {
        let Inner { options, ngram, .. } = &*self.inner;
        let Scratch { normal, cleaned, tokens, ngrams } = scratch;
        if options.html {
            normalise::normalise_into(&html::main_text(text), normal);
        } else {
            normalise::normalise_into(text, normal);
        }
        self.clean(normal, cleaned);
        tokens.clear();
        let apart = options.segment != Segment::Chars;
        segment::for_each_token(normal, options.segment, &mut |token| tokens.push(token, apart));
        ngrams.clear();
        ngrams.extend((0..tokens.ngrams(*ngram)).map(|first| {
            let hash = feature_hash(tokens.ngram(first, *ngram).as_bytes(), options.seed);
            NGram { hash, first }
        }));
        ngrams.sort_unstable_by_key(|ngram| ngram.hash);
    }

    /// Cleans the text in place; a text that is nothing but noise stays as it is.
    fn clean(&self, normal: &mut String, spare: &mut String) {
        let options = &self.inner.options;
        let short = usize::try_from(options.short).unwrap_or(usize::MAX);
        // A character has at most four bytes, so most texts are settled without counting.
        let is_short = normal.len() < short.saturating_mul(4)
            && normal.chars().nth(short.saturating_sub(1)).is_none();
        let mut keep_words = |clean: fn(&str, &mut String)| {
            clean(normal, spare);
            if spare.contains(char::is_alphanumeric) {
                std::mem::swap(normal, spare);
            }
        };
        if options.clean.web {
            keep_words(clean::clean_page_into);
        }
        if options.clean.weibo || (is_short && short > 0) {
            keep_words(clean::clean_post_into);
        }
    }

    /// Visits every distinct feature with its hash and its weight.
    fn for_each_feature(&self, scratch: &Scratch, mut visit: impl FnMut(&str, u64, i64)) {
        let Inner { options, ngram, .. } = &*self.inner;
        let tokens = &scratch.tokens;
        for same in scratch.ngrams.chunk_by(|a, b| a.hash == b.hash) {
            let Some(&NGram { hash, first }) = same.first() else { continue };
            let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
            let rarity =
                if options.weights.needs_idf() { mean_idf(tokens, first, *ngram) } else { 0 };
            visit(tokens.ngram(first, *ngram), hash, options.weights.weight(count, rarity));
        }
    }

    /// Returns the feature's hash at the fingerprint's width.
    #[inline]
    fn widened<F: Fingerprint>(&self, feature: &str, hash: u64) -> F {
        if F::BITS > u64::BITS {
            feature_hash(feature.as_bytes(), self.inner.options.seed)
        } else {
            F::truncate(u128::from(hash))
        }
    }
}

/// An n-gram is as rare as its tokens are on average.
fn mean_idf(tokens: &Tokens, first: usize, n: usize) -> u32 {
    let parts = tokens.parts(first, n);
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX).max(1);
    parts.map(idf::idf).fold(0_u32, u32::saturating_add) / count
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipeline").field(&self.inner.descriptor).finish()
    }
}

/// One n-gram of a text: its 64-bit hash and the token it begins with.
#[derive(Debug, Clone, Copy)]
struct NGram {
    hash: u64,
    first: usize,
}

/// Buffers of one thread, so that a text costs no allocation of its own.
#[derive(Debug, Default)]
struct Scratch {
    normal: String,
    cleaned: String,
    tokens: Tokens,
    ngrams: Vec<NGram>,
}

impl Scratch {
    /// Gives back what one huge text took, so that a thread does not hold it for ever.
    fn release_huge(&mut self) {
        release(&mut self.normal, KEPT_BYTES);
        release(&mut self.cleaned, KEPT_BYTES);
        self.tokens.release_above(KEPT_BYTES);
        if self.ngrams.capacity() * size_of::<NGram>() > KEPT_BYTES {
            self.ngrams = Vec::new();
        }
    }
}

/// Frees a string that holds more memory than `bytes`.
pub(super) fn release(text: &mut String, bytes: usize) {
    if text.capacity() > bytes {
        *text = String::new();
    }
}

#[cfg(test)]
mod tests;
