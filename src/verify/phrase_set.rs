//! Phrase sets: the word triples of a document, to find one document in another.
//!
//! All phrases are stored, because a document may be removed only if nearly all of it occurs in the
//! kept one. Jaccard and edit similarity do not show which of two documents has more, and would
//! remove text that only one of them has.

use super::varint::{self, Rising};
use crate::error::{Error, Result};
use crate::sketch::feature_hash;
use crate::text::Pipeline;

/// Length of a phrase in half words: three words, or six letters of a script without spaces.
const PHRASE_HALVES: usize = 6;

/// The distinct phrases of a document, about 4 bytes each.
///
/// A phrase is three consecutive words of the cleaned text. Words are those of Unicode (UAX #29);
/// each Chinese character, kana or Hangul syllable is a word. In scripts without spaces between
/// words, such as Thai, a letter is half a word, so a phrase has six letters. A text of
/// fewer words has its words as phrases; a text without words is one word.
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
    /// Hashes of the phrases, ascending.
    values: Vec<u32>,
}

/// The size of a document: its words, then its distinct phrases.
///
/// The smaller of two documents may be contained in the larger.
///
/// ```
/// use hamdex::verify::{Extent, PhraseSet};
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::new())?;
/// let extent = |text: &str| -> Extent { PhraseSet::of_text(&pipeline, text).extent() };
/// assert!(extent("rain and snow") < extent("rain and snow are expected"));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub struct Extent {
    /// Number of words, including repeated ones.
    pub words: u32,
    /// Number of distinct phrases.
    pub phrases: u32,
}

impl PhraseSet {
    /// Computes the phrases of a text after the pipeline's cleaning.
    pub fn of_text(pipeline: &Pipeline, text: &str) -> Self {
        let words = pipeline.words_in_order(text);
        let mut values: Vec<u32> =
            (0..words.len()).map_while(|first| phrase(words.get(first..)?)).map(value).collect();
        if values.is_empty() {
            values = words.iter().map(|&word| value(word)).collect();
        }
        values.sort_unstable();
        values.dedup();
        Self { words: u32::try_from(words.len()).unwrap_or(u32::MAX), values }
    }

    /// Returns the size of the document.
    pub fn extent(&self) -> Extent {
        let phrases = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        Extent { words: self.words, phrases }
    }

    /// Encodes the set: words, phrases, then gaps between hashes, as LEB128.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(10 + 4 * self.values.len());
        let Extent { words, phrases } = self.extent();
        varint::put(&mut out, words);
        varint::put(&mut out, phrases);
        varint::put_rising(&mut out, &self.values);
        out
    }

    /// Decodes a set from the bytes of [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if `encode` never writes these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut encoded = Encoded::new(bytes)?;
        let mut values = Vec::new();
        while let Some(value) = encoded.next_value()? {
            values.push(value);
        }
        Ok(Self { words: encoded.extent.words, values })
    }

    /// Returns how much of the smaller document is in the larger one.
    ///
    /// The result is the share of the smaller one's phrases, 0 to 1. [`extent`](Self::extent)
    /// decides which one is smaller. Exact except for colliding hashes: a phrase seems to occur
    /// among a thousand others with probability 1 in 4 million. The containment of a document
    /// without phrases is 0.
    pub fn containment(&self, other: &Self) -> f64 {
        let (small, large) =
            if self.extent() <= other.extent() { (self, other) } else { (other, self) };
        let (mut small_values, mut large_values) = (small.values.iter(), large.values.iter());
        let small = Stream { extent: small.extent(), next: || Ok(small_values.next().copied()) };
        let large = Stream { extent: large.extent(), next: || Ok(large_values.next().copied()) };
        contained(small, large, 0.0).expect("decoded sets cannot fail").unwrap_or(0.0)
    }
}

/// Counters of an outline; the hash of a phrase selects its counter.
const COUNTERS: usize = 64;

/// Summary of a set, known without reading it: 72 bytes.
///
/// The surplus of one set in a counter is missing in the other set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhraseOutline {
    pub(super) extent: Extent,
    /// Numbers of phrases; the largest value stands for that number or more.
    counts: [u8; COUNTERS],
}

impl PhraseOutline {
    /// The outline of a document without evidence.
    pub(super) const NOTHING: Self =
        Self { extent: Extent { words: 0, phrases: 0 }, counts: [0; COUNTERS] };

    /// Bytes of an encoded outline.
    pub(super) const BYTES: usize = 8 + COUNTERS;

