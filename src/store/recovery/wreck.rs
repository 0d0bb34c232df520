//! Wrecks: a database is reassembled from its data files, without its list of files.
//!
//! `RocksDB` finds its files by the MANIFEST that CURRENT names. If one of these two is damaged, or
//! a listed file is missing, the database does not open although nearly all data exists. Here the
//! files themselves are read:
//!
//! - Files that the database wrote name their family, and every entry has a sequence number.
//!   `RocksDB`'s own repair joins them, in a directory of links.
//! - Files that a build wrote name no family. They were ingested into empty families, so they are
//!   older than all other entries. Their first entry shows what they hold: the checksum of a
//!   document's record, or of a pack, covers its key. They are ingested behind the others.
//! - Logs hold the latest batches, which are complete. They are applied last.
//!
//! The notes list what the files alone cannot prove: files of an earlier generation or from before
//! a compaction may still exist, and a missing file may have held removals.

mod packs;

use std::fs;
use std::path::{Path, PathBuf};

use rocksdb::{
    DBCompactionStyle, DBRawIteratorWithThreadMode, IngestExternalFileOptions, Options, WriteBatch,
    WriteOptions,
};
use tempfile::TempDir;

use super::log_batches::{self, Visit};
use crate::error::{Error, Result};
use crate::store::bytes::codec::{self, Document, HeaderRecord, State};
use crate::store::data::cursor::in_order;
use crate::store::data::generation::BUILDING;
use crate::store::data::overlay::REMOVED;
use crate::store::open::meta::read_header;
use crate::store::open::tuning::{MIN_MEMORY, Tuning};
use crate::store::{Db, Family, STATE, engine_error};

/// Id of `meta`, which is always the first family created.
const META_ID: u32 = 1;

/// Bytes at the end of a file that contain its properties.
const TAIL: u64 = 64 << 10;

/// A database made of the content of the files.
pub(super) struct Wreck {
    pub(super) db: Db,
    pub(super) header: HeaderRecord,
    pub(super) state: State,
    /// What could not be read, and what cannot be proved.
    pub(super) notes: Vec<Error>,
    /// Dropped after the database.
    pub(super) directory: TempDir,
}

/// Content of a file that a build wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Documents,
    Postings,
    /// Packs of documents or of postings.
    Packs(Family),
    /// Tables are rebuilt, so their files are not needed.
    Other,
}

impl Wreck {
    /// Reassembles the files of an index in a directory beside the target of a repair.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if no readable file holds the header.
    pub(super) fn salvage(path: &Path, beside: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("hamdex-repair-")
            .tempdir_in(beside)
            .map_err(|e| Error::io(beside, e))?;
        let place = directory.path().join("db");
        fs::create_dir(&place).map_err(|e| Error::io(&place, e))?;
        let (mut of_builds, mut of_database) = (Vec::new(), 0);
        for (number, file) in tables(path)? {
            if family_of(&file)?.is_some() {
                link(&file, &place.join(format!("{number:06}.sst")))?;
                of_database += 1;
            } else {
                of_builds.push((number, file));
            }
        }
        let tuning = Tuning::new(MIN_MEMORY, 4);
        let mut notes = Vec::new();
        if of_database > 0 {
            Db::repair(&tuning.database(), &place).map_err(|e| engine_error("files", e))?;
            for (number, file) in tables(&place.join("lost")).unwrap_or_default() {
                let family = family_of(&file)?.unwrap_or_default();
                let detail = format!("the file cannot be read; it belongs to {family}");
                notes.push(Error::corrupt(format!("{number:06}.sst"), detail));
            }
        }
        let db = open(&tuning, &place)?;
        let mut work = Work { path, directory: &directory, tuning: &tuning, db, notes };
        let switched = work.meta()?;
        let header = read_header(&work.db, path).map_err(|error| {
            if let Error::NotFound { .. } = error {
                return Error::corrupt("meta", "no readable file holds the header");
            }
            error
        })?;
        let state = work.state()?;
        let building = work.building();
        for family in [Family::Docs, Family::Postings, Family::DocPacks, Family::PostingPacks] {
            work.make(&family.name(state.generation))?;
        }
        work.ingest(of_builds, &header, state.generation, building)?;
        work.apply(&header, state.generation, switched)?;
        let Work { db, notes, .. } = work;
        Ok(Self { db, header, state, notes, directory })
    }
}

struct Work<'a> {
    path: &'a Path,
    directory: &'a TempDir,
    tuning: &'a Tuning,
    db: Db,
    notes: Vec<Error>,
}

