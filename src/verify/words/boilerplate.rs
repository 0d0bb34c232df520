//! Boilerplate: words of many documents, which do not show that two of them are the same.
//!
//! Pages of one site or one generator share navigation, headings and licence. A page with little
//! else is as near to the next one as to an older version of itself. But a version repeats the same
//! names, and the next page repeats others. Words are counted over the corpus as `CCNet` counts
//! paragraphs (Wenzek et al., LREC 2020, section 3.1). `CCNet` removes them; here they stay in the
//! documents and are only not compared.
#![expect(clippy::indexing_slicing, reason = "there is a counter for every hash")]

use std::cmp::Ordering;
use std::num::NonZeroU8;
use std::sync::Arc;

use super::cutter::{CommonTerms, TermCutter, TextTerms};
use crate::error::Result;
use crate::kernel;
use crate::verify::long_texts::{Cache, Cached};
use crate::verify::spilled::SpilledBytes;

/// Default number of documents from which a word is boilerplate.
///
/// More than a page has versions in a corpus, and no more than a template has pages.
pub const BOILERPLATE_DOCUMENTS: NonZeroU8 = NonZeroU8::new(30).unwrap();

/// Counters in a cache line, of which each word has two.
const LINE: usize = 64;
/// Cache lines of counters.
const LINES: usize = 1 << 19;

/// Terms between a prefetch of counters and their use.
const AHEAD: usize = 16;

/// Most bytes of own words that are cached.
const CACHE_BYTES: usize = 8 << 20;

/// Bytes before the words that a text repeats: how many words these are, and how many pairs.
const LENS: usize = 8;

/// Upper bounds of the number of documents that have a word, or a pair of adjacent words.
///
/// A count-min sketch with conservative update (Estan and Varghese, SIGCOMM 2002; Cormode and
/// Muthukrishnan, Journal of Algorithms 2005) of 32 MiB with counters up to 255. A gigabyte of
/// documentation has 1.1 million words and 12 million pairs.
#[derive(Debug)]
pub(in crate::verify) struct WordCounts {
    /// Documents from which a word is boilerplate.
    least: NonZeroU8,
    lines: Vec<[u8; LINE]>,
    common: Arc<CommonTerms>,
}

impl WordCounts {
    fn new(least: NonZeroU8) -> Self {
        Self { least, lines: vec![[0; LINE]; LINES], common: Arc::new(CommonTerms::new()) }
    }

    /// Counts the distinct terms of the next document.
    fn add(&mut self, terms: &[u32]) {
        terms.iter().take(AHEAD).for_each(|&term| self.expect(term));
        for (at, &term) in terms.iter().enumerate() {
            if let Some(&soon) = terms.get(at + AHEAD) {
                self.expect(soon);
            }
            let (line, [first, second]) = place(term);
            let cells = &mut self.lines[line];
            // Only the smaller counter can be exact, and the larger one need not grow.
            let count = cells[first].min(cells[second]).saturating_add(1);
            cells[first] = cells[first].max(count);
            cells[second] = cells[second].max(count);
            if count >= self.least.get() {
                self.common.note(term);
            }
        }
    }

    /// Prefetches the counters of a term that is looked up soon.
    ///
    /// Counters are all over the memory, and waiting for one after the other takes three times as long.
    #[inline]
    fn expect(&self, term: u32) {
        let (line, _) = place(term);
        kernel::prefetch(&self.lines, line);
    }

    /// Returns those terms that are not boilerplate.
    fn own(&self, terms: impl Iterator<Item = u32> + Clone) -> impl Iterator<Item = u32> {
        let mut soon = terms.clone();
        soon.by_ref().take(AHEAD).for_each(|term| self.expect(term));
        terms.filter(move |&term| {
            if let Some(soon) = soon.next() {
                self.expect(soon);
            }
            !self.is_boilerplate(term)
        })
    }