    /// Appends the outline to a record.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.extent.words.to_be_bytes());
        out.extend_from_slice(&self.extent.phrases.to_be_bytes());
        out.extend_from_slice(&self.counts);
    }

    /// Reads an outline that [`encode`](Self::encode) wrote.
    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let (extent, counts) = bytes.split_at(8);
        let (words, phrases) = extent.split_at(4);
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        let extent = Extent { words: number(words), phrases: number(phrases) };
        Self { extent, counts: counts.try_into().expect("a byte for every counter") }
    }

    /// Counts the phrases of an encoded set.
    #[expect(clippy::indexing_slicing, reason = "there is a counter for each value of the bits")]
    pub(super) fn of_encoded(bytes: &[u8]) -> Result<Self> {
        let mut encoded = Encoded::new(bytes)?;
        let mut outline = Self { extent: encoded.extent, ..Self::NOTHING };
        while let Some(value) = encoded.next_value()? {
            let counter = value >> (u32::BITS - COUNTERS.ilog2());
            let count = &mut outline.counts[counter as usize];
            *count = count.saturating_add(1);
        }
        Ok(outline)
    }

    /// Returns true if less than `threshold` of the smaller set is certainly in the larger one.
    pub(super) fn rejects(&self, other: &Self, threshold: f64) -> bool {
        if self.extent.rejects(other.extent, threshold) {
            return true;
        }
        let (small, large) =
            if self.extent <= other.extent { (self, other) } else { (other, self) };
        let more = |(&small, &large): (&u8, &u8)| {
            // A saturated counter may represent any larger number.
            let large = if large == u8::MAX { small } else { large };
            u32::from(small.saturating_sub(large))
        };
        let missing: u32 = small.counts.iter().zip(&large.counts).map(more).sum();
        let total = small.extent.phrases;
        share(total.saturating_sub(missing), total) < threshold
    }
}

impl Extent {
    /// Returns true if the larger document has too few phrases for `threshold` of the smaller's.
    fn rejects(self, other: Self, threshold: f64) -> bool {
        let (small, large) = (self.min(other), self.max(other));
        share(small.phrases.min(large.phrases), small.phrases) < threshold
    }
}

/// Returns the containment of two encoded sets, if it is at least `threshold`.
///
/// # Errors
///
/// [`Error::Corrupt`] if [`PhraseSet::encode`] never writes these bytes.
pub(super) fn containment_encoded(a: &[u8], b: &[u8], threshold: f64) -> Result<Option<f64>> {
    let (mut a, mut b) = (Encoded::new(a)?, Encoded::new(b)?);
    if a.extent > b.extent {
        std::mem::swap(&mut a, &mut b);
    }
    let small = Stream { extent: a.extent, next: || a.next_value() };
    let large = Stream { extent: b.extent, next: || b.next_value() };
    contained(small, large, threshold)
}

/// Ascending hashes of a set.
struct Stream<N> {
    extent: Extent,
    next: N,
}

/// Merges two sets until too many phrases of the smaller one are missing.
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
    if small.extent.rejects(large.extent, threshold) {
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
        // Hashes are in random order, so different documents are rejected after a few.
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

/// Hashes the phrase that starts with the first word; `None` if there are too few words.
fn phrase(words: &[u64]) -> Option<u64> {
    let mut bytes = [0_u8; 8 * PHRASE_HALVES];
    let (mut halves, mut len) = (0, 0);
    for (&word, slot) in words.iter().zip(bytes.chunks_exact_mut(8)) {
        slot.copy_from_slice(&word.to_be_bytes());
        // Odd hashes belong to letters that are half a word.
        halves += if word & 1 == 1 { 1 } else { 2 };
        len += slot.len();
        if halves >= PHRASE_HALVES {
            return bytes.get(..len).map(|bytes| feature_hash(bytes, 0));
        }
    }
    None
}

/// Returns the leading half of a hash.
fn value(hash: u64) -> u32 {
    u32::try_from(hash >> u32::BITS).expect("half of a hash")
}

/// An encoded set, read hash by hash.
struct Encoded<'a> {
    extent: Extent,
    values: Rising<'a>,
}

impl<'a> Encoded<'a> {
    fn new(mut bytes: &'a [u8]) -> Result<Self> {
        let mut number = || varint::take(&mut bytes).ok_or_else(|| damage("has no size"));
        let extent = Extent { words: number()?, phrases: number()? };
        Ok(Self { extent, values: Rising::new(bytes) })
    }

    #[inline]
    fn next_value(&mut self) -> Result<Option<u32>> {
        match (self.values.read == self.extent.phrases, self.values.is_at_end()) {
            (true, true) => Ok(None),
            (true, false) => Err(damage("has more than its size")),
            (false, _) => self.values.take(u32::BITS).map(Some).map_err(damage),
        }
    }
}

