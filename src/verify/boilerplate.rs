//! Boilerplate: lines of many documents say nothing about whether two of them are the same.
//!
//! Pages of one site share their navigation, their headings and their licence, and a page that
//! says little else is as near to the next one as to an older version of itself. So a pair has to
//! be alike in what is left once such lines are taken off, as well as in all. Lines are
//! counted over the corpus as `CCNet` counts paragraphs (Wenzek et al., LREC 2020, section 3.1). `CCNet`
//! removes them; here they stay in the documents and are only not compared.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a cell for every hash, and a bit for every line"
)]

use std::num::NonZeroU8;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use super::Verification;
use super::edit::{self, LongText};
use super::long_texts::LongTexts;
use super::outline::Outline;
use crate::error::Result;

/// Documents from which a line of theirs is boilerplate, by default.
///
/// More than a page has versions in a corpus, and as few as a template may have pages.
pub const BOILERPLATE_DOCUMENTS: NonZeroU8 = NonZeroU8::new(30).unwrap();

/// Counters of one row. A line has one in each of two rows.
const CELLS: usize = 1 << 22;

/// Bytes of own lines that were read lately.
const TEXT_BYTES: usize = 2 << 20;

/// Letters that have to be left of a text for a second look.
const LEAST_LETTERS: u32 = 24;

/// Edit similarity that what is left of two texts has to have.
///
/// Of 400 removals that one reader judged without this rule, 51 were wrong: with it 14 of these
/// documents stay and 31 go for a nearer one. Of 229 right ones 22 stay.
const LEAST_SIMILARITY: f64 = 0.8;

/// How many documents have a line, from above.
///
/// A count-min sketch (Cormode and Muthukrishnan, Journal of Algorithms 2005) of 8 MiB whose
/// counters stop at 255. Of the 7.8 million different lines of 133,265 pages 2 in 10,000 are taken
/// for boilerplate and are not, so that a pair may stay apart.
#[derive(Debug)]
pub(super) struct LineCounts {
    /// Documents from which a line is boilerplate.
    least: NonZeroU8,
    cells: Vec<u8>,
    /// Hashes of the lines of the text that is counted.
    lines: Vec<u64>,
}

impl LineCounts {
    pub(super) fn new(least: NonZeroU8) -> Self {
        Self { least, cells: vec![0; 2 * CELLS], lines: Vec::new() }
    }

    /// Counts the lines of the next document, each of them once.
    pub(super) fn add(&mut self, text: &str) {
        self.lines.clear();
        self.lines.extend(text.split('\n').map(|line| xxh3_64(line.as_bytes())));
        self.lines.sort_unstable();
        self.lines.dedup();
        for &line in &self.lines {
            for cell in cells(line) {
                self.cells[cell] = self.cells[cell].saturating_add(1);
            }
        }
    }

    fn is_boilerplate(&self, line: &str) -> bool {
        let counts = cells(xxh3_64(line.as_bytes())).map(|cell| self.cells[cell]);
        counts.into_iter().all(|count| count >= self.least.get())
    }

    /// Returns a bit for each line of a text, set for those that are no boilerplate.
    fn own_lines(&self, text: &str) -> Box<[u8]> {
        let mut own = Vec::new();
        for (at, line) in text.split('\n').enumerate() {
            let bit = u8::from(!self.is_boilerplate(line)) << (at % 8);
            match own.last_mut() {
                Some(last) if at % 8 > 0 => *last |= bit,
                _ => own.push(bit),
            }
        }
        own.into_boxed_slice()
    }
}

/// Returns the lines of a text whose bits are set.
fn chosen_lines(text: &str, chosen: &[u8]) -> String {
    let mut own = String::new();
    for (at, line) in text.split('\n').enumerate() {
        if chosen[at / 8] >> (at % 8) & 1 == 1 {
            if !own.is_empty() {
                own.push('\n');
            }
            own.push_str(line);
        }
    }
    own
}

/// What is known of a text's own lines without reading them.
#[derive(Debug)]
pub(super) struct OwnLines {
    outline: Outline,
    bytes: u64,
    /// A bit for each line of the text, set for its own.
    lines: Box<[u8]>,
}

/// Whether two texts have to be alike in their own lines, and can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// There is too little boilerplate, or too little else.
    Skip,
    /// They have to be compared.
    Compare,
    /// Counts of their letters tell that they differ.
    Differ,
}

impl OwnLines {
    fn new(text: &str, lines: Box<[u8]>) -> Self {
        let own = chosen_lines(text, &lines);
        Self { outline: Outline::new(&own), bytes: own.len() as u64, lines }
    }

    /// Says what to do with two texts; `bytes` is the length of both, boilerplate included.
    ///
    /// Less than a fifth of boilerplate does not matter, and fewer than 24 letters say nothing.
    pub(super) fn against(&self, other: &Self, bytes: u64) -> Own {
        if 5 * (self.bytes + other.bytes) > 4 * bytes
            || self.outline.letters.max(other.outline.letters) < LEAST_LETTERS
        {
            Own::Skip
        } else if self.outline.refuses(&other.outline, Verification::Edit(LEAST_SIMILARITY)) {
            Own::Differ
        } else {
            Own::Compare
        }
    }
}

/// Own lines of texts, found when they are first asked for.
#[derive(Debug)]
pub(super) struct OwnTexts {
    counts: LineCounts,
    known: Vec<OnceLock<OwnLines>>,
    texts: LongTexts,
}

