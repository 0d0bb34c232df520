//! Generations: a new set of families is created beside the live one and replaces it atomically.

use std::fmt;

use super::cursor;
use super::overlay::{PackedEnd, Packs};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::store::bytes::codec;
use crate::store::bytes::codec::{HeaderRecord, State};
use crate::store::{Cursor, Store, current_format, has_packs};

pub(in crate::store) const BUILDING: &[u8] = b"building";

/// One key space of the index, a `RocksDB` column family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// Header, state and the marker of an unfinished build.
    Meta,
    /// Document key to record.
    Docs,
    /// Fingerprint and document key to nothing.
    Postings,
    /// Permuted fingerprints of one table, as runs. The first one also has the delta entries.
    Table(usize),
    /// Packed documents, beneath those of `Docs`.
    DocPacks,
    /// Packed postings, beneath those of `Postings`.
    PostingPacks,
}

impl Family {
    /// Returns the family's name in a generation. `Meta` belongs to all generations.
    pub(crate) fn name(self, generation: u32) -> String {
        match self {
            Self::Meta => "meta".to_owned(),
            Self::Docs => format!("docs.{generation}"),
            Self::Postings => format!("postings.{generation}"),
            Self::Table(table) => format!("table{table:03}.{generation}"),
            Self::DocPacks => format!("doc_packs.{generation}"),
            Self::PostingPacks => format!("posting_packs.{generation}"),
        }
    }

    /// Returns the family of a name, of any generation. `None` for `meta` and names of no family.
    pub(in crate::store) fn of_name(name: &str) -> Option<Self> {
        let (kind, _) = name.split_once('.')?;
        match kind {
            "docs" => Some(Self::Docs),
            "postings" => Some(Self::Postings),
            "doc_packs" => Some(Self::DocPacks),
            "posting_packs" => Some(Self::PostingPacks),
            other => other.strip_prefix("table")?.parse().ok().map(Self::Table),
        }
    }

    /// Returns the length of the prefix by which probes skip files, if keys have one.
    ///
    /// In a table it is the kind, in the postings the first bytes of the fingerprint.
    pub(in crate::store) fn prefix_bytes(self) -> Option<usize> {
        match self {
            Self::Table(_) => Some(1),
            Self::Postings => Some(4),
            Self::Meta | Self::Docs | Self::DocPacks | Self::PostingPacks => None,
        }
    }

    /// The families of packs, which a generation has if a build packed documents.
    pub(crate) const PACKS: [Self; 2] = [Self::DocPacks, Self::PostingPacks];

    /// Returns every family that belongs to a generation without packs.
    pub(crate) fn of_generation(tables: usize) -> impl Iterator<Item = Self> {
        [Self::Docs, Self::Postings].into_iter().chain((0..tables).map(Self::Table))
    }

    /// Returns the packs beneath a family in an index with a header.
    pub(in crate::store) fn packs(self, header: &HeaderRecord) -> Option<Self> {
        self.beneath().filter(|_| has_packs(header.format))
    }

    /// Returns the packs that may be beneath a family.
    pub(crate) fn beneath(self) -> Option<Self> {
        match self {
            Self::Docs => Some(Self::DocPacks),
            Self::Postings => Some(Self::PostingPacks),
            Self::Meta | Self::Table(_) | Self::DocPacks | Self::PostingPacks => None,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta => f.write_str("meta"),
            Self::Docs => f.write_str("docs"),
            Self::Postings => f.write_str("postings"),
            Self::Table(table) => write!(f, "table {table}"),
            Self::DocPacks => f.write_str("doc packs"),
            Self::PostingPacks => f.write_str("posting packs"),
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
        for family in self.possible_families() {
            let name = family.name(generation);
            if self.db.cf_handle(&name).is_none() {
                let options = self.tuning()?.family(&name);
                self.db.create_family(&name, &options)?;
                fail_point!("build.family");
            }
        }
        Ok(())
    }

    /// Makes a generation live and clears the marker in one write, then drops the old generation.
    ///
    /// The same write states the format: packs need a later one than an index without them.
    pub(crate) fn finish_build(
        &mut self,
        generation: u32,
        documents: u64,
        packed: bool,
    ) -> Result<()> {
        let header = HeaderRecord { format: current_format(packed), ..self.header.clone() };
        let mut batch = self.batch()?;
        batch.put_state(&State { generation, documents });
        batch.delete_meta(BUILDING);
        if header != self.header {
            batch.put_header(&header);
        }
        fail_point!("build.switching");
        batch.commit()?;
        fail_point!("build.switched");
        self.sync()?;
        fail_point!("build.live");
        let old = std::mem::replace(&mut self.generation, generation);
        self.header = header;
        self.packed_end = PackedEnd::default();
        if !packed {
            for family in Family::PACKS {
                self.drop_if_present(&family.name(generation))?;
            }
        }
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
        for family in self.possible_families() {
            self.drop_if_present(&family.name(generation))?;
        }
        Ok(())
    }

    /// Drops the families of a generation that follow from its documents.
    ///
    /// `postings` stays if it is empty, because its number follows that of `docs`.
    pub(crate) fn keep_documents(&mut self, generation: u32) -> Result<()> {
        let derived = |family: &Family| !matches!(family, Family::Docs | Family::DocPacks);
        for family in self.possible_families().filter(derived) {
            let name = family.name(generation);
            let is_empty = family == Family::Postings
                && self.db.cf_handle(&name).is_some_and(|handle| {
                    let mut entries = self.db.raw_iterator_cf_opt(handle, cursor::in_order());
                    entries.seek_to_first();
                    !entries.valid() && entries.status().is_ok()
                });
            if !is_empty {
                self.drop_if_present(&name)?;
            }
        }
        Ok(())
    }

    /// Opens a cursor over the documents that a build has written.
    pub(crate) fn sweep_built(&self, generation: u32) -> Result<Cursor<'_>> {
        let handle = |family: Family| {
            let name = family.name(generation);
            self.db.cf_handle(&name).ok_or_else(|| Error::corrupt(&name, "family is missing"))
        };
        let (packs, bits) = (handle(Family::DocPacks)?, self.header.bits);
        let base = Packs::new(&self.db, packs, Family::DocPacks, bits).base(cursor::sweeping());
        let entries = self.db.raw_iterator_cf_opt(handle(Family::Docs)?, cursor::sweeping());
        let mut cursor = Cursor::new(entries, Family::Docs, Some(base));
        cursor.seek(&[]);
        Ok(cursor)
    }

    fn drop_if_present(&mut self, name: &str) -> Result<()> {
        if self.db.cf_handle(name).is_some() {
            self.db.drop_family(name)?;
            fail_point!("generation.dropping");
        }
        Ok(())
    }

    /// Returns every family that a generation may have.
    ///
    /// Packs are last: a wreck finds `postings` by its number, the one after that of `docs`.
    fn possible_families(&self) -> impl Iterator<Item = Family> + use<> {
        Family::of_generation(self.tables).chain(Family::PACKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_families_parse_back() {
        let families = Family::of_generation(12).chain(Family::PACKS);
        for family in families {
            assert_eq!(Family::of_name(&family.name(3)), Some(family));
        }
        for other in ["default", "meta", "beneath docs.1", "tables.1"] {
            assert_eq!(Family::of_name(other), None, "{other}");
        }
    }
}
