//! Boilerplate: lines of many documents, which do not show that two of them are the same.
//!
//! Pages of one site share navigation, headings and licence. A page with little else is as near to
//! the next one as to an older version of itself. So a pair must be similar without such lines as
//! well as with them. Lines are counted over the corpus as `CCNet` counts paragraphs (Wenzek et
//! al., LREC 2020, section 3.1). `CCNet` removes them; here they stay in the documents and are only
//! not compared.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a cell for every hash, and a bit for every line"
)]

use std::num::NonZeroU8;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::Verification;
use super::edit::{self, LongText};
use super::long_texts::{Cache, Cached, LongTexts};
use super::outline::Outline;
use crate::error::Result;

/// Default number of documents from which a line is boilerplate.
///
/// More than a page has versions in a corpus, and no more than a template has pages.
pub const BOILERPLATE_DOCUMENTS: NonZeroU8 = NonZeroU8::new(30).unwrap();

/// Counters of a row. A line has one counter in each of the two rows.
const CELLS: usize = 1 << 22;

/// Most bytes of own lines that are cached.
const TEXT_BYTES: usize = 8 << 20;

/// Letters that own lines need to be compared.
const LEAST_LETTERS: u32 = 24;

/// Edit similarity that the own lines of two texts need.
///
/// Of 400 removals judged by one reader without this rule, 51 were wrong. With it 14 of these
/// documents stay and 31 are removed for a nearer one; of 229 right removals 22 are not made.
const LEAST_SIMILARITY: f64 = 0.8;

/// Upper bounds of the number of documents that have a line.
///
/// A count-min sketch (Cormode and Muthukrishnan, Journal of Algorithms 2005) of 8 MiB with
/// counters up to 255. Of the 7.8 million different lines of 133,265 pages, 2 in 10,000 are wrongly
/// treated as boilerplate, which can only keep a pair apart.
#[derive(Debug)]
pub(super) struct LineCounts {
    /// Documents from which a line is boilerplate.
    least: NonZeroU8,
    cells: Vec<u8>,
    /// Hashes of the lines of the text being counted.
    lines: Vec<u64>,
}

impl LineCounts {
    pub(super) fn new(least: NonZeroU8) -> Self {
        Self { least, cells: vec![0; 2 * CELLS], lines: Vec::new() }
    }

    /// Counts the lines of the next document, each distinct line once.
    pub(super) fn add(&mut self, text: &str) {
        self.lines.clear();
        self.lines.extend(text.split('\n').map(hash));
        self.lines.sort_unstable();
        self.lines.dedup();
        for &line in &self.lines {
            for cell in cells(line) {
                self.cells[cell] = self.cells[cell].saturating_add(1);
            }
        }
    }

    fn is_boilerplate(&self, [first, second]: [usize; 2]) -> bool {
        self.cells[first].min(self.cells[second]) >= self.least.get()
    }

    /// Returns a bit for each line of a text, set if the line is not boilerplate.
    fn own_lines(&self, text: &str) -> Box<[u8]> {
        // The counters are all over the memory, so those of many lines are read at once.
        let lines: Vec<[usize; 2]> = text.split('\n').map(|line| cells(hash(line))).collect();
        let bits = |lines: &[[usize; 2]]| {
            let own =
                lines.iter().zip(0..).map(|(&line, at)| u8::from(!self.is_boilerplate(line)) << at);
            own.fold(0, |bits, bit| bits | bit)
        };
        lines.chunks(8).map(bits).collect()
    }
}

fn hash(line: &str) -> u64 {
    xxh3_64(line.as_bytes())
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

/// Summary of a text's own lines, known without reading them.
#[derive(Debug)]
pub(super) struct OwnLines {
    outline: Outline,
    bytes: u64,
    /// A bit for each line of the text, set if the line is its own.
    lines: Box<[u8]>,
}

/// Whether the own lines of two texts must be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// There is too little boilerplate, or too few own lines.
    Skip,
    /// The own lines must be compared.
    Compare,
    /// The own lines differ, according to their letter counts.
    Differ,
}

impl OwnLines {
    fn new(text: &str, lines: Box<[u8]>) -> Self {
        let own = chosen_lines(text, &lines);
        Self { outline: Outline::new(&own), bytes: own.len() as u64, lines }
    }

    /// Decides what to do with two texts; `bytes` is the length of both with boilerplate.
    ///
    /// Ignores boilerplate below a fifth of both texts, and own lines of fewer than 24 letters.
    pub(super) fn against(&self, other: &Self, bytes: u64) -> Own {
        if 5 * (self.bytes + other.bytes) > 4 * bytes
            || self.outline.letters.max(other.outline.letters) < LEAST_LETTERS
        {
            Own::Skip
        } else if self.outline.rejects(&other.outline, Verification::Edit(LEAST_SIMILARITY)) {
            Own::Differ
        } else {
            Own::Compare
        }
    }
}