impl OwnTexts {
    /// Takes all counts, for that many different texts.
    pub(super) fn new(counts: LineCounts, texts: usize) -> Self {
        let known = std::iter::repeat_with(OnceLock::new).take(texts).collect();
        Self { counts, known, texts: LongTexts::new(TEXT_BYTES) }
    }

    /// Returns what is known of a text's own lines; `read` returns the text.
    ///
    /// `None` beyond the last text.
    pub(super) fn lines(
        &self,
        piece: u32,
        read: impl FnOnce() -> Result<String>,
    ) -> Result<Option<&OwnLines>> {
        let Some(slot) = self.known.get(piece as usize) else { return Ok(None) };
        if let Some(known) = slot.get() {
            return Ok(Some(known));
        }
        let text = read()?;
        Ok(Some(slot.get_or_init(|| OwnLines::new(&text, self.counts.own_lines(&text)))))
    }

    /// Returns the own lines of a text whose [`lines`](Self::lines) were asked for; `read` returns it.
    pub(super) fn text(
        &self,
        piece: u32,
        read: impl FnOnce() -> Result<String>,
    ) -> Result<Arc<LongText<'static>>> {
        let known = self.known[piece as usize].get();
        let lines = &known.expect("its lines were asked for").lines;
        self.texts.get(piece, || Ok(chosen_lines(&read()?, lines)))
    }
}

/// Returns true if own lines are alike enough.
pub(super) fn are_alike(
    ours: &LongText<'_>,
    theirs: &LongText<'_>,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<bool> {
    Ok(edit::similarity_of_long(ours, theirs, LEAST_SIMILARITY, go_on)?.is_some())
}

/// The counters of a line, one a row.
#[allow(clippy::cast_possible_truncation)]
fn cells(line: u64) -> [usize; 2] {
    [line as usize % CELLS, CELLS + (line >> 32) as usize % CELLS]
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

    /// Pages of one site: six of them different, the last two versions of the first.
    fn pages() -> Vec<String> {
        let mut texts: Vec<String> = ["rain in spring", "a frozen lake", "hail and thunder"]
            .into_iter()
            .chain(["morning fog over hills", "wind from all sides", "a clear night sky"])
            .map(|page| format!("{SITE}\n{page} {page}\nprinted on demand"))
            .collect();
        texts.push(format!("{SITE}\nrain in spring rain in Spring\nprinted on demand"));
        texts.push(texts[0].clone());
        texts
    }

    #[test]
    fn pages_that_share_boilerplate_alone_do_not_pass() {
        let evidence = written(&pages());
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
        assert!(passes(&evidence, CHECK, 0, 6) && passes(&evidence, CHECK, 0, 7));
        let by_boilerplate = |a, b| evidence.is_by_boilerplate(a, b).unwrap();
        assert_eq!([1, 6, 7].map(|b| by_boilerplate(0, b)), [true, false, false]);
    }

    #[test]
    fn lines_of_fewer_documents_are_no_boilerplate() {
        let few: Vec<String> = pages().into_iter().take(4).collect();
        assert!(passes(&written(&few), CHECK, 0, 1));
        // A line that stands in one document many times is a line of one document.
        let mut repeated = vec![pages()[0].replace(SITE, &[SITE; 9].join("\n"))];
        repeated.push(repeated[0].replace("rain in spring", "a frozen lake"));
        assert!(passes(&written(&repeated), CHECK, 0, 1));
        // Nor do copies of one text make its lines boilerplate.
        let mut copies = few.clone();
        copies.extend(vec![few[0].clone(); 9]);
        assert!(passes(&written(&copies), CHECK, 0, 1));
    }

    #[test]
    fn what_is_left_has_to_be_long_enough_to_tell() {
        let word = |word: &str| format!("{SITE}\n{word}");
        let pages = ["red", "green", "blue", "white", "black"].map(word);
        assert!(passes(&written(&pages), CHECK, 0, 1));
        // Nor does a little boilerplate matter in two long texts.
        let texts: Vec<String> =
            pages.iter().map(|page| format!("{page} {}", "long ".repeat(200))).collect();
        assert!(passes(&written(&texts), CHECK, 0, 1));
    }

    #[test]
    fn long_texts_are_looked_at_like_short_ones() {
        let site: Vec<String> = (0..200).map(|line| format!("entry {line} of the index")).collect();
        let site = site.join("\n");
        let pages: Vec<String> =
            pages().iter().map(|page| format!("{site}\n{}", page.repeat(5))).collect();
        let evidence = written(&pages);
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
        assert!(passes(&evidence, CHECK, 0, 6));
    }

    #[test]
    fn counters_stop_at_their_largest_number() {
        let mut lines = LineCounts::new(NonZeroU8::MAX);
        for _ in 0..300 {
            lines.add("one line\nanother");
        }
        assert!(lines.is_boilerplate("one line") && !lines.is_boilerplate("a third"));
        let text = "a third\none line\na fourth\n5\n6\n7\n8\nanother\n10\none line";
        let own = lines.own_lines(text);
        assert_eq!(*own, [0b0111_1101, 0b01]);
        assert_eq!(chosen_lines(text, &own), "a third\na fourth\n5\n6\n7\n8\n10");
    }
}
