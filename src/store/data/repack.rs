//! Repacking: takes out of packs what the overlay overrides, so that its space is freed.
//!
//! First the packs of postings lose what the overlay removes, then the packs of documents lose what
//! it removes or replaces under another fingerprint. When both are in files, entries that removed
//! something packed are no longer needed.
//!
//! Invariant after every batch: a packed posting belongs to a document that is packed with its
//! fingerprint. A later removal of it depends on that.

use super::cursor;
use super::cursor::Snapshot;
use super::overlay::{Entries, Packs, REMOVED};
use crate::error::{Error, Result};
use crate::store::bytes::codec;
use crate::store::bytes::pack::{Layout, Member, PACK_MEMBERS, number};
use crate::store::{Batch, Family, Store, engine_error};

/// Packs that one batch rewrites, so that a writer waits less than a millisecond for it.
const PORTION: usize = 32;
/// Removals that one batch deletes.
const REMOVALS: usize = 512;

/// What the overlay says about a packed document or posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Override {
    Nothing,
    Removed,
    /// A document is stored again, with this fingerprint.
    Replaced(u128),
}

/// A pack with the members that the overlay overrides.
struct Overridden {
    key: Vec<u8>,
    /// Ascending members.
    members: Vec<(Member, Override)>,
    /// Whether it follows the one before it in the portion, without another pack in between.
    adjacent: bool,
}

/// Some packs that can be rewritten in one batch.
pub(crate) struct Portion(Vec<Overridden>);

/// A walk over the packs of a snapshot that hold overridden members.
pub(crate) struct Repacking<'a> {
    overlay: Entries<'a>,
    packs: Entries<'a>,
    layout: Layout,
    family: Family,
    width: usize,
    present: Option<Present>,
}

/// The pack at which a walk is.
struct Present {
    pack: Overridden,
    /// Whether it is in the portion that is collected.
    taken: bool,
}

impl Snapshot {
    /// Prepares to walk the packs beneath a family; `None` if there are none.
    pub(crate) fn repacking(&self, family: Family) -> Result<Option<Repacking<'_>>> {
        let store = self.store();
        let Some(packs) = store.packs(family)? else { return Ok(None) };
        let options = self.of_state(cursor::sweeping());
        let mut overlay = store.db.raw_iterator_cf_opt(store.handle(family)?, options);
        overlay.seek_to_first();
        Ok(Some(Repacking {
            overlay,
            packs: packs.entries(self.of_state(cursor::passing())),
            layout: packs.layout(),
            family,
            width: (store.header.bits / 8) as usize,
            present: None,
        }))
    }
}

impl Repacking<'_> {
    /// Returns the next packs, or `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Portion>> {
        let mut portion = Vec::new();
        while let Some((key, value)) = self.overlay.item() {
            let change = match value {
                REMOVED => Override::Removed,
                record if self.family == Family::Docs => {
                    match codec::fingerprint(record, self.width) {
                        Some(fingerprint) => Override::Replaced(number(fingerprint)),
                        None => return Err(Error::corrupt("docs", "a record is too short")),
                    }
                }
                _ => Override::Nothing,
            };
            if change == Override::Nothing || key.len() != self.layout.key_bytes() {
                self.overlay.next();
                continue;
            }
            let key = key.to_vec();
            if self.present.as_ref().is_none_or(|present| present.pack.key < key) {
                self.take(&mut portion);
                if portion.len() == PORTION {
                    return Ok(Some(Portion(portion)));
                }
                if !self.reach(&key)? {
                    break;
                }
            }
            self.mark(&key, change);
            self.overlay.next();
        }
        let failed = |e| engine_error(&self.family.to_string(), e);
        self.overlay.status().map_err(failed)?;
        self.packs.status().map_err(failed)?;
        self.take(&mut portion);
        Ok((!portion.is_empty()).then_some(Portion(portion)))
    }

    /// Moves the present pack to the portion if any of its members is overridden.
    fn take(&mut self, portion: &mut Vec<Overridden>) {
        let Some(present) = &mut self.present else { return };
        if !present.taken && present.pack.members.iter().any(|(_, by)| *by != Override::Nothing) {
            present.taken = true;
            let key = present.pack.key.clone();
            let members = std::mem::take(&mut present.pack.members);
            portion.push(Overridden {
                key,
                members,
                adjacent: present.pack.adjacent && !portion.is_empty(),
            });
        }
    }

    /// Moves to the pack that may hold a key; returns false after the last pack.
    fn reach(&mut self, key: &[u8]) -> Result<bool> {
        let mut adjacent = false;
        if let Some(present) = &self.present {
            self.packs.next();
            adjacent = present.taken;
        }
        if self.present.is_none() || self.packs.key().is_some_and(|last| last < key) {
            adjacent = false;
            self.packs.seek(key);
        }
        self.present = None;
        let Some((last, value)) = self.packs.item() else { return Ok(false) };
        let mut members = Vec::new();
        self.layout.decode(last, value, &mut members)?;
        let members = members.into_iter().rev().map(|member| (member, Override::Nothing)).collect();
        let pack = Overridden { key: last.to_vec(), members, adjacent };
        self.present = Some(Present { pack, taken: false });
        Ok(true)
    }

    fn mark(&mut self, key: &[u8], change: Override) {
        let (layout, Some(present)) = (self.layout, &mut self.present) else { return };
        let members = &mut present.pack.members;
        let found = members.binary_search_by(|(member, _)| layout.key(*member).as_ref().cmp(key));
        if let Some((member, by)) = found.ok().and_then(|at| members.get_mut(at)) {
            // Without a change of the fingerprint the packed posting may still be in use.
            if change != Override::Replaced(member.fingerprint) {
                *by = change;
            }
        }
    }
}

