//! Phrase sets: the word threes of a document become a few bytes each, to look for one in another.
//!
//! All phrases are kept, so that it is known of every one whether it occurs. A document may go only
//! if nearly all of it stands in the one that is kept: Jaccard and edit similarity do not tell
//! which of two documents has more, and let what only one of them says go with it.

use super::varint;
use crate::error::{Error, Result};
use crate::sketch::feature_hash;
use crate::text::Pipeline;

/// Words of a phrase.
const PHRASE_WORDS: usize = 3;

/// The distinct phrases of a document, about 4 bytes each.
///
/// A phrase is three words in a row of the cleaned text. Words are those of Unicode (UAX #29);
/// Chinese characters, kana and Hangul syllables are words of their own, and so are the letters of
/// scripts that need a dictionary, such as Thai. The phrases of a text of fewer words are its
/// words; a text without any is one word.
///
/// ```
/// use hamdex::verify::PhraseSet;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("page")?)?;
/// let part = PhraseSet::of_text(&pipeline, "It will rain in Oslo.");
/// let whole = PhraseSet::of_text(&pipeline, "Tomorrow it will rain in Oslo and snow in Bergen.");
/// assert!(part.extent() < whole.extent());
/// assert_eq!(part.containment(&whole), 1.0);
/// assert_eq!(PhraseSet::decode(&part.encode())?, part);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhraseSet {
    words: u32,
    /// Hashes of the phrases, rising.
    values: Vec<u32>,
}

/// How much there is of a document: its words, and of equals the distinct phrases.
///
/// The smaller one of two documents may be contained in the larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Extent {
    /// Number of words, repeated ones too.
    pub words: u32,
    /// Number of distinct phrases.
    pub phrases: u32,
}

impl PhraseSet {
    /// Takes the phrases of a text, cleaned as a pipeline does it.
    pub fn of_text(pipeline: &Pipeline, text: &str) -> Self {
        let words = pipeline.words_in_order(text);
        let mut values: Vec<u32> = if words.len() < PHRASE_WORDS {
            words.iter().map(|&word| value(word)).collect()
        } else {
            words.array_windows().map(|&phrase| phrase_value(phrase)).collect()
        };
        values.sort_unstable();
        values.dedup();
        Self { words: u32::try_from(words.len()).unwrap_or(u32::MAX), values }
    }

    /// Returns how much there is of the document.
    pub fn extent(&self) -> Extent {
        let phrases = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        Extent { words: self.words, phrases }
    }

    /// Returns the bytes: numbers of words and phrases, then the gaps between hashes, all LEB128.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(10 + 4 * self.values.len());
        let Extent { words, phrases } = self.extent();
        varint::put(&mut out, words);
        varint::put(&mut out, phrases);
        let mut next = 0;
        for &value in &self.values {
            varint::put(&mut out, value - next);
            next = value.saturating_add(1);
        }
        out
    }

    /// Reads the bytes of [`encode`](Self::encode) back.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for bytes that `encode` never writes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut encoded = Encoded::new(bytes)?;
        let mut values = Vec::new();
        while let Some(value) = encoded.next_value()? {
            values.push(value);
        }
        Ok(Self { words: encoded.extent.words, values })
    }

    /// Returns the part of the smaller document's phrases that occur in the larger, 0 to 1.
    ///
    /// Which of the two is the smaller one, [`extent`](Self::extent) tells. Exact up to hashes of
    /// different phrases that fall together: a foreign phrase seems to occur among a thousand with a
    /// chance of 1 in 4 million. Of a document without phrases nothing occurs: 0.
    pub fn containment(&self, other: &Self) -> f64 {
        let (small, large) =
            if self.extent() <= other.extent() { (self, other) } else { (other, self) };
        let (mut small_values, mut large_values) = (small.values.iter(), large.values.iter());
        let small = Stream { extent: small.extent(), next: || Ok(small_values.next().copied()) };
        let large = Stream { extent: large.extent(), next: || Ok(large_values.next().copied()) };
        contained(small, large, 0.0).ok().flatten().unwrap_or(0.0)
    }
}

