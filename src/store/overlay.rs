//! Overlays: later writes over packed documents, read as one family.
//!
//! A bulk build writes documents with keys of eight bytes as [packs](super::pack), which never
//! change. Later writes go to `docs` and `postings`, and override the packs: a stored entry replaces
//! a packed one, and the value `00` removes it. A packed document is returned as the record that
//! `docs` would hold, so only this module knows that there are two families.

use std::cmp::Ordering;

use rocksdb::{ColumnFamily, DBRawIteratorWithThreadMode, ReadOptions};

use super::codec;
use super::pack::{Layout, Member, MemberKey};
use super::{Db, Family, engine_error};
use crate::error::{Error, Result};

/// Value in `docs` and `postings` of a packed entry that was removed.
pub(super) const REMOVED: &[u8] = &[0];

type Entries<'a> = DBRawIteratorWithThreadMode<'a, Db>;

/// A family of packs.
#[derive(Clone, Copy)]
pub(super) struct Packs<'a> {
    db: &'a Db,
    handle: &'a ColumnFamily,
    layout: Layout,
    family: Family,
    width: usize,
    /// The key of the last pack, if known.
    end: Option<&'a [u8]>,
}

impl<'a> Packs<'a> {
    pub(super) fn new(db: &'a Db, handle: &'a ColumnFamily, family: Family, bits: u32) -> Self {
        let (layout, width) = (Layout::of(family, bits), (bits / 8) as usize);
        Self { db, handle, layout, family, width, end: None }
    }

    /// Sets the key of the last pack, so that later keys need no read.
    pub(super) fn up_to(self, end: &'a [u8]) -> Self {
        Self { end: Some(end), ..self }
    }

    /// Returns the key of the last pack, empty if there is none.
    pub(super) fn last(self) -> Result<Vec<u8>> {
        let mut entries = self.db.raw_iterator_cf(self.handle);
        entries.seek_to_last();
        entries.status().map_err(|e| engine_error(&self.family.to_string(), e))?;
        Ok(entries.key().map(<[u8]>::to_vec).unwrap_or_default())
    }

    /// Opens a cursor before the first pack.
    pub(super) fn base(self, options: ReadOptions) -> Base<'a> {
        Base {
            entries: self.db.raw_iterator_cf_opt(self.handle, options),
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
        key.len() == self.layout.key_bytes() && self.end.is_none_or(|end| key <= end)
    }
}

/// Returns the value of a key, given what the overlay holds and the packs beneath it, if any.
///
/// `base` is opened if it is needed.
pub(super) fn value<'a>(
    packs: Option<Packs<'a>>,
    base: &mut Option<Base<'a>>,
    key: &[u8],
    found: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let Some(packs) = packs else { return Ok(found) };
    match found {
        Some(value) if value == REMOVED => Ok(None),
        None if packs.may_hold(key) => {
            base.get_or_insert_with(|| packs.base(ReadOptions::default())).get(key)
        }
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
pub(super) struct Base<'a> {
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
    fn seek(&mut self, key: &[u8]) {
        self.entries.seek(key);
        self.last = None;
        self.decode();
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

    /// Returns the value of a key.
    pub(super) fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.seek(key);
        if let At::Damaged(_) = self.at {
            return Err(self.damage());
        }
        self.status()?;
        Ok(self.item().filter(|(found, _)| *found == key).map(|(_, value)| value.to_vec()))
    }

    /// Returns the fingerprint of a packed document, in the bytes of its postings.
    pub(super) fn fingerprint(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.get(key)?.and_then(|record| record.get(1..=self.width).map(<[u8]>::to_vec)))
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

/// The packs under a cursor over `docs` or `postings`.
pub(super) struct Beneath<'a> {
    base: Base<'a>,
    turn: Turn,
}

impl<'a> Beneath<'a> {
    pub(super) fn new(base: Base<'a>) -> Self {
        Self { base, turn: Turn::End }
    }

    pub(super) fn seek(&mut self, overlay: &mut Entries<'a>, key: &[u8]) {
        overlay.seek(key);
        self.base.seek(key);
        self.settle(overlay);
    }

    pub(super) fn next(&mut self, overlay: &mut Entries<'a>) {
        match self.turn {
            Turn::Overlay | Turn::DamagedValue => overlay.next(),
            Turn::Base | Turn::DamagedPack => self.base.next(),
            Turn::End => {}
        }
        self.settle(overlay);
    }

