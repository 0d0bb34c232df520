//! Batches of the logs: reads the latest changes without opening the database.
//!
//! A log consists of records in blocks of 32 KiB (see [`crate::store::disk::log_records`]). A
//! record, assembled from its fragments, is one batch as it was written.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rocksdb::{WriteBatch, WriteBatchIteratorCf};

use crate::error::{Error, Result};
use crate::store::disk::files::logs;
use crate::store::disk::log_records::checksum_of;
use crate::store::disk::seal::Bounds;

const BLOCK: usize = 32 << 10;

/// Bytes of a fragment's header.
const HEADER: usize = 7;

/// Types of fragments: a whole record, and its beginning, middle and end.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Bytes of a batch's header: sequence number and count.
const BATCH_HEADER: usize = 12;

/// One change of a batch. The value `None` is a removal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit<'a> {
    /// Id of the family.
    pub(super) family: u32,
    pub(super) key: &'a [u8],
    pub(super) value: Option<&'a [u8]>,
}

/// Calls `visit` with every change, oldest first, and the number of its batch, from 1.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] for a log that cannot be read to its end or is [`foreign`], after
/// visiting all changes before it, and the errors of `visit`.
pub(super) fn visit(
    path: &Path,
    visit: &mut dyn FnMut(u64, Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut number = 0;
    let foreign = foreign(path)?;
    for name in logs(path)? {
        if foreign.as_ref() == Some(&name) {
            let detail = "is of another index: it has changes after the last one of this index";
            return Err(Error::corrupt(name, detail));
        }
        let file = path.join(&name);
        let bytes = fs::read(&file).map_err(|e| Error::io(&file, e))?;
        let mut changes = Changes { number, visit: &mut *visit, outcome: Ok(()) };
        let whole = records(&bytes, &mut |record| {
            changes.number += 1;
            if record.len() >= BATCH_HEADER {
                WriteBatch::from_data(record).iterate_cf(&mut changes);
            }
        });
        let Changes { number: last, outcome, .. } = changes;
        outcome?;
        number = last;
        if let Err(at) = whole {
            let detail = format!("cannot be read from byte {at}; all later changes in it are lost");
            return Err(Error::corrupt(name, detail));
        }
    }
    Ok(())
}

/// Returns the name of a log that another index wrote, if that is certain.
///
/// After a regular close no log has a change after the sealed one. Damage can remove changes of a
/// log and cannot add any, because every record has a checksum.
///
/// # Errors
///
/// Returns [`Error::Io`] if the log cannot be read.
pub(super) fn foreign(path: &Path) -> Result<Option<String>> {
    // A seal that does not decode proves nothing.
    let Ok(Some(bounds)) = Bounds::read(path) else { return Ok(None) };
    let Some((name, last)) = bounds.closed_log() else { return Ok(None) };
    let file = path.join(&name);
    let bytes = match fs::read(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|e| Error::io(&file, e))?,
    };
    let mut is_foreign = false;
    // What follows damage cannot be read, and is not salvaged either.
    let _ = records(&bytes, &mut |record| {
        is_foreign |= last_change(record).is_some_and(|change| change > last);
    });
    Ok(is_foreign.then_some(name))
}

/// Returns the sequence number of a batch's last change; `None` for an empty batch.
fn last_change(record: &[u8]) -> Option<u64> {
    let (first, rest) = record.split_first_chunk::<8>()?;
    let (count, _) = rest.split_first_chunk::<4>()?;
    // RocksDB stores its numbers with the lowest byte first.
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let count = number(count).checked_sub(1)?;
    number(first).checked_add(count)
}

struct Changes<'v> {
    number: u64,
    visit: &'v mut dyn FnMut(u64, Visit<'_>) -> Result<()>,
    outcome: Result<()>,
}

impl Changes<'_> {
    fn change(&mut self, family: u32, key: &[u8], value: Option<&[u8]>) {
        if self.outcome.is_ok() {
            self.outcome = (self.visit)(self.number, Visit { family, key, value });
        }
    }
}

impl WriteBatchIteratorCf for Changes<'_> {
    fn put_cf(&mut self, family: u32, key: &[u8], value: &[u8]) {
        self.change(family, key, Some(value));
    }

    fn delete_cf(&mut self, family: u32, key: &[u8]) {
        self.change(family, key, None);
    }

    fn merge_cf(&mut self, _: u32, _: &[u8], _: &[u8]) {}
}

/// Calls `each` with every record. Fails with the position of the first damaged record.
///
/// A record that is cut off at the end of the file is what a kill leaves, not damage.
fn records(bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), usize> {
    let mut record = Vec::new();
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        let mut at = 0;
        while let Some((&[c0, c1, c2, c3, low, high, kind], rest)) =
            block.get(at..).and_then(<[u8]>::split_first_chunk::<HEADER>)
        {
            let place = number * BLOCK + at;
            let length = usize::from(low) | usize::from(high) << 8;
            if kind == 0 && length == 0 {
                // Reserved space that was never written.
                break;
            }
            let Some(stored) = rest.get(..length) else {
                let last = (number + 1) * BLOCK >= bytes.len();
                return if last { Ok(()) } else { Err(place) };
            };
            let found = [c3, c2, c1, c0].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            if found != checksum_of(kind, stored) {
                return Err(place);
            }
            match kind {
                FULL => each(stored),
                FIRST => {
                    record.clear();
                    record.extend_from_slice(stored);
                }
                MIDDLE => record.extend_from_slice(stored),
                LAST => {
                    record.extend_from_slice(stored);
                    each(&record);
                    record.clear();
                }
                // A record about the log itself.
                _ => {}
            }
            at += HEADER + length;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::{BuildOptions, repair};
    use crate::{Index, IndexOptions};

    fn the_log(path: &Path) -> std::path::PathBuf {
        path.join(logs(path).unwrap().pop().expect("a closed index has a log"))
    }

    #[test]
    fn no_document_of_another_index_is_salvaged() {
        let directory = tempfile::tempdir().unwrap();
        let [one, two, target] = ["one", "two", "target"].map(|name| directory.path().join(name));
        for (path, count) in [(&one, 40_u64), (&two, 3)] {
            // Opening writes the header to a file.
            drop(Index::<u64>::create(path, &IndexOptions::new()).unwrap());
            let index = Index::<u64>::open(path).unwrap();
            for number in 0..count {
                index.insert(format!("{}: {number}", path.display()).as_bytes(), number).unwrap();
            }
        }
        assert_eq!([&one, &two].map(|path| foreign(path).unwrap()), [None, None]);
        let own = fs::read(the_log(&one)).unwrap();
        fs::copy(the_log(&one), the_log(&two)).unwrap();
        assert!(foreign(&two).unwrap().is_some());
        let repaired = |path: &Path, target: &Path| {
            let report = repair::<u64>(path, target, &BuildOptions::new(), &()).unwrap();
            assert!(report.problem_count > 0);
            report.documents
        };
        assert_eq!(repaired(&two, &target), 0);
        // Without its list of files an index is read from its logs.
        fs::remove_file(two.join("CURRENT")).unwrap();
        assert_eq!(repaired(&two, &directory.path().join("again")), 0);
        // A log of its own that lost its end is salvaged to there.
        fs::write(the_log(&one), own.split_at(own.len() - 9).0).unwrap();
        assert_eq!(foreign(&one).unwrap(), None);
        assert_eq!(repaired(&one, &directory.path().join("cut")), 39);
    }
}