impl Work<'_> {
    fn handle(&self, name: &str) -> Result<&rocksdb::ColumnFamily> {
        self.db.cf_handle(name).ok_or_else(|| Error::corrupt(name, "family is missing"))
    }

    fn make(&mut self, name: &str) -> Result<()> {
        if self.db.cf_handle(name).is_none() {
            let options = settings(self.tuning, name);
            self.db.create_cf(name, &options).map_err(|e| engine_error(name, e))?;
        }
        Ok(())
    }

    /// Visits the batches of the logs. Stops at damage, and notes it if `note` is set.
    fn visit(
        &mut self,
        note: bool,
        visit: &mut dyn FnMut(&Db, u64, Visit<'_>) -> Result<()>,
    ) -> Result<()> {
        let Self { db, path, notes, .. } = self;
        match log_batches::visit(path, &mut |number, change| visit(db, number, change)) {
            Err(error @ Error::Corrupt { .. }) => {
                if note {
                    notes.push(error);
                }
                Ok(())
            }
            visited => visited,
        }
    }

    /// Applies the logs' changes of `meta`, and returns the last batch that made a generation live.
    fn meta(&mut self) -> Result<Option<u64>> {
        self.make(&Family::Meta.name(0))?;
        let name = Family::Meta.name(0);
        let (mut switched, mut ended, mut stated) = (None, 0, 0);
        self.visit(true, &mut |db, number, change| {
            if change.family != META_ID {
                return Ok(());
            }
            // One batch ends a build and names the generation that it made.
            match (change.key, change.value) {
                (BUILDING, None) => ended = number,
                (STATE, Some(_)) => stated = number,
                _ => {}
            }
            if ended == number && stated == number {
                switched = Some(number);
            }
            write(db, &name, change.key, change.value)
        })?;
        Ok(switched)
    }

    fn state(&mut self) -> Result<State> {
        let meta = self.handle(&Family::Meta.name(0))?;
        let get = |key: &[u8]| self.db.get_cf(meta, key).map_err(|e| engine_error("meta", e));
        match State::read(get) {
            Ok(state) => Ok(state),
            Err(error) => {
                self.notes.push(error);
                let newest = self.generations().into_iter().max().unwrap_or(1);
                Ok(State { generation: newest, documents: 0 })
            }
        }
    }

    /// Returns the generations of all existing families.
    fn generations(&self) -> Vec<u32> {
        let names = Db::list_cf(&Options::default(), self.db.path()).unwrap_or_default();
        names.iter().filter_map(|name| name.strip_prefix("docs.")?.parse().ok()).collect()
    }

    /// Returns true and adds a note if a build was unfinished. Its data is left out.
    fn building(&mut self) -> bool {
        let name = Family::Meta.name(0);
        let mark = self.db.cf_handle(&name).map(|meta| self.db.get_cf(meta, BUILDING));
        let building = matches!(mark, Some(Ok(Some(_))));
        if building {
            let detail = "a build was unfinished; its data is left out";
            self.notes.push(Error::corrupt("meta", detail));
        }
        building
    }

    /// Ingests the files of builds behind all other entries. Newer files win, unless a build is
    /// unfinished: then the newest files are its own.
    fn ingest(
        &mut self,
        mut files: Vec<(u64, PathBuf)>,
        header: &HeaderRecord,
        generation: u32,
        building: bool,
    ) -> Result<()> {
        files.sort_unstable();
        if !building {
            files.reverse();
        }
        let mut packs = Vec::new();
        for (number, file) in files {
            let name = format!("{number:06}.sst");
            let content = match self.content(&file, header) {
                Ok(content) => content,
                Err(error @ Error::Io { .. }) => return Err(error),
                Err(error) => {
                    self.notes.push(Error::corrupt(name, error.to_string()));
                    continue;
                }
            };
            let family = match content {
                Content::Documents => Family::Docs,
                Content::Postings => Family::Postings,
                Content::Packs(family) => {
                    packs.push((family, name, file));
                    continue;
                }
                Content::Other => continue,
            };
            let family = family.name(generation);
            self.ingest_behind(name, &file, &family)?;
        }
        for family in [Family::Docs, Family::Postings] {
            self.merge_beneath(&family.name(generation))?;
        }
        self.ingest_packs(packs, header, generation)
    }

    /// Classifies a file that a build wrote by its first entry.
    fn content(&mut self, file: &Path, header: &HeaderRecord) -> Result<Content> {
        self.probe(file, |entries| {
            entries.seek_to_first();
            if !entries.valid() {
                // The first block may be the damaged one.
                entries.seek_to_last();
            }
            let Some((key, value)) = entries.item() else {
                entries.status().map_err(|e| engine_error("file", e))?;
                return Ok(Content::Other);
            };
            Ok(if is_document(header, key, value) {
                Content::Documents
            } else if value.is_empty() {
                Content::Postings
            } else if let Some(family) = packs::family_of(header, key, value) {
                Content::Packs(family)
            } else {
                Content::Other
            })
        })
    }

    /// Passes a cursor over one file to `read`.
    fn probe<T>(
        &mut self,
        file: &Path,
        read: impl FnOnce(&mut DBRawIteratorWithThreadMode<'_, Db>) -> Result<T>,
    ) -> Result<T> {
        const PROBE: &str = "probe";
        self.make(PROBE)?;
        let ingested = self.ingest_linked(file, PROBE, false);
        let outcome = ingested
            .and_then(|()| read(&mut self.db.raw_iterator_cf_opt(self.handle(PROBE)?, in_order())));
        self.db.drop_cf(PROBE).map_err(|e| engine_error("file", e))?;
        outcome
    }

    fn ingest_linked(&self, file: &Path, family: &str, behind: bool) -> Result<()> {
        let linked = self.directory.path().join("brought.sst");
        let _ = fs::remove_file(&linked);
        link(file, &linked)?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        options.set_ingest_behind(behind);
        self.db
            .ingest_external_file_cf_opts(self.handle(family)?, &options, vec![&linked])
            .map_err(|e| engine_error(family, e))
    }

    /// Ingests a file behind all entries of a family, or into a family beneath it.
    ///
    /// Returns false and adds a note if the file cannot be ingested.
    fn ingest_behind(&mut self, name: String, file: &Path, family: &str) -> Result<bool> {
        if self.ingest_linked(file, family, true).is_ok() {
            return Ok(true);
        }
        // Entries with sequence number 0, left by a compaction, forbid ingesting behind them.
        let below = beneath(family);
        self.make(&below)?;
        let ingested = self.ingest_linked(file, &below, false);
        let failed = |error: Error| self.notes.push(Error::corrupt(name, error.to_string()));
        Ok(ingested.map_err(failed).is_ok())
    }

    /// Adds entries of the family beneath that the upper family lacks.
    fn merge_beneath(&mut self, family: &str) -> Result<()> {
        let Some(beneath) = self.db.cf_handle(&beneath(family)) else { return Ok(()) };
        let upper = self.handle(family)?;
        let removals: u64 = self
            .db
            .live_files()
            .map_err(|e| engine_error(family, e))?
            .iter()
            .filter(|file| file.column_family_name == family)
            .map(|file| file.num_deletions)
            .sum();
        let mut entries = self.db.raw_iterator_cf_opt(beneath, in_order());
        entries.seek_to_first();
        while let Some((key, value)) = entries.item() {
            let found = self.db.get_cf(upper, key).map_err(|e| engine_error(family, e))?;
            if found.is_none() {
                write(&self.db, family, key, Some(value))?;
            }
            entries.next();
        }
        if let Err(error) = entries.status() {
            self.notes.push(engine_error(family, error));
        }
        if removals > 0 {
            let detail = format!(
                "without the list of files, {removals} removals cannot be applied to the files of \
                 builds; up to that many removed entries may be back"
            );
            self.notes.push(Error::corrupt(family, detail));
        }
        Ok(())
    }

    /// Applies the logs' changes of documents and postings since a generation went live.
    fn apply(&mut self, header: &HeaderRecord, generation: u32, since: Option<u64>) -> Result<()> {
        let since = since.unwrap_or(0);
        let mut documents = None;
        let mut removed: (u64, Vec<(u32, Vec<u8>)>) = (0, Vec::new());
        let width = (header.bits / 8) as usize;
        self.visit(false, &mut |_, number, change| {
            if number < since || change.family <= META_ID {
                return Ok(());
            }
            match change.value {
                Some(value) if is_document(header, change.key, value) => {
                    documents = documents.max(Some(change.family));
                }
                Some(value) if value != REMOVED => {}
                // Removing a document also removes its posting, whose family has the next id.
                _ => {
                    if removed.0 != number {
                        removed = (number, Vec::new());
                    }
                    let of = |(family, key): &(u32, Vec<u8>)| {
                        family + 1 == change.family && change.key.get(width..) == Some(&key[..])
                    };
                    if let Some((family, _)) = removed.1.iter().find(|gone| of(gone)) {
                        documents = documents.max(Some(*family));
                    }
                    removed.1.push((change.family, change.key.to_vec()));
                }
            }
            Ok(())
        })?;
        let Some(id) = documents else { return Ok(()) };
        let names = [Family::Docs, Family::Postings].map(|family| family.name(generation));
        self.visit(false, &mut |db, number, change| {
            let name = match change.family.checked_sub(id) {
                Some(0) => &names[0],
                Some(1) => &names[1],
                _ => return Ok(()),
            };
            if number < since { Ok(()) } else { write(db, name, change.key, change.value) }
        })
    }
}

/// Returns the name of the family for files that lie beneath all entries of another one.
fn beneath(family: &str) -> String {
    format!("beneath {family}")
}

/// Opens the reassembled files, without automatic compactions.
fn open(tuning: &Tuning, place: &Path) -> Result<Db> {
    let mut options = tuning.database();
    options.set_allow_ingest_behind(true);
    options.set_track_and_verify_wals_in_manifest(false);
    let names = Db::list_cf(&options, place).unwrap_or_else(|_| vec!["default".to_owned()]);
    let descriptors = names
        .iter()
        .map(|name| rocksdb::ColumnFamilyDescriptor::new(name.as_str(), settings(tuning, name)));
    Db::open_cf_descriptors(&options, place, descriptors).map_err(|e| engine_error("files", e))
}

fn settings(tuning: &Tuning, name: &str) -> Options {
    let mut options = tuning.family(name);
    options.set_disable_auto_compactions(true);
    // The only style that allows ingesting behind other files.
    options.set_compaction_style(DBCompactionStyle::Universal);
    options
}

fn write(db: &Db, family: &str, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    let handle = db.cf_handle(family).ok_or_else(|| Error::corrupt(family, "is missing"))?;
    let mut batch = WriteBatch::default();
    match value {
        Some(value) => batch.put_cf(handle, key, value),
        None => batch.delete_cf(handle, key),
    }
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    db.write_opt(batch, &options).map_err(|e| engine_error(family, e))
}

/// Returns true if the value is a valid record of a document under its key.
fn is_document(header: &HeaderRecord, key: &[u8], value: &[u8]) -> bool {
    match header.bits {
        32 => codec::decode::<Document<u32>>("docs", key, value).is_ok(),
        64 => codec::decode::<Document<u64>>("docs", key, value).is_ok(),
        _ => codec::decode::<Document<u128>>("docs", key, value).is_ok(),
    }
}

/// Returns the table files of a directory with their numbers, ascending.
fn tables(path: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let fail = |e| Error::io(path, e);
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(fail)? {
        let file = entry.map_err(fail)?.path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(number) = name.strip_suffix(".sst").and_then(|name| name.parse().ok()) {
            files.push((number, file));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Returns the family in a file's properties, or `None` for a file that a build wrote.
///
/// The block of properties is not compressed, but a key omits the prefix that it shares with the
/// key before it, `rocksdb.column.family.id`. An entry consists of the number of shared bytes, the
/// number of other bytes, the length of the value, the other bytes, and the value.
fn family_of(file: &Path) -> Result<Option<String>> {
    use std::io::{Read, Seek, SeekFrom};
    const ENTRY: [u8; 2] = [22, 4];
    const KEY: &[u8] = b"name";
    let fail = |e| Error::io(file, e);
    let mut opened = fs::File::open(file).map_err(fail)?;
    let length = opened.metadata().map_err(fail)?.len();
    opened.seek(SeekFrom::Start(length.saturating_sub(TAIL))).map_err(fail)?;
    let mut tail = Vec::new();
    opened.read_to_end(&mut tail).map_err(fail)?;
    let head = ENTRY.len() + 1;
    let entry = |bytes: &[u8]| {
        let rest = bytes.strip_prefix(&ENTRY)?;
        let (length, rest) = rest.split_first()?;
        let name = rest.strip_prefix(KEY)?.get(..usize::from(*length))?;
        let family = name == b"default" || name == b"meta" || name.contains(&b'.');
        family.then(|| String::from_utf8_lossy(name).into_owned())
    };
    let last = tail.len().saturating_sub(head + KEY.len());
    Ok((0..last).rev().find_map(|at| entry(tail.split_at(at).1)))
}

/// Links a file, or copies it if linking fails.
fn link(from: &Path, to: &Path) -> Result<()> {
    fs::hard_link(from, to)
        .or_else(|_| fs::copy(from, to).map(drop))
        .map_err(|e| Error::io(from, e))
}