impl Cached for OwnLines {
    fn bytes(&self) -> usize {
        // The cache takes as much again for each.
        2 * size_of::<Self>() + self.lines.len()
    }
}

/// Own lines of texts, computed on first use.
#[derive(Debug)]
pub(super) struct OwnTexts {
    counts: LineCounts,
    lines: Cache<OwnLines>,
    texts: LongTexts,
}

impl OwnTexts {
    /// Uses the final counts, and caches `bytes` bytes of summaries, and half as many of texts.
    pub(super) fn new(counts: LineCounts, bytes: usize) -> Self {
        Self { counts, lines: Cache::new(bytes), texts: LongTexts::new(TEXT_BYTES.min(bytes / 2)) }
    }

    /// Returns the summary of a text's own lines; `read` returns the text.
    pub(super) fn lines(
        &self,
        digest: u64,
        read: impl FnOnce() -> Result<String>,
    ) -> Result<Arc<OwnLines>> {
        self.lines.get(digest, || {
            let text = read()?;
            Ok(OwnLines::new(&text, self.counts.own_lines(&text)))
        })
    }

    /// Returns the own lines of a text.
    pub(super) fn text(
        &self,
        digest: u64,
        read: impl Fn() -> Result<String>,
    ) -> Result<Arc<LongText<'static>>> {
        self.texts.get(digest, || {
            let text = read()?;
            let lines = self.lines(digest, || Ok(text.clone()))?;
            Ok(LongText::new(chosen_lines(&text, &lines.lines)))
        })
    }
}

/// Returns true if the own lines of two texts are similar enough.
pub(super) fn are_alike(
    ours: &LongText<'_>,
    theirs: &LongText<'_>,
    check_cancelled: &dyn Fn() -> Result<()>,
) -> Result<bool> {
    Ok(edit::similarity_of_long(ours, theirs, LEAST_SIMILARITY, check_cancelled)?.is_some())
}

/// Returns the counters of a line, one per row.
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

    /// Pages of one site: six different ones, then a version and a copy of the first.
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
    fn pages_that_share_only_boilerplate_do_not_pass() {
        let evidence = written(&pages());
        assert!(passes(&evidence, "edit:0.7,0.7", 0, 1) && !passes(&evidence, CHECK, 0, 1));
        assert!(passes(&evidence, CHECK, 0, 6) && passes(&evidence, CHECK, 0, 7));
        let by_boilerplate = |a, b| evidence.is_by_boilerplate(a, b).unwrap();
        assert_eq!([1, 6, 7].map(|b| by_boilerplate(0, b)), [true, false, false]);
    }

    #[test]
    fn lines_of_fewer_documents_are_not_boilerplate() {
        let few: Vec<String> = pages().into_iter().take(4).collect();
        assert!(passes(&written(&few), CHECK, 0, 1));
        // A line that is repeated in one document counts once.
        let mut repeated = vec![pages()[0].replace(SITE, &[SITE; 9].join("\n"))];
        repeated.push(repeated[0].replace("rain in spring", "a frozen lake"));
        assert!(passes(&written(&repeated), CHECK, 0, 1));
        // Copies of one text do not make its lines boilerplate.
        let mut copies = few.clone();
        copies.extend(vec![few[0].clone(); 9]);
        assert!(passes(&written(&copies), CHECK, 0, 1));
    }

    #[test]
    fn few_own_lines_or_little_boilerplate_are_ignored() {
        let word = |word: &str| format!("{SITE}\n{word}");
        let pages = ["red", "green", "blue", "white", "black"].map(word);
        assert!(passes(&written(&pages), CHECK, 0, 1));
        // A little boilerplate is ignored in long texts.
        let texts: Vec<String> =
            pages.iter().map(|page| format!("{page} {}", "long ".repeat(200))).collect();
        assert!(passes(&written(&texts), CHECK, 0, 1));
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
    fn counters_saturate() {
        let mut lines = LineCounts::new(NonZeroU8::MAX);
        for _ in 0..300 {
            lines.add("one line\nanother");
        }
        let is_boilerplate = |line| lines.is_boilerplate(cells(hash(line)));
        assert!(is_boilerplate("one line") && !is_boilerplate("a third"));
        let text = "a third\none line\na fourth\n5\n6\n7\n8\nanother\n10\none line";
        let own = lines.own_lines(text);
        assert_eq!(*own, [0b0111_1101, 0b01]);
        assert_eq!(chosen_lines(text, &own), "a third\na fourth\n5\n6\n7\n8\n10");
    }
}
