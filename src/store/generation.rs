//! Generations: a new set of families is created beside the live one and replaces it atomically.

use std::fmt;
use std::path::PathBuf;

use super::codec::State;
use super::{Store, codec, engine_error};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;

pub(super) const BUILDING: &[u8] = b"building";

/// One key space of the index, a `RocksDB` column family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Header, state and the marker of an unfinished build.
    Meta,
    /// Document key to record.
    Docs,
    /// Fingerprint and document key to nothing.
    Postings,
    /// Permuted fingerprints of one table, as runs and delta entries.
    Table(usize),
}

impl Family {
    /// Returns the family's name in a generation. `Meta` belongs to all generations.
    pub(crate) fn name(self, generation: u32) -> String {
        match self {
            Self::Meta => "meta".to_owned(),
            Self::Docs => format!("docs.{generation}"),
            Self::Postings => format!("postings.{generation}"),
            Self::Table(table) => format!("table{table:03}.{generation}"),
        }
    }

    /// Returns every family that belongs to a generation.
    pub(crate) fn of_generation(tables: usize) -> impl Iterator<Item = Self> {
        [Self::Docs, Self::Postings].into_iter().chain((0..tables).map(Self::Table))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta => f.write_str("meta"),
            Self::Docs => f.write_str("docs"),
            Self::Postings => f.write_str("postings"),
            Self::Table(table) => write!(f, "table {table}"),
        }
    }
}

impl Store {
    /// Returns the generation that an unfinished build was writing.
    pub(crate) fn building(&self) -> Result<Option<u32>> {
        match self.get(Family::Meta, BUILDING)? {
            Some(bytes) => codec::decode("meta", BUILDING, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Sets the marker that lets only the builder open the index until the build ends.
    pub(crate) fn begin_build(&mut self) -> Result<u32> {
        let next = self.generation + 1;
        let mut batch = self.batch()?;
        batch.put_meta(BUILDING, &codec::encode(BUILDING, &next));
        batch.commit()?;
        fail_point!("build.marked");
        self.sync()?;
        Ok(next)
    }

    /// Creates the families of a generation that do not exist yet, empty.
    pub(crate) fn create_generation(&mut self, generation: u32) -> Result<()> {
        for family in Family::of_generation(self.tables) {
            let name = family.name(generation);
            if self.db.cf_handle(&name).is_none() {
                let options = self.tuning()?.family(&name);
                self.db.create_family(&name, &options)?;
                fail_point!("build.family");
            }
        }
        Ok(())
    }

    /// Moves finished SST files into one family of a generation, atomically.
    pub(crate) fn ingest(&self, family: Family, generation: u32, files: &[PathBuf]) -> Result<()> {
        let name = family.name(generation);
        if files.is_empty() {
            return Ok(());
        }
        let handle =
            self.db.cf_handle(&name).ok_or_else(|| Error::corrupt(&name, "family is missing"))?;
        let mut options = rocksdb::IngestExternalFileOptions::default();
        options.set_move_files(true);
        self.db
            .ingest_external_file_cf_opts(handle, &options, files.to_vec())
            .map_err(|e| engine_error(&name, e))?;
        fail_point!("build.ingested");
        self.follow()
    }

    /// Makes a generation live and clears the marker in one write, then drops the old generation.
    pub(crate) fn finish_build(&mut self, generation: u32, documents: u64) -> Result<()> {
        let mut batch = self.batch()?;
        batch.put_state(&State { generation, documents });
        batch.delete_meta(BUILDING);
        fail_point!("build.switching");
        batch.commit()?;
        fail_point!("build.switched");
        self.sync()?;
        fail_point!("build.live");
        let old = std::mem::replace(&mut self.generation, generation);
        self.drop_generation(old)
    }

    /// Clears the marker and drops what the build wrote.
    pub(crate) fn abandon_build(&mut self) -> Result<()> {
        let Some(generation) = self.building()? else {
            return Err(Error::NothingToResume { path: self.path.clone() });
        };
        self.drop_generation(generation)?;
        let mut batch = self.batch()?;
        batch.delete_meta(BUILDING);
        batch.commit()?;
        fail_point!("abandon.written");
        self.sync()
    }

    pub(crate) fn drop_generation(&mut self, generation: u32) -> Result<()> {
        for family in Family::of_generation(self.tables) {
            let name = family.name(generation);
            if self.db.cf_handle(&name).is_some() {
                self.db.drop_family(&name)?;
                fail_point!("generation.dropping");
            }
        }
        Ok(())
    }
}