fn damage(what: &str) -> Error {
    Error::corrupt("evidence", format!("phrase set {what}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::text::PipelineOptions;
    use crate::verify::{Evidence, Verification};

    fn pipeline() -> Pipeline {
        Pipeline::new(&PipelineOptions::preset("page").unwrap()).unwrap()
    }

    fn set(text: &str) -> PhraseSet {
        PhraseSet::of_text(&pipeline(), text)
    }

    /// Compares decoded and encoded sets in both orders, which must agree.
    fn containment(a: &str, b: &str) -> f64 {
        let (a, b) = (set(a), set(b));
        let decoded = a.containment(&b);
        assert_eq!(b.containment(&a).to_bits(), decoded.to_bits(), "not symmetric");
        let encoded = containment_encoded(&a.encode(), &b.encode(), 0.0).unwrap().unwrap();
        assert_eq!(encoded.to_bits(), decoded.to_bits());
        decoded
    }

    /// Returns the containment in percent.
    fn percent(a: &str, b: &str) -> String {
        format!("{:.0} %", 100.0 * containment(a, b))
    }

    #[test]
    fn containment_is_of_the_smaller_text_in_the_larger() {
        let whole = "one two three four five six seven eight";
        assert_eq!(percent("three four five six", whole), "100 %");
        assert_eq!(percent("Three, FOUR; five six!", whole), "100 %");
        // Of five phrases, the last three are missing.
        assert_eq!(percent("one two three four nine six seven", whole), "40 %");
        assert_eq!(percent("eight seven six five", whole), "0 %");
        assert_eq!(percent(whole, whole), "100 %");
    }

    #[test]
    fn short_texts_are_compared_by_their_words() {
        let extent = |text: &str| (set(text).extent().words, set(text).extent().phrases);
        assert_eq!(["rain", "rain rain", "rain and snow"].map(extent), [(1, 1), (2, 1), (3, 1)]);
        assert_eq!(percent("sunny day", "day"), "100 %");
        assert_eq!(percent("sunny day", "rainy day"), "50 %");
        // A single word is not a phrase of three.
        assert_eq!(percent("day", "a sunny day"), "0 %");
        assert_eq!([percent("", ""), percent("", "day")], ["0 %", "0 %"]);
    }

    #[test]
    fn a_text_without_words_is_one_word() {
        assert_eq!(set("?!").extent(), Extent { words: 1, phrases: 1 });
        assert_eq!([percent("?!", "?!"), percent("?!", "...")], ["100 %", "0 %"]);
    }

    #[test]
    fn every_script_has_its_words() {
        let words = |text: &str| set(text).extent().words;
        assert_eq!(words("晴天好"), 3);
        assert_eq!(words("カード です"), 5);
        assert_eq!(words("안녕 세계"), 4);
        assert_eq!(words("v2版本"), 3);
        assert_eq!(words("привет, дивный мир"), 3);
        assert_eq!(words("مرحبا بالعالم"), 2);
        assert_eq!(percent("今天晴转多云", "北京今天晴转多云，气温三度"), "100 %");
        assert!(containment("今天晴转多云", "北京明天有雨夹雪，气温三度") < 0.5);
        assert_eq!(words("วันนี้ฝนตกหนัก"), 10);
        assert_eq!(set("วันนี้ฝนตกหนัก").extent().phrases, 5);
        assert_eq!(set("ไทย v2 ไทย").extent().phrases, 3);
        assert_eq!(percent("วันนี้ฝนตกหนัก", "กรุงเทพ วันนี้ฝนตกหนักมาก"), "100 %");
        assert!(containment("วันนี้ฝนตกหนัก", "พรุ่งนี้อากาศดีและแดดออก") < 0.5);
    }

    #[test]
    fn words_are_those_of_the_cleaned_text() {
        let post = Pipeline::new(&PipelineOptions::preset("post").unwrap()).unwrap();
        let of = |text| PhraseSet::of_text(&post, text);
        assert_eq!(of("今天是晴天.//A:xxx//B:xxx"), of("今天是晴天"));
        // A secret changes the hashes, but not the containment.
        let secret = crate::text::Secret::from_bytes(b"0123456789abcdefghij").unwrap();
        let options = PipelineOptions::preset("page").unwrap().secret(secret);
        let keyed = Pipeline::new(&options).unwrap();
        let of = |text| PhraseSet::of_text(&keyed, text);
        assert_ne!(of("a b c d"), set("a b c d"));
        let shared = of("a b c d").containment(&of("a b c x y"));
        assert!((0.49..0.51).contains(&shared), "{shared}");
    }

    /// Computes the containment of texts of single-letter words by its definition.
    fn by_the_definition(a: &[u8], b: &[u8]) -> f64 {
        let phrases = |text: &[u8]| -> HashSet<Vec<u8>> {
            let n = if text.len() < 3 { 1 } else { 3 };
            text.windows(n).map(<[u8]>::to_vec).collect()
        };
        let extent = |text: &[u8]| (text.len(), phrases(text).len());
        let (small, large) = if extent(a) <= extent(b) { (a, b) } else { (b, a) };
        let (small, large) = (phrases(small), phrases(large));
        small.intersection(&large).count() as f64 / small.len().max(1) as f64
    }

    #[test]
    fn containment_equals_the_definition() {
        let seed = 7;
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut some, mut all, mut refused) = (0, 0, 0);
        for _ in 0..3000 {
            let letters = rng.u8(2..9);
            let mut text = || -> Vec<u8> {
                (0..rng.usize(0..12)).map(|_| b'a' + rng.u8(0..letters)).collect()
            };
            let (a, b) = (text(), text());
            let spaced = |text: &[u8]| -> String {
                text.iter().flat_map(|&word| [char::from(word), ' ']).collect()
            };
            let expected = by_the_definition(&a, &b);
            let (a, b) = (spaced(&a), spaced(&b));
            assert_eq!(
                containment(&a, &b).to_bits(),
                expected.to_bits(),
                "seed {seed}: {a:?} {b:?}"
            );
            some += u32::from(expected > 0.0 && expected < 1.0);
            all += u32::from(expected >= 1.0);
            let (a, b) = (set(&a), set(&b));
            for threshold in [0.0, 0.25, 0.5, expected, 0.9, 1.0] {
                let passed = containment_encoded(&a.encode(), &b.encode(), threshold).unwrap();
                assert_eq!(
                    passed,
                    Some(expected).filter(|found| *found >= threshold),
                    "{threshold}"
                );
                let outline = |set: &PhraseSet| PhraseOutline::of_encoded(&set.encode()).unwrap();
                if outline(&a).rejects(&outline(&b), threshold) {
                    assert_eq!(passed, None);
                    refused += 1;
                }
            }
        }
        assert!(some > 300 && all > 100 && refused > 1000, "{some} {all} {refused}");
    }

    #[test]
    fn saturated_counters_reject_no_pair_that_passes() {
        let words = |range: std::ops::Range<u32>| -> PhraseSet {
            let words: Vec<String> = range.map(|n| format!("w{n}")).collect();
            set(&words.join(" "))
        };
        let outline = |set: &PhraseSet| PhraseOutline::of_encoded(&set.encode()).unwrap();
        let (part, whole, other) = (words(0..20_000), words(0..20_100), words(30_000..50_100));
        assert!(outline(&part).counts.contains(&u8::MAX));
        assert!(!outline(&part).rejects(&outline(&whole), 1.0));
        assert!(!outline(&part).rejects(&outline(&other), 0.9));
        let (part, other) = (words(0..300), words(1000..1310));
        assert!(outline(&part).rejects(&outline(&other), 0.9));
        assert!(!outline(&part).rejects(&outline(&words(0..310)), 1.0));
    }

    #[test]
    fn sets_read_back_as_they_were_written() {
        for text in
            ["", "a", "a b", "a b c d e", &"many different words and more of them ".repeat(99)]
        {
            let set = set(text);
            assert_eq!(PhraseSet::decode(&set.encode()).unwrap(), set);
            assert_eq!(PhraseOutline::of_encoded(&set.encode()).unwrap().extent, set.extent());
        }
        let long: Vec<String> = (0..5000).map(|n| format!("w{n}")).collect();
        let long = long.join(" ");
        let bytes = set(&long).encode().len();
        assert!((3 * 5000..4 * 5000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn damaged_sets_are_refused() {
        let good = set("a b c d").encode();
        let cut = &good[..good.len() - 1];
        let longer = [&good[..], &[0]].concat();
        let large = [2, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
        for bytes in [&[][..], &[1], &[0x80, 0, 1], cut, &longer, &large] {
            let refused = PhraseSet::decode(bytes);
            assert!(matches!(refused, Err(Error::Corrupt { .. })), "{bytes:?}: {refused:?}");
        }
        let check = Verification::Contains(0.0);
        assert_eq!(check.needs(), Evidence::Phrases);
        for (a, b) in [(&good[..], &[][..]), (&[0xff], &good)] {
            assert!(matches!(check.check(0, a, b), Err(Error::Corrupt { .. })));
        }
    }
}
