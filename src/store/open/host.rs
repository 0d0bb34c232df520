//! Stores in a host's database: separate families beside the host's, and one shared log.
//!
//! The host opens its database with these families; this module creates and drops none. Such a
//! store has no generations, seal, lock file or directory: the host is responsible for its
//! database.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocksdb::{ColumnFamilyDescriptor, SnapshotWithThreadMode, WriteBatch};

use super::meta::decode_header;
use super::opening::Kind;
use super::tuning::Tuning;
use crate::error::{Error, Result};
use crate::store::bytes::codec::HeaderRecord;
use crate::store::data::resources::Resource;
use crate::store::{Batch, Database, Db, Family, HEADER, Opening, Snapshot, Store, engine_error};

/// The type of batch to which a host adds its own changes.
pub(crate) type HostBatch = WriteBatch;

/// A snapshot of a host's database.
pub(crate) type HostSnapshot<'a> = SnapshotWithThreadMode<'a, Db>;

/// Longest name of an attached index in bytes.
const MAX_NAME: usize = 64;

/// The only generation: bulk builds, which create others, need a store's own database.
pub(super) const GENERATION: u32 = 1;

/// Attached databases and names. Prevents two handles from writing to the same index.
static ATTACHED: Mutex<BTreeSet<(usize, String)>> = Mutex::new(BTreeSet::new());

fn attached() -> MutexGuard<'static, BTreeSet<(usize, String)>> {
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The only attachment of a name to a database. Dropping it releases the name.
pub(in crate::store) struct Attachment {
    /// Kept alive because its address identifies the database.
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

    /// Returns the name of a family in the host's database.
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
    let reason = format!("\"{name}\": use 1 to {MAX_NAME} of A to Z, a to z, 0 to 9, - and _");
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
        Family::DocPacks => format!("{prefix}.doc_packs"),
        Family::PostingPacks => format!("{prefix}.posting_packs"),
    }
}

fn families(tables: usize) -> impl Iterator<Item = Family> {
    std::iter::once(Family::Meta).chain(Family::of_generation(tables))
}

/// Returns the families of an index, each with settings that fit its use.
pub(crate) fn descriptors(
    name: &str,
    tables: usize,
    memory: usize,
) -> Result<Vec<ColumnFamilyDescriptor>> {
    check_name(name)?;
    let tuning = Tuning::new(memory, tables + 3);
    let descriptor = |family: Family| {
        // The settings depend on the plain name.
        let options = tuning.family(&family.name(GENERATION));
        ColumnFamilyDescriptor::new(family_name(name, family), options)
    };
    Ok(families(tables).map(descriptor).collect())
}

impl Opening {
    /// Opens the index of a name.
    pub(crate) fn in_host(db: Arc<Db>, name: &str) -> Result<Self> {
        let Some(header) = Store::attached_header(&db, name)? else {
            return Err(Error::NotFound { path: db.path().join(prefix(name)) });
        };
        Self::attached(db, name, header, false)
    }

    /// Registers the name in the database. A new index has no state yet.
    fn attached(db: Arc<Db>, name: &str, header: HeaderRecord, new: bool) -> Result<Self> {
        let path = db.path().join(prefix(name));
        let db = Database::Host(Attachment::new(db, name)?);
        Ok(Self { db, path, header, cache: None, kind: Kind::Guest { new } })
    }
}

impl Store {
    /// Creates an empty index in families that hold nothing.
    pub(crate) fn attach_new(
        db: Arc<Db>,
        name: &str,
        header: HeaderRecord,
        resources: &[Resource<'_>],
        tables: usize,
    ) -> Result<Self> {
        let store = Opening::attached(db, name, header, true)?.with_tables(tables)?;
        for family in families(tables) {
            if store.sweep(family)?.entry()?.is_some() {
                return Err(Error::AlreadyExists { path: store.path.clone() });
            }
        }
        store.write_header(resources)?;
        Ok(store)
    }

    /// Reads the header of an attached index. `None` if none was created.
    pub(crate) fn attached_header(db: &Db, name: &str) -> Result<Option<HeaderRecord>> {
        check_name(name)?;
        let family = family_name(name, Family::Meta);
        let Some(meta) = db.cf_handle(&family) else {
            return Err(Error::MissingFamily { family });
        };
        let header = db.get_cf(meta, HEADER).map_err(|e| engine_error(&family, e))?;
        header.map(|bytes| decode_header(&bytes)).transpose()
    }

    /// Fails unless the host has opened the families of the plan and no others.
    pub(super) fn require_guest_families(&self) -> Result<()> {
        let missing = |family: Family| {
            let family = self.db.name(family, GENERATION);
            self.db.cf_handle(&family).is_none().then_some(family)
        };
        if let Some(family) = families(self.tables).find_map(missing) {
            return Err(Error::MissingFamily { family });
        }
        // More families than the plan has tables were opened for another plan.
        let opened = (self.tables..).take_while(|&table| missing(Family::Table(table)).is_none());
        let beyond = opened.count();
        if beyond > 0 {
            let (stored, wanted) = (self.tables.to_string(), (self.tables + beyond).to_string());
            return Err(Error::HeaderMismatch { what: "number of tables", stored, wanted });
        }
        Ok(())
    }

    /// Creates a batch that appends to the host's changes.
    pub(crate) fn batch_behind(&self, host: HostBatch) -> Result<Batch<'_>> {
        self.require_writable()?;
        Batch::new(self, host)
    }

    /// Writes a host's batch. It survives the end of the process, not yet a power loss.
    pub(crate) fn write_host(&self, batch: HostBatch) -> Result<()> {
        self.db.write(batch).map_err(|e| engine_error("log", e))
    }
}

impl Batch<'_> {
    /// Returns the batch for the host to write.
    pub(crate) fn into_host(self) -> HostBatch {
        self.writes
    }
}

impl Snapshot {
    /// Returns the snapshot of the host's database. `None` unless the store is attached.
    pub(crate) fn of_host(&self) -> Option<&HostSnapshot<'_>> {
        self.borrow_dependent().as_ref()
    }
}
