//! Salvage: reads a damaged database family by family, regardless of damage to the others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::wreck::Wreck;
use crate::error::{Error, Result};
use crate::store::bytes::codec::{HeaderRecord, State};
use crate::store::data::cursor::in_order;
use crate::store::data::generation::BUILDING;
use crate::store::data::overlay::{self, Packs};
use crate::store::data::resources;
use crate::store::disk::directory::{CREATING_FILE, LOCK_FILE, exists};
use crate::store::disk::files::log_number;
use crate::store::disk::seal::Bounds;
use crate::store::open::meta::read_header;
use crate::store::open::opening::{families_of_cut, require_database, require_meta};
use crate::store::open::tuning::{MIN_MEMORY, Tuning};
use crate::store::{Cursor, Db, Family, engine_error};

/// `meta` and at most one family of the live generation with its packs, opened read-only.
pub(crate) struct Salvage {
    db: Db,
    path: PathBuf,
    header: HeaderRecord,
    state: State,
    lost: Option<Error>,
    notes: Vec<Error>,
    /// The directory of links, if the files were reassembled or a log was truncated. Dropped after
    /// the database.
    _directory: Option<Arc<TempDir>>,
}

impl Salvage {
    /// Opens `meta` and optionally one more family, and ignores damage to the others.
    ///
    /// # Errors
    ///
    /// Returns the same errors as opening an index, and damage only of the opened families.
    pub(crate) fn open(path: &Path, family: Option<Family>) -> Result<Self> {
        require_database(path)?;
        let (names, cut) = families_of_cut(path)?;
        require_meta(path, &names)?;
        let cut = cut.map(Arc::new);
        let readable = cut.as_ref().map_or(path, |cut| cut.path());
        let read = |names: &[String]| Self::read_meta(path, open(readable, names)?, cut.clone());
        let meta = read(&[])?;
        if meta.db.get_cf(meta.handle(Family::Meta)?, BUILDING).is_ok_and(|mark| mark.is_some()) {
            // A log that lost its end may have lost the end of the build.
            meta.lost.map_or(Ok(()), Err)?;
            return Err(Error::BuildUnfinished { path: path.to_owned() });
        }
        match family {
            None => Ok(meta),
            Some(family) => {
                let families = [Some(family), family.packs(&meta.header)].into_iter().flatten();
                read(&families.map(|f| f.name(meta.state.generation)).collect::<Vec<_>>())
            }
        }
    }

    fn read_meta(path: &Path, db: Db, cut: Option<Arc<TempDir>>) -> Result<Self> {
        let header = read_header(&db, path)?;
        let name = Family::Meta.name(0);
        let meta = db.cf_handle(&name).ok_or_else(|| Error::corrupt("meta", "is missing"))?;
        let state = State::read(|key| db.get_cf(meta, key).map_err(|e| engine_error("meta", e)))?;
        let found = db.latest_sequence_number();
        let lost = match Bounds::of_files(path) {
            Ok(Some(bounds)) => bounds.require_sequence(found),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let (path, lost) = (path.to_owned(), lost.err());
        Ok(Self { path, header, state, lost, notes: Vec::new(), db, _directory: cut })
    }

    /// Reassembles `meta`, documents and postings from the files alone.
    ///
    /// Needs space in `beside` for links and for the content of the logs.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if the header is lost, and the errors of the environment.
    pub(crate) fn of_files(path: &Path, beside: &Path) -> Result<Self> {
        let Wreck { db, header, state, notes, directory } = Wreck::salvage(path, beside)?;
        let (path, directory) = (path.to_owned(), Some(Arc::new(directory)));
        Ok(Self { db, path, header, state, lost: None, notes, _directory: directory })
    }

    /// Returns true if a failure to open does not concern the data files themselves.
    ///
    /// A directory with an index's lock file and without CURRENT is a damaged index.
    pub(crate) fn is_worth_files(path: &Path, error: &Error) -> bool {
        if let Error::Corrupt { family, .. } = error {
            // What a log has lost is in no other file either.
            return family != "log" && log_number(family).is_none();
        }
        if let Error::NotFound { .. } = error {
            return exists(path, LOCK_FILE).unwrap_or(false)
                && !exists(path, CREATING_FILE).unwrap_or(true)
                && !exists(path, "CURRENT").unwrap_or(true);
        }
        matches!(error, Error::Store { .. })
    }

    /// Returns true if the list of files is not the synced one, so that it may lack files.
    pub(crate) fn lost_files(&self) -> bool {
        matches!(&self.lost, Some(Error::Corrupt { family, .. })
            if family.starts_with("MANIFEST") || family == "CURRENT")
    }

    /// Fails if a listed file is missing. Files are opened only when they are read.
    pub(crate) fn require_files(&self) -> Result<()> {
        for file in self.db.live_files().map_err(|e| engine_error("files", e))? {
            let name = file.name.trim_start_matches('/');
            if !exists(&self.path, name)? {
                return Err(Error::corrupt(name, "is missing"));
            }
        }
        Ok(())
    }

    /// Returns what could not be read, and what the files alone cannot prove.
    pub(crate) fn take_notes(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn header(&self) -> &HeaderRecord {
        &self.header
    }

    /// Returns the stored document count. Some documents may be unreadable.
    pub(crate) fn documents(&self) -> u64 {
        self.state.documents
    }

    /// Returns the evidence that synced data is missing.
    pub(crate) fn take_lost(&mut self) -> Option<Error> {
        self.lost.take()
    }

    /// Reads a resource of the pipeline.
    pub(crate) fn resource(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let meta = self.handle(Family::Meta)?;
        resources::read(name, |key| self.db.get_cf(meta, key).map_err(|e| engine_error("meta", e)))
    }

    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.db.get_cf(self.handle(family)?, key);
        let found = found.map_err(|e| engine_error(&family.to_string(), e))?;
        overlay::value(self.packs(family)?, &mut None, in_order, key, found)
    }

    /// Opens a cursor for one pass over a family.
    pub(crate) fn sweep(&self, family: Family) -> Result<Cursor<'_>> {
        let base = self.packs(family)?.map(|packs| packs.base(in_order()));
        let entries = self.db.raw_iterator_cf_opt(self.handle(family)?, in_order());
        let mut cursor = Cursor::new(entries, family, base);
        cursor.seek(&[]);
        Ok(cursor)
    }

    fn packs(&self, family: Family) -> Result<Option<Packs<'_>>> {
        let Some(packed) = family.packs(&self.header) else { return Ok(None) };
        Ok(Some(Packs::new(&self.db, self.handle(packed)?, packed, self.header.bits)))
    }

    fn handle(&self, family: Family) -> Result<&rocksdb::ColumnFamily> {
        let name = family.name(self.state.generation);
        self.db.cf_handle(&name).ok_or_else(|| {
            Error::corrupt(family.to_string(), format!("{}: not opened", self.path.display()))
        })
    }
}

/// Opens `meta` and the named families, without checking the others.
fn open(path: &Path, others: &[String]) -> Result<Db> {
    let tuning = Tuning::new(MIN_MEMORY, 3);
    let mut options = tuning.database_as_it_is();
    options.set_paranoid_checks(false);
    let meta = Family::Meta.name(0);
    let names = ["default", &meta].into_iter().chain(others.iter().map(String::as_str));
    let descriptors = names.map(|name| tuning.descriptor(name));
    Db::open_cf_descriptors_read_only(&options, path, descriptors, false)
        .map_err(|e| engine_error(others.first().map_or("meta", String::as_str), e))
}
