//! The database under a store: the store's own, or one shared with a host.

use rocksdb::Options;

#[cfg(feature = "rocksdb-interop")]
use super::host::Attachment;
use crate::error::{Error, Result};
use crate::store::{Family, engine_error};

/// An open database whose families only its owner creates and drops.
pub(crate) type Db = rocksdb::DBWithThreadMode<rocksdb::SingleThreaded>;

/// The owner of a database.
pub(in crate::store) enum Database {
    /// A database that holds only the store.
    Own(Db),
    /// A host's database. The host creates the families and writes to others.
    #[cfg(feature = "rocksdb-interop")]
    Host(Attachment),
}

impl std::ops::Deref for Database {
    type Target = Db;

    fn deref(&self) -> &Db {
        match self {
            Self::Own(db) => db,
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(attachment) => attachment.db(),
        }
    }
}

impl Database {
    /// Returns the name of a family in this database.
    pub(in crate::store) fn name(&self, family: Family, generation: u32) -> String {
        match self {
            Self::Own(_) => family.name(generation),
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(attachment) => attachment.family(family),
        }
    }

    /// Fails in a host's database; `what` names what the host has to do instead.
    pub(in crate::store) fn require_own(&self, what: &'static str) -> Result<()> {
        if matches!(self, Self::Own(_)) { Ok(()) } else { Err(Error::Attached { what }) }
    }

    /// Creates an empty family.
    pub(in crate::store) fn create_family(&mut self, name: &str, options: &Options) -> Result<()> {
        match self {
            Self::Own(db) => db.create_cf(name, options).map_err(|e| engine_error(name, e)),
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(..) => Err(Error::Attached { what: "make its families" }),
        }
    }

    /// Drops a family and all its entries.
    pub(in crate::store) fn drop_family(&mut self, name: &str) -> Result<()> {
        match self {
            Self::Own(db) => db.drop_cf(name).map_err(|e| engine_error(name, e)),
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(..) => Err(Error::Attached { what: "drop its families" }),
        }
    }

    /// Returns a number that changes with every write that bypasses the store.
    ///
    /// Always 0 for the store's own database, where the store knows of every write.
    pub(in crate::store) fn turn(&self) -> u64 {
        match self {
            Self::Own(_) => 0,
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(attachment) => attachment.db().latest_sequence_number(),
        }
    }
}
