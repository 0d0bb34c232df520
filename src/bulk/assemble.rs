//! Assembly: merges sorted pushed and stored documents into the families of the next generation.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::path::Path;

use super::fingerprints::{FingerprintSorter, SortedFingerprints};
use super::manifest::Written;
use super::options::{BuildReport, Repeats};
use super::spool::{FingerprintSpool, SpooledFingerprints};
use super::writers::{self, Layout, Writers};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::plan::{Plan, Table};
use crate::progress::{self, Progress};
use crate::sort::{RecordSorter, Sorted};
use crate::store::codec::{self, Document};
use crate::store::keys::{self, Kind, TableKey};
use crate::store::pack::{self, Member, PACK_MEMBERS, PACKED_KEY};
use crate::store::run::{self, RUN_MEMBERS};
use crate::store::{Cursor, Family, Store};

/// Entries between two progress reports.
const REPORT_EVERY: u64 = 1 << 16;

/// Everything needed to write a generation.
pub(super) struct Assembly<'a, F> {
    pub(super) store: &'a Store,
    pub(super) plan: &'a Plan,
    pub(super) generation: u32,
    pub(super) staging: &'a Path,
    pub(super) spills: &'a Path,
    pub(super) memory: usize,
    pub(super) repeats: Repeats,
    pub(super) progress: &'a dyn Progress,
    pub(super) width: PhantomData<fn() -> F>,
}

