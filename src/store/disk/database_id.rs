//! The id of a database: every batch in a log names the database that wrote it.
//!
//! A record of a log has a checksum, but the checksum says nothing about which database the log
//! belongs to. `RocksDB` gives each database a random id (RFC 9562), and keeps it in the MANIFEST
//! and in the file IDENTITY. Batches begin with it, as data that only the log holds.

use std::io::ErrorKind;
use std::path::Path;

use rocksdb::WriteBatch;

use super::files::current;
use crate::error::{Error, Result};
use crate::store::{Db, engine_error};

/// Bytes of a batch's header: sequence number and count.
pub(in crate::store) const BATCH_HEADER: usize = 12;

/// Type of an entry that only the log holds, and the length of an id.
const LOG_DATA: [u8; 2] = [3, 16];

const IDENTITY_FILE: &str = "IDENTITY";

/// The random id of a database. Copies of a database have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct DatabaseId([u8; 16]);

impl DatabaseId {
    /// Returns the id of an open database.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if it has none.
    pub(in crate::store) fn of(db: &Db) -> Result<Self> {
        let text = db.get_db_identity().map_err(|e| engine_error(IDENTITY_FILE, e))?;
        Self::parse(&text).ok_or_else(|| Error::corrupt(IDENTITY_FILE, "holds no id"))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_end();
        let id = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
        let id = Self(id.to_be_bytes());
        (id.text() == text).then_some(id)
    }

    /// Returns the text form, as it stands in IDENTITY and in the MANIFEST.
    fn text(self) -> String {
        let mut text = format!("{:032x}", u128::from_be_bytes(self.0));
        for at in [20, 16, 12, 8] {
            text.insert(at, '-');
        }
        text
    }

    /// Begins a batch with the id.
    pub(in crate::store) fn sign(self, batch: &mut WriteBatch) {
        batch.put_log_data(self.0);
    }

    /// Returns the id of a batch; `None` if it has none, or if its beginning is cut off.
    pub(super) fn of_batch(bytes: &[u8]) -> Option<Self> {
        let entry = bytes.get(BATCH_HEADER..)?.strip_prefix(&LOG_DATA)?;
        entry.first_chunk().copied().map(Self)
    }

    /// Returns true if a file of the directory names the id, or if no file names any.
    ///
    /// One file is enough, because the other may be damaged.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if a file cannot be read.
    pub(super) fn is_of(self, path: &Path) -> Result<bool> {
        let text = self.text();
        let mut files = vec![IDENTITY_FILE.to_owned()];
        // Without CURRENT, only one file is left to ask.
        files.extend(current(path).map(|(manifest, _)| manifest));
        let mut found_any = false;
        for name in files {
            let file = path.join(name);
            match std::fs::read(&file) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(&file, error)),
                Ok(bytes) if bytes.windows(text.len()).any(|part| part == text.as_bytes()) => {
                    return Ok(true);
                }
                Ok(_) => found_any = true,
            }
        }
        Ok(!found_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "05d1b9c4-9d3e-4f4a-8b0a-0c7d5e6f7a8b";

    fn id() -> DatabaseId {
        DatabaseId::parse(TEXT.as_bytes()).unwrap()
    }

    #[test]
    fn an_id_is_read_from_its_text_and_written_back() {
        assert_eq!(id().text(), TEXT);
        assert_eq!(DatabaseId::parse(format!("{TEXT}\n").as_bytes()), Some(id()));
        for bad in ["", "7", "05d1b9c49d3e4f4a8b0a0c7d5e6f7a8b", &TEXT.replace('d', "g"), "\u{fc}"]
        {
            assert_eq!(DatabaseId::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_batch_names_its_database_unless_the_id_is_cut_off() {
        let mut batch = WriteBatch::default();
        id().sign(&mut batch);
        batch.put(b"key", b"value");
        let (bytes, end) = (batch.data(), BATCH_HEADER + LOG_DATA.len() + 16);
        assert_eq!(DatabaseId::of_batch(bytes), Some(id()));
        assert_eq!(DatabaseId::of_batch(&bytes[..end]), Some(id()));
        for end in 0..end {
            assert_eq!(DatabaseId::of_batch(&bytes[..end]), None, "{end}");
        }
        let mut unsigned = WriteBatch::default();
        unsigned.put(b"key", b"a value of sixteen bytes and more");
        assert_eq!(DatabaseId::of_batch(unsigned.data()), None);
    }

    #[test]
    fn one_file_that_names_the_id_is_enough_and_none_at_all_proves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
        let is_own = || id().is_of(directory.path()).unwrap();
        assert!(is_own());
        let other = TEXT.replace('0', "1");
        put("IDENTITY", &other).unwrap();
        assert!(!is_own());
        put("CURRENT", "MANIFEST-000005\n").unwrap();
        assert!(!is_own(), "the MANIFEST is missing");
        put("MANIFEST-000005", &format!("edit {TEXT} edit")).unwrap();
        assert!(is_own());
        put("MANIFEST-000005", &format!("edit {other} edit")).unwrap();
        assert!(!is_own());
        put("IDENTITY", TEXT).unwrap();
        assert!(is_own());
    }
}
