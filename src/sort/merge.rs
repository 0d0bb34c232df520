//! Merges sorted runs into one sorted stream.
//!
//! A loser tree over the runs. Of equal keys the one of the earlier run is first, so the stream is
//! stable if the runs are in push order.
//!
//! Knuth, The Art of Computer Programming, volume 3, section 5.4.1.
#![expect(clippy::indexing_slicing, reason = "tree and heads have a slot for each run")]

use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;

use super::chunk::{SortedChunk, Span};
use super::spill::{OwnedFile, SpillFile, SpillReader, SpillWriter};
use crate::error::Result;

/// Most files read at the same time.
const MAX_FAN_IN: usize = 64;

/// A record: its key and its payload.
pub(crate) type Record<'a> = (&'a [u8], &'a [u8]);

#[derive(Debug)]
enum Source {
    /// Dropping the run removes the file.
    File {
        reader: SpillReader,
        _owned: OwnedFile,
    },
    Chunk {
        chunk: SortedChunk,
        block_bytes: usize,
    },
}

/// One sorted run, positioned on a record.
#[derive(Debug)]
pub(crate) struct Run {
    source: Source,
    block: Vec<u8>,
    span: Span,
    /// Records not delivered yet.
    remaining: u64,
}

impl Run {
    /// Opens a spill file; dropping the run removes it unless it is kept.
    ///
    /// # Errors
    ///
    /// Those of [`SpillReader::open_named`].
    pub(crate) fn file(owned: OwnedFile) -> Result<Self> {
        let reader = SpillReader::open_named(&owned.file)?;
        let remaining = reader.records();
        let source = Source::File { reader, _owned: owned };
        Ok(Self { source, block: Vec::new(), span: Span::default(), remaining })
    }

    /// Reads a chunk that stayed in memory.
    pub(crate) fn chunk(chunk: SortedChunk, records: u64, block_bytes: usize) -> Self {
        let source = Source::Chunk { chunk, block_bytes };
        Self { source, block: Vec::new(), span: Span::default(), remaining: records }
    }

    /// Moves to the next record; returns false after the last.
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if self.span.end == self.block.len() && !self.refill()? {
            return Ok(false);
        }
        match (Span::at(&self.block, self.span.end), self.remaining.checked_sub(1)) {
            (Some(span), Some(remaining)) => {
                self.span = span;
                self.remaining = remaining;
                Ok(true)
            }
            (None, _) => Err(self.damage("a record is truncated")),
            (_, None) => Err(self.damage("there are more records than were written")),
        }
    }

    fn refill(&mut self) -> Result<bool> {
        self.span = Span::default();
        let more = match &mut self.source {
            Source::File { reader, .. } => reader.next_block(&mut self.block)?,
            Source::Chunk { chunk, block_bytes } => chunk.next_block(&mut self.block, *block_bytes),
        };
        if !more && self.remaining > 0 {
            return Err(self.damage("there are fewer records than were written"));
        }
        Ok(more)
    }

    fn damage(&self, detail: &str) -> crate::Error {
        match &self.source {
            Source::File { reader, .. } => reader.corrupt(detail),
            Source::Chunk { .. } => crate::Error::corrupt("sorted chunk", detail),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.span.key(&self.block)
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        (self.span.key(&self.block), self.span.payload(&self.block))
    }
}

/// The part of a run that most comparisons need, stored separately to stay in the cache.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// First eight key bytes; all ones if the run is exhausted.
    prefix: u64,
    live: bool,
}

impl Head {
    const EXHAUSTED: Self = Self { prefix: u64::MAX, live: false };

    #[inline]
    fn of(key: &[u8]) -> Self {
        let prefix = key.first_chunk::<8>().map_or_else(
            || {
                let mut bytes = [0; 8];
                bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
                u64::from_be_bytes(bytes)
            },
            |first| u64::from_be_bytes(*first),
        );
        Self { prefix, live: true }
    }
}

/// A sorted stream of the records of several runs.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    runs: Vec<Run>,
    heads: Vec<Head>,
    /// Losers of the matches at inner nodes `1..runs`; node 0 is the winner.
    tree: Vec<usize>,
    started: bool,
    len: u64,
}

impl Sorted {
    /// Merges runs that are given in push order.
    pub(crate) fn new(runs: Vec<Run>) -> Self {
        let len = runs.iter().map(|run| run.remaining).sum();
        Self { runs, heads: Vec::new(), tree: Vec::new(), started: false, len }
    }

