//! Batches of the logs: reads the latest changes without opening the database.
//!
//! A record of a log, assembled from its fragments, is one batch as it was written.

use std::path::Path;

use rocksdb::{WriteBatch, WriteBatchIteratorCf};

use crate::error::{Error, Result};
use crate::store::disk::database_id::BATCH_HEADER;
use crate::store::disk::files::logs;
use crate::store::disk::fragments::{
    BLOCK, Broken, FIRST, FULL, Fragment, Fragments, LAST, MIDDLE,
};
use crate::store::disk::log_records::read_sound;

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
/// Returns [`Error::Corrupt`] for a log that cannot be read to its end, after visiting all changes
/// before, and the errors of `visit`.
pub(super) fn visit(
    path: &Path,
    visit: &mut dyn FnMut(u64, Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut number = 0;
    for name in logs(path)? {
        let (bytes, flawed) = read_sound(path, &name)?;
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
        flawed.map_or(Ok(()), Err)?;
    }
    Ok(())
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
        for Fragment { at, kind, stored } in Fragments::of(block) {
            let stored = match stored {
                Ok(stored) => stored,
                Err(Broken::Cut) if (number + 1) * BLOCK >= bytes.len() => return Ok(()),
                Err(_) => return Err(number * BLOCK + at),
            };
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
        }
    }
    Ok(())
}