    /// Returns true if too many documents have a term; once true, it stays true.
    fn is_boilerplate(&self, term: u32) -> bool {
        let (line, [first, second]) = place(term);
        let cells = &self.lines[line];
        cells[first].min(cells[second]) >= self.least.get()
    }
}

/// Counts the terms of one text after another.
#[derive(Debug)]
pub(in crate::verify) struct WordCounter {
    counts: WordCounts,
    cutter: Arc<TermCutter>,
    record: Vec<u8>,
}

impl WordCounter {
    pub(in crate::verify) fn new(least: NonZeroU8) -> Self {
        let counts = WordCounts::new(least);
        let cutter = Arc::new(TermCutter::new(Arc::clone(&counts.common)));
        Self { counts, cutter, record: Vec::new() }
    }

    /// Returns what cuts the texts that are counted.
    pub(in crate::verify) fn cutter(&self) -> &Arc<TermCutter> {
        &self.cutter
    }

    /// Counts the terms of the next text.
    pub(in crate::verify) fn add(&mut self, terms: &TextTerms) {
        self.counts.add(&terms.distinct);
    }

    /// Returns what [`OwnWordsCache`] reads of a text.
    ///
    /// These are its repeated terms that are not boilerplate so far.
    pub(in crate::verify) fn record(&mut self, terms: &TextTerms) -> &[u8] {
        self.record.clear();
        self.record.resize(LENS, 0);
        for (kind, terms) in terms.repeated.iter().enumerate() {
            let mut len = 0_u32;
            for term in self.counts.own(terms.iter().copied()) {
                self.record.extend_from_slice(&term.to_be_bytes());
                len += 1;
            }
            self.record[4 * kind..][..4].copy_from_slice(&len.to_be_bytes());
        }
        &self.record
    }

    /// Returns the final counts.
    pub(in crate::verify) fn finish(self) -> WordCounts {
        self.counts
    }
}

/// Returns the cache line of a word's counters, and the two counters in it.
#[allow(clippy::cast_possible_truncation)]
#[inline]
fn place(term: u32) -> (usize, [usize; 2]) {
    let [first, second] = [term >> 20, term >> 26].map(|bits| bits as usize % LINE);
    // Two different counters.
    (term as usize % LINES, [first, if first == second { first ^ 1 } else { second }])
}

/// The words and pairs that a document repeats and few others have.
#[derive(Debug)]
pub(in crate::verify) struct OwnWords {
    words: OwnTerms,
    pairs: OwnTerms,
}

impl OwnWords {
    /// Returns true if each of two documents has own words that the other lacks.
    ///
    /// Two versions share more than they lack. Pages of two members of a class may share the name
    /// of the class. A changed word is in two pairs, so fewer of these are shared.
    pub(in crate::verify) fn differ(&self, other: &Self) -> bool {
        let (words, lacked_words) = self.words.compare(&other.words);
        let (pairs, lacked_pairs) = self.pairs.compare(&other.pairs);
        2 * words < 3 * lacked_words || 3 * pairs < lacked_pairs
    }
}

/// Hashes of terms, ascending.
#[derive(Debug)]
struct OwnTerms(Box<[u32]>);

impl OwnTerms {
    /// Returns how many terms two documents share, and how many at least either lacks.
    fn compare(&self, other: &Self) -> (usize, usize) {
        let (mut a, mut b, mut shared) = (self.0.iter().peekable(), other.0.iter().peekable(), 0);
        while let (Some(our), Some(their)) = (a.peek(), b.peek()) {
            let order = our.cmp(their);
            shared += usize::from(order == Ordering::Equal);
            if order != Ordering::Greater {
                a.next();
            }
            if order != Ordering::Less {
                b.next();
            }
        }
        (shared, self.0.len().min(other.0.len()) - shared)
    }
}

