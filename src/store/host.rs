//! Stores in a host's database: families of their own beside the host's, one log for both.
//!
//! The host opens its database with the families; nothing here makes or drops one. What a store
//! of its own has besides, generations, a seal, a lock file, a directory, is missing: the host
//! answers for its database.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocksdb::{ColumnFamilyDescriptor, SnapshotWithThreadMode, WriteBatch};

use super::codec::HeaderRecord;
use super::meta::decode_header;
use super::resources::Resource;
use super::tuning::Tuning;
use super::{Batch, Database, Db, Family, HEADER, Snapshot, Store, engine_error};
use crate::error::{Error, Result};

/// What a host puts changes of its own into.
pub(crate) type HostBatch = WriteBatch;

/// A frozen state of a host's database.
pub(crate) type HostSnapshot<'a> = SnapshotWithThreadMode<'a, Db>;

/// Longest name of an attached index.
const MAX_NAME: usize = 64;

/// The only generation: bulk builds, which make others, are for stores of their own.
const GENERATION: u32 = 1;

/// Databases and the names in them that are attached to, so that no two handles write at once.
static ATTACHED: Mutex<BTreeSet<(usize, String)>> = Mutex::new(BTreeSet::new());

fn attached() -> MutexGuard<'static, BTreeSet<(usize, String)>> {
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one attachment of a name to a database; another is possible when it is dropped.
pub(super) struct Attachment {
    /// Held for as long as its address stands for it.
    db: Arc<Db>,
    place: (usize, String),
}

impl Attachment {
    fn new(db: Arc<Db>, name: &str) -> Result<Self> {
        check_name(name)?;
        let place = (Arc::as_ptr(&db).addr(), name.to_owned());
        if !attached().insert(place.clone()) {
            return Err(Error::Locked { path: db.path().join(prefix(name)) });
        }
        Ok(Self { db, place })
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// The name that a family has in the host's database.
    pub(super) fn family(&self, family: Family) -> String {
        family_name(&self.place.1, family)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        attached().remove(&self.place);
    }
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(allowed) {
        return Ok(());
    }
    let name = name.escape_debug();
    let reason = format!("\"{name}\"; 1 to {MAX_NAME} of A to Z, a to z, 0 to 9, - and _");
    Err(Error::InvalidOption { name: "name", reason })
}

fn prefix(name: &str) -> String {
    format!("hamdex.{name}")
}

fn family_name(name: &str, family: Family) -> String {
    let prefix = prefix(name);
    match family {
        Family::Meta => format!("{prefix}.meta"),
        Family::Docs => format!("{prefix}.docs"),
        Family::Postings => format!("{prefix}.postings"),
        Family::Table(table) => format!("{prefix}.table{table:03}"),
    }
}

fn families(tables: usize) -> impl Iterator<Item = Family> {
    std::iter::once(Family::Meta).chain(Family::of_generation(tables))
}

/// Names the families of an index, each with the settings that fit its use.
pub(crate) fn descriptors(
    name: &str,
    tables: usize,
    memory: usize,
) -> Result<Vec<ColumnFamilyDescriptor>> {
    check_name(name)?;
    let tuning = Tuning::new(memory, tables + 3);
    let descriptor = |family: Family| {
        // The settings go by the plain name, the first letters of which tell the use.
        let options = tuning.family(&family.name(GENERATION));
        ColumnFamilyDescriptor::new(family_name(name, family), options)
    };
    Ok(families(tables).map(descriptor).collect())
}

impl Store {
    /// Makes an empty index in families that hold nothing yet.
    pub(crate) fn attach_new(
        db: Arc<Db>,
        name: &str,
        header: HeaderRecord,
        resources: &[Resource<'_>],
        tables: usize,
    ) -> Result<Self> {
        let store = Self::attached(db, name, header, tables)?;
        for family in families(tables) {
            if store.sweep(family)?.entry()?.is_some() {
                return Err(Error::AlreadyExists { path: store.path.clone() });
            }
        }
        store.write_header(resources)?;
        Ok(store)
    }

    /// Opens the index of a name; `tables` counts the tables of the header's plan.
    pub(crate) fn attach(
        db: Arc<Db>,
        name: &str,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<Self> {
        let Some(header) = Self::attached_header(&db, name)? else {
            return Err(Error::NotFound { path: db.path().join(prefix(name)) });
        };
        let tables = tables(&header)?;
        let store = Self::attached(db, name, header, tables)?;
        store.state()?;
        Ok(store)
    }

    /// Reads the header of an attached index; `None` where none was made.
    pub(crate) fn attached_header(db: &Db, name: &str) -> Result<Option<HeaderRecord>> {
        check_name(name)?;
        let family = family_name(name, Family::Meta);
        let Some(meta) = db.cf_handle(&family) else {
            return Err(Error::MissingFamily { family });
        };
        let header = db.get_cf(meta, HEADER).map_err(|e| engine_error(&family, e))?;
        header.map(|bytes| decode_header(&bytes)).transpose()
    }

    /// Takes the place of the name in the database, whose families have to fit the plan.
    fn attached(db: Arc<Db>, name: &str, header: HeaderRecord, tables: usize) -> Result<Self> {
        let attachment = Attachment::new(db, name)?;
        let db = attachment.db();
        for family in families(tables) {
            let family = attachment.family(family);
            if db.cf_handle(&family).is_none() {
                return Err(Error::MissingFamily { family });
            }
        }
        // Families beyond the plan's are those of another plan.
        let opened = (tables..)
            .take_while(|&table| db.cf_handle(&attachment.family(Family::Table(table))).is_some());
        let beyond = opened.count();
        if beyond > 0 {
            let (stored, wanted) = (tables.to_string(), (tables + beyond).to_string());
            return Err(Error::HeaderMismatch { what: "number of tables", stored, wanted });
        }
        Ok(Self {
            path: db.path().join(prefix(name)),
            db: Database::Host(attachment),
            header,
            generation: GENERATION,
            tables,
            tuning: None,
            writable: true,
            seal: None,
            secondary: None,
            _lock: None,
        })
    }

    /// A batch that goes on behind what the host has put into it.
    pub(crate) fn batch_behind(&self, host: HostBatch) -> Result<Batch<'_>> {
        self.require_writable()?;
        Batch::new(self, host)
    }

    /// Writes a host's batch; it survives the process, not yet a loss of power.
    pub(crate) fn write_host(&self, batch: HostBatch) -> Result<()> {
        self.db.write(batch).map_err(|e| engine_error("log", e))
    }
}

impl Batch<'_> {
    /// Gives the batch to whoever writes it.
    pub(crate) fn into_host(self) -> HostBatch {
        self.writes
    }
}

impl Snapshot {
    /// The host's whole database at the moment of the snapshot; only of an attached store.
    pub(crate) fn of_host(&self) -> Option<&HostSnapshot<'_>> {
        self.borrow_dependent().as_ref()
    }
}
