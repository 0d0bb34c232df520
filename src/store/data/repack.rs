//! Repacking: takes what the overlay says into the packs, some at a time.
//!
//! Members that later writes removed or replaced leave their packs, and documents with keys of eight
//! bytes join them. What the overlay says of them is then [obsolete](super::obsolete). First come the
//! packs of postings, then those of documents, both for the overlay of one snapshot.
//!
//! Invariant after every batch: a packed posting belongs to a document that is packed with its
//! fingerprint. A later removal of it depends on that. So packs of postings first lose what packs of
//! documents lose next, and a posting joins them only in the repacking after that of its document.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use super::cursor::{self, Snapshot};
use super::overlay::{Entries, REMOVED};
use super::unpacked::Unpacked;
use super::walk::Walk;
use crate::error::Result;
use crate::store::bytes::codec;
use crate::store::bytes::pack::{Layout, Member, MemberKey, number};
use crate::store::{Batch, Family, Store, engine_error};

/// Packs that one batch rewrites, so that a writer waits about two milliseconds for it.
const PORTION: usize = 64;
/// Changes that one batch makes to them, for the same reason.
const CHANGES: usize = 2048;
/// Entries that one step reads at most. Those with other keys change nothing.
const ENTRIES: usize = 1 << 13;

/// What the overlay says of a document or posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Removed,
    Stored,
}

/// A walk over the overlay of a snapshot, which changes the packs beneath it.
///
/// The snapshot is only that of the overlay. Nothing else may change packs until the walk ends.
pub(crate) struct Repacking {
    snapshot: Arc<Snapshot>,
    family: Family,
    layout: Layout,
    walk: Walk,
    /// Changes that were read, ascending.
    ahead: VecDeque<(Member, Change)>,
    /// Documents that are not packed yet, so that their postings must not be.
    documents: Option<Unpacked>,
    /// Number of entries that packs cannot hold.
    unpacked: u64,
}

/// Some packs that can be rewritten in one batch.
pub(crate) struct Portion {
    family: Family,
    layout: Layout,
    segments: Vec<Segment>,
    /// New members that a removal may have left no trace of since, ascending.
    unsure: Vec<Member>,
    /// Those of them that must not come back.
    gone: Vec<Member>,
}

/// Adjacent packs, which are rewritten together.
struct Segment {
    /// Their keys until now.
    keys: Vec<MemberKey>,
    /// Their members from now on, ascending.
    members: Vec<Member>,
    /// The lowest and the highest fingerprint that they lose or gain.
    changed: (u128, u128),
}

impl Snapshot {
    /// Prepares to repack a family; `None` if it has no packs.
    pub(crate) fn repacking(self: &Arc<Self>, family: Family) -> Result<Option<Repacking>> {
        let store = self.store();
        let Some(packs) = store.packs(family)? else { return Ok(None) };
        let documents = if family == Family::Postings {
            Some(Unpacked::sized(store.entries_over_packs()?))
        } else {
            None
        };
        Ok(Some(Repacking {
            snapshot: Arc::clone(self),
            family,
            layout: packs.layout(),
            walk: Walk::over(family),
            ahead: VecDeque::new(),
            documents,
            unpacked: 0,
        }))
    }
}

impl Repacking {
    /// Returns the next packs, or `None` after the last ones.
    pub(crate) fn next(&mut self) -> Result<Option<Portion>> {
        let (family, layout) = (self.family, self.layout);
        let mut portion = Portion::new(family, layout);
        if let Some(documents) = &mut self.documents
            && documents.read(&self.snapshot)?
        {
            return Ok(Some(portion));
        }
        if self.ahead.is_empty() && !self.read()? {
            return Ok(None);
        }
        let Some(packs) = self.snapshot.store().packs(family)? else { return Ok(None) };
        let entries = packs.entries(cursor::passing());
        let mut place = Place { entries, layout, pack: None, left: None };
        let mut rewritten = 0;
        while let Some(change) = self.ahead.front() {
            if !place.takes(&change.0) {
                rewritten += usize::from(place.leave(&mut portion));
                if rewritten == PORTION {
                    return Ok(Some(portion));
                }
                place.reach(layout.key(change.0).as_ref())?;
            }
            place.pack.as_mut().expect("it is at a pack").changes.push(*change);
            self.ahead.pop_front();
        }
        place.leave(&mut portion);
        Ok(Some(portion))
    }

