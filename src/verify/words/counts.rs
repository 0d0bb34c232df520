//! Counts: how many documents repeat a word.
#![expect(clippy::indexing_slicing, reason = "there is a counter for every hash")]

use std::num::NonZeroU8;
use std::sync::Arc;

use super::cutter::CommonTerms;
use crate::kernel;

/// Default number of documents from which a word is boilerplate.
///
/// More than a page has versions in a corpus, and no more than a template has pages.
pub const BOILERPLATE_DOCUMENTS: NonZeroU8 = NonZeroU8::new(30).unwrap();

/// Counters in a cache line, of which each word has two.
const LINE: usize = 64;
/// Cache lines of counters.
const LINES: usize = 1 << 19;

/// Numbers of documents from which a word is boilerplate, each twice the one before.
///
/// A template of hundreds of documents has words that all of them have, and others that a tenth of
/// them has. One number does not fit templates of all sizes.
pub(super) const LIMITS: usize = 4;

/// Terms between a prefetch of counters and their use.
const AHEAD: usize = 16;

/// Upper bounds of the number of documents that repeat a word, or a pair of adjacent words.
///
/// A count-min sketch with conservative update (Estan and Varghese, SIGCOMM 2002; Cormode and
/// Muthukrishnan, Journal of Algorithms 2005) of 32 MiB with counters up to 255. Of the 1.1
/// million words and 12 million pairs of a gigabyte of documentation, most are never repeated.
#[derive(Debug)]
pub(super) struct WordCounts {
    /// Ascending, up to [`LIMITS`]; none is more than a counter counts.
    limits: Box<[u8]>,
    lines: Vec<[u8; LINE]>,
    pub(super) common: Arc<CommonTerms>,
}

impl WordCounts {
    pub(super) fn new(least: NonZeroU8) -> Self {
        let limits = std::iter::successors(Some(least.get()), |limit| limit.checked_mul(2));
        let limits = limits.take(LIMITS).collect();
        Self { limits, lines: vec![[0; LINE]; LINES], common: Arc::new(CommonTerms::new()) }
    }

    /// Counts distinct terms of a document.
    pub(super) fn add(&mut self, terms: &[u32]) {
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
            if self.limits.last().is_none_or(|&most| count >= most) {
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

    /// Returns those terms that are not boilerplate by every limit, each with its level.
    pub(super) fn own(
        &self,
        terms: impl Iterator<Item = u32> + Clone,
    ) -> impl Iterator<Item = (usize, u32)> {
        let mut soon = terms.clone();
        soon.by_ref().take(AHEAD).for_each(|term| self.expect(term));
        terms.filter_map(move |term| {
            if let Some(soon) = soon.next() {
                self.expect(soon);
            }
            Some((self.level(term)?, term))
        })
    }

    /// Returns the number of limits by which a term is boilerplate; `None` if all.
    ///
    /// With more documents it only rises.
    fn level(&self, term: u32) -> Option<usize> {
        let (line, [first, second]) = place(term);
        let cells = &self.lines[line];
        let count = cells[first].min(cells[second]);
        self.limits.iter().position(|&limit| count < limit)
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