impl Extent {
    /// Reads the size of an encoded set.
    pub(super) fn of_encoded(bytes: &[u8]) -> Result<Self> {
        Ok(Encoded::new(bytes)?.extent)
    }

    /// Returns true if so few phrases cannot hold `threshold` of the smaller document's.
    pub(super) fn refuses(self, other: Self, threshold: f64) -> bool {
        let (small, large) = (self.min(other), self.max(other));
        share(small.phrases.min(large.phrases), small.phrases) < threshold
    }
}

/// Returns the containment of two encoded sets, if it is `threshold` at least.
///
/// # Errors
///
/// [`Error::Corrupt`] for bytes that [`PhraseSet::encode`] never writes.
pub(super) fn containment_encoded(a: &[u8], b: &[u8], threshold: f64) -> Result<Option<f64>> {
    let (mut a, mut b) = (Encoded::new(a)?, Encoded::new(b)?);
    if a.extent > b.extent {
        std::mem::swap(&mut a, &mut b);
    }
    let small = Stream { extent: a.extent, next: || a.next_value() };
    let large = Stream { extent: b.extent, next: || b.next_value() };
    contained(small, large, threshold)
}

/// Rising hashes of one set.
struct Stream<N> {
    extent: Extent,
    next: N,
}

/// Merges two sets until too many phrases of the smaller document are missing.
fn contained<A, B>(
    mut small: Stream<A>,
    mut large: Stream<B>,
    threshold: f64,
) -> Result<Option<f64>>
where
    A: FnMut() -> Result<Option<u32>>,
    B: FnMut() -> Result<Option<u32>>,
{
    let total = small.extent.phrases;
    if small.extent.refuses(large.extent, threshold) {
        return Ok(None);
    }
    let (mut missing, mut other) = (0_u32, (large.next)()?);
    while let Some(value) = (small.next)()? {
        while other.is_some_and(|other| other < value) {
            other = (large.next)()?;
        }
        if other == Some(value) {
            continue;
        }
        missing += 1;
        // Hashes come in no order of the text, so different documents are told after a few.
        if share(total.saturating_sub(missing), total) < threshold {
            return Ok(None);
        }
    }
    let found = share(total.saturating_sub(missing), total);
    Ok((found >= threshold).then_some(found))
}

fn share(part: u32, total: u32) -> f64 {
    f64::from(part) / f64::from(total.max(1))
}

/// Hashes the words of a phrase together.
fn phrase_value(words: [u64; PHRASE_WORDS]) -> u32 {
    let mut bytes = [0_u8; 8 * PHRASE_WORDS];
    for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_be_bytes());
    }
    value(feature_hash(&bytes, 0))
}

/// The leading half of a hash.
fn value(hash: u64) -> u32 {
    u32::try_from(hash >> u32::BITS).unwrap_or(u32::MAX)
}

/// An encoded set that is read hash by hash.
struct Encoded<'a> {
    extent: Extent,
    rest: &'a [u8],
    /// The least value that the next hash can have.
    least: u64,
    read: u32,
}

impl<'a> Encoded<'a> {
    fn new(mut bytes: &'a [u8]) -> Result<Self> {
        let mut number = || varint::take(&mut bytes).ok_or_else(|| damage("has no size"));
        let extent = Extent { words: number()?, phrases: number()? };
        Ok(Self { extent, rest: bytes, least: 0, read: 0 })
    }

    #[inline]
    fn next_value(&mut self) -> Result<Option<u32>> {
        if self.read == self.extent.phrases {
            return if self.rest.is_empty() {
                Ok(None)
            } else {
                Err(damage("has more than its size"))
            };
        }
        let gap = varint::take(&mut self.rest).ok_or_else(|| damage("has a gap that is cut"))?;
        let value = u32::try_from(self.least + u64::from(gap));
        let value = value.map_err(|_| damage("has a hash that is too large"))?;
        self.least = u64::from(value) + 1;
        self.read += 1;
        Ok(Some(value))
    }
}

fn damage(what: &str) -> Error {
    Error::corrupt("evidence", format!("phrase set {what}"))
}

#[cfg(test)]
mod tests;
