//! Resources: bytes of any length that belong to the header, stored in `meta` in parts.
//!
//! They are written in one batch with the header and never change.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::store::bytes::codec::{self, ResourcePart};

/// Bytes per part, below the decoder's limit.
const PART: usize = 8 << 20;

/// A resource's name and its bytes.
pub(crate) type Resource<'a> = (&'static str, Cow<'a, [u8]>);

fn key(name: &str, part: usize) -> Vec<u8> {
    format!("resource/{name}/{part:08x}").into_bytes()
}

/// Passes every record of a resource to `put`. An empty resource has one record too.
pub(in crate::store) fn write(name: &str, bytes: &[u8], mut put: impl FnMut(&[u8], &[u8])) {
    let total = bytes.len() as u64;
    let parts = bytes.len().div_ceil(PART).max(1);
    for (number, bytes) in (0..parts).zip(bytes.chunks(PART).chain([&[][..]])) {
        let key = key(name, number);
        put(&key, &codec::encode(&key, &ResourcePart { total, bytes: bytes.to_vec() }));
    }
}

/// Reads a resource and joins its parts. Returns `None` if it was never written.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] if a part is missing, damaged or of another resource.
pub(crate) fn read(
    name: &str,
    get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Option<Vec<u8>>> {
    let mut whole = Vec::new();
    let mut expected = None;
    for number in 0.. {
        let key = key(name, number);
        let damaged = |detail: &str| Error::corrupt("meta", format!("resource {name}: {detail}"));
        let Some(record) = get(&key)? else {
            return if number == 0 { Ok(None) } else { Err(damaged("a part is missing")) };
        };
        let ResourcePart { total, bytes } = codec::decode("meta", &key, &record)?;
        whole.extend_from_slice(&bytes);
        let read = whole.len() as u64;
        if *expected.get_or_insert(total) != total || read > total {
            return Err(damaged("its parts do not match"));
        }
        if read == total {
            break;
        }
        if bytes.is_empty() {
            return Err(damaged("a part is empty"));
        }
    }
    Ok(Some(whole))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn written(bytes: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut records = BTreeMap::new();
        write("idf", bytes, |key, record| {
            records.insert(key.to_vec(), record.to_vec());
        });
        records
    }

    fn read_from(records: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<Option<Vec<u8>>> {
        read("idf", |key| Ok(records.get(key).cloned()))
    }

    #[test]
    fn bytes_of_any_length_come_back() {
        for (len, parts) in [(0, 1), (1, 1), (PART, 1), (PART + 1, 2), (2 * PART, 2)] {
            let bytes = vec![7; len];
            let records = written(&bytes);
            assert_eq!(records.len(), parts, "{len}");
            assert_eq!(read_from(&records).unwrap(), Some(bytes), "{len}");
        }
        assert_eq!(read_from(&BTreeMap::new()).unwrap(), None);
    }

    #[test]
    fn missing_and_foreign_parts_are_damage() {
        let mut records = written(&vec![7; PART + 1]);
        let last = records.pop_last().unwrap();
        assert!(matches!(read_from(&records), Err(Error::Corrupt { .. })));
        let other = written(&vec![7; PART + 2]).pop_last().unwrap();
        assert_eq!(other.0, last.0);
        records.extend([other]);
        assert!(matches!(read_from(&records), Err(Error::Corrupt { .. })));
        let first = records.first_entry().unwrap().get().clone();
        records.insert(last.0, first);
        assert!(matches!(read_from(&records), Err(Error::Corrupt { .. })), "the first part twice");
    }

    #[test]
    fn every_flipped_bit_is_damage() {
        let records = written(b"words");
        let (key, record) = records.first_key_value().unwrap();
        for bit in 0..record.len() * 8 {
            let mut bad = record.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let read = read_from(&[(key.clone(), bad)].into());
            assert!(matches!(read, Err(Error::Corrupt { .. })), "{bit}");
        }
    }
}
