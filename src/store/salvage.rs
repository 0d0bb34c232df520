//! Salvage: a damaged database is read family by family, whatever is wrong with the others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::codec::{HeaderRecord, State};
use super::files::log_number;
use super::generation::BUILDING;
use super::seal::Bounds;
use super::tuning::{MIN_MEMORY, Tuning};
use super::wreck::Wreck;
use super::{
    CREATING_FILE, Cursor, Db, Family, LOCK_FILE, engine_error, exists, families_of_cut,
    read_header, require_database, require_meta, resources,
};
use crate::error::{Error, Result};

/// `meta` and at most one family of the live generation, opened for reading.
pub(crate) struct Salvage {
    db: Db,
    path: PathBuf,
    header: HeaderRecord,
    state: State,
    lost: Option<Error>,
    notes: Vec<Error>,
    /// Where the files are if they had to be put together, or a log cut; dropped after the
    /// database.
    _directory: Option<Arc<TempDir>>,
}

impl Salvage {
    /// Opens `meta`, and a family beside it; what the others hold does not matter.
    ///
    /// # Errors
    ///
    /// As opening an index; damage only of what is opened.
    pub(crate) fn open(path: &Path, family: Option<Family>) -> Result<Self> {
        require_database(path)?;
        let (names, cut) = families_of_cut(path)?;
        require_meta(path, &names)?;
        let cut = cut.map(Arc::new);
        let readable = cut.as_ref().map_or(path, |cut| cut.path());
        let read = |name| Self::read_meta(path, open(readable, name)?, cut.clone());
        let meta = read(None)?;
        if meta.db.get_cf(meta.handle(Family::Meta)?, BUILDING).is_ok_and(|mark| mark.is_some()) {
            // A log that lost its end may have lost the end of the build.
            meta.lost.map_or(Ok(()), Err)?;
            return Err(Error::BuildUnfinished { path: path.to_owned() });
        }
        match family {
            None => Ok(meta),
            Some(family) => read(Some(&family.name(meta.state.generation))),
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

    /// Puts `meta`, documents and postings together from the files by themselves.
    ///
    /// That takes room beside the target for links, and for what is in the logs.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the header is lost, and failures of the environment.
    pub(crate) fn of_files(path: &Path, beside: &Path) -> Result<Self> {
        let Wreck { db, header, state, notes, directory } = Wreck::salvage(path, beside)?;
        let (path, directory) = (path.to_owned(), Some(Arc::new(directory)));
        Ok(Self { db, path, header, state, lost: None, notes, _directory: directory })
    }

    /// Returns true for a failure to open that says nothing of the data files themselves.
    ///
    /// Without CURRENT a directory with the lock file of an index is a damaged one.
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

    /// Returns true if the list of files is not the one that was synced, so that files may be
    /// missing in it.
    pub(crate) fn lost_files(&self) -> bool {
        matches!(&self.lost, Some(Error::Corrupt { family, .. })
            if family.starts_with("MANIFEST") || family == "CURRENT")
    }

    /// Fails if a file that the list names is not there; files are opened only when they are read.
    pub(crate) fn require_files(&self) -> Result<()> {
        for file in self.db.live_files().map_err(|e| engine_error("files", e))? {
            let name = file.name.trim_start_matches('/');
            if !exists(&self.path, name)? {
                return Err(Error::corrupt(name, "is missing"));
            }
        }
        Ok(())
    }

    /// What could not be read, and what the files alone cannot prove.
    pub(crate) fn take_notes(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn header(&self) -> &HeaderRecord {
        &self.header
    }

    /// Documents that were counted; perhaps not all of them can be read.
    pub(crate) fn documents(&self) -> u64 {
        self.state.documents
    }

    /// What tells that some of what was synced is not there any more.
    pub(crate) fn take_lost(&mut self) -> Option<Error> {
        self.lost.take()
    }

    /// Reads a table of the pipeline's.
    pub(crate) fn resource(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let meta = self.handle(Family::Meta)?;
        resources::read(name, |key| self.db.get_cf(meta, key).map_err(|e| engine_error("meta", e)))
    }

    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.db.get_cf(self.handle(family)?, key).map_err(|e| engine_error(&family.to_string(), e))
    }

    /// Reads a family from front to back.
    pub(crate) fn sweep(&self, family: Family) -> Result<Cursor<'_>> {
        let mut cursor = Cursor::new(self.db.raw_iterator_cf(self.handle(family)?), family);
        cursor.seek(&[]);
        Ok(cursor)
    }

    fn handle(&self, family: Family) -> Result<&rocksdb::ColumnFamily> {
        let name = family.name(self.state.generation);
        self.db.cf_handle(&name).ok_or_else(|| {
            Error::corrupt(family.to_string(), format!("{}: not opened", self.path.display()))
        })
    }
}

/// Opens `meta` and perhaps another family, and passes over what the others lack.
fn open(path: &Path, name: Option<&str>) -> Result<Db> {
    let tuning = Tuning::new(MIN_MEMORY, 3);
    let mut options = tuning.database_as_it_is();
    options.set_paranoid_checks(false);
    let meta = Family::Meta.name(0);
    let names = ["default", &meta].into_iter().chain(name);
    let descriptors = names.map(|name| tuning.descriptor(name));
    Db::open_cf_descriptors_read_only(&options, path, descriptors, false)
        .map_err(|e| engine_error(name.unwrap_or("meta"), e))
}
