//! Overlays: later writes over packed documents, read as one family.
//!
//! A bulk build writes documents with keys of eight bytes as [packs](crate::store::pack). Later
//! writes go to `docs` and `postings`, and override the packs: a stored entry replaces a packed one,
//! and the value `00` removes it, until a [repacking](super::repack) takes them in. A packed document
//! is returned as the record that `docs` would hold, so other modules need not know that there are two
//! families.

use std::cmp;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{ColumnFamily, DBRawIteratorWithThreadMode, ReadOptions};

use super::cursor::in_order;
use crate::error::{Error, Result};
use crate::store::bytes::codec;
use crate::store::bytes::pack::{Layout, Member, MemberKey};
use crate::store::{Db, Family, engine_error};

/// Value in `docs` and `postings` of a packed entry that was removed.
pub(in crate::store) const REMOVED: &[u8] = &[0];

pub(super) type Entries<'a> = DBRawIteratorWithThreadMode<'a, Db>;

/// A family of packs.
#[derive(Clone, Copy)]
pub(in crate::store) struct Packs<'a> {
    db: &'a Db,
    handle: &'a ColumnFamily,
    layout: Layout,
    family: Family,
    width: usize,
    end: Option<&'a PackedEnd>,
}

impl<'a> Packs<'a> {
    pub(in crate::store) fn new(
        db: &'a Db,
        handle: &'a ColumnFamily,
        family: Family,
        bits: u32,
    ) -> Self {
        let (layout, width) = (Layout::of(family, bits), (bits / 8) as usize);
        Self { db, handle, layout, family, width, end: None }
    }

    /// Sets where packed documents end, so that later keys need no read.
    pub(in crate::store) fn up_to(self, end: &'a PackedEnd) -> Self {
        Self { end: Some(end), ..self }
    }

    /// Returns the key of the last packed document, if there is any.
    fn last(self) -> Result<Option<u64>> {
        let mut entries = self.db.raw_iterator_cf_opt(self.handle, in_order());
        entries.seek_to_last();
        entries.status().map_err(|e| engine_error(&self.family.to_string(), e))?;
        Ok(entries.key().and_then(|key| self.layout.member(key)).map(|last| last.key))
    }

    pub(super) fn layout(self) -> Layout {
        self.layout
    }

    pub(super) fn handle(self) -> &'a ColumnFamily {
        self.handle
    }

    /// Opens a cursor over whole packs.
    pub(super) fn entries(self, options: ReadOptions) -> Entries<'a> {
        self.db.raw_iterator_cf_opt(self.handle, options)
    }

    /// Opens a cursor before the first pack.
    pub(in crate::store) fn base(self, options: ReadOptions) -> Base<'a> {
        Base {
            entries: self.entries(options),
            layout: self.layout,
            family: self.family,
            width: self.width,
            members: Vec::new(),
            last: None,
            at: At::End,
            key: self.layout.key(Member { fingerprint: 0, key: 0 }),
            value: Vec::new(),
        }
    }

    /// Returns false if no pack can hold the key.
    pub(super) fn may_hold(self, key: &[u8]) -> bool {
        let Some(member) = self.layout.member(key) else { return false };
        self.end.is_none_or(|end| end.is_after(self, member.key))
    }
}

/// Where packed documents end, read once and then raised by whoever packs more.
#[derive(Debug, Default)]
pub(in crate::store) struct PackedEnd(OnceLock<AtomicU64>);

impl PackedEnd {
    /// The end only saves reads. If it cannot be read, reads of keys there report the damage.
    const UNKNOWN: u64 = u64::MAX;

    fn end(&self, read: impl FnOnce() -> u64) -> &AtomicU64 {
        self.0.get_or_init(|| AtomicU64::new(read()))
    }

    fn is_after(&self, packs: Packs<'_>, key: u64) -> bool {
        let end = self.end(|| match packs.last() {
            Ok(last) => last.map_or(0, |last| last.saturating_add(1)),
            Err(_) => Self::UNKNOWN,
        });
        let end = end.load(Ordering::Acquire);
        key < end || end == Self::UNKNOWN
    }