impl Portion {
    /// Rewrites the packs without overridden members.
    pub(crate) fn stage(&self, batch: &mut Batch<'_>, family: Family) -> Result<()> {
        let Some(packs) = batch.store.packs(family)? else { return Ok(()) };
        let mut writer = Writer { packs, batch, left: Vec::new(), value: Vec::new() };
        for pack in &self.0 {
            if !pack.adjacent {
                writer.write_down_to(0);
            }
            writer.batch.writes.delete_cf(packs.handle(), &pack.key);
            let left = pack.members.iter().filter(|(_, by)| *by == Override::Nothing);
            writer.left.extend(left.map(|(member, _)| *member));
            writer.write_down_to(PACK_MEMBERS - 1);
        }
        writer.write_down_to(0);
        Ok(())
    }
}

/// Writes adjacent members as packs.
struct Writer<'w, 's> {
    packs: Packs<'s>,
    batch: &'w mut Batch<'s>,
    left: Vec<Member>,
    value: Vec<u8>,
}

impl Writer<'_, '_> {
    /// Writes packs until at most `most` members are left.
    fn write_down_to(&mut self, most: usize) {
        while self.left.len() > most {
            let rest = self.left.split_off(self.left.len().min(PACK_MEMBERS));
            let members = std::mem::replace(&mut self.left, rest);
            if let Some(key) = self.packs.layout().encode(&members, &mut self.value) {
                self.batch.writes.put_cf(self.packs.handle(), key, &self.value);
            }
        }
    }
}

/// Removals in the overlay beneath which nothing is packed any longer.
pub(crate) struct Removals {
    family: Family,
    keys: Vec<Vec<u8>>,
}

impl Store {
    /// Calls `visit` with removals that are no longer needed, some at a time.
    pub(crate) fn obsolete_removals(
        &self,
        family: Family,
        mut visit: impl FnMut(Removals) -> Result<()>,
    ) -> Result<()> {
        let Some(packs) = self.packs(family)? else { return Ok(()) };
        let mut overlay = self.db.raw_iterator_cf_opt(self.handle(family)?, cursor::sweeping());
        let mut base = packs.base(cursor::passing());
        let mut keys = Vec::new();
        overlay.seek_to_first();
        base.seek(&[]);
        while let Some((key, value)) = overlay.item() {
            if value == REMOVED && base.get_ahead(key)?.is_none() {
                keys.push(key.to_vec());
            }
            if keys.len() == REMOVALS {
                visit(Removals { family, keys: std::mem::take(&mut keys) })?;
            }
            overlay.next();
        }
        overlay.status().map_err(|e| engine_error(&family.to_string(), e))?;
        if keys.is_empty() { Ok(()) } else { visit(Removals { family, keys }) }
    }
}

impl Removals {
    /// Deletes the removals that are still there. The caller holds the writer lock.
    pub(crate) fn stage(&self, batch: &mut Batch<'_>) -> Result<()> {
        let store = batch.store;
        let handle = store.handle(self.family)?;
        let found = store.db.batched_multi_get_cf(handle, self.keys.iter(), true);
        for (key, found) in self.keys.iter().zip(found) {
            let found = found.map_err(|e| engine_error(&self.family.to_string(), e))?;
            if found.is_some_and(|value| *value == *REMOVED) {
                batch.writes.delete_cf(handle, key);
            }
        }
        Ok(())
    }
}
