//! Chunks: sorts pushed records in memory.
//!
//! Records are appended to a byte arena in push order and never move; 12-byte entries that point at
//! them are sorted. A chunk that was pushed in order needs no entries.
//!
//! ```text
//! record = key length LEB128 | payload length LEB128 | key | payload
//! ```
//!
//! Spill files store records in the same form.
#![expect(clippy::indexing_slicing, reason = "a span is within the buffer that it was made for")]

use rayon::prelude::*;
use rdst::{RadixKey, RadixSort};

/// Memory per record for sorting, besides the arena: an entry and some scratch space.
const SORT_BYTES: usize = size_of::<Entry>() + 4;

/// Most bytes of an encoded length.
const MAX_LEN_BYTES: usize = 5;

/// The arena is addressed with 32 bits.
const ARENA_LIMIT: usize = u32::MAX as usize;

/// Groups of equal prefix up to this size are sorted by comparing keys.
const COMPARED_GROUP: usize = 16;

/// Groups up to this size are sorted by comparing prefixes, larger ones by radix.
const COMPARED_PREFIXES: usize = 1024;

/// Pieces of output that threads gather in parallel.
const PARTS: usize = 8;

/// Position of a record's key and payload in its buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    key: usize,
    payload: usize,
    /// End of the record, where the next one starts.
    pub(crate) end: usize,
}

impl Span {
    /// Returns the record that starts at `at`; `None` if there is no whole record.
    #[inline]
    pub(crate) fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let tail = bytes.get(at..)?;
        let (key_len, payload_len, header) = match tail {
            [key, payload, ..] if (key | payload) < 0x80 => {
                (usize::from(*key), usize::from(*payload), 2)
            }
            _ => {
                let (key_len, rest) = decode_len(tail)?;
                let (payload_len, rest) = decode_len(rest)?;
                (key_len, payload_len, tail.len() - rest.len())
            }
        };
        let key = at + header;
        let payload = key.checked_add(key_len)?;
        let end = payload.checked_add(payload_len)?;
        (end <= bytes.len()).then_some(Self { key, payload, end })
    }

    /// Appends a record to a buffer and returns its position.
    #[inline]
    pub(crate) fn append(out: &mut Vec<u8>, key: &[u8], payload: &[u8]) -> Self {
        encode_len(out, key.len());
        encode_len(out, payload.len());
        let start = out.len();
        out.extend_from_slice(key);
        let middle = out.len();
        out.extend_from_slice(payload);
        Self { key: start, payload: middle, end: out.len() }
    }

    /// Returns the key's bytes.
    #[inline]
    pub(crate) fn key(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.key..self.payload]
    }

    /// Returns the payload's bytes.
    #[inline]
    pub(crate) fn payload(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.payload..self.end]
    }
}

fn decode_len(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    let mut rest = bytes;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, rest));
        }
    }
    None
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // each cast keeps the seven bits that were masked
fn encode_len(out: &mut Vec<u8>, mut len: usize) {
    while len >= 0x80 {
        out.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
}

/// The offset of a record in the arena, and the seven key bytes by which it is being sorted.
///
/// The eighth byte of the prefix is the number of key bytes left, at most 8. So a key that ends
/// sorts before one that continues with zeros, and equal prefixes below 8 mean equal keys.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    high: u32,
    low: u32,
    offset: u32,
}

impl Entry {
    #[inline]
    fn prefix(&self) -> u64 {
        (u64::from(self.high) << 32) | u64::from(self.low)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the two halves of a 64-bit number
    fn set_prefix(&mut self, prefix: u64) {
        self.high = (prefix >> 32) as u32;
        self.low = prefix as u32;
    }

    #[inline]
    fn continues(&self) -> bool {
        self.low & 0xff == 8
    }
}

impl RadixKey for Entry {
    const LEVELS: usize = 8;

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // selects one byte of eight
    fn get_level(&self, level: usize) -> u8 {
        (self.prefix() >> (8 * level)) as u8
    }
}

#[inline]
fn prefix_of(tail: &[u8]) -> u64 {
    if let Some(first) = tail.first_chunk::<8>() {
        return (u64::from_be_bytes(*first) & !0xff) | 8;
    }
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes) | tail.len() as u64
}

/// Records in push order, and whether they must be sorted.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    arena: Vec<u8>,
    records: usize,
    last: Span,
    disordered: bool,
}

