//! Boilerplate: words of many documents, which do not show that two of them are the same.
//!
//! Pages of one site or one generator share navigation, headings and licence. A page with little
//! else is as near to the next one as to an older version of itself. But a version repeats the same
//! names, and the next page repeats others. Words are counted over the corpus as `CCNet` counts
//! paragraphs (Wenzek et al., LREC 2020, section 3.1). `CCNet` removes them; here they stay in the
//! documents and are only not compared.
#![expect(
    clippy::indexing_slicing,
    reason = "every record begins with its lengths, and every level has an end"
)]

use std::num::NonZeroU8;
use std::sync::Arc;

use super::counts::{LIMITS, WordCounts};
use super::cutter::{TermCutter, TextTerms};
use crate::error::Result;
use crate::verify::long_texts::{Cache, Cached};
use crate::verify::spilled::SpilledBytes;

/// Most bytes of own words that are cached.
const CACHE_BYTES: usize = 8 << 20;

/// Bytes before the words that a text repeats: how many words these are, and how many pairs.
const LENS: usize = 8;

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
        terms.0.iter().for_each(|terms| self.counts.add(terms));
    }

    /// Returns what [`OwnWordsCache`] reads of a text.
    ///
    /// These are its repeated terms that are not boilerplate so far.
    pub(in crate::verify) fn record(&mut self, terms: &TextTerms) -> &[u8] {
        self.record.clear();
        self.record.resize(LENS, 0);
        for (kind, terms) in terms.0.iter().enumerate() {
            let mut len = 0_u32;
            for (_, term) in self.counts.own(terms.iter().copied()) {
                self.record.extend_from_slice(&term.to_be_bytes());
                len += 1;
            }
            self.record[4 * kind..][..4].copy_from_slice(&len.to_be_bytes());
        }
        &self.record
    }

    /// Returns the own words by the final counts, of which up to `bytes` bytes are cached.
    pub(in crate::verify) fn finish(self, bytes: usize) -> OwnWordsCache {
        OwnWordsCache { counts: self.counts, words: Cache::new(CACHE_BYTES.min(bytes)) }
    }
}

/// The words and pairs that a document repeats and not too many others have.
#[derive(Debug)]
pub(in crate::verify) struct OwnWords {
    words: OwnTerms,
    pairs: OwnTerms,
}

impl OwnWords {
    /// Returns true if by some limit, each of two documents has own words that the other lacks.
    ///
    /// Two versions share more than they lack. Pages of two members of a class may share the name
    /// of the class. A changed word is in two pairs, so fewer of these are shared.
    pub(in crate::verify) fn differ(&self, other: &Self) -> bool {
        let (mut words, mut pairs) = (Shared::default(), Shared::default());
        (0..LIMITS).any(|level| {
            words.add(self.words.of(level), other.words.of(level));
            pairs.add(self.pairs.of(level), other.pairs.of(level));
            2 * words.both < 3 * words.lacked() || 3 * pairs.both < pairs.lacked()
        })
    }
}

/// Hashes of terms, level after level, each ascending.
#[derive(Debug)]
struct OwnTerms {
    terms: Box<[u32]>,
    /// Where each level ends.
    ends: [usize; LIMITS],
}

impl OwnTerms {
    /// Takes terms with their levels, ascending.
    fn new(terms: impl Iterator<Item = (usize, u32)>) -> Self {
        let mut levels = [const { Vec::new() }; LIMITS];
        terms.for_each(|(level, term)| levels[level].push(term));
        let mut end = 0;
        let ends = levels.each_ref().map(|level| {
            end += level.len();
            end
        });
        Self { terms: levels.concat().into(), ends }
    }

    /// Returns the terms of a level.
    fn of(&self, level: usize) -> &[u32] {
        let start = level.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.terms[start..self.ends[level]]
    }
}

/// How many terms two documents have, and how many of these both.
#[derive(Debug, Default)]
struct Shared {
    ours: usize,
    theirs: usize,
    both: usize,
}