impl<F: Fingerprint> Assembly<'_, F> {
    /// Writes and ingests postings and tables, after the documents.
    ///
    /// Postings that were not collected with the documents are read from them.
    pub(super) fn rest(
        &self,
        written: Written,
        postings: Option<RecordSorter>,
    ) -> Result<BuildReport> {
        let Written { documents, duplicates, replaced, bytes, .. } = written;
        let mut report = BuildReport { documents, duplicates, replaced, bytes, fingerprints: 0 };
        self.progress.begin("sorting postings", None);
        let postings = match postings {
            Some(collected) => collected,
            None => self.collect(documents)?,
        };
        let mut fingerprints = Some(self.postings(postings, &mut report)?);
        let last = self.plan.tables().len().saturating_sub(1);
        for (number, table) in self.plan.tables().iter().enumerate() {
            let Some(spooled) = fingerprints.take() else { break };
            let sorted = self.sorted(number, table, &spooled)?;
            // The spool of the last table is removed before that table is written.
            fingerprints = (number < last).then_some(spooled);
            self.table(number, sorted, &mut report)?;
        }
        Ok(report)
    }

    /// Returns true if postings are collected while documents are written.
    ///
    /// To read the documents again costs time if they have features. To collect them costs space
    /// while the spill files of the documents exist.
    fn collects(&self) -> bool {
        self.store.header().keeps_features
    }

    /// Reads the postings of the written documents, unsorted.
    fn collect(&self, documents: u64) -> Result<RecordSorter> {
        let mut postings = RecordSorter::new(self.spills, self.memory / 2, "postings");
        let mut posting = Vec::new();
        let mut cursor = self.store.sweep_built(self.generation)?;
        while let Some((key, bytes)) = cursor.entry()? {
            let document = codec::decode::<Document<F>>("docs", key, bytes)?;
            keys::posting_into(&mut posting, document.fingerprint, key);
            postings.push(&posting, &[])?;
            if postings.len().is_multiple_of(REPORT_EVERY) {
                progress::check(self.progress)?;
            }
            cursor.next();
        }
        if postings.len() != documents {
            let detail = format!("{} documents, {documents} were written", postings.len());
            return Err(Error::corrupt("docs", detail));
        }
        Ok(postings)
    }

    /// Returns the key if documents with it are packed: a number, without features beside it.
    fn packed_key(&self, key: &[u8]) -> Option<u64> {
        let number = <[u8; PACKED_KEY]>::try_from(key).ok().map(u64::from_be_bytes);
        number.filter(|_| !self.store.header().keeps_features)
    }

    /// Records are many and small, so their files are written in parallel. A search moves between
    /// all files of a table, so a table has as few files as possible.
    fn layout(&self, family: Family) -> Layout {
        match family {
            Family::Table(_) => Layout { block_bytes: 1 << 20, blocks_per_file: 512 },
            Family::Meta
            | Family::Docs
            | Family::Postings
            | Family::DocPacks
            | Family::PostingPacks => Layout {
                block_bytes: (self.memory / 32).clamp(1 << 20, 32 << 20),
                blocks_per_file: 1,
            },
        }
    }

    /// Merges pushed and stored documents by key, and writes and ingests them.
    ///
    /// Also returns their postings, unsorted, if they are collected here.
    pub(super) fn documents(
        &self,
        documents: RecordSorter,
        duplicate: &mut dyn FnMut(&[u8], u64),
    ) -> Result<(Written, Option<RecordSorter>)> {
        let report = &mut BuildReport::default();
        self.progress.begin("sorting documents", None);
        let mut pushed = documents.finish()?;
        let old = self.store.state()?.documents;
        self.progress.begin("writing documents", Some(pushed.len() + old));
        let mut posting = Vec::new();
        let mut postings =
            self.collects().then(|| RecordSorter::new(self.spills, self.memory / 2, "postings"));
        let mut collect = |fingerprint: F, key: &[u8]| {
            let Some(postings) = &mut postings else { return Ok(()) };
            keys::posting_into(&mut posting, fingerprint, key);
            postings.push(&posting, &[])
        };
        let mut packed = false;
        self.with_packs(Family::Docs, report, |report, writers, packer| {
            let mut record = Vec::new();
            let mut stored = self.store.sweep(Family::Docs)?;
            let mut ticks = 0;
            merge::<F>(&mut pushed, &mut stored, self.repeats, |step| {
                match step {
                    Step::Duplicate(key, origin) => {
                        report.duplicates += 1;
                        duplicate(key, origin);
                    }
                    Step::Replaced => report.replaced += 1,
                    Step::Stored(key, fingerprint, bytes) => {
                        report.documents += 1;
                        collect(fingerprint, key)?;
                        match self.packed_key(key) {
                            Some(key) => packer.push(fingerprint, key)?,
                            None => writers.put(key, bytes)?,
                        }
                    }
                    Step::Pushed(key, fingerprint, features) => {
                        report.documents += 1;
                        collect(fingerprint, key)?;
                        if let Some(key) = self.packed_key(key) {
                            packer.push(fingerprint, key)?;
                        } else {
                            let features = features.map(<[u8]>::to_vec);
                            let document = Document { fingerprint, features };
                            codec::encode_into(&mut record, key, &document);
                            writers.put(key, &record)?;
                        }
                    }
                }
                self.tick(&mut ticks)
            })?;
            packed = packer.finish()?;
            Ok(())
        })?;
        let BuildReport { documents, duplicates, replaced, bytes, .. } = *report;
        Ok((Written { documents, duplicates, replaced, bytes, packed }, postings))
    }

    /// Writes the postings in order and returns their distinct fingerprints.
    fn postings(
        &self,
        postings: RecordSorter,
        report: &mut BuildReport,
    ) -> Result<SpooledFingerprints<F>> {
        let mut postings = postings.finish()?;
        self.progress.begin("writing postings", Some(postings.len()));
        let mut spool = FingerprintSpool::new(self.spills, self.memory / 4, "distinct");
        self.with_packs(Family::Postings, report, |report, writers, packer| {
            let mut ticks = 0;
            let mut last = None;
            let mut distinct = Vec::with_capacity(1 << 12);
            while let Some((key, _)) = postings.next()? {
                let (fingerprint, document) = keys::split_posting::<F>(key)?;
                if last != Some(fingerprint) {
                    last = Some(fingerprint);
                    report.fingerprints += 1;
                    distinct.push(fingerprint);
                    if distinct.len() == 1 << 12 {
                        spool.push_all(&distinct)?;
                        distinct.clear();
                    }
                }
                match self.packed_key(document) {
                    Some(key) => packer.push(fingerprint, key)?,
                    None => writers.put(key, &[])?,
                }
                self.tick(&mut ticks)?;
            }
            packer.finish()?;
            spool.push_all(&distinct)
        })?;
        spool.finish()
    }

    /// Permutes and sorts the distinct fingerprints for one table.
    fn sorted(
        &self,
        number: usize,
        table: &Table,
        fingerprints: &SpooledFingerprints<F>,
    ) -> Result<SortedFingerprints<F>> {
        let phase = format!("writing table {} of {}", number + 1, self.plan.tables().len());
        self.progress.begin(&phase, Some(fingerprints.len()));
        let mut sorter = FingerprintSorter::new(self.spills, self.memory / 2, "table");
        let mut reader = fingerprints.read()?;
        let mut chunk = Vec::new();
        while reader.next_chunk(&mut chunk)? {
            sorter.push_permuted(&chunk, |f| table.permutation().apply(f))?;
            progress::check(self.progress)?;
        }
        sorter.finish()
    }

    /// Writes sorted fingerprints as the runs of one table.
    fn table(
        &self,
        number: usize,
        mut sorted: SortedFingerprints<F>,
        report: &mut BuildReport,
    ) -> Result<()> {
        let mut chunk = Vec::new();
        self.family(Family::Table(number), report, |_, writers| {
            let mut waiting: Vec<F> = Vec::new();
            let mut value = Vec::new();
            let mut put = |members: &[F], writers: &mut Writers| {
                let Some(last) = members.last() else { return Ok(()) };
                run::encode(members, &mut value);
                writers.put(TableKey::new(Kind::Run, *last).as_ref(), &value)
            };
            while sorted.next_chunk(&mut chunk)? {
                self.progress.advance(chunk.len() as u64);
                progress::check(self.progress)?;
                waiting.append(&mut chunk);
                let runs = waiting.chunks_exact(RUN_MEMBERS);
                let rest = runs.remainder().len();
                for members in runs {
                    put(members, writers)?;
                }
                waiting.drain(..waiting.len() - rest);
            }
            put(&waiting, writers)
        })
    }

    /// Writes the files of a family and of the packs beneath it, and ingests them.
    fn with_packs(
        &self,
        family: Family,
        report: &mut BuildReport,
        produce: impl FnOnce(&mut BuildReport, &mut Writers, &mut Packer<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(packs) = family.beneath() else {
            return Err(Error::corrupt(family.to_string(), "has no packs"));
        };
        self.family(family, report, |report, entries| {
            self.family(packs, report, |report, writers| {
                let mut packer = Packer::new(pack::Layout::of(packs, F::BITS), writers);
                produce(report, entries, &mut packer)
            })
        })
    }

    /// Writes the files of one family and ingests them.
    fn family(
        &self,
        family: Family,
        report: &mut BuildReport,
        produce: impl FnOnce(&mut BuildReport, &mut Writers) -> Result<()>,
    ) -> Result<()> {
        let options = self.store.sst_options(family)?;
        let stem = family.name(self.generation);
        let files =
            writers::write(&options, self.staging, &stem, self.layout(family), |writers| {
                produce(report, writers)
            })?;
        for file in &files {
            report.bytes += std::fs::metadata(file).map_err(|e| Error::io(file, e))?.len();
        }
        fail_point!("build.files");
        self.store.ingest(family, self.generation, &files)
    }

    fn tick(&self, ticks: &mut u64) -> Result<()> {
        *ticks += 1;
        if (*ticks).is_multiple_of(REPORT_EVERY) {
            self.progress.advance(REPORT_EVERY);
            progress::check(self.progress)?;
        }
        Ok(())
    }
}

