//! Stored records: bincode bytes with a version in front and a checksum behind.
//!
//! The checksum also covers the record's key, so a record under another key is detected as damage.
//! All integers are big-endian and of fixed width. Tests pin the bytes.

use bincode::config::{BigEndian, Configuration, Fixint, Limit};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use bincode::{Decode, Encode};

use crate::error::{Error, Result};

/// Version byte in front of every record.
const RECORD_VERSION: u8 = 1;

/// Maximum bytes that a decoder allocates, so that damage cannot exhaust memory.
const DECODE_LIMIT: usize = 16 << 20;

const CONFIG: Configuration<BigEndian, Fixint, Limit<DECODE_LIMIT>> = bincode::config::standard()
    .with_big_endian()
    .with_fixed_int_encoding()
    .with_limit::<DECODE_LIMIT>();

/// The record of one document in `docs`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Document<F> {
    /// The document's fingerprint.
    pub(crate) fingerprint: F,
    /// The feature set, if the index keeps features.
    pub(crate) features: Option<Vec<u8>>,
}

/// The settings that answers depend on: written once, checked at every open.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct HeaderRecord {
    pub(crate) magic: [u8; 6],
    pub(crate) format: u32,
    pub(crate) bits: u32,
    pub(crate) distance: u32,
    pub(crate) plan: String,
    pub(crate) pipeline: String,
    pub(crate) keeps_features: bool,
}

/// One part of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ResourcePart {
    /// Length of the whole resource in bytes.
    pub(crate) total: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Number of documents added through one lane since the last [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub(crate) struct Lane {
    pub(crate) added: u64,
}

/// Live generation and document count, updated by every write batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct State {
    /// The generation of the live families. A bulk build creates the next one.
    pub(crate) generation: u32,
    /// Number of stored documents. The stored record does not include the lanes.
    pub(crate) documents: u64,
}

impl State {
    /// Reads the state at a snapshot.
    pub(crate) fn of(snapshot: &crate::store::Snapshot) -> Result<Self> {
        Self::read(|key| snapshot.get(crate::store::Family::Meta, key))
    }

    /// Reads the stored record and adds the lanes.
    pub(in crate::store) fn read(get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>) -> Result<Self> {
        let mut state: Self = match get(crate::store::STATE)? {
            Some(bytes) => decode("meta", crate::store::STATE, &bytes)?,
            None => return Err(Error::corrupt("meta", "state is missing")),
        };
        for key in crate::store::LANE_KEYS {
            if let Some(bytes) = get(key)? {
                let lane: Lane = decode("meta", key, &bytes)?;
                let documents = state.documents.checked_add(lane.added);
                let too_many = || Error::corrupt("meta", "there are more than 2^64 documents");
                state.documents = documents.ok_or_else(too_many)?;
            }
        }
        Ok(state)
    }
}

/// Encodes a record under a key into a reused buffer.
pub(crate) fn encode_into<T: Encode>(out: &mut Vec<u8>, key: &[u8], record: &T) {
    out.clear();
    out.push(RECORD_VERSION);
    bincode::encode_into_writer(record, Appender(out), CONFIG)
        .expect("appending to memory cannot fail");
    let sum = checksum(key, out);
    out.extend_from_slice(&sum.to_be_bytes());
}

/// Encodes the record of a document without features, given the bytes of its fingerprint.
pub(in crate::store) fn encode_plain(out: &mut Vec<u8>, key: &[u8], fingerprint: &[u8]) {
    out.clear();
    out.push(RECORD_VERSION);
    out.extend_from_slice(fingerprint);
    out.push(0);
    let sum = checksum(key, out);
    out.extend_from_slice(&sum.to_be_bytes());
}

/// Returns the bytes of the fingerprint in the record of a document, without checking the record.
pub(in crate::store) fn fingerprint(record: &[u8], width: usize) -> Option<&[u8]> {
    record.get(1..=width)
}

/// Encodes a record under a key.
pub(crate) fn encode<T: Encode>(key: &[u8], record: &T) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(&mut out, key, record);
    out
}