    /// Makes the end lie after a key, before a pack with it is committed.
    pub(super) fn raise(&self, key: u64) {
        let end = self.end(|| Self::UNKNOWN);
        end.fetch_max(key.saturating_add(1), Ordering::AcqRel);
    }
}

/// Returns the value of a key, given what the overlay holds and the packs beneath it, if any.
///
/// `base` is opened if it is needed, with `options` for the state in which the overlay was read.
pub(in crate::store) fn value<'a>(
    packs: Option<Packs<'a>>,
    base: &mut Option<Base<'a>>,
    options: impl FnOnce() -> ReadOptions,
    key: &[u8],
    found: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let Some(packs) = packs else { return Ok(found) };
    match found {
        Some(value) if value == REMOVED => Ok(None),
        None if packs.may_hold(key) => base.get_or_insert_with(|| packs.base(options())).get(key),
        found => Ok(found),
    }
}

/// Where a cursor over packs is.
enum At {
    /// At the member before this index of those decoded, which are stored last first.
    Member(usize),
    /// At a pack that does not decode.
    Damaged(Error),
    /// After the last pack, or at a failed read.
    End,
}

/// A cursor over the members of packs.
pub(in crate::store) struct Base<'a> {
    entries: Entries<'a>,
    layout: Layout,
    family: Family,
    width: usize,
    /// Members of the present pack, last one first.
    members: Vec<Member>,
    /// The last member of the pack before it, if that was read too.
    last: Option<MemberKey>,
    at: At,
    /// Key and value of the present member.
    key: MemberKey,
    value: Vec<u8>,
}

impl Base<'_> {
    /// Moves to the first member at or after a key.
    pub(super) fn seek(&mut self, key: &[u8]) {
        self.entries.seek(key);
        self.last = None;
        self.decode();
        self.place_at(key);
    }

    /// Like [`Base::seek`], to a key that is not before the one sought last.
    ///
    /// Passes deleted packs once, which seeks to keys of theirs would all do.
    fn seek_ahead(&mut self, key: &[u8]) {
        let last = self.members.first().map(|member| self.layout.key(*member));
        match self.at {
            At::Member(_) if last.is_some_and(|last| last.as_ref() >= key) => self.place_at(key),
            At::Member(_) | At::Damaged(_) => self.seek(key),
            At::End => {}
        }
    }

    /// Moves to the first member of the present pack at or after a key.
    fn place_at(&mut self, key: &[u8]) {
        if let At::Member(_) = self.at {
            let above = |member: &Member| self.layout.key(*member).as_ref() >= key;
            let left = self.members.partition_point(above);
            self.place(left);
        }
    }

    /// Moves to the next member, or behind a damaged pack.
    fn next(&mut self) {
        match self.at {
            At::Member(left) if left > 1 => self.place(left - 1),
            At::Member(_) => {
                self.last = Some(self.key);
                self.entries.next();
                self.decode();
            }
            At::Damaged(_) => {
                self.entries.next();
                self.decode();
            }
            At::End => {}
        }
    }

    /// Decodes the present pack and moves to its first member.
    fn decode(&mut self) {
        let Some((key, value)) = self.entries.item() else {
            self.at = At::End;
            return;
        };
        let decoded = self.layout.decode(key, value, &mut self.members).and_then(|()| {
            let first = self.members.last().map(|member| self.layout.key(*member));
            match (&self.last, &first) {
                (Some(last), Some(first)) if first.as_ref() <= last.as_ref() => {
                    let detail = format!("pack up to key {} overlaps another", key.escape_ascii());
                    Err(Error::corrupt(self.family.to_string(), detail))
                }
                _ => Ok(()),
            }
        });
        match decoded {
            Ok(()) => self.place(self.members.len()),
            Err(error) => self.at = At::Damaged(error),
        }
    }

    /// Moves to the member that has `left - 1` members after it in its pack.
    fn place(&mut self, left: usize) {
        let Some(member) = left.checked_sub(1).and_then(|at| self.members.get(at)) else {
            self.at = At::End;
            return;
        };
        self.at = At::Member(left);
        self.key = self.layout.key(*member);
        if self.family == Family::DocPacks {
            let fingerprint = member.fingerprint.to_be_bytes();
            let (_, fingerprint) = fingerprint.split_at(fingerprint.len() - self.width);
            codec::encode_plain(&mut self.value, self.key.as_ref(), fingerprint);
        }
    }

    /// Returns key and value of the present member; `None` at the end and at damage.
    fn item(&self) -> Option<(&[u8], &[u8])> {
        matches!(self.at, At::Member(_)).then(|| (self.key.as_ref(), self.value.as_slice()))
    }

    fn has_failed(&self) -> bool {
        matches!(self.at, At::End) && self.entries.status().is_err()
    }

    fn status(&self) -> Result<()> {
        self.entries.status().map_err(|e| engine_error(&self.family.to_string(), e))
    }

    /// Returns the key of the present pack.
    pub(super) fn pack(&self) -> Option<&[u8]> {
        self.entries.key()
    }

    /// Returns the value of a key.
    pub(super) fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.seek(key);
        self.value_of(key)
    }

    /// Returns the value of a key that is not before the one sought last.
    pub(super) fn get_ahead(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.seek_ahead(key);
        self.value_of(key)
    }

    fn value_of(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let At::Damaged(_) = self.at {
            return Err(self.damage());
        }
        self.status()?;
        Ok(self.item().filter(|(found, _)| *found == key).map(|(_, value)| value.to_vec()))
    }

    /// Returns the fingerprint of a packed document, in the bytes of its postings.
    pub(super) fn fingerprint(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self
            .get(key)?
            .and_then(|record| codec::fingerprint(&record, self.width).map(<[u8]>::to_vec)))
    }

    /// Returns the damage at which the cursor stands.
    fn damage(&self) -> Error {
        if let At::Damaged(Error::Corrupt { family, detail }) = &self.at {
            return Error::corrupt(family, detail);
        }
        Error::corrupt(self.family.to_string(), "a pack does not decode")
    }
}