impl Cached for OwnWords {
    fn bytes(&self) -> usize {
        // The cache takes about as much again for each.
        2 * size_of::<Self>() + size_of_val(&*self.words.0) + size_of_val(&*self.pairs.0)
    }
}

/// Own words of documents, computed on first use.
#[derive(Debug)]
pub(in crate::verify) struct OwnWordsCache {
    counts: WordCounts,
    words: Cache<OwnWords>,
}

impl OwnWordsCache {
    /// Uses the final counts, and caches up to `bytes` bytes.
    pub(in crate::verify) fn new(counts: WordCounts, bytes: usize) -> Self {
        Self { counts, words: Cache::new(CACHE_BYTES.min(bytes)) }
    }

    /// Returns the own words of a text, whose record is at `start`.
    pub(in crate::verify) fn get(
        &self,
        digest: u64,
        records: &SpilledBytes,
        start: u64,
    ) -> Result<Arc<OwnWords>> {
        self.words.get(digest, || self.read(records, start))
    }

    fn read(&self, records: &SpilledBytes, start: u64) -> Result<OwnWords> {
        let mut lens = [0; LENS];
        records.read(start, &mut lens)?;
        let (lens, _) = lens.as_chunks();
        let [words, pairs] = [0, 1].map(|at| u32::from_be_bytes(lens[at]) as usize);
        let mut terms = Vec::new();
        let terms = records.get(start + LENS as u64, 4 * (words + pairs), &mut terms)?;
        let (terms, _) = terms.as_chunks();
        let (words, pairs) = terms.split_at(words);
        let own = |terms: &[[u8; 4]]| {
            let terms = terms.iter().map(|&term| u32::from_be_bytes(term));
            OwnTerms(self.counts.own(terms).collect())
        };
        Ok(OwnWords { words: own(words), pairs: own(pairs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Evidence, EvidenceFile, EvidenceWriter, Verification};

    const SITE: &str = "the front page\nall manuals of this series\nabout us and our partners";
    const CHECK: &str = "edit:0.7,0.7,5";

    fn written(pages: &[String]) -> EvidenceFile {
        let writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
        let mut writer = writer.boilerplate(NonZeroU8::new(5));
        for page in pages {
            writer.push(page.as_bytes()).unwrap();
        }
        writer.finish().unwrap()
    }

    fn passes(evidence: &EvidenceFile, check: &str, a: usize, b: usize) -> bool {
        let check: Verification = check.parse().unwrap();
        evidence.check(check, 0, a, b).unwrap().is_some()
    }

    /// Pages of one site: six different ones, then a version and a copy of the first.
    fn pages() -> Vec<String> {
        let mut texts: Vec<String> = ["rain in spring", "a frozen lake", "hail and thunder"]
            .into_iter()
            .chain(["morning fog over hills", "wind from all sides", "a clear night sky"])
            .map(|page| format!("{SITE}\n{page} {page}\nprinted on demand"))
            .collect();
        texts.push(format!("{SITE}\nrain in spring with rain in spring\nprinted on demand"));
        texts.push(texts[0].clone());
        texts
    }

    #[test]
    fn pages_that_repeat_other_words_do_not_pass() {
        let evidence = written(&pages());
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
        assert!(passes(&evidence, CHECK, 0, 6) && passes(&evidence, CHECK, 0, 7));
        let by_boilerplate = |a, b| evidence.is_by_boilerplate(a, b).unwrap();
        assert_eq!([1, 6, 7].map(|b| by_boilerplate(0, b)), [true, false, false]);
    }

    /// Pages of one template with own words, which each of them repeats.
    fn with(own: &[&str]) -> EvidenceFile {
        let page = |own: &&str| format!("{SITE}\n{SITE}\n{own}\n{own}");
        written(&own.iter().map(page).collect::<Vec<_>>())
    }

    #[test]
    fn words_of_fewer_documents_are_not_boilerplate() {
        // Each page repeats the words of the site, and nobody knows that these are boilerplate.
        let names = ["anna", "bela", "carl", "dora", "egon"];
        assert!(!passes(&with(&names), CHECK, 0, 1) && passes(&with(&names[..4]), CHECK, 0, 1));
        // Copies of one text do not make its words boilerplate.
        let mut copies = names[..4].to_vec();
        copies.extend(["anna"; 9]);
        assert!(passes(&with(&copies), CHECK, 0, 1));
    }

    #[test]
    fn words_that_occur_once_do_not_decide() {
        let greeting = |name: &str| format!("{SITE}\n{SITE}\ndear {name}");
        let names = ["anna", "bela", "carl", "dora", "egon"];
        assert!(passes(&written(&names.map(greeting)), CHECK, 0, 1));
    }

    #[test]
    fn words_added_to_one_document_do_not_decide() {
        let evidence = with(&["anna", "", "bela", "anna bela", "carl dora egon"]);
        let passing = |a, b| passes(&evidence, CHECK, a, b);
        assert_eq!(
            [(0, 1), (0, 3), (1, 4), (3, 4)].map(|(a, b)| passing(a, b)),
            [true, true, true, false]
        );
    }

    #[test]
    fn documents_pass_if_they_share_more_own_words_than_either_lacks() {
        // Numbers between words, so that there are no pairs.
        let own = ["a 1 b 1 c 1 x 1 y", "a 1 b 1 c 1 p 1 q", "a 1 b 1 x 1 s 1 t", "v", "w"];
        let evidence = with(&own);
        let passing = |a, b| passes(&evidence, CHECK, a, b);
        // Three are shared and two are lacked; then two and three.
        assert_eq!([passing(0, 1), passing(1, 2)], [true, false]);
    }

    #[test]
    fn pairs_of_common_words_decide() {
        // All have the same words in another order.
        let own = ["red green 1 blue white", "red blue 1 green white", "red white 1 blue green"];
        let more = ["white blue 1 green red", "green blue 1 white red"];
        let evidence = with(&[own.as_slice(), &more].concat());
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
    }

    #[test]
    fn numbers_and_codes_are_not_own_words() {
        let codes = ["1200", "3.5", "x7k2p9q", "rr123456cn", "17:30"];
        assert!([(0, 1), (2, 3), (1, 4)].iter().all(|&(a, b)| passes(&with(&codes), CHECK, a, b)));
        let names = ["read_u8", "read_u16", "read_u32", "read_u64", "read_u128"];
        assert!(!passes(&with(&names), CHECK, 0, 1));
    }

    #[test]
    fn own_words_of_scripts_without_spaces_decide() {
        let evidence =
            with(&["春天的雨水", "结冰的湖泊", "冰雹与雷声", "山上的晨雾", "四面的大风"]);
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
    }

    #[test]
    fn boilerplate_of_long_texts_is_excluded_too() {
        let site: Vec<String> = (0..200).map(|line| format!("entry {line} of the index")).collect();
        let site = site.join("\n");
        let pages: Vec<String> =
            pages().iter().map(|page| format!("{site}\n{}", page.repeat(5))).collect();
        let evidence = written(&pages);
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
        assert!(passes(&evidence, CHECK, 0, 6));
    }

    #[test]
    fn a_position_out_of_range_has_no_own_words() {
        let evidence = with(&["anna", "bela", "carl", "dora", "egon"]);
        assert!(!passes(&evidence, CHECK, 0, 5) && !evidence.is_by_boilerplate(5, 0).unwrap());
    }

    #[test]
    fn counters_saturate() {
        let mut words = WordCounter::new(NonZeroU8::MAX);
        let cutter = Arc::clone(words.cutter());
        for _ in 0..300 {
            words.add(&cutter.cut("one another"));
        }
        let mut own = |text| words.record(&cutter.cut(text))[3];
        assert_eq!([own("one one"), own("a third third a one one"), own("third")], [0, 2, 0]);
    }
}
