//! Packs: up to 128 documents or postings with keys of eight bytes become one key and one value.
//!
//! The key is that of the last member, so one forward seek finds the only pack that can hold a key.
//! Numbers of a few bytes replace repeated keys and headers, and one checksum covers the whole pack
//! and its key. The first byte differs from that of a record, so neither decodes as the other.
//!
//! Invariant: members are distinct and ascending, and the packs of a family never overlap.

use std::cmp::Ordering;

use super::codec;
use crate::error::{Error, Result};
use crate::store::Family;

/// Number of members per pack when packs are written.
pub(crate) const PACK_MEMBERS: usize = 128;

/// Number of members above which a rewritten pack is cut.
const LONGEST_PACK: usize = PACK_MEMBERS + PACK_MEMBERS / 2;

/// Length of a document key that is packed.
pub(crate) const PACKED_KEY: usize = 8;

/// First byte of every pack; records begin with their own version, 1.
const PACK_VERSION: u8 = 2;

/// Longest key of a pack: a fingerprint of 16 bytes and a document key.
const MAX_PACK_KEY: usize = 16 + PACKED_KEY;

/// One packed document, or its posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) fingerprint: u128,
    pub(crate) key: u64,
}

/// What a pack holds, which decides about its order and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Documents, ascending by key.
    Documents,
    /// Postings, ascending by fingerprint, then by key.
    Postings,
}

/// The layout of the packs of one family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    kind: Kind,
    /// Bytes of a fingerprint.
    width: usize,
}

/// The key of a member, as its family sorts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberKey {
    bytes: [u8; MAX_PACK_KEY],
    start: usize,
}

impl AsRef<[u8]> for MemberKey {
    fn as_ref(&self) -> &[u8] {
        self.bytes.split_at(self.start).1
    }
}

impl Layout {
    /// Returns the layout of a family of packs, for fingerprints of `bits`.
    pub(crate) fn of(family: Family, bits: u32) -> Self {
        let kind = if family == Family::DocPacks { Kind::Documents } else { Kind::Postings };
        Self { kind, width: (bits / 8) as usize }
    }