/// Fills packs and passes them to the writers of their family.
struct Packer<'w> {
    layout: pack::Layout,
    members: Vec<Member>,
    value: Vec<u8>,
    writers: &'w mut Writers,
    packed: bool,
}

impl<'w> Packer<'w> {
    fn new(layout: pack::Layout, writers: &'w mut Writers) -> Self {
        let (members, value) = (Vec::with_capacity(PACK_MEMBERS), Vec::new());
        Self { layout, members, value, writers, packed: false }
    }

    /// Adds the next member in the order of the family.
    fn push<F: Fingerprint>(&mut self, fingerprint: F, key: u64) -> Result<()> {
        self.members.push(Member { fingerprint: fingerprint.widen(), key });
        if self.members.len() < PACK_MEMBERS { Ok(()) } else { self.put() }
    }

    fn put(&mut self) -> Result<()> {
        let Some(key) = self.layout.encode(&self.members, &mut self.value) else { return Ok(()) };
        self.members.clear();
        self.packed = true;
        self.writers.put(key.as_ref(), &self.value)
    }

    /// Writes the last pack, and returns whether there are any.
    fn finish(&mut self) -> Result<bool> {
        self.put()?;
        Ok(self.packed)
    }
}

/// The next document in the merge of pushed and stored ones.
enum Step<'a, F> {
    /// A pushed document that is dropped because of another one with its key.
    Duplicate(&'a [u8], u64),
    /// A stored document that a pushed one replaces.
    Replaced,
    /// A stored document that stays, with its record.
    Stored(&'a [u8], F, &'a [u8]),
    /// A pushed document, with its features if it has any.
    Pushed(&'a [u8], F, Option<&'a [u8]>),
}