/// Decodes the record stored under a key.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] with the family's name if checksum, version or layout do not match.
pub(crate) fn decode<T: Decode<()>>(family: &str, key: &[u8], bytes: &[u8]) -> Result<T> {
    let damaged = |detail: String| {
        Error::corrupt(family, format!("record of key {}: {detail}", key.escape_ascii()))
    };
    let Some((body, sum)) = bytes.split_last_chunk::<4>() else {
        return Err(damaged(format!("{} bytes are too few", bytes.len())));
    };
    if u32::from_be_bytes(*sum) != checksum(key, body) {
        return Err(damaged("checksum does not match".to_owned()));
    }
    let Some((&version, body)) = body.split_first() else {
        return Err(damaged("record is empty".to_owned()));
    };
    if version != RECORD_VERSION {
        return Err(damaged(format!("record version {version}, expected {RECORD_VERSION}")));
    }
    match bincode::decode_from_slice::<T, _>(body, CONFIG) {
        Ok((record, used)) if used == body.len() => Ok(record),
        Ok((_, used)) => Err(damaged(format!("{} bytes too many", body.len() - used))),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// Reads the format version of a header without decoding the rest.
///
/// Returns `None` if the bytes do not begin like a header.
pub(crate) fn format_version(bytes: &[u8], magic: [u8; 6]) -> Option<u32> {
    let (head, rest) = bytes.split_first_chunk::<7>()?;
    let (_, found) = head.split_first()?;
    (found == magic).then_some(())?;
    rest.first_chunk::<4>().map(|version| u32::from_be_bytes(*version))
}

/// Lets bincode append to a reused buffer.
struct Appender<'a>(&'a mut Vec<u8>);

impl Writer for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Adds the version in front of a body and the matching checksum behind it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn sealed(key: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![RECORD_VERSION];
    bytes.extend_from_slice(body);
    let sum = checksum(key, &bytes);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes
}

/// Returns the checksum of bytes that are stored under a key.
pub(crate) fn checksum(key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document<u64> {
        Document { fingerprint: 0x0102_0304_0506_0708, features: None }
    }

    #[test]
    fn records_have_golden_bytes() {
        assert_eq!(
            encode(b"a", &document()),
            [1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0xca, 0x25, 0x94, 0xbe]
        );
        let mut plain = Vec::new();
        encode_plain(&mut plain, b"a", &document().fingerprint.to_be_bytes());
        assert_eq!(plain, encode(b"a", &document()), "a packed document has the same record");
        let kept = Document { features: Some(vec![2, 7]), ..document() };
        assert_eq!(
            encode(b"a", &kept)[9..20],
            [1, 0, 0, 0, 0, 0, 0, 0, 2, 2, 7],
            "a length of eight bytes stands before the feature set"
        );
        let state = State { generation: 3, documents: 5 };
        assert_eq!(encode(b"state", &state)[..13], [1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 5]);
        let header = HeaderRecord {
            magic: *b"hamdex",
            format: 1,
            bits: 64,
            distance: 3,
            plan: "4x1".to_owned(),
            pipeline: String::new(),
            keeps_features: true,
        };
        let bytes = encode(b"header", &header);
        assert_eq!(&bytes[..7], b"\x01hamdex");
        assert_eq!(bytes.len(), 1 + 6 + 12 + 8 + 3 + 8 + 1 + 4);
        assert_eq!(bytes.get(bytes.len() - 5), Some(&1));
        assert_eq!(decode::<HeaderRecord>("meta", b"header", &bytes).unwrap(), header);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_damage() {
        let bytes = encode(b"key", &document());
        assert_eq!(decode::<Document<u64>>("docs", b"key", &bytes).unwrap(), document());
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let result = decode::<Document<u64>>("docs", b"key", &bad);
            assert!(matches!(result, Err(Error::Corrupt { .. })), "bit {bit}");
        }
        for len in 0..bytes.len() {
            let result = decode::<Document<u64>>("docs", b"key", &bytes[..len]);
            assert!(matches!(result, Err(Error::Corrupt { .. })), "length {len}");
        }
    }

    #[test]
    fn a_record_under_another_key_is_damage() {
        let bytes = encode(b"key", &document());
        let error = decode::<Document<u64>>("docs", b"kez", &bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "damaged index: docs: record of key kez: checksum does not match"
        );
    }

    #[test]
    fn lengths_beyond_the_limit_are_damage_not_memory() {
        let mut body = vec![RECORD_VERSION];
        body.extend_from_slice(&[0; 8]);
        body.push(1);
        body.extend_from_slice(&u64::MAX.to_be_bytes());
        let sum = checksum(b"k", &body);
        body.extend_from_slice(&sum.to_be_bytes());
        assert!(matches!(decode::<Document<u64>>("docs", b"k", &body), Err(Error::Corrupt { .. })));
    }
}