/// Which of the two families holds the present entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Overlay,
    Base,
    /// Damage that the cursor can pass: of a pack, or of a value of the overlay.
    DamagedPack,
    DamagedValue,
    /// After the last entry, or at a failed read.
    End,
}

/// The present entry of an overlay, so that the engine is asked once for each.
#[derive(Default)]
struct Above {
    key: Vec<u8>,
    state: AboveState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum AboveState {
    Entry,
    /// The value that removes a packed entry.
    Removal,
    /// A value that no posting has.
    UnknownValue,
    #[default]
    End,
    Failed,
}

impl Above {
    fn read(&mut self, overlay: &Entries<'_>, is_posting: bool) {
        self.state = match overlay.item() {
            Some((key, value)) => {
                self.key.clear();
                self.key.extend_from_slice(key);
                match value {
                    REMOVED => AboveState::Removal,
                    [] => AboveState::Entry,
                    _ if is_posting => AboveState::UnknownValue,
                    _ => AboveState::Entry,
                }
            }
            None if overlay.status().is_err() => AboveState::Failed,
            None => AboveState::End,
        };
    }

    fn is_at_or_before(&self, key: &[u8]) -> bool {
        match self.state {
            AboveState::End => false,
            AboveState::Failed => true,
            AboveState::Entry | AboveState::Removal | AboveState::UnknownValue => {
                self.key.as_slice() <= key
            }
        }
    }
}

/// The packs under a cursor over `docs` or `postings`.
pub(super) struct Beneath<'a> {
    base: Base<'a>,
    above: Above,
    turn: Turn,
}

impl<'a> Beneath<'a> {
    pub(super) fn new(base: Base<'a>) -> Self {
        Self { base, above: Above::default(), turn: Turn::End }
    }

