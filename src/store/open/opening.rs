//! Openings: a database whose header is known, on the way to a store. And creation, of an empty one.
//!
//! The number of tables follows from the plan in the header, which the store does not parse. So an
//! opening reads the header first, its caller checks it, and [`Opening::with_tables`] continues.
//! Until then nothing but the database's own recovery has changed the directory.

use std::path::{Path, PathBuf};

use rocksdb::Options;
use tempfile::TempDir;

use super::meta::read_header;
use super::secondary::Following;
use super::settled;
use super::tuning::{BlockCache, MIN_MEMORY, Tuning};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::store::bytes::codec::{HeaderRecord, State};
use crate::store::data::overlay::PackedEnd;
use crate::store::data::resources;
use crate::store::data::resources::Resource;
use crate::store::disk::database_id::DatabaseId;
use crate::store::disk::directory::{
    self, CREATING_FILE, LOCK_FILE, Lock, Mark, begin_creation, exists,
};
use crate::store::disk::directory::{make, require_vacant, sync};
use crate::store::disk::log_records::{self, LogRecords};
use crate::store::disk::seal::{Bounds, SEAL_FILE, Seal};
use crate::store::disk::switch;
use crate::store::{Database, Db, FORMAT, Family, Role, Store, engine_error};

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads and writes. Refuses an index with an unfinished build.
    Write,
    /// Reads only: takes no lock and changes no file.
    Read,
    /// Writes for a bulk build. Accepts an unfinished build.
    Build,
}

/// An open database with a readable header.
pub(crate) struct Opening {
    pub(super) db: Database,
    pub(super) path: PathBuf,
    pub(super) header: HeaderRecord,
    /// `None` in a host's database.
    pub(super) cache: Option<BlockCache>,
    pub(super) kind: Kind,
}

/// The store that an opening becomes.
pub(super) enum Kind {
    Primary {
        id: DatabaseId,
        /// Names of all families, with those of unfinished builds.
        names: Vec<String>,
        tuning: Tuning,
        /// The seal's bounds, which the files satisfied.
        bounds: Option<Bounds>,
        /// Whether an unfinished build is accepted.
        builds: bool,
        lock: Lock,
    },
    Reader,
    Follower(Following),
    #[cfg(feature = "rocksdb-interop")]
    Guest {
        /// Whether the index is being created and has no state yet.
        new: bool,
    },
}

impl Opening {
    /// Opens the database of an index.
    pub(crate) fn new(path: &Path, memory: usize, access: Access) -> Result<Self> {
        require_database(path)?;
        let builds = match access {
            Access::Read => return Self::to_read(path, memory),
            Access::Write => false,
            Access::Build => true,
        };
        let lock = Lock::of_index(path)?;
        switch::undo(path)?;
        let (opened, header) = open(path, path, memory, false)?;
        let Opened { names, tuning, db, bounds } = opened;
        let id = DatabaseId::of(&db)?;
        let cache = Some(tuning.cache().clone());
        let kind = Kind::Primary { id, names, tuning, bounds, builds, lock };
        Ok(Self { db: Database::Own(db), path: path.to_owned(), header, cache, kind })
    }

    fn to_read(path: &Path, memory: usize) -> Result<Self> {
        let (Opened { db, tuning, .. }, header) =
            settled::open_settled(path, |directory| open(path, directory, memory, true))?;
        let (cache, kind) = (Some(tuning.cache().clone()), Kind::Reader);
        Ok(Self { db: Database::Own(db), path: path.to_owned(), header, cache, kind })
    }

    /// Returns the header, for the caller to check.
    pub(crate) fn header(&self) -> &HeaderRecord {
        &self.header
    }

    /// Opens the live generation, whose plan has this number of tables.
    pub(crate) fn with_tables(self, tables: usize) -> Result<Store> {
        let Self { db, path, header, cache, kind } = self;
        let store = |role| Store {
            db,
            path: path.clone(),
            header,
            generation: 0,
            tables,
            packed_end: PackedEnd::default(),
            cache,
            role,
        };
        match kind {
            Kind::Primary { id, names, tuning, bounds, builds, lock } => {
                fail_point!("open.recovered");
                if !builds {
                    directory::remove_stage(&path)?;
                    directory::remove_stale_views(&path)?;
                    directory::remove_unsaved(&path)?;
                }
                let seal = Seal::begin(&path, bounds)?;
                let mut store = store(Role::Primary { id, tuning, seal, _lock: lock }).live()?;
                if !builds {
                    store.require_built()?;
                    store.drop_stale_families(&names)?;
                }
                store.require_generation()?;
                Ok(store)
            }
            Kind::Reader => {
                let store = store(Role::Reader).live()?;
                store.require_built()?;
                store.require_generation()?;
                Ok(store)
            }
            // A follower skips an unfinished build: the old generation is complete.
            Kind::Follower(following) => {
                let store = store(Role::Follower(following)).live()?;
                store.require_generation()?;
                Ok(store)
            }
            #[cfg(feature = "rocksdb-interop")]
            Kind::Guest { new } => {
                let store = store(Role::Guest);
                store.require_guest_families()?;
                if !new {
                    store.state()?;
                }
                Ok(store)
            }
        }
    }
}

