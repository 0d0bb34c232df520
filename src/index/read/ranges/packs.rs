//! Ranges of packs: postings that searches have read, by the first bits of their fingerprints.

use std::sync::Arc;

use super::{Kept, MOST_MEMBERS, Members, Place, Ranges};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::store::{Cursor, Family};

/// Most postings of a range if fingerprints are even: they take as much memory as what is beside them,
/// and are mostly in one pack.
const USUAL: u64 = 32;

/// A packed posting: a fingerprint, and the key of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct Posting<F> {
    pub(in crate::index) fingerprint: F,
    pub(in crate::index) key: u64,
}

/// Returns the length of prefixes for some documents, in bits.
pub(super) fn prefix_bits<F: Fingerprint>(least: u32, documents: u64) -> u32 {
    let ranges = (documents / USUAL).max(1);
    least.max(ranges.ilog2() + 1).clamp(1, F::BITS.min(u64::BITS))
}

impl<F: Fingerprint> Ranges<F> {
    /// Says that a step of a repacking will change postings, from a fingerprint to another one each.
    ///
    /// One step runs at a time. Call before its batch can be committed, and then
    /// [`Ranges::end_repacked`].
    pub(in crate::index) fn begin_repacked(&self, ranges: impl Iterator<Item = (u128, u128)>) {
        let shift = F::BITS - self.packs.prefix_bits(0);
        self.packs.begin(0, ranges.map(|(low, high)| (low >> shift, high >> shift)));
    }

    /// Says that the batch of the step is committed, or that it never will be.
    pub(in crate::index) fn end_repacked(&self) {
        self.packs.end();
    }

    /// Returns the ranges of packs in a snapshot with a number.
    pub(in crate::index) fn of_packs(&self, number: u64) -> OfPacks<'_, F> {
        OfPacks { ranges: self, number }
    }
}

/// The ranges of packs in a snapshot with a number.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct OfPacks<'a, F> {
    ranges: &'a Ranges<F>,
    number: u64,
}

impl<F: Fingerprint> OfPacks<'_, F> {
    /// Calls `visit` with the document of each posting of a fingerprint, ascending, until it returns
    /// false.
    ///
    /// `cursor` is that of the postings in the snapshot. Returns false, and visits none, if they have to
    /// be read with it.
    pub(in crate::index) fn each_document(
        self,
        cursor: &mut Cursor<'_>,
        fingerprint: F,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        let Some(members) = self.range(cursor, fingerprint)? else { return Ok(false) };
        let first = members.partition_point(|posting| posting.fingerprint < fingerprint);
        let (_, members) = members.split_at(first);
        for posting in members {
            if posting.fingerprint != fingerprint || !visit(&posting.key.to_be_bytes()) {
                break;
            }
        }
        Ok(true)
    }

    /// Returns the range of a fingerprint, and keeps it, if only packs have postings of the fingerprint.
    fn range(self, cursor: &mut Cursor<'_>, fingerprint: F) -> Result<Option<Arc<[Posting<F>]>>> {
        let Self { ranges, number } = self;
        let bits = ranges.packs.prefix_bits(0);
        let prefix = (fingerprint >> (F::BITS - bits)).widen();
        let Ok(of_place) = u64::try_from(prefix) else { return Ok(None) };
        let place = Place { family: Family::PostingPacks, prefix: of_place };
        let kept = ranges.kept.get(&place);
        // Read last: whoever keeps a range knows of the steps before its own snapshot.
        let changed = ranges.packs.changed(0, prefix);
        if changed > number {
            return Ok(None);
        }
        let kept = kept.filter(|kept| changed <= kept.number).map(|kept| kept.members);
        let kept = match kept {
            Some(Members::OfPacks(members)) => Some(members),
            Some(Members::OfTable(_) | Members::Many) => return Ok(None),
            None => {
                let steady = ranges.runs.are_steady() && ranges.packs.are_steady();
                if !ranges.admits(&place, steady) {
                    return Ok(None);
                }
                None
            }
        };
        if !cursor.only_packs_hold(fingerprint.to_bytes().as_ref())? {
            return Ok(None);
        }
        if kept.is_some() {
            return Ok(kept);
        }
        // What is damaged beside the fingerprint is not asked for.
        let Ok(members) = read(cursor, fingerprint & F::high_mask(bits), bits) else {
            return Ok(None);
        };
        let kept = members.map_or(Members::Many, Members::OfPacks);
        let members = match &kept {
            Members::OfPacks(members) => Some(Arc::clone(members)),
            Members::OfTable(_) | Members::Many => None,
        };
        ranges.keep(place, Kept { number, members: kept });
        Ok(members)
    }
}

/// Reads the postings of a range from packs; `None` if there are too many to keep.
fn read<F: Fingerprint>(
    cursor: &mut Cursor<'_>,
    low: F,
    bits: u32,
) -> Result<Option<Arc<[Posting<F>]>>> {
    let high = (low | !F::high_mask(bits)).widen();
    let mut members = Vec::new();
    cursor.each_packed(low.to_bytes().as_ref(), |member| {
        let within = member.fingerprint <= high;
        if within {
            let fingerprint = F::truncate(member.fingerprint);
            members.push(Posting { fingerprint, key: member.key });
        }
        within && members.len() <= MOST_MEMBERS
    })?;
    Ok((members.len() <= MOST_MEMBERS).then(|| members.into()))
}