    /// Returns the length of a member's key.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn key_bytes(self) -> usize {
        MAX_PACK_KEY - self.start()
    }

    /// Returns the bytes of a fingerprint.
    pub(crate) fn width(self) -> usize {
        self.width
    }

    fn start(self) -> usize {
        match self.kind {
            Kind::Documents => MAX_PACK_KEY - PACKED_KEY,
            Kind::Postings => MAX_PACK_KEY - PACKED_KEY - self.width,
        }
    }

    /// Returns the family of packs.
    pub(crate) fn family(self) -> Family {
        match self.kind {
            Kind::Documents => Family::DocPacks,
            Kind::Postings => Family::PostingPacks,
        }
    }

    /// Returns the key of a member.
    pub(crate) fn key(self, member: Member) -> MemberKey {
        let mut bytes = [0; MAX_PACK_KEY];
        let (head, tail) = bytes.split_at_mut(MAX_PACK_KEY - PACKED_KEY);
        head.copy_from_slice(&member.fingerprint.to_be_bytes());
        tail.copy_from_slice(&member.key.to_be_bytes());
        MemberKey { bytes, start: self.start() }
    }

    /// Returns the member with a key, without its fingerprint if the key has none.
    pub(crate) fn member(self, key: &[u8]) -> Option<Member> {
        let (fingerprint, key) = key.split_last_chunk::<PACKED_KEY>()?;
        let expected = if self.kind == Kind::Documents { 0 } else { self.width };
        (fingerprint.len() == expected)
            .then(|| Member { fingerprint: number(fingerprint), key: u64::from_be_bytes(*key) })
    }

    /// Compares members as their family sorts them: documents by key alone.
    pub(crate) fn cmp(self, a: &Member, b: &Member) -> Ordering {
        match self.kind {
            Kind::Documents => a.key.cmp(&b.key),
            Kind::Postings => (a.fingerprint, a.key).cmp(&(b.fingerprint, b.key)),
        }
    }

    /// Cuts ascending members into packs of even length.
    pub(crate) fn cut(members: &[Member]) -> impl Iterator<Item = &[Member]> {
        let fits = members.len() <= LONGEST_PACK;
        let packs = if fits { 1 } else { members.len().div_ceil(PACK_MEMBERS) };
        members.chunks(members.len().div_ceil(packs).max(1))
    }

    /// Encodes ascending members into `value`, and returns the key of the pack.
    pub(crate) fn encode(self, members: &[Member], value: &mut Vec<u8>) -> Option<MemberKey> {
        let key = self.key(*members.last()?);
        value.clear();
        value.push(PACK_VERSION);
        match self.kind {
            Kind::Documents => self.encode_documents(members, value),
            Kind::Postings => encode_postings(members, value),
        }
        let sum = codec::checksum(key.as_ref(), value);
        value.extend_from_slice(&sum.to_be_bytes());
        Some(key)
    }

    fn encode_documents(self, members: &[Member], value: &mut Vec<u8>) {
        let gaps = || pairs(members).map(|(low, high)| high.key.wrapping_sub(low.key + 1));
        let width = bytes_of(gaps().fold(0, |all, gap| all | u128::from(gap)));
        value.push(byte(width));
        gaps().for_each(|gap| put(value, u128::from(gap), width));
        members.iter().rev().for_each(|member| put(value, member.fingerprint, self.width));
    }

    /// Decodes a pack into `members`, last member first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for a key, checksum, width, length or order that no encoder
    /// writes.
    pub(crate) fn decode(self, key: &[u8], value: &[u8], members: &mut Vec<Member>) -> Result<()> {
        members.clear();
        let decoded = self.try_decode(key, value, members);
        decoded.map_err(|detail| {
            members.clear();
            let key = key.escape_ascii();
            Error::corrupt(self.family().to_string(), format!("pack up to key {key}: {detail}"))
        })
    }

    fn try_decode(
        self,
        key: &[u8],
        value: &[u8],
        members: &mut Vec<Member>,
    ) -> Result<(), &'static str> {
        let last = self.member(key).ok_or("the key has another length")?;
        let (body, sum) = value.split_last_chunk::<4>().ok_or("there are too few bytes")?;
        if u32::from_be_bytes(*sum) != codec::checksum(key, body) {
            return Err("checksum does not match");
        }
        let Some((&PACK_VERSION, body)) = body.split_first() else {
            return Err("the version is unknown");
        };
        members.push(last);
        match self.kind {
            Kind::Documents => self.decode_documents(body, members),
            Kind::Postings => self.decode_postings(body, members),
        }
        .ok_or("the numbers do not decode")?;
        let ascending = |pair: &[Member]| match pair {
            [high, low] => self.cmp(low, high) == Ordering::Less,
            _ => true,
        };
        if members.windows(2).all(ascending) { Ok(()) } else { Err("members do not ascend") }
    }

    fn decode_documents(self, body: &[u8], members: &mut Vec<Member>) -> Option<()> {
        let (gaps, rest) = split_width(body, PACKED_KEY)?;
        let count = exact(rest.len() + gaps, gaps + self.width)?;
        let (keys, fingerprints) = rest.split_at_checked((count - 1) * gaps)?;
        let mut key = members.last()?.key;
        let mut below = false;
        let mut step = |gap: u128| {
            // A gap has at most eight bytes.
            let (next, borrowed) = u128::from(key).overflowing_sub(gap + 1);
            below |= borrowed;
            key = u64::try_from(next).unwrap_or_default();
            members.push(Member { fingerprint: 0, key });
        };
        if gaps == 0 {
            (1..count).for_each(|_| step(0));
        } else {
            numbers(keys, gaps, step);
        }
        let mut places = members.iter_mut();
        numbers(fingerprints, self.width, |fingerprint| {
            if let Some(member) = places.next() {
                member.fingerprint = fingerprint;
            }
        });
        (!below).then_some(())
    }

    fn decode_postings(self, body: &[u8], members: &mut Vec<Member>) -> Option<()> {
        let (steps, rest) = split_width(body, self.width)?;
        let (offsets, rest) = split_width(rest, PACKED_KEY)?;
        let (base, rest) = rest.split_first_chunk::<PACKED_KEY>()?;
        let base = u64::from_be_bytes(*base);
        let others = if rest.is_empty() { 0 } else { exact(rest.len(), steps + offsets)? };
        let (fingerprints, keys) = rest.split_at_checked(others * steps)?;
        let mut fingerprint = members.last()?.fingerprint;
        let mut outside = false;
        let mut step = |difference: u128| {
            let (next, borrowed) = fingerprint.overflowing_sub(difference);
            outside |= borrowed;
            fingerprint = next;
            members.push(Member { fingerprint, key: base });
        };
        if steps == 0 {
            (0..others).for_each(|_| step(0));
        } else {
            numbers(fingerprints, steps, step);
        }
        let mut places = members.iter_mut().skip(1);
        numbers(keys, offsets, |offset| {
            if let Some(member) = places.next() {
                let key = u64::try_from(u128::from(base) + offset);
                outside |= key.is_err();
                member.key = key.unwrap_or_default();
            }
        });
        (!outside).then_some(())
    }
}