impl Chunk {
    /// Appends a record; does nothing and returns false if that would exceed `limit` bytes.
    ///
    /// An empty chunk accepts any record, since a large one could otherwise never be stored.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8], limit: usize) -> bool {
        let disordered = self.disordered || self.is_before_last(key);
        let arena = self.arena.len() + key.len() + payload.len() + 2 * MAX_LEN_BYTES;
        let sorting = if disordered { (self.records + 1) * SORT_BYTES } else { 0 };
        if self.records > 0 && arena + sorting > limit.min(ARENA_LIMIT) {
            return false;
        }
        if self.arena.capacity() < arena {
            // Doubling beyond the limit would reserve unused memory.
            let doubled = (2 * self.arena.len()).max(4 << 10).min(limit).max(arena);
            self.arena.reserve_exact(doubled - self.arena.len());
        }
        self.disordered = disordered;
        self.last = Span::append(&mut self.arena, key, payload);
        self.records += 1;
        true
    }

    fn is_before_last(&self, key: &[u8]) -> bool {
        let last = self.last.key(&self.arena);
        match (key.first_chunk::<8>(), last.first_chunk::<8>()) {
            (Some(a), Some(b)) if a != b => u64::from_be_bytes(*a) < u64::from_be_bytes(*b),
            _ => key < last,
        }
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.records
    }

    /// Returns the most memory that this chunk takes, including sorting.
    pub(crate) fn memory(&self) -> usize {
        self.arena.len() + if self.disordered { self.records * SORT_BYTES } else { 0 }
    }

    /// Sorts by key; equal keys stay in push order.
    pub(crate) fn sort(self) -> SortedChunk {
        let mut entries = Vec::new();
        if self.disordered {
            entries.reserve_exact(self.records);
            let mut at = 0;
            while at < self.arena.len() {
                let offset = u32::try_from(at).expect("an arena stays within 32 bits");
                entries.push(Entry { offset, ..Entry::default() });
                at = span_at(&self.arena, at).end;
            }
            sort_from(&self.arena, &mut entries, 0);
        }
        let average = self.arena.len() / self.records.max(1);
        SortedChunk {
            arena: self.arena,
            entries: self.disordered.then_some(entries),
            average,
            at: 0,
            parts: Vec::new(),
            taken: 0,
        }
    }
}

fn span_at(arena: &[u8], at: usize) -> Span {
    Span::at(arena, at).expect("an arena holds whole records")
}

impl Entry {
    #[inline]
    fn tail<'a>(&self, arena: &'a [u8], depth: usize) -> &'a [u8] {
        &span_at(arena, self.offset as usize).key(arena)[depth..]
    }
}

/// Sorts entries whose keys have equal first `depth` bytes.
///
/// A radix sort by seven bytes at a time, after skipping the common prefix of all keys. Keys such
/// as addresses share long prefixes, and comparing them whole would miss the cache every time.
fn sort_from(arena: &[u8], entries: &mut [Entry], depth: usize) {
    if entries.len() <= COMPARED_GROUP {
        entries.sort_unstable_by(|a, b| {
            let order = a.tail(arena, depth).cmp(b.tail(arena, depth));
            order.then(a.offset.cmp(&b.offset))
        });
        return;
    }
    let depth = depth + common_prefix(arena, entries, depth);
    let fill = |entry: &mut Entry| entry.set_prefix(prefix_of(entry.tail(arena, depth)));
    if entries.len() <= COMPARED_PREFIXES {
        entries.iter_mut().for_each(fill);
        entries.sort_unstable_by_key(|entry| (entry.prefix(), entry.offset));
    } else {
        entries.par_iter_mut().for_each(fill);
        // In place: as fast here as the variant that copies, with half the memory.
        entries.radix_sort_builder().with_low_mem_tuner().sort();
    }
    entries.par_chunk_by_mut(|a, b| a.prefix() == b.prefix()).for_each(|group| match group {
        [] | [_] => {}
        [first, ..] if first.continues() => sort_from(arena, group, depth + 7),
        _ => group.sort_unstable_by_key(|entry| entry.offset),
    });
}

fn common_prefix(arena: &[u8], entries: &[Entry], depth: usize) -> usize {
    let Some((first, rest)) = entries.split_first() else { return 0 };
    let mut common = first.tail(arena, depth);
    for entry in rest {
        if common.is_empty() {
            break;
        }
        let tail = entry.tail(arena, depth);
        if !tail.starts_with(common) {
            let equal = common.iter().zip(tail).take_while(|(a, b)| a == b).count();
            common = &common[..equal];
        }
    }
    common.len()
}

