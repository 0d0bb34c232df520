//! Pressure: background work, write delays and memory use, from the properties of `RocksDB`.

use std::ffi::CStr;

use rocksdb::properties;

use super::{Family, Store, engine_error};
use crate::error::Result;

/// Background work and write delays of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub(crate) writes_stopped: bool,
    pub(crate) writes_slowed_to: u64,
    pub(crate) background_errors: u64,
    pub(crate) flushes: u64,
    pub(crate) compactions: u64,
    pub(crate) bytes_to_compact: u64,
}

impl Store {
    pub(crate) fn pressure(&self) -> Result<Pressure> {
        Ok(Pressure {
            writes_stopped: self.property(Family::Docs, properties::IS_WRITE_STOPPED)? > 0,
            writes_slowed_to: self.property(Family::Docs, properties::ACTUAL_DELAYED_WRITE_RATE)?,
            background_errors: self.property(Family::Docs, properties::BACKGROUND_ERRORS)?,
            flushes: self.property(Family::Docs, properties::NUM_RUNNING_FLUSHES)?,
            compactions: self.property(Family::Docs, properties::NUM_RUNNING_COMPACTIONS)?,
            bytes_to_compact: self.properties(properties::ESTIMATE_PENDING_COMPACTION_BYTES)?,
        })
    }

    /// Returns the bytes of block cache, write buffers, and indexes and filters outside the cache.
    pub(crate) fn memory_usage(&self) -> Result<(u64, u64, u64)> {
        Ok((
            // All families share one cache.
            self.property(Family::Docs, properties::BLOCK_CACHE_USAGE)?,
            self.properties(properties::SIZE_ALL_MEM_TABLES)?,
            self.properties(properties::ESTIMATE_TABLE_READERS_MEM)?,
        ))
    }

    /// Returns the size of a family on disk and in memory tables, in bytes.
    pub(crate) fn bytes(&self, family: Family) -> Result<u64> {
        let files = self.property(family, properties::LIVE_SST_FILES_SIZE)?;
        Ok(files + self.property(family, properties::CUR_SIZE_ALL_MEM_TABLES)?)
    }

    /// Returns the sum of a property over all families.
    fn properties(&self, name: &CStr) -> Result<u64> {
        let families = Family::of_generation(self.tables).chain([Family::Meta]);
        families.map(|family| self.property(family, name)).sum()
    }

    fn property(&self, family: Family, name: &CStr) -> Result<u64> {
        let found = self.db.property_int_value_cf(self.handle(family)?, name);
        let found = found.map_err(|e| engine_error(&family.to_string(), e))?;
        Ok(found.expect("RocksDB has every property that its bindings name"))
    }
}