/// A pushed document as the sorter returns it.
struct Payload<'a, F> {
    fingerprint: F,
    features: Option<&'a [u8]>,
    origin: u64,
}

impl<'a, F: Fingerprint> Payload<'a, F> {
    fn read(payload: &'a [u8]) -> Result<Self> {
        let damaged = || Error::corrupt("build spill file", "payload does not decode");
        let (head, origin) = payload.split_last_chunk::<8>().ok_or_else(damaged)?;
        let (fingerprint, features) = head.split_at_checked(F::BYTES).ok_or_else(damaged)?;
        Ok(Self {
            fingerprint: F::from_bytes(fingerprint).ok_or_else(damaged)?,
            // An encoded feature set is never empty.
            features: (!features.is_empty()).then_some(features),
            origin: u64::from_be_bytes(*origin),
        })
    }
}

/// Visits pushed and stored documents by ascending key.
fn merge<F: Fingerprint>(
    pushed: &mut Sorted,
    stored: &mut Cursor<'_>,
    repeats: Repeats,
    mut visit: impl FnMut(Step<'_, F>) -> Result<()>,
) -> Result<()> {
    let mut pass_stored =
        |below: Option<&[u8]>, visit: &mut dyn FnMut(Step<'_, F>) -> Result<()>| {
            while let Some((key, bytes)) = stored.entry()? {
                match below.map_or(Ordering::Less, |below| key.cmp(below)) {
                    Ordering::Less => {
                        let document = codec::decode::<Document<F>>("docs", key, bytes)?;
                        visit(Step::Stored(key, document.fingerprint, bytes))?;
                    }
                    Ordering::Equal => visit(Step::Replaced)?,
                    Ordering::Greater => return Ok(true),
                }
                stored.next();
            }
            Ok(false)
        };
    let mut more_stored = true;
    let mut put = |key: &[u8],
                   document: &Payload<'_, F>,
                   visit: &mut dyn FnMut(Step<'_, F>) -> Result<()>| {
        if more_stored {
            more_stored = pass_stored(Some(key), visit)?;
        }
        visit(Step::Pushed(key, document.fingerprint, document.features))
    };
    // Keys are never empty, so the first one differs from the empty `last`.
    let (mut last, mut last_origin) = (Vec::new(), 0);
    // With `Repeats::Last`: the latest document of the present key, which may be repeated.
    let mut held = Vec::new();
    while let Some((key, payload)) = pushed.next()? {
        let document = Payload::<F>::read(payload)?;
        if key == last {
            match repeats {
                Repeats::First => visit(Step::Duplicate(key, document.origin))?,
                Repeats::Last => visit(Step::Duplicate(key, last_origin))?,
                Repeats::Refuse => {
                    let key = key.escape_ascii().to_string();
                    let (first, again) = (last_origin, document.origin);
                    return Err(Error::RepeatedKey { key, first, again });
                }
            }
        } else {
            if repeats != Repeats::Last {
                put(key, &document, &mut visit)?;
            } else if !held.is_empty() {
                put(&last, &Payload::read(&held)?, &mut visit)?;
            }
            last.clear();
            last.extend_from_slice(key);
            last_origin = document.origin;
        }
        if repeats == Repeats::Last {
            last_origin = document.origin;
            held.clear();
            held.extend_from_slice(payload);
        }
    }
    if !held.is_empty() {
        put(&last, &Payload::read(&held)?, &mut visit)?;
    }
    pass_stored(None, &mut visit).map(|_| ())
}