impl Store {
    /// Creates a database with a header, its resources and the empty families of generation 1.
    pub(crate) fn create(
        path: &Path,
        header: HeaderRecord,
        resources: &[Resource<'_>],
        tables: usize,
        memory: usize,
    ) -> Result<Self> {
        make(path)?;
        require_vacant(path, Mark::Creating)?;
        let lock = Lock::of_index(path)?;
        // Check the directory again: another process may have held the lock meanwhile.
        begin_creation(path, Mark::Creating)?;
        fail_point!("create.marked");
        let tuning = Tuning::new(memory, tables + 3);
        let generation = 1;
        let mut names = vec!["default".to_owned(), Family::Meta.name(generation)];
        names.extend(Family::of_generation(tables).map(|family| family.name(generation)));
        let descriptors = names.iter().map(|name| tuning.descriptor(name));
        let db = Db::open_cf_descriptors(&tuning.database(), path, descriptors)
            .map_err(|e| engine_error("database", e))?;
        fail_point!("create.opened");
        let seal = Seal::begin(path, None)?;
        let id = DatabaseId::of(&db)?;
        // The header may be that of an index with packs.
        let header = HeaderRecord { format: FORMAT, ..header };
        let store = Self {
            db: Database::Own(db),
            path: path.to_owned(),
            header,
            generation,
            tables,
            packed_end: PackedEnd::default(),
            cache: Some(tuning.cache().clone()),
            role: Role::Primary { id, tuning, seal, _lock: lock },
        };
        store.write_header(resources)?;
        fail_point!("create.written");
        store.sync()?;
        fail_point!("create.synced");
        let mark = path.join(CREATING_FILE);
        std::fs::remove_file(&mark).map_err(|e| Error::io(&mark, e))?;
        // Otherwise a power loss could bring the mark back, and the next creation clears the index.
        sync(path)?;
        Ok(store)
    }

    /// Writes header, resources and the state of an empty index in one batch.
    pub(super) fn write_header(&self, resources: &[Resource<'_>]) -> Result<()> {
        let mut batch = self.batch()?;
        batch.put_header(&self.header);
        for (name, bytes) in resources {
            resources::write(name, bytes, |key, record| batch.put_meta(key, record));
        }
        batch.put_state(&State { generation: self.generation, documents: 0 });
        batch.commit()
    }

    /// Selects the live generation.
    fn live(mut self) -> Result<Self> {
        self.generation = self.state()?.generation;
        Ok(self)
    }

    fn require_built(&self) -> Result<()> {
        match self.building()? {
            Some(_) => Err(Error::BuildUnfinished { path: self.path.clone() }),
            None => Ok(()),
        }
    }

    /// Reads only the header, for any width.
    pub(crate) fn peek(path: &Path) -> Result<HeaderRecord> {
        Self::peek_resources(path, &[]).map(|(header, _)| header)
    }

    /// Reads the header and the named resources, for any width.
    pub(crate) fn peek_resources(
        path: &Path,
        names: &[&str],
    ) -> Result<(HeaderRecord, Vec<Option<Vec<u8>>>)> {
        require_database(path)?;
        settled::open_settled(path, |directory| {
            // These records never change, so the beginning of a log is enough.
            let (families, cut) = families_of_cut(directory)?;
            require_meta(directory, &families)?;
            let meta = Family::Meta.name(0);
            let tuning = Tuning::new(MIN_MEMORY, 2);
            let descriptors = ["default", &meta].map(|name| tuning.descriptor(name));
            let db = Db::open_cf_descriptors_read_only(
                &tuning.database_as_it_is(),
                cut.as_ref().map_or(directory, TempDir::path),
                descriptors,
                false,
            )
            .map_err(|e| engine_error("database", e))?;
            let header = read_header(&db, path)?;
            let handle =
                db.cf_handle(&meta).ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
            let get = |key: &[u8]| db.get_cf(handle, key).map_err(|e| engine_error("meta", e));
            let found = names.iter().map(|name| resources::read(name, get));
            Ok((header, found.collect::<Result<_>>()?))
        })
    }

    /// Drops families that a finished, killed or abandoned build left behind.
    fn drop_stale_families(&mut self, names: &[String]) -> Result<()> {
        let live: Vec<_> = self.families().map(|f| f.name(self.generation)).collect();
        for name in names {
            if name != "default" && *name != Family::Meta.name(0) && !live.contains(name) {
                self.db.drop_family(name)?;
                fail_point!("open.dropped");
            }
        }
        Ok(())
    }
}

/// A database with all its families.
pub(in crate::store) struct Opened {
    pub(in crate::store) names: Vec<String>,
    pub(super) tuning: Tuning,
    pub(in crate::store) db: Db,
    /// The seal's bounds, which the files satisfied.
    pub(super) bounds: Option<Bounds>,
}

/// Opens all families after checking the files and the log against the seal.
pub(in crate::store) fn open_families(
    path: &Path,
    bounds: Option<Bounds>,
    memory: usize,
    read_only: bool,
    options: impl FnOnce(&Tuning) -> Options,
) -> Result<Opened> {
    let names = families(path)?;
    require_meta(path, &names)?;
    let tuning = Tuning::new(memory, names.len());
    let descriptors = names.iter().map(|name| tuning.descriptor(name));
    let mut options = options(&tuning);
    let db = if read_only {
        // Keep all files open: a writer or a compaction deletes files that it no longer needs.
        options.set_max_open_files(-1);
        Db::open_cf_descriptors_read_only(&options, path, descriptors, false)
    } else {
        Db::open_cf_descriptors(&options, path, descriptors)
    }
    .map_err(|e| engine_error("database", e))?;
    if let Some(bounds) = &bounds {
        bounds.require_sequence(db.latest_sequence_number())?;
    }
    Ok(Opened { names, tuning, db, bounds })
}

/// Opens the files in `directory`, those of the index at `path` or a view of them.
fn open(
    path: &Path,
    directory: &Path,
    memory: usize,
    read_only: bool,
) -> Result<(Opened, HeaderRecord)> {
    // Read before the database is opened: a concurrent writer only exceeds these bounds.
    let bounds = match Bounds::of_files(directory) {
        // Another format may have another kind of seal: report the format instead.
        Err(error) => match Store::peek(path) {
            Err(format @ Error::FormatVersion { .. }) => return Err(format),
            _ => return Err(error),
        },
        bounds => bounds?,
    };
    let opened = open_families(directory, bounds, memory, read_only, Tuning::database_as_it_is)?;
    let header = read_header(&opened.db, path)?;
    Ok((opened, header))
}

pub(in crate::store) fn require_database(path: &Path) -> Result<()> {
    match Mark::of(path)? {
        Some(Mark::Restoring) => Err(Error::RestoreUnfinished { path: path.to_owned() }),
        None if exists(path, "CURRENT")? => Ok(()),
        // Only a complete index has a seal.
        None if exists(path, SEAL_FILE)? => Err(Error::corrupt("CURRENT", "is missing")),
        _ => Err(Error::NotFound { path: path.to_owned() }),
    }
}

/// Lists the families of a database, after checking that its logs can be read.
pub(in crate::store) fn families(path: &Path) -> Result<Vec<String>> {
    LogRecords::default().require(path)?;
    Db::list_cf(&Options::default(), path).map_err(|e| engine_error("meta", e))
}

/// As [`families`], but truncates an unreadable log in a directory of links.
pub(in crate::store) fn families_of_cut(path: &Path) -> Result<(Vec<String>, Option<TempDir>)> {
    let error = match families(path) {
        Ok(names) => return Ok((names, None)),
        Err(error) => error,
    };
    let cut = log_records::cut_short(path)?.ok_or(error)?;
    Ok((families(cut.path())?, Some(cut)))
}

pub(in crate::store) fn require_meta(path: &Path, families: &[String]) -> Result<()> {
    if families.contains(&Family::Meta.name(0)) {
        return Ok(());
    }
    Err(no_index(path, "the manifest names no family of an index"))
}

/// Distinguishes a damaged index from another program's database, which has no lock file of hamdex.
pub(super) fn no_index(path: &Path, detail: &str) -> Error {
    match exists(path, LOCK_FILE) {
        Ok(true) => Error::corrupt("meta", detail),
        Ok(false) => Error::NotFound { path: path.to_owned() },
        Err(error) => error,
    }
}