    /// Chooses the smaller entry, and passes what the overlay replaces or removes.
    fn settle(&mut self, overlay: &mut Entries<'a>) {
        self.turn = loop {
            if let At::Damaged(_) = self.base.at {
                break Turn::DamagedPack;
            }
            let Some((key, value)) = overlay.item() else {
                let failed = overlay.status().is_err();
                break if failed || self.base.item().is_none() { Turn::End } else { Turn::Base };
            };
            match self.base.item().map_or(Ordering::Less, |(packed, _)| key.cmp(packed)) {
                Ordering::Greater => break Turn::Base,
                Ordering::Equal => self.base.next(),
                Ordering::Less if self.base.has_failed() => break Turn::End,
                Ordering::Less if value == REMOVED => overlay.next(),
                Ordering::Less if self.is_posting() && !value.is_empty() => {
                    break Turn::DamagedValue;
                }
                Ordering::Less => break Turn::Overlay,
            }
        };
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::bulk::{BuildOptions, Builder};
    use crate::index::{Durability, Index, IndexOptions};
    use crate::store::codec::Document;
    use crate::store::pack::PACK_MEMBERS;
    use crate::store::{Cursor, Snapshot, keys};

    type Model = BTreeMap<Vec<u8>, u64>;
    type Entry = (Vec<u8>, Vec<u8>);

    fn build(path: &Path, documents: &Model) {
        let mut builder =
            Builder::<u64>::create(path, &IndexOptions::new(), &BuildOptions::new()).unwrap();
        for (origin, (key, fingerprint)) in (0..).zip(documents) {
            builder.push(key, *fingerprint, origin).unwrap();
        }
        builder.finish(&(), &mut |_, _| ()).unwrap();
    }

    /// Returns what `docs` and `postings` of an index without packs would hold.
    fn expected(model: &Model) -> [BTreeMap<Vec<u8>, Vec<u8>>; 2] {
        let record = |(key, fingerprint): (&Vec<u8>, &u64)| {
            let document = Document { fingerprint: *fingerprint, features: None };
            (key.clone(), codec::encode(key, &document))
        };
        let posting = |(key, f): (&Vec<u8>, &u64)| (keys::posting(*f, key), Vec::new());
        [model.iter().map(record).collect(), model.iter().map(posting).collect()]
    }

    fn drain(cursor: &mut Cursor<'_>, most: usize) -> Vec<Entry> {
        let mut found = Vec::new();
        while found.len() < most
            && let Some((key, value)) = cursor.entry().unwrap()
        {
            found.push((key.to_vec(), value.to_vec()));
            cursor.next();
        }
        found
    }

    fn compare(snapshot: &Arc<Snapshot>, model: &Model, rng: &mut fastrand::Rng) {
        let families = [Family::Docs, Family::Postings];
        for (family, expected) in families.into_iter().zip(expected(model)) {
            let all: Vec<Entry> = expected.clone().into_iter().collect();
            assert_eq!(drain(&mut snapshot.sweep(family).unwrap(), usize::MAX), all, "{family}");
            let mut cursor = snapshot.probe(family).unwrap();
            for _ in 0..40 {
                let mut from = match all.get(rng.usize(..=all.len())) {
                    Some((key, _)) => key.clone(),
                    None => vec![rng.u8(..); rng.usize(..12)],
                };
                match rng.u8(..4) {
                    0 => from.push(0),
                    1 => drop(from.pop()),
                    2 => from.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1),
                    _ => {}
                }
                cursor.seek(&from);
                let after = expected.range(from.clone()..).take(5);
                let after: Vec<Entry> = after.map(|(k, v)| (k.clone(), v.clone())).collect();
                assert_eq!(drain(&mut cursor, 5), after, "{family} from {from:?}");
                let found = snapshot.get(family, &from).unwrap();
                assert_eq!(found.as_ref(), expected.get(&from), "{family} at {from:?}");
            }
        }
    }

    /// Draws a key of eight bytes in half of all cases, else a longer or shorter one.
    fn key(rng: &mut fastrand::Rng) -> Vec<u8> {
        let mut key = (rng.u64(..700) * 3).to_be_bytes().to_vec();
        match rng.u8(..6) {
            0 => key.truncate(7),
            1 => key.push(rng.u8(..2)),
            2 => key.insert(0, 0),
            _ => {}
        }
        key
    }