    pub(super) fn seek(&mut self, overlay: &mut Entries<'a>, key: &[u8]) {
        overlay.seek(key);
        self.above.read(overlay, self.is_posting());
        self.base.seek(key);
        self.settle(overlay);
    }

    pub(super) fn next(&mut self, overlay: &mut Entries<'a>) {
        match self.turn {
            Turn::Overlay | Turn::DamagedValue => self.pass(overlay),
            Turn::Base | Turn::DamagedPack => self.base.next(),
            Turn::End => {}
        }
        self.settle(overlay);
    }

    /// Calls `visit` with each entry from the present one on, until it returns false.
    pub(super) fn each(
        &mut self,
        overlay: &mut Entries<'a>,
        family: Family,
        visit: &mut impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        loop {
            // Most entries are followed by one of the same pack.
            while let (Turn::Base, At::Member(left)) = (self.turn, &self.base.at) {
                let left = *left;
                if !visit(self.base.key.as_ref(), &self.base.value)? {
                    return Ok(());
                }
                if left == 1 {
                    self.base.next();
                    self.settle(overlay);
                    continue;
                }
                self.base.place(left - 1);
                if self.above.is_at_or_before(self.base.key.as_ref()) {
                    self.settle(overlay);
                }
            }
            let Some((key, value)) = self.entry(overlay, family)? else { return Ok(()) };
            if !visit(key, value)? {
                return Ok(());
            }
            self.next(overlay);
        }
    }

    /// Chooses the smaller entry, and passes what the overlay replaces or removes.
    fn settle(&mut self, overlay: &mut Entries<'a>) {
        self.turn = loop {
            if let At::Damaged(_) = self.base.at {
                break Turn::DamagedPack;
            }
            let packed = self.base.item().map(|(packed, _)| packed);
            let key = match self.above.state {
                AboveState::End if packed.is_some() => break Turn::Base,
                AboveState::End | AboveState::Failed => break Turn::End,
                AboveState::Entry | AboveState::Removal | AboveState::UnknownValue => {
                    self.above.key.as_slice()
                }
            };
            match packed.map_or(cmp::Ordering::Less, |packed| key.cmp(packed)) {
                cmp::Ordering::Greater => break Turn::Base,
                cmp::Ordering::Equal => self.base.next(),
                cmp::Ordering::Less if self.base.has_failed() => break Turn::End,
                cmp::Ordering::Less => match self.above.state {
                    AboveState::Removal => self.pass(overlay),
                    AboveState::UnknownValue => break Turn::DamagedValue,
                    AboveState::Entry | AboveState::End | AboveState::Failed => {
                        break Turn::Overlay;
                    }
                },
            }
        };
    }

    /// Moves the overlay to its next entry.
    fn pass(&mut self, overlay: &mut Entries<'a>) {
        overlay.next();
        self.above.read(overlay, self.is_posting());
    }

    fn is_posting(&self) -> bool {
        self.base.family == Family::PostingPacks
    }

    pub(super) fn entry<'s>(
        &'s self,
        overlay: &'s Entries<'a>,
        family: Family,
    ) -> Result<Option<(&'s [u8], &'s [u8])>> {
        let name = || family.to_string();
        match self.turn {
            Turn::Overlay => Ok(overlay.item()),
            Turn::Base => Ok(self.base.item()),
            Turn::DamagedPack => Err(self.base.damage()),
            Turn::DamagedValue => Err(Error::corrupt(name(), "the value of a key is unknown")),
            Turn::End => {
                overlay.status().map_err(|e| engine_error(&name(), e))?;
                self.base.status().map(|()| None)
            }
        }
    }

    /// Returns the key of the last entry that the present damage affects.
    pub(super) fn damaged_up_to<'s>(&'s self, overlay: &'s Entries<'a>) -> Option<&'s [u8]> {
        match self.turn {
            Turn::DamagedPack => self.base.entries.key(),
            Turn::DamagedValue => overlay.key(),
            Turn::Overlay | Turn::Base | Turn::End => None,
        }
    }
}

mod packed;
#[cfg(test)]
mod tests;
