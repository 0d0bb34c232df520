//! The header of a database: read first, and decoded strictly.
//!
//! An unknown field may change the meaning of all others, so it is refused.

use std::path::Path;

use super::opening::no_index;
use crate::error::{Error, Result};
use crate::store::bytes::codec::{self, HeaderRecord};
use crate::store::{Db, FIRST_FORMAT, Family, HEADER, MAGIC, PACKED_FORMAT, engine_error};

/// Reads the header of an open database.
///
/// # Errors
///
/// Returns [`Error::NotFound`] if there is none, [`Error::FormatVersion`] for another format, and
/// [`Error::Corrupt`] if it does not decode.
pub(in crate::store) fn read_header(db: &Db, path: &Path) -> Result<HeaderRecord> {
    let meta = db
        .cf_handle(&Family::Meta.name(0))
        .ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
    let Some(bytes) = db.get_cf(meta, HEADER).map_err(|e| engine_error("meta", e))? else {
        return Err(no_index(path, "header is missing"));
    };
    decode_header(&bytes)
}

/// Decodes the header's record. Checks the format version before anything else.
pub(crate) fn decode_header(bytes: &[u8]) -> Result<HeaderRecord> {
    // The version is stored in front of everything that another version may lay out differently.
    if let Some(stored) = codec::format_version(bytes, MAGIC)
        && !(FIRST_FORMAT..=PACKED_FORMAT).contains(&stored)
    {
        return Err(Error::FormatVersion { stored, supported: PACKED_FORMAT });
    }
    let header: HeaderRecord = codec::decode("meta", HEADER, bytes)?;
    if header.magic != MAGIC {
        return Err(Error::corrupt("meta", "header does not begin with \"hamdex\""));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Access, Opening, Store, header};

    const MEMORY: usize = 16 << 20;

    /// Returns the errors of every way to open an index with this header record.
    fn refusals(record: &[u8]) -> Vec<Error> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let header = header(64, 3, "4x1".to_owned(), String::new(), false);
        let store = Store::create(&path, header, &[], 4, MEMORY).unwrap();
        let mut batch = store.batch().unwrap();
        batch.put_meta(HEADER, record);
        batch.commit().unwrap();
        store.sync().unwrap();
        drop(store);
        let open =
            |access| Opening::new(&path, MEMORY, access).and_then(|o| o.with_tables(4)).err();
        let opened = [Access::Read, Access::Write, Access::Build].map(open);
        opened.into_iter().chain([Store::peek(&path).err()]).flatten().collect()
    }

    /// Returns a header record with a changed body and a matching checksum.
    fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let header = header(64, 3, "4x1".to_owned(), String::new(), false);
        let mut bytes = codec::encode(HEADER, &header);
        bytes.truncate(bytes.len() - 4);
        bytes.remove(0);
        change(&mut bytes);
        codec::sealed(HEADER, &bytes)
    }

    #[test]
    fn unknown_fields_of_the_header_are_refused_by_name() {
        let cases: [(&str, Vec<u8>); 5] = [
            ("1 bytes too many", changed(|bytes| bytes.push(0))),
            ("9 bytes too many", changed(|bytes| bytes.extend_from_slice(b"\x01shards=4"))),
            ("InvalidBooleanValue(2)", changed(|bytes| *bytes.last_mut().unwrap() = 2)),
            ("does not begin with \"hamdex\"", changed(|bytes| bytes[5] = b'y')),
            ("UnexpectedEnd", changed(|bytes| bytes.truncate(bytes.len() - 1))),
        ];
        assert!(refusals(&changed(|_| ())).is_empty(), "the unchanged header opens");
        for (expected, bytes) in cases {
            let found = refusals(&bytes);
            assert_eq!(found.len(), 4, "{expected}");
            for error in found {
                assert!(matches!(error, Error::Corrupt { .. }), "{error}");
                assert!(error.to_string().contains(expected), "{expected}: {error}");
            }
        }
    }

    #[test]
    fn a_later_format_is_refused_by_number_whatever_follows_it() {
        let later = changed(|bytes| {
            bytes.splice(6.., [0, 0, 0, 9]);
            bytes.extend_from_slice(b"laid out in another way");
        });
        let found = refusals(&later);
        assert_eq!(found.len(), 4);
        for error in found {
            assert!(matches!(error, Error::FormatVersion { stored: 9, supported: 8 }), "{error}");
        }
    }
}