fn encode_postings(members: &[Member], value: &mut Vec<u8>) {
    let steps = || pairs(members).map(|(low, high)| high.fingerprint.wrapping_sub(low.fingerprint));
    let others = members.split_last().map_or(&[][..], |(_, others)| others);
    let base = others.iter().map(|member| member.key).min().unwrap_or(0);
    let offsets = || others.iter().rev().map(|member| u128::from(member.key - base));
    let step_width = bytes_of(steps().fold(0, |all, step| all | step));
    let offset_width = bytes_of(offsets().fold(0, |all, offset| all | offset));
    // The number of members follows from the length, so they must take bytes.
    let least = usize::from(step_width == 0 && !others.is_empty());
    let offset_width = offset_width.max(least);
    value.extend_from_slice(&[byte(step_width), byte(offset_width)]);
    value.extend_from_slice(&base.to_be_bytes());
    steps().for_each(|step| put(value, step, step_width));
    offsets().for_each(|offset| put(value, offset, offset_width));
}

/// Returns neighbours, the last pair first.
fn pairs(members: &[Member]) -> impl Iterator<Item = (&Member, &Member)> {
    members.iter().zip(members.iter().skip(1)).rev()
}

/// Returns the fewest bytes that hold a number.
fn bytes_of(number: u128) -> usize {
    (u128::BITS - number.leading_zeros()).div_ceil(8) as usize
}

fn byte(width: usize) -> u8 {
    u8::try_from(width).expect("a number has at most 16 bytes")
}

fn put(out: &mut Vec<u8>, number: u128, width: usize) {
    out.extend(number.to_be_bytes().iter().skip(16 - width));
}

fn split_width(bytes: &[u8], most: usize) -> Option<(usize, &[u8])> {
    let (&width, rest) = bytes.split_first()?;
    let width = usize::from(width);
    (width <= most).then_some((width, rest))
}

/// Divides if nothing is left over and the result is at least one.
fn exact(bytes: usize, each: usize) -> Option<usize> {
    (each > 0 && bytes > 0 && bytes.is_multiple_of(each)).then(|| bytes / each)
}

/// Reads one number of up to 16 bytes.
pub(in crate::store) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Calls `visit` with numbers of `width` bytes each.
fn numbers(bytes: &[u8], width: usize, visit: impl FnMut(u128)) {
    match width {
        1 => each::<1>(bytes, visit),
        2 => each::<2>(bytes, visit),
        3 => each::<3>(bytes, visit),
        4 => each::<4>(bytes, visit),
        5 => each::<5>(bytes, visit),
        6 => each::<6>(bytes, visit),
        7 => each::<7>(bytes, visit),
        8 => each::<8>(bytes, visit),
        _ => bytes.chunks_exact(width.max(1)).map(number).for_each(visit),
    }
}

