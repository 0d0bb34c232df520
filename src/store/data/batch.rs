//! Write batches: all changes of one call in all families, applied atomically.

use std::fmt;

use rocksdb::{ColumnFamily, WriteBatch};

use super::cursor::in_order;
use super::overlay::{Base, REMOVED};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::store::bytes::codec::{HeaderRecord, Lane, State};
use crate::store::bytes::keys::{Delta, Kind, TableKey};
use crate::store::bytes::{codec, delta_run};
use crate::store::{Family, HEADER, LANE_KEYS, STATE, Store, engine_error};

/// Changes that become visible and durable together, through the write-ahead log.
pub(crate) struct Batch<'a> {
    pub(super) store: &'a Store,
    pub(in crate::store) writes: WriteBatch,
    meta: &'a ColumnFamily,
    docs: &'a ColumnFamily,
    postings: &'a ColumnFamily,
    tables: Vec<&'a ColumnFamily>,
    /// A cursor over packed documents, opened by the first removal.
    packed: Option<Base<'a>>,
}

/// The changes of a batch, without the store that they are for.
pub(crate) struct Detached(WriteBatch);

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Detached").field(&self.0.size_in_bytes()).finish()
    }
}

impl<'a> Batch<'a> {
    /// Continues with changes that were staged for this store.
    pub(crate) fn attach(store: &'a Store, changes: Detached) -> Result<Self> {
        Self::new(store, changes.0)
    }

    /// Appends to a batch that may already hold changes.
    pub(in crate::store) fn new(store: &'a Store, writes: WriteBatch) -> Result<Self> {
        Ok(Self {
            store,
            writes,
            meta: store.handle(Family::Meta)?,
            docs: store.handle(Family::Docs)?,
            postings: store.handle(Family::Postings)?,
            tables: (0..store.tables)
                .map(|table| store.handle(Family::Table(table)))
                .collect::<Result<_>>()?,
            packed: None,
        })
    }

    pub(in crate::store) fn put_meta(&mut self, key: &[u8], value: &[u8]) {
        self.writes.put_cf(self.meta, key, value);
    }

    pub(super) fn delete_meta(&mut self, key: &[u8]) {
        self.writes.delete_cf(self.meta, key);
    }

    /// Writes the state with all documents and resets the lanes.
    pub(crate) fn put_state(&mut self, state: &State) {
        self.writes.put_cf(self.meta, STATE, codec::encode(STATE, state));
        for key in LANE_KEYS {
            self.writes.delete_cf(self.meta, key);
        }
    }

    pub(crate) fn put_header(&mut self, header: &HeaderRecord) {
        self.put_meta(HEADER, &codec::encode(HEADER, header));
    }

    /// Counts documents in a lane that no concurrent batch uses.
    #[expect(clippy::indexing_slicing, reason = "the committer has as many lanes as keys")]
    pub(crate) fn put_lane(&mut self, lane: usize, added: u64) {
        let key = LANE_KEYS[lane];
        self.writes.put_cf(self.meta, key, codec::encode(key, &Lane { added }));
    }

    pub(crate) fn put_document(&mut self, key: &[u8], record: &[u8]) {
        self.writes.put_cf(self.docs, key, record);
    }

    /// Removes a document, if it is packed by an entry that says so.
    pub(crate) fn delete_document(&mut self, key: &[u8]) -> Result<()> {
        if self.packed_fingerprint(key)?.is_some() {
            self.writes.put_cf(self.docs, key, REMOVED);
        } else {
            self.writes.delete_cf(self.docs, key);
        }
        Ok(())
    }

    /// Returns the fingerprint of a packed document, even if the overlay replaces it.
    fn packed_fingerprint(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.store.packs(Family::Docs)? {
            Some(packs) if packs.may_hold(key) => {
                let base = self.packed.get_or_insert_with(|| packs.base(in_order()));
                base.fingerprint(key)
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn put_posting(&mut self, key: &[u8]) {
        self.writes.put_cf(self.postings, key, []);
    }

    /// Removes a posting, if it is packed by an entry that says so.
    ///
    /// A posting is packed if its document is packed with the same fingerprint.
    pub(crate) fn delete_posting(&mut self, key: &[u8]) -> Result<()> {
        let width = (self.store.header.bits / 8) as usize;
        let packed = match key.split_at_checked(width) {
            Some((fingerprint, document)) => self
                .packed_fingerprint(document)?
                .is_some_and(|packed| packed.as_slice() == fingerprint),
            None => false,
        };
        if packed {
            self.writes.put_cf(self.postings, key, REMOVED);
        } else {
            self.writes.delete_cf(self.postings, key);
        }
        Ok(())
    }

    pub(crate) fn put_run<F: Fingerprint>(
        &mut self,
        table: usize,
        last: F,
        value: &[u8],
    ) -> Result<()> {
        let family = self.table(table)?;
        self.writes.put_cf(family, TableKey::new(Kind::Run, last), value);
        Ok(())
    }

    /// Stages a delta entry that is stored alone, as in formats 1 to 6.
    pub(crate) fn put_delta<F: Fingerprint>(
        &mut self,
        table: usize,
        permuted: F,
        delta: Delta,
    ) -> Result<()> {
        let family = self.table(table)?;
        self.writes.put_cf(family, TableKey::new(Kind::Delta, permuted), delta.value());
        Ok(())
    }

    /// Stages a delta run of ascending members, in the order of the first table.
    ///
    /// No other delta run may have the number.
    pub(crate) fn put_delta_run<F: Fingerprint>(
        &mut self,
        name: delta_run::Name,
        members: &[F],
    ) -> Result<()> {
        let family = self.table(0)?;
        self.writes.put_cf(family, name.key(), delta_run::encode(members));
        Ok(())
    }

    pub(crate) fn delete_delta_run(&mut self, name: delta_run::Name) -> Result<()> {
        let family = self.table(0)?;
        self.writes.delete_cf(family, name.key());
        Ok(())
    }

    /// Deletes all delta entries of a table that are stored alone.
    pub(in crate::store) fn delete_deltas(&mut self, table: usize) -> Result<()> {
        let family = self.table(table)?;
        let (from, to) = ([Kind::Delta as u8], TableKey::end(Kind::Delta));
        self.writes.delete_range_cf(family, from, to);
        Ok(())
    }

    pub(crate) fn delete_entry<F: Fingerprint>(
        &mut self,
        table: usize,
        kind: Kind,
        permuted: F,
    ) -> Result<()> {
        let family = self.table(table)?;
        self.writes.delete_cf(family, TableKey::new(kind, permuted));
        Ok(())
    }

    fn table(&self, table: usize) -> Result<&'a ColumnFamily> {
        self.tables.get(table).copied().ok_or_else(|| {
            Error::corrupt(Family::Table(table).to_string(), "no such table in the plan")
        })
    }

    /// Returns the changes without the store, for another thread to commit.
    pub(crate) fn detach(self) -> Detached {
        Detached(self.writes)
    }

    /// Writes the batch atomically. It survives the end of the process, not yet a power loss.
    pub(crate) fn commit(self) -> Result<()> {
        self.store.db.write(self.writes).map_err(|e| engine_error("log", e))
    }
}