    /// Returns the number of all records, returned or not.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the next record as (key, payload); `None` after the last.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`]; [`crate::Error::Corrupt`] if a file is damaged. Do not use the stream
    /// after an error.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>> {
        let winner = self.step()?;
        Ok(winner.map(|winner| self.runs[winner].record()))
    }

    /// Returns the run with the next record.
    #[inline]
    fn step(&mut self) -> Result<Option<usize>> {
        if let [run] = self.runs.as_mut_slice() {
            return Ok(run.advance()?.then_some(0));
        }
        if self.started {
            self.replay()?;
        } else {
            self.start()?;
        }
        let winner = self.tree.first().copied();
        Ok(winner.filter(|winner| self.heads[*winner].live))
    }

    /// Moves every run to its first record and plays all matches.
    fn start(&mut self) -> Result<()> {
        self.started = true;
        for run in &mut self.runs {
            let head = if run.advance()? { Head::of(run.key()) } else { Head::EXHAUSTED };
            self.heads.push(head);
        }
        let leaves = self.runs.len();
        // Winners of all nodes: inner ones, then leaves.
        let mut winners = vec![0; leaves];
        winners.extend(0..leaves);
        self.tree = vec![0; leaves];
        for node in (1..leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) =
                if self.beats(left, right) { (left, right) } else { (right, left) };
            (winners[node], self.tree[node]) = (winner, loser);
        }
        // Without runs there is no winner.
        if let (Some(top), Some(winner)) = (self.tree.first_mut(), winners.get(1)) {
            *top = *winner;
        }
        Ok(())
    }

    /// Advances the last winner and replays the matches on its path.
    #[inline]
    fn replay(&mut self) -> Result<()> {
        let Some(&(mut winner)) = self.tree.first() else { return Ok(()) };
        if !self.heads[winner].live {
            return Ok(());
        }
        let run = &mut self.runs[winner];
        self.heads[winner] = if run.advance()? { Head::of(run.key()) } else { Head::EXHAUSTED };
        let leaf = self.runs.len() + winner;
        let mut node = leaf / 2;
        while node > 0 {
            let loser = self.tree[node];
            if self.beats(loser, winner) {
                self.tree[node] = winner;
                winner = loser;
            }
            node /= 2;
        }
        self.tree[0] = winner;
        Ok(())
    }

    #[inline]
    fn beats(&self, a: usize, b: usize) -> bool {
        let (head_a, head_b) = (self.heads[a], self.heads[b]);
        match head_a.prefix.cmp(&head_b.prefix) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => match (head_a.live, head_b.live) {
                (true, true) => (self.runs[a].key(), a) < (self.runs[b].key(), b),
                (live, _) => live,
            },
        }
    }

    /// Writes the rest of the stream to a spill file.
    ///
    /// # Errors
    ///
    /// Those of [`Sorted::next`].
    pub(crate) fn spill(mut self, path: &Path, block_bytes: usize) -> Result<OwnedFile> {
        let mut writer = SpillWriter::create(path)?;
        let mut block = Vec::with_capacity(block_bytes);
        while let Some((key, payload)) = self.next()? {
            Span::append(&mut block, key, payload);
            if block.len() >= block_bytes {
                writer.write_block(&block)?;
                block.clear();
            }
        }
        writer.write_block(&block)?;
        writer.finish(self.len, false)
    }
}

/// Picks the files to merge next, so that at most 64 are left, or the number that fits in the
/// budget.
///
/// Returns `None` if there are few enough. The files are adjacent, which preserves push order. They
/// are as few as needed, and the smallest such, so that big files are not copied repeatedly.
pub(crate) fn next_merge(
    files: &[OwnedFile],
    budget: usize,
    block_bytes: usize,
) -> Option<Range<usize>> {
    let fan_in = (budget / 2 / block_bytes).clamp(4, MAX_FAN_IN);
    let excess = files.len().checked_sub(fan_in).filter(|excess| *excess > 0)?;
    let width = (excess + 1).min(fan_in);
    let size = |window: &[OwnedFile]| window.iter().map(|owned| owned.file.bytes).sum::<u64>();
    let windows = files.windows(width).enumerate();
    let (start, _) = windows.min_by_key(|(_, window)| size(window))?;
    Some(start..start + width)
}

/// Returns the names of files, which the caller must remove from now on.
pub(crate) fn names(files: &mut [OwnedFile]) -> Vec<SpillFile> {
    files
        .iter_mut()
        .map(|owned| {
            owned.kept = true;
            owned.file.clone()
        })
        .collect()
}
