//! Key layouts: documents, fingerprints and permuted fingerprints become sortable bytes.
//!
//! Every key has fixed-width big-endian numbers in front of anything variable, so byte order is
//! numeric order and a prefix of bits is a contiguous range of keys.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Longest document key in bytes.
pub(crate) const MAX_KEY: usize = 1024;

/// The region of a table's family that an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Many fingerprints under one key: the permuted last member.
    Run = 1,
    /// A delta entry that is stored alone, as in formats 1 to 6.
    Delta = 2,
    /// Delta entries of one batch, under a number (see [`super::delta_run`]).
    DeltaRun = 3,
}

/// What a delta entry says about its fingerprint, whatever the runs hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delta {
    /// The fingerprint is in the table.
    Added,
    /// The fingerprint is not in the table: its last document was removed.
    Removed,
}

impl Delta {
    /// Returns the bytes that say so, after the key of a delta run or under a fingerprint.
    pub(crate) fn value(self) -> &'static [u8] {
        match self {
            Self::Added => &[],
            Self::Removed => &[0],
        }
    }

    /// Decodes these bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for a value that no writer stores.
    #[inline]
    pub(crate) fn of(value: &[u8], table: usize) -> Result<Self> {
        match value {
            [] => Ok(Self::Added),
            [0] => Ok(Self::Removed),
            other => Err(Error::corrupt(
                format!("table {table}"),
                format!("delta entry says {} unknown bytes", other.len()),
            )),
        }
    }
}

/// A table key: one kind byte, then up to 16 bytes of permuted fingerprint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableKey {
    bytes: [u8; 17],
    len: usize,
}

impl TableKey {
    pub(crate) fn new<F: Fingerprint>(kind: Kind, permuted: F) -> Self {
        let mut bytes = [0; 17];
        let (head, tail) = bytes.split_at_mut(1);
        head.fill(kind as u8);
        for (to, from) in tail.iter_mut().zip(permuted.to_bytes().as_ref()) {
            *to = *from;
        }
        Self { bytes, len: 1 + F::BYTES }
    }

    /// Returns the smallest key after every entry of the kind.
    pub(crate) fn end(kind: Kind) -> [u8; 1] {
        [kind as u8 + 1]
    }
}

impl AsRef<[u8]> for TableKey {
    fn as_ref(&self) -> &[u8] {
        self.bytes.split_at(self.len).0
    }
}

/// Decodes a table key. Returns `None` if it has another kind.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] if the kind matches but the length does not.
#[inline]
pub(crate) fn permuted<F: Fingerprint>(key: &[u8], kind: Kind, table: usize) -> Result<Option<F>> {
    match key.split_first() {
        Some((&head, rest)) if head == kind as u8 => {
            F::from_bytes(rest).map(Some).ok_or_else(|| {
                Error::corrupt(
                    format!("table {table}"),
                    format!("key has {} bytes, expected {}", key.len(), 1 + F::BYTES),
                )
            })
        }
        _ => Ok(None),
    }
}

/// Decodes a delta entry. Returns `None` if the key has another kind.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] for a key of another length, and as [`Delta::of`].
#[inline]
pub(crate) fn delta<F: Fingerprint>(
    key: &[u8],
    value: &[u8],
    table: usize,
) -> Result<Option<(F, Delta)>> {
    match permuted(key, Kind::Delta, table)? {
        Some(entry) => Ok(Some((entry, Delta::of(value, table)?))),
        None => Ok(None),
    }
}

/// Checks a document key's length.
pub(crate) fn check_document(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(Error::InvalidKey { len: key.len(), max: MAX_KEY });
    }
    Ok(())
}

/// Writes the posting key of a document into a reused buffer.
pub(crate) fn posting_into<F: Fingerprint>(out: &mut Vec<u8>, fingerprint: F, document: &[u8]) {
    out.clear();
    out.extend_from_slice(fingerprint.to_bytes().as_ref());
    out.extend_from_slice(document);
}

/// Returns the posting key of a document.
pub(crate) fn posting<F: Fingerprint>(fingerprint: F, document: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(F::BYTES + document.len());
    posting_into(&mut key, fingerprint, document);
    key
}

/// Splits a posting key into fingerprint and document key.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] if the key is too short to hold both.
pub(crate) fn split_posting<F: Fingerprint>(key: &[u8]) -> Result<(F, &[u8])> {
    key.split_at_checked(F::BYTES)
        .filter(|(_, document)| !document.is_empty())
        .and_then(|(head, document)| F::from_bytes(head).map(|f| (f, document)))
        .ok_or_else(|| {
            Error::corrupt("postings", format!("key of {} bytes is too short", key.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_keys_have_golden_bytes() {
        let key = TableKey::new(Kind::Run, 0x0102_0304_0506_0708_u64);
        assert_eq!(key.as_ref(), [1, 1, 2, 3, 4, 5, 6, 7, 8]);
        let key = TableKey::new(Kind::Delta, 0xffff_fffe_u32);
        assert_eq!(key.as_ref(), [2, 0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(TableKey::new(Kind::Delta, u128::MAX).as_ref().len(), 17);
    }

    #[test]
    fn values_of_delta_entries_have_golden_bytes_and_others_are_damage() {
        for (delta, bytes) in [(Delta::Added, &[][..]), (Delta::Removed, &[0])] {
            assert_eq!(delta.value(), bytes);
            assert_eq!(Delta::of(bytes, 0).unwrap(), delta);
        }
        for damaged in [&[1][..], &[0, 0]] {
            assert!(matches!(Delta::of(damaged, 3), Err(Error::Corrupt { .. })));
        }
    }

    #[test]
    fn runs_sort_before_deltas_and_both_before_their_end() {
        let run = TableKey::new(Kind::Run, u64::MAX);
        let delta = TableKey::new(Kind::Delta, 0_u64);
        assert!(run.as_ref() < &TableKey::end(Kind::Run)[..]);
        assert!(&TableKey::end(Kind::Run)[..] <= delta.as_ref());
        assert!(TableKey::new(Kind::Delta, u64::MAX).as_ref() < &TableKey::end(Kind::Delta)[..]);
    }

    #[test]
    fn keys_of_another_length_are_damage_and_of_another_kind_nothing() {
        let key = TableKey::new(Kind::Run, 7_u64);
        assert_eq!(permuted::<u64>(key.as_ref(), Kind::Run, 0).unwrap(), Some(7));
        assert_eq!(permuted::<u64>(key.as_ref(), Kind::Delta, 0).unwrap(), None);
        assert!(matches!(permuted::<u32>(key.as_ref(), Kind::Run, 3), Err(Error::Corrupt { .. })));
        assert_eq!(permuted::<u32>(&[], Kind::Run, 3).unwrap(), None);
    }

    #[test]
    fn postings_split_where_they_were_joined() {
        let key = posting(0xaabb_ccdd_u32, b"doc");
        assert_eq!(key, b"\xaa\xbb\xcc\xdddoc");
        assert_eq!(split_posting::<u32>(&key).unwrap(), (0xaabb_ccdd, &b"doc"[..]));
        assert!(matches!(split_posting::<u64>(&key), Err(Error::Corrupt { .. })));
        assert!(matches!(split_posting::<u32>(b"\0\0\0\0"), Err(Error::Corrupt { .. })));
    }
}