    #[test]
    fn random_writes_over_packs_read_as_a_sorted_map() {
        let mut rng = fastrand::Rng::with_seed(11);
        let directory = tempfile::tempdir().unwrap();
        let mut model = Model::new();
        for _ in 0..2 {
            let mut pushed = Model::new();
            for _ in 0..600 {
                pushed.insert(key(&mut rng), rng.u64(..40));
            }
            build(directory.path(), &pushed);
            model.append(&mut pushed);
            let index = Index::<u64>::open(directory.path()).unwrap();
            assert_eq!(index.header().format, 2);
            for _ in 0..8 {
                let before = (index.reader().unwrap(), model.clone());
                compare(before.0.snapshot(), &model, &mut rng);
                for _ in 0..40 {
                    let key = key(&mut rng);
                    if rng.bool() {
                        let fingerprint = rng.u64(..40);
                        let document = (&key[..], fingerprint);
                        index.insert_batch(&[document], Durability::Buffered).unwrap();
                        model.insert(key, fingerprint);
                    } else {
                        let removed = index.remove_batch(&[&key], Durability::Buffered).unwrap();
                        assert_eq!(removed == 1, model.remove(&key).is_some(), "{key:?}");
                    }
                }
                compare(before.0.snapshot(), &before.1, &mut rng);
            }
            compare(index.reader().unwrap().snapshot(), &model, &mut rng);
            assert_eq!(index.check_deep(&()).unwrap().problems, [""; 0]);
            assert_eq!(index.len().unwrap(), model.len() as u64);
        }
    }

    #[test]
    fn a_cursor_passes_a_damaged_pack_and_names_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let members = PACK_MEMBERS as u64;
        let model: Model = (0..3 * members).map(|row| (row.to_be_bytes().to_vec(), row)).collect();
        build(directory.path(), &model);
        let index = Index::<u64>::open(directory.path()).unwrap();
        let reader = index.reader().unwrap();
        let store = reader.snapshot().store();
        let end = (2 * members - 1).to_be_bytes();
        let packs = store.handle(Family::DocPacks).unwrap();
        store.db.put_cf(packs, end, b"\x02not a pack").unwrap();
        let mut cursor = store.sweep(Family::Docs).unwrap();
        assert_eq!(drain(&mut cursor, PACK_MEMBERS).len(), PACK_MEMBERS);
        assert!(matches!(cursor.entry(), Err(Error::Corrupt { .. })));
        assert_eq!(cursor.damaged_up_to(), Some(&end[..]));
        cursor.next();
        let rest = drain(&mut cursor, usize::MAX);
        assert_eq!(rest.first().map(|(key, _)| &key[..]), Some(&(2 * members).to_be_bytes()[..]));
        assert_eq!((rest.len(), cursor.damaged_up_to()), (PACK_MEMBERS, None));
        assert!(index.get(&7_u64.to_be_bytes()).is_ok());
        assert!(matches!(index.get(&end), Err(Error::Corrupt { .. })));
        assert!(matches!(index.remove(&end), Err(Error::Corrupt { .. })));
        let report = index.check(&()).unwrap();
        assert!(report.problems.iter().any(|problem| problem.contains("doc packs: pack up to")));
    }

    #[test]
    fn packs_that_overlap_and_unknown_values_are_damage() {
        let directory = tempfile::tempdir().unwrap();
        let model: Model = (0..4_u64).map(|row| (row.to_be_bytes().to_vec(), 7)).collect();
        build(directory.path(), &model);
        let index = Index::<u64>::open(directory.path()).unwrap();
        let store = Arc::clone(index.reader().unwrap().snapshot().store());
        let layout = Layout::of(Family::DocPacks, 64);
        let members = [2, 9].map(|key| Member { fingerprint: 7, key });
        let mut value = Vec::new();
        let key = layout.encode(&members, &mut value).unwrap();
        store.db.put_cf(store.handle(Family::DocPacks).unwrap(), key, &value).unwrap();
        let mut cursor = store.sweep(Family::Docs).unwrap();
        assert_eq!(drain(&mut cursor, 4).len(), 4);
        let error = cursor.entry().unwrap_err().to_string();
        assert!(error.contains("overlaps another"), "{error}");
        let posting = keys::posting(7_u64, &1_u64.to_be_bytes());
        store.db.put_cf(store.handle(Family::Postings).unwrap(), &posting, [1]).unwrap();
        let mut cursor = store.sweep(Family::Postings).unwrap();
        assert_eq!(drain(&mut cursor, 1).len(), 1);
        assert!(matches!(cursor.entry(), Err(Error::Corrupt { .. })));
        assert_eq!(cursor.damaged_up_to(), Some(&posting[..]));
        cursor.next();
        assert_eq!(drain(&mut cursor, usize::MAX).len(), 2);
    }
}
