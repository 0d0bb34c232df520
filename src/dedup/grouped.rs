//! Units of many documents: how many documents have each, their groups, and the documents of those.
//!
//! Everything that grows with the documents is sorted outside memory: occurrences by the hash of
//! their unit, units by the number of their documents, and the documents of a group by group. So
//! nothing is forgotten for want of memory, and the groups do not depend on it.
#![expect(clippy::indexing_slicing, reason = "records have the lengths that they are made with")]

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::decisions::Decisions;
use super::engine::Dedup;
use super::sorter::{Sorted, Sorter};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::text::Pipeline;
use crate::verify::spilled::{SpilledBytes, SpilledReader, SpillingBytes};

/// Units that are read and fingerprinted together.
const BATCH: usize = 1024;

/// Records between two checks for cancellation.
const CHECKED_TOGETHER: u64 = 1 << 16;

/// Part of the memory that one sorter takes; two are filled at a time, beside evidence of the engine.
const SORTER_PART: usize = 4;

/// Part of the memory for hashes of units whose text is written.
const HASHES_PART: usize = 8;

/// Bytes of memory of a known hash while the table grows.
const PER_HASH: usize = 56;

/// Bytes of a record of an occurrence, and of a unit.
const RECORD: usize = 32;

/// Where a text is in the file of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    bytes: u32,
}

/// A distinct unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) hash: u128,
    pub(super) documents: u32,
    /// Its text where it occurs first; units that occur earlier have lower places.
    pub(super) text: Place,
}

impl Unit {
    /// Records sort by falling number of documents, of equals the first one first.
    fn encode(&self) -> [u8; RECORD] {
        let Place { offset, bytes } = self.text;
        joined([
            &(!self.documents).to_be_bytes(),
            &offset.to_be_bytes(),
            &bytes.to_be_bytes(),
            &self.hash.to_be_bytes(),
        ])
    }

    fn decode(record: &[u8; RECORD]) -> Self {
        let text = Place { offset: u64::from_be_bytes(part(record, 4)), bytes: number(record, 12) };
        let hash = u128::from_be_bytes(part(record, 16));
        Self { hash, documents: !number(record, 0), text }
    }
}