/// Copies each number into a whole word first, which takes two loads instead of one per byte.
#[inline]
fn each<const W: usize>(bytes: &[u8], mut visit: impl FnMut(u128)) {
    for chunk in bytes.as_chunks::<W>().0 {
        let mut word = [0; 8];
        if let Some(tail) = word.last_chunk_mut::<W>() {
            *tail = *chunk;
        }
        visit(u128::from(u64::from_be_bytes(word)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> impl Iterator<Item = Layout> {
        let families = [Family::DocPacks, Family::PostingPacks];
        families.into_iter().flat_map(|family| [32, 64, 128].map(|bits| Layout::of(family, bits)))
    }

    fn round_trip(layout: Layout, members: &[Member]) -> usize {
        let (mut value, mut back) = (Vec::new(), Vec::new());
        let key = layout.encode(members, &mut value).unwrap();
        layout.decode(key.as_ref(), &value, &mut back).unwrap();
        back.reverse();
        assert_eq!(back, members, "{layout:?}");
        value.len()
    }

    /// Returns distinct members in the order of a layout, with numbers of up to `bits` bits.
    fn drawn(layout: Layout, rng: &mut fastrand::Rng, count: usize, bits: u32) -> Vec<Member> {
        let widest = u32::try_from(8 * layout.width).unwrap();
        let mut members: Vec<_> = (0..count)
            .map(|_| Member {
                fingerprint: rng.u128(..) >> (128 - bits.min(widest)),
                key: rng.u64(..) >> (64 - bits.min(64)),
            })
            .collect();
        members.sort_by(|a, b| layout.cmp(a, b));
        members.dedup_by(|a, b| layout.cmp(a, b) == Ordering::Equal);
        members
    }

    #[test]
    fn packs_decode_to_what_was_encoded_at_every_width() {
        let mut rng = fastrand::Rng::with_seed(7);
        for layout in layouts() {
            for bits in 1..=128 {
                for count in [1, 2, 3, PACK_MEMBERS, 300] {
                    let members = drawn(layout, &mut rng, count, bits);
                    round_trip(layout, &members);
                }
            }
            let most = u128::MAX >> (128 - 8 * layout.width);
            let ends = [(0, 0), (most, u64::MAX)];
            round_trip(layout, &ends.map(|(fingerprint, key)| Member { fingerprint, key }));
        }
    }

    #[test]
    fn packs_of_row_numbers_have_golden_bytes() {
        let members = [(0x0a0b_0c0d, 4), (0x0102_0304, 5), (0x0a0b_0c0d, 7)];
        let mut members = members.map(|(fingerprint, key)| Member { fingerprint, key });
        let mut value = Vec::new();
        let documents = Layout::of(Family::DocPacks, 32);
        let key = documents.encode(&members, &mut value).unwrap();
        assert_eq!(key.as_ref(), [0, 0, 0, 0, 0, 0, 0, 7]);
        let (body, sum) = value.split_last_chunk::<4>().unwrap();
        assert_eq!(body, [2, 1, 1, 0, 10, 11, 12, 13, 1, 2, 3, 4, 10, 11, 12, 13]);
        assert_eq!(*sum, [155, 175, 56, 135]);
        let postings = Layout::of(Family::PostingPacks, 32);
        members.sort_by(|a, b| postings.cmp(a, b));
        let key = postings.encode(&members, &mut value).unwrap();
        assert_eq!(key.as_ref(), [10, 11, 12, 13, 0, 0, 0, 0, 0, 0, 0, 7]);
        let (body, sum) = value.split_last_chunk::<4>().unwrap();
        assert_eq!(body, [2, 4, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 9, 9, 9, 9, 0, 1]);
        assert_eq!(*sum, [111, 72, 98, 40]);
        let copies = [3, 4].map(|key| Member { fingerprint: 1, key });
        postings.encode(&copies, &mut value);
        assert_eq!(value[..value.len() - 4], [2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0]);
    }

    #[test]
    fn consecutive_rows_take_eight_bytes_and_a_fifth() {
        let mut rng = fastrand::Rng::with_seed(3);
        let members: Vec<_> = (0..PACK_MEMBERS as u64)
            .map(|row| Member { fingerprint: rng.u64(..).into(), key: (1 << 29) + row })
            .collect();
        let bytes = round_trip(Layout::of(Family::DocPacks, 64), &members);
        assert_eq!(bytes, 1 + 1 + 8 * PACK_MEMBERS + 4);
    }

    #[test]
    fn every_flipped_bit_every_cut_and_another_key_are_damage() {
        let mut rng = fastrand::Rng::with_seed(5);
        for layout in layouts() {
            let members = drawn(layout, &mut rng, 9, 30);
            let mut value = Vec::new();
            let key = layout.encode(&members, &mut value).unwrap();
            let damaged = |key: &[u8], value: &[u8]| {
                let mut found = Vec::new();
                let decoded = layout.decode(key, value, &mut found);
                assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{layout:?}");
                assert!(found.is_empty());
            };
            for bit in 0..value.len() * 8 {
                let mut bad = value.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                damaged(key.as_ref(), &bad);
            }
            (0..value.len()).for_each(|len| damaged(key.as_ref(), &value[..len]));
            let mut other = key.as_ref().to_vec();
            *other.last_mut().unwrap() ^= 1;
            damaged(&other, &value);
            damaged(&other[1..], &value);
        }
    }

    #[test]
    fn numbers_that_no_encoder_writes_are_damage_under_a_valid_checksum() {
        let layout = Layout::of(Family::DocPacks, 32);
        let key = 5_u64.to_be_bytes();
        for body in [
            &[][..],
            &[2],
            &[1, 0, 1, 2, 3, 4],
            &[2, 9, 1, 2, 3, 4],
            &[2, 0],
            &[2, 0, 1, 2, 3],
            &[2, 1, 9, 1, 2, 3, 4, 1, 2, 3, 4],
        ] {
            let mut value = body.to_vec();
            value.extend_from_slice(&codec::checksum(&key, body).to_be_bytes());
            let decoded = layout.decode(&key, &value, &mut Vec::new());
            assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{body:?}");
        }
        let layout = Layout::of(Family::PostingPacks, 32);
        let key = [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 5];
        let base = |base: u64, rest: &[u8]| [&base.to_be_bytes()[..], rest].concat();
        for body in [
            [&[2, 1, 1][..], &base(1, &[10, 1])].concat(),
            [&[2, 0, 1][..], &base(u64::MAX, &[1])].concat(),
            [&[2, 0, 0][..], &base(1, &[1])].concat(),
            [&[2, 0, 1][..], &base(1, &[4])].concat(),
            [&[2, 1, 9][..], &base(1, &[0; 10])].concat(),
            vec![2, 1, 1, 0],
        ] {
            let mut value = body.clone();
            value.extend_from_slice(&codec::checksum(&key, &body).to_be_bytes());
            let decoded = layout.decode(&key, &value, &mut Vec::new());
            assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{body:?}");
        }
    }
}