/// A sorted chunk, returned in blocks of whole records.
#[derive(Debug)]
pub(crate) struct SortedChunk {
    arena: Vec<u8>,
    /// `None` if the arena itself is in order.
    entries: Option<Vec<Entry>>,
    /// Mean record length in bytes.
    average: usize,
    /// Index of the next entry, or offset of the next record if the arena is in order.
    at: usize,
    /// Blocks gathered ahead; the first `taken` were returned.
    parts: Vec<Vec<u8>>,
    taken: usize,
}

impl SortedChunk {
    /// Replaces `block` with about `bytes` bytes of records; returns false after the last.
    pub(crate) fn next_block(&mut self, block: &mut Vec<u8>, bytes: usize) -> bool {
        block.clear();
        if let Some(entries) = &self.entries {
            if self.taken == self.parts.len() {
                let rest = &entries[self.at..];
                let each = (bytes / self.average.max(1)).max(1);
                let ahead = rest.len().min(each * PARTS);
                self.parts.resize_with(ahead.div_ceil(each), Vec::new);
                self.taken = 0;
                self.at += ahead;
                let gathered = rest.par_chunks(each).zip(&mut self.parts);
                gathered.for_each(|(entries, part)| gather(&self.arena, entries, part));
            }
            if let Some(part) = self.parts.get_mut(self.taken) {
                std::mem::swap(block, part);
                self.taken += 1;
            }
        } else {
            let start = self.at;
            while self.at < self.arena.len() && self.at - start < bytes {
                self.at = span_at(&self.arena, self.at).end;
            }
            block.extend_from_slice(&self.arena[start..self.at]);
        }
        !block.is_empty()
    }
}

fn gather(arena: &[u8], entries: &[Entry], part: &mut Vec<u8>) {
    part.clear();
    let mut spans = [(0, 0); 16];
    for batch in entries.chunks(spans.len()) {
        // Finding the records first overlaps their cache misses.
        for (span, entry) in spans.iter_mut().zip(batch) {
            let at = entry.offset as usize;
            *span = (at, span_at(arena, at).end);
        }
        for (at, end) in spans.iter().take(batch.len()) {
            part.extend_from_slice(&arena[*at..*end]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(mut sorted: SortedChunk, bytes: usize) -> Vec<Vec<u8>> {
        let (mut keys, mut block) = (Vec::new(), Vec::new());
        while sorted.next_block(&mut block, bytes) {
            let mut at = 0;
            while at < block.len() {
                let span = Span::at(&block, at).unwrap();
                keys.push(span.key(&block).to_vec());
                at = span.end;
            }
        }
        keys
    }

    #[test]
    fn keys_that_end_sort_before_keys_that_continue_with_zeros() {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for zeros in 0..40 {
            keys.push([b"shared beginning".as_slice(), &vec![0; zeros]].concat());
            keys.push([b"shared".as_slice(), &vec![0; zeros], b"x"].concat());
        }
        keys.reverse();
        let mut chunk = Chunk::default();
        for key in &keys {
            assert!(chunk.push(key, b"", usize::MAX));
        }
        keys.sort();
        assert_eq!(keys_of(chunk.sort(), 100), keys);
    }

    #[test]
    fn lengths_beyond_one_byte_read_back() {
        for (key, payload) in [(0, 0), (127, 128), (1024, 16_383), (3, 16_384), (2, 3 << 20)] {
            let (key, payload) = (vec![7; key], vec![9; payload]);
            let mut bytes = vec![1];
            let written = Span::append(&mut bytes, &key, &payload);
            let read = Span::at(&bytes, 1).unwrap();
            assert_eq!((read.key(&bytes), read.payload(&bytes)), (&key[..], &payload[..]));
            assert_eq!((read.end, written.end), (bytes.len(), bytes.len()));
            bytes.pop();
            assert!(Span::at(&bytes, 1).is_none(), "a truncated record was accepted");
        }
        assert!(Span::at(&[0xff; 16], 0).is_none());
        assert!(Span::at(&[], 0).is_none());
    }

    #[test]
    fn a_full_chunk_refuses_records_and_an_empty_one_accepts_any() {
        let mut chunk = Chunk::default();
        assert!(chunk.push(&[1; 1000], &[2; 5000], 100));
        assert!(!chunk.push(b"k", b"v", 100));
        assert_eq!(chunk.len(), 1);
    }

    #[test]
    fn a_chunk_in_order_is_sorted_without_entries() {
        let mut chunk = Chunk::default();
        for number in 0..1000_u32 {
            assert!(chunk.push(&number.to_be_bytes(), b"", usize::MAX));
        }
        assert_eq!(chunk.memory(), chunk.arena.len());
        let sorted = chunk.sort();
        assert!(sorted.entries.is_none());
        assert!(keys_of(sorted, 64).is_sorted());
    }
}