fn joined<const N: usize, const PARTS: usize>(parts: [&[u8]; PARTS]) -> [u8; N] {
    let (mut record, mut at) = ([0; N], 0);
    for part in parts {
        record[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    record
}

fn part<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    *record[at..].first_chunk().expect("the record has all parts")
}

fn number(record: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(part(record, at))
}

/// Units as they occur, one document after another.
#[derive(Debug)]
pub(super) struct Occurrences {
    directory: Option<PathBuf>,
    memory: usize,
    /// Hash of the unit, document, and place of the text.
    sorter: Sorter<RECORD>,
    texts: SpillingBytes,
    /// Hashes of units whose text is written, as far as they fit the memory.
    known: HashSet<u128>,
}

impl Occurrences {
    pub(super) fn new(directory: Option<&Path>, memory: usize) -> Result<Self> {
        Ok(Self {
            directory: directory.map(Path::to_path_buf),
            memory,
            sorter: Sorter::new(directory, memory / SORTER_PART)?,
            texts: SpillingBytes::new(directory, 0)?,
            known: HashSet::new(),
        })
    }

    /// Adds a unit of a document, which has not added it yet and follows all earlier ones.
    pub(super) fn push(&mut self, hash: u128, document: u32, text: &str) -> Result<()> {
        // The first occurrence has a text, and no later one needs it.
        let mut place = Place { offset: u64::MAX, bytes: 0 };
        if !self.known.contains(&hash) {
            place.bytes = u32::try_from(text.len()).map_err(|_| Error::InvalidOption {
                name: "bytes",
                reason: format!("more than {} of a unit are too many", u32::MAX),
            })?;
            place.offset = self.texts.push(text.as_bytes())?;
            if self.known.len() < self.memory / HASHES_PART / PER_HASH {
                self.known.insert(hash);
            }
        }
        let (offset, bytes) = (place.offset.to_be_bytes(), place.bytes.to_be_bytes());
        let record = [&hash.to_be_bytes()[..], &document.to_be_bytes(), &offset, &bytes];
        self.sorter.push(joined(record))
    }

    /// Counts the documents of each unit.
    pub(super) fn count(self, progress: &dyn Progress) -> Result<Counted> {
        let Self { directory, memory, sorter, texts, known } = self;
        drop(known);
        let mut units = Sorter::new(directory.as_deref(), memory / SORTER_PART)?;
        let mut lists = SpillingBytes::new(directory.as_deref(), 0)?;
        let mut distinct = 0;
        let mut documents: Vec<u32> = Vec::new();
        let mut occurrences = sorter.finish()?.peekable();
        while let Some(first) = occurrences.next().transpose()? {
            let hash: [u8; 16] = part(&first, 0);
            documents.clear();
            documents.push(number(&first, 16));
            let same =
                |next: &Result<[u8; RECORD]>| !matches!(next, Ok(next) if next[..16] != hash);
            while let Some(next) = occurrences.next_if(same) {
                documents.push(number(&next?, 16));
            }
            let count = u32::try_from(documents.len()).expect("documents have 32-bit numbers");
            lists.push(&hash)?;
            lists.push(&count.to_be_bytes())?;
            for document in &documents {
                lists.push(&document.to_be_bytes())?;
            }
            let text =
                Place { offset: u64::from_be_bytes(part(&first, 20)), bytes: number(&first, 28) };
            let hash = u128::from_be_bytes(hash);
            units.push(Unit { hash, documents: count, text }.encode())?;
            distinct += 1;
            if distinct % CHECKED_TOGETHER == 0 {
                progress::check(progress)?;
            }
        }
        let (texts, lists) = (texts.finish()?, lists.finish()?);
        Ok(Counted { directory, memory, distinct, units: units.finish()?, lists, texts })
    }
}

/// Distinct units, those that most documents have first.
#[derive(Debug)]
pub(super) struct Counted {
    directory: Option<PathBuf>,
    memory: usize,
    pub(super) distinct: u64,
    units: Sorted<RECORD>,
    /// Of each unit, by hash: the hash, the number of its documents, and these.
    lists: SpilledBytes,
    texts: SpilledBytes,
}

impl Counted {
    /// Deduplicates the units; of a group the one with the most documents is kept.
    ///
    /// Units without features are in no group.
    pub(super) fn group<F: Fingerprint>(
        self,
        mut engine: Dedup<F>,
        pipeline: &Pipeline,
        progress: &dyn Progress,
    ) -> Result<Grouped<F>> {
        let Self { directory, memory, distinct, mut units, lists, texts } = self;
        let verification = engine.settings().verification;
        let mut table = SpillingBytes::new(directory.as_deref(), 0)?;
        progress.begin("fingerprinting units", Some(distinct));
        loop {
            progress::check(progress)?;
            let batch: Vec<_> = units.by_ref().take(BATCH).collect::<Result<_>>()?;
            if batch.is_empty() {
                break;
            }
            let make = |record: &[u8; RECORD]| {
                let text = text(&texts, Unit::decode(record).text)?;
                Ok(verification.fingerprint_and_evidence::<F>(pipeline, &text))
            };
            let made = batch.par_iter().map(make).collect::<Result<Vec<_>>>()?;
            for (made, record) in made.into_iter().zip(&batch) {
                if let Some((sketch, evidence)) = made {
                    engine.push(sketch.fingerprint, &evidence, ())?;
                    table.push(record)?;
                }
            }
            progress.advance(batch.len() as u64);
        }
        drop(units);
        let (table, decisions) = (table.finish()?, engine.finish(progress)?);
        Ok(Grouped { directory, memory, decisions, table, lists, texts })
    }
}

fn text(texts: &SpilledBytes, Place { offset, bytes }: Place) -> Result<String> {
    let mut read = vec![0; bytes as usize];
    texts.read(offset, &mut read)?;
    String::from_utf8(read).map_err(|e| Error::corrupt("units", e.to_string()))
}

/// Units after their deduplication.
#[derive(Debug)]
pub(super) struct Grouped<F> {
    directory: Option<PathBuf>,
    memory: usize,
    decisions: Decisions<F>,
    /// The record of each unit, by its position in the decisions.
    table: SpilledBytes,
    lists: SpilledBytes,
    texts: SpilledBytes,
}

/// A unit that is boilerplate.
pub(super) struct Common {
    pub(super) unit: Unit,
    /// Documents of its group.
    pub(super) documents: u32,
    /// Position of the unit that names the group, which precedes the others.
    pub(super) kept: u32,
    pub(super) position: u32,
}

impl<F: Fingerprint> Grouped<F> {
    /// Calls `each` with the units whose group more than `least` documents have.
    pub(super) fn common(
        &self,
        least: u32,
        progress: &dyn Progress,
        mut each: impl FnMut(Common) -> Result<()>,
    ) -> Result<()> {
        let clusters = self.clusters(least, progress)?;
        self.units(|position, unit| {
            let cluster = self.decisions.cluster(position);
            let documents = match cluster {
                Some(cluster) => clusters.get(&cluster).copied(),
                None => Some(unit.documents).filter(|&documents| documents > least),
            };
            let kept = cluster.and_then(|cluster| self.decisions.kept_of(cluster));
            let kept = kept.unwrap_or(position);
            documents.map_or(Ok(()), |documents| each(Common { unit, documents, kept, position }))
        })
    }

    /// Returns the clusters that more than `least` documents have, and how many these are.
    ///
    /// A document with several units of a cluster counts once.
    fn clusters(&self, least: u32, progress: &dyn Progress) -> Result<HashMap<u32, u32>> {
        let sorter = self.memory / SORTER_PART;
        let mut members = Sorter::<20>::new(self.directory.as_deref(), sorter)?;
        self.units(|position, unit| match self.decisions.cluster(position) {
            Some(cluster) => {
                members.push(joined([&unit.hash.to_be_bytes(), &cluster.to_be_bytes()]))
            }
            None => Ok(()),
        })?;
        let mut documents = Sorter::<8>::new(self.directory.as_deref(), sorter)?;
        let mut lists = self.lists.reader();
        for (member, at) in members.finish()?.zip(0_u64..) {
            if at % CHECKED_TOGETHER == 0 {
                progress::check(progress)?;
            }
            let member = member?;
            for _ in 0..reach(&mut lists, part(&member, 0))? {
                let document: [u8; 4] = lists.next()?;
                documents.push(joined([&member[16..], &document]))?;
            }
        }
        let mut counts = HashMap::new();
        let (mut last, mut count) = ([0; 8], 0);
        let mut close = |cluster: u32, count: u32| {
            if count > least {
                counts.insert(cluster, count);
            }
        };
        for found in documents.finish()? {
            let found = found?;
            if found[..4] != last[..4] {
                close(number(&last, 0), count);
                count = 0;
            }
            count += u32::from(count == 0 || found != last);
            last = found;
        }
        close(number(&last, 0), count);
        Ok(counts)
    }

    /// Calls `each` with every unit and its position, in order.
    fn units(&self, mut each: impl FnMut(u32, Unit) -> Result<()>) -> Result<()> {
        let mut table = self.table.reader();
        for (position, _) in (0..).zip(self.decisions.fingerprints()) {
            each(position, Unit::decode(&table.next()?))?;
        }
        Ok(())
    }

    /// Reads the text of a unit.
    pub(super) fn text(&self, unit: &Unit) -> Result<String> {
        text(&self.texts, unit.text)
    }
}

/// Moves to the documents of a unit that follows, and returns their number.
fn reach(lists: &mut SpilledReader<'_>, hash: [u8; 16]) -> Result<u32> {
    loop {
        let found: [u8; 16] = lists.next()?;
        let count = u32::from_be_bytes(lists.next()?);
        if found == hash {
            return Ok(count);
        }
        for _ in 0..count {
            lists.next::<4>()?;
        }
    }
}