impl Shared {
    /// Adds the terms of one level.
    fn add(&mut self, ours: &[u32], theirs: &[u32]) {
        self.ours += ours.len();
        self.theirs += theirs.len();
        let (mut a, mut b) = (0, 0);
        // Which of two hashes is smaller is unpredictable, so nothing branches on it.
        while let (Some(our), Some(their)) = (ours.get(a), theirs.get(b)) {
            self.both += usize::from(our == their);
            a += usize::from(our <= their);
            b += usize::from(their <= our);
        }
    }

    /// Returns how many terms at least either document lacks.
    fn lacked(&self) -> usize {
        self.ours.min(self.theirs) - self.both
    }
}

impl Cached for OwnWords {
    fn bytes(&self) -> usize {
        // The cache takes about as much again for each.
        2 * size_of::<Self>() + size_of_val(&*self.words.terms) + size_of_val(&*self.pairs.terms)
    }
}

/// Own words of documents, computed on first use.
#[derive(Debug)]
pub(in crate::verify) struct OwnWordsCache {
    counts: WordCounts,
    words: Cache<OwnWords>,
}

impl OwnWordsCache {
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
            OwnTerms::new(self.counts.own(terms))
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
    fn names_of_programs_decide_in_long_texts_if_they_occur_once() {
        let names = ["open_file", "read_file", "copy_file", "move_file", "link_file"];
        let page = |name: &str, site: usize| format!("{}\nsee {name}", SITE.repeat(site));
        let pages = |site| written(&names.map(|name| page(name, site)));
        assert!(!passes(&pages(3), CHECK, 0, 1) && passes(&pages(2), CHECK, 0, 1));
        // With a list of all names on each page, only the repeated one is its own.
        let menu = |name| format!("{}\n{}", names.join("\n"), page(name, 3));
        assert!(!passes(&written(&names.map(menu)), CHECK, 0, 1));
        let only_menus = names.map(|_| format!("{}\n{}", names.join("\n"), page("file", 3)));
        assert!(passes(&written(&only_menus), CHECK, 0, 1));
    }

    #[test]
    fn words_that_few_documents_repeat_decide_if_all_have_them() {
        let names: Vec<String> =
            (b'a'..=b'h').flat_map(|a| (b's'..=b'w').map(move |b| [a, b])).map(letters).collect();
        let menu = names.join("\n");
        let pages: Vec<String> =
            names.iter().map(|name| format!("{menu}\n{SITE} {name}")).collect();
        let evidence = written(&pages);
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
    }

    fn letters([a, b]: [u8; 2]) -> String {
        format!("{}o{}", char::from(a), char::from(b))
    }

    #[test]
    fn words_that_some_pages_of_a_large_template_share_decide() {
        let names = ["anna", "bela", "carl", "dora"];
        // A quarter of the pages is about each; with numbers, so that these are no copies.
        let passing = |pages: usize, other| {
            let own: Vec<_> =
                (0..pages).map(|page| format!("{} {page}", names[page % 4])).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            passes(&with(&own), CHECK, 0, other)
        };
        assert_eq!([1, 4, 39].map(|other| passing(40, other)), [false, true, false]);
        // Words of 40 documents and more never decide: the limits are 5, 10, 20 and 40.
        assert_eq!([1, 4, 39].map(|other| passing(160, other)), [true; 3]);
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
    fn copies_of_one_article_on_two_sites_pass() {
        let article = "the council wants to build a bridge over the river, and the people of the \
            valley, who were asked in spring, want the bridge too. the river rose in april, the \
            valley was cut off for a week, and the council had no bridge and no boats";
        // Each site has its name above and below.
        let on = |site: &str| {
            format!("{site}\na bridge for the valley\n{article}\ncopyright {site}\nwrite to {site}")
        };
        let sites = ["daily herald", "morning courier", "valley post"].map(on);
        let evidence = written(&sites);
        assert!(passes(&evidence, CHECK, 0, 1) && passes(&evidence, CHECK, 1, 2));
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
            words.add(&cutter.cut("one one another another"));
        }
        let mut own = |text| words.record(&cutter.cut(text))[3];
        assert_eq!([own("one one"), own("a third third a one one"), own("third")], [0, 2, 0]);
    }
}