    /// Returns the number of entries that were read and that packs cannot hold.
    pub(crate) fn unpacked(&self) -> u64 {
        self.unpacked
    }

    /// Reads changes ahead. Returns false after the last entry.
    fn read(&mut self) -> Result<bool> {
        let Self { snapshot, family, layout, walk, ahead, documents, unpacked } = self;
        let documents = documents.as_ref();
        let is_unpacked =
            |member: &Member| documents.is_some_and(|documents| documents.may_hold(member.key));
        let options = snapshot.of_state(cursor::passing());
        let mut record = Vec::new();
        walk.step(snapshot.store(), options, ENTRIES, |key, value| {
            match change(*family, *layout, key, value, &mut record) {
                Some((member, Change::Stored)) if is_unpacked(&member) => {}
                Some(change) => ahead.push_back(change),
                None => *unpacked += 1,
            }
            Ok(ahead.len() < CHANGES)
        })
    }
}

/// Returns the change that an entry of the overlay asks for, if packs can hold what it says.
///
/// A record that does not decode, or that says more than a pack can, stays where it is.
fn change(
    family: Family,
    layout: Layout,
    key: &[u8],
    value: &[u8],
    record: &mut Vec<u8>,
) -> Option<(Member, Change)> {
    let member = layout.member(key)?;
    if value == REMOVED {
        return Some((member, Change::Removed));
    }
    if family == Family::Postings {
        return value.is_empty().then_some((member, Change::Stored));
    }
    let fingerprint = codec::fingerprint(value, layout.width())?;
    codec::encode_plain(record, key, fingerprint);
    let member = Member { fingerprint: number(fingerprint), ..member };
    (record == value).then_some((member, Change::Stored))
}

/// A walk over packs, at the one that is being changed.
struct Place<'a> {
    entries: Entries<'a>,
    layout: Layout,
    pack: Option<Pack>,
    /// Whether the pack that it left last is in the portion. The cursor is at the pack after that one.
    left: Option<bool>,
}

/// A pack with the changes to it.
struct Pack {
    /// Ascending members; none for the first pack of a family that has none yet.
    members: Vec<Member>,
    changes: Vec<(Member, Change)>,
    /// Whether it is the last one, which also takes what follows it.
    is_last: bool,
    /// Whether it directly follows the pack before it in the portion.
    is_adjacent: bool,
}

impl Place<'_> {
    /// Returns true if the present pack can hold a member.
    fn takes(&mut self, member: &Member) -> bool {
        let Some(pack) = &mut self.pack else { return false };
        let Some(last) = pack.members.last().filter(|_| !pack.is_last) else { return true };
        if self.layout.cmp(member, last) != Ordering::Greater {
            return true;
        }
        self.entries.next();
        pack.is_last = self.entries.key().is_none() && self.entries.status().is_ok();
        pack.is_last
    }

    /// Moves the present pack to the portion if its changes change it. Returns whether they do.
    fn leave(&mut self, portion: &mut Portion) -> bool {
        let Some(pack) = self.pack.take() else { return false };
        let changed = portion.apply(&pack.members, &pack.changes);
        let is_changed = changed.is_some();
        if let Some(members) = changed {
            let key = pack.members.last().map(|last| self.layout.key(*last));
            let named = || pack.changes.iter().map(|(member, _)| member.fingerprint);
            let (low, high) = (named().min().unwrap_or(0), named().max().unwrap_or(u128::MAX));
            match portion.segments.last_mut().filter(|_| pack.is_adjacent) {
                Some(segment) => {
                    segment.keys.extend(key);
                    segment.members.extend(members);
                    segment.changed.1 = segment.changed.1.max(high);
                }
                None => portion.segments.push(Segment {
                    keys: Vec::from_iter(key),
                    members,
                    changed: (low, high),
                }),
            }
        }
        self.left = Some(is_changed);
        is_changed
    }

    /// Moves to the first pack at or after a key, else to the last one.
    fn reach(&mut self, key: &[u8]) -> Result<()> {
        let follows = self.left.is_some() && self.entries.key().is_some_and(|last| last >= key);
        if !follows {
            self.entries.seek(key);
        }
        let is_last = self.entries.key().is_none();
        if is_last && self.entries.status().is_ok() {
            self.entries.seek_to_last();
        }
        let mut members = Vec::new();
        if let Some((last, value)) = self.entries.item() {
            self.layout.decode(last, value, &mut members)?;
        }
        let failed = |e| engine_error(&self.layout.family().to_string(), e);
        self.entries.status().map_err(failed)?;
        members.reverse();
        let is_adjacent = follows && self.left == Some(true);
        self.pack = Some(Pack { members, changes: Vec::new(), is_last, is_adjacent });
        Ok(())
    }
}

