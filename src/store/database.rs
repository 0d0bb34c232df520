//! The database under a store: one of its own, or one that a host has open for other things too.

use rocksdb::Options;

#[cfg(feature = "rocksdb-interop")]
use super::host::Attachment;
use super::{Family, engine_error};
use crate::error::{Error, Result};

/// An open database whose families are made and dropped by its owner alone.
pub(crate) type Db = rocksdb::DBWithThreadMode<rocksdb::SingleThreaded>;

/// Whose database it is.
pub(super) enum Database {
    /// The store's own, with nothing else in it.
    Own(Db),
    /// A host's, who made the families and writes to others.
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
    /// The name that a family has in this database.
    pub(super) fn name(&self, family: Family, generation: u32) -> String {
        match self {
            Self::Own(_) => family.name(generation),
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(attachment) => attachment.family(family),
        }
    }

    /// Fails for a host's database; `what` is what the host has to do instead.
    pub(super) fn require_own(&self, what: &'static str) -> Result<()> {
        if matches!(self, Self::Own(_)) { Ok(()) } else { Err(Error::Attached { what }) }
    }

    /// Makes an empty family.
    pub(super) fn create_family(&mut self, name: &str, options: &Options) -> Result<()> {
        match self {
            Self::Own(db) => db.create_cf(name, options).map_err(|e| engine_error(name, e)),
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(..) => Err(Error::Attached { what: "make its families" }),
        }
    }

    /// Drops a family with all that is in it.
    pub(super) fn drop_family(&mut self, name: &str) -> Result<()> {
        match self {
            Self::Own(db) => db.drop_cf(name).map_err(|e| engine_error(name, e)),
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(..) => Err(Error::Attached { what: "drop its families" }),
        }
    }

    /// Moves on with every change that somebody else than the store may have made.
    ///
    /// A database of the store's own stays at 0: what changes it says so.
    pub(super) fn turn(&self) -> u64 {
        match self {
            Self::Own(_) => 0,
            #[cfg(feature = "rocksdb-interop")]
            Self::Host(attachment) => attachment.db().latest_sequence_number(),
        }
    }
}