impl Portion {
    fn new(family: Family, layout: Layout) -> Self {
        let (segments, unsure, gone) = (Vec::new(), Vec::new(), Vec::new());
        Self { family, layout, segments, unsure, gone }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns ranges of fingerprints, ascending, outside of which no posting changes.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (u128, u128)> {
        let of_postings = self.family == Family::Postings;
        self.segments.iter().filter(move |_| of_postings).map(|segment| segment.changed)
    }

    /// Returns the members of a pack after its changes, or `None` if they change nothing.
    fn apply(&mut self, members: &[Member], changes: &[(Member, Change)]) -> Option<Vec<Member>> {
        let layout = self.layout;
        let mut rest = members.iter().copied().peekable();
        let mut all = Vec::with_capacity(members.len() + changes.len());
        let mut is_changed = false;
        for (member, change) in changes {
            let before = |other: &Member| layout.cmp(other, member) == Ordering::Less;
            while let Some(other) = rest.next_if(before) {
                all.push(other);
            }
            let old = rest.next_if(|other| layout.cmp(other, member) == Ordering::Equal);
            match change {
                Change::Removed => is_changed |= old.is_some(),
                Change::Stored => {
                    is_changed |= old != Some(*member);
                    all.push(*member);
                    // The removal of anything packed leaves a trace, and so does that of a posting
                    // whose document is packed.
                    if old.is_none() && self.family == Family::Docs {
                        self.unsure.push(*member);
                    }
                }
            }
        }
        all.extend(rest);
        is_changed.then_some(all)
    }

    /// Leaves out new members that are no longer in the overlay.
    pub(crate) fn read(&mut self, store: &Store) -> Result<()> {
        let Self { family, layout, unsure, gone, .. } = self;
        let keys: Vec<MemberKey> = unsure.iter().map(|member| layout.key(*member)).collect();
        store.stored_values(*family, &keys, |at, found| {
            if found.is_none() {
                gone.extend(unsure.get(at));
            }
        })
    }

    /// Rewrites the packs. The caller holds the writer lock, and nothing is in flight.
    ///
    /// `is_named` must be true for each document that a batch has named since [`Portion::read`] began.
    /// Whatever was written since the snapshot still overrides the packs.
    pub(crate) fn stage(
        self,
        batch: &mut Batch<'_>,
        is_named: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let store = batch.store;
        let Some(packs) = store.packs(self.family)? else { return Ok(()) };
        let Self { family, layout, segments, unsure, mut gone } = self;
        gone.extend(unsure.iter().filter(|member| is_named(&member.key.to_be_bytes())));
        gone.sort_unstable_by(|a, b| layout.cmp(a, b));
        let mut value = Vec::new();
        for Segment { keys, mut members, .. } in segments {
            if !gone.is_empty() {
                let is_gone = |member: &Member| {
                    gone.binary_search_by(|gone| layout.cmp(gone, member)).is_ok()
                };
                members.retain(|member| !is_gone(member));
            }
            for key in keys {
                batch.writes.delete_cf(packs.handle(), key);
            }
            for members in Layout::cut(&members) {
                if let Some(key) = layout.encode(members, &mut value) {
                    batch.writes.put_cf(packs.handle(), key, &value);
                }
            }
            if let Some(last) = members.last().filter(|_| family == Family::Docs) {
                store.packed_end.raise(last.key);
            }
        }
        Ok(())
    }
}
