//! Log records: finds records that `RocksDB` must not read, before it reads them.
//!
//! - Recycled logs have types of their own. If such a type follows a record of another log, both
//!   readers of `RocksDB` (11.8, `db/log_reader.cc`) treat it as a bad record, do not advance, and
//!   read it again forever. One flipped bit is enough. hamdex never recycles logs, so such a type
//!   is always damage.
//! - A batch of another database has a valid checksum, so `RocksDB` would apply it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::database_id::DatabaseId;
use super::files::{current, log_number, logs};
use super::fragments::{BLOCK, FIRST, FULL, Fragments};
use crate::error::{Error, Result};

/// Full, first, middle and last fragments, sizes of timestamps, and the previous log.
const RECYCLED: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// Why a record must not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// A type of recycled logs.
    Recycled,
    /// A batch of another database.
    Foreign,
}

/// A record that must not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flawed {
    /// Offset of the record in its file.
    at: u64,
    flaw: Flaw,
}

impl Flawed {
    fn error(self, name: String) -> Error {
        let what = match self.flaw {
            Flaw::Recycled => "a record of a recycled log",
            Flaw::Foreign => "a record of another index",
        };
        Error::corrupt(name, format!("has {what} at byte {}", self.at))
    }
}

/// How far the logs of an index were checked.
#[derive(Debug, Default)]
pub(in crate::store) struct LogRecords {
    /// Offset of the last block, which may still grow, by file name.
    seen: BTreeMap<String, u64>,
    /// The id of the index's database, once a batch has named it.
    id: Option<DatabaseId>,
}

impl LogRecords {
    /// Checks the unseen part of the current MANIFEST and of every log.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for a record that the engine must not read.
    pub(in crate::store) fn require(&mut self, path: &Path) -> Result<()> {
        let mut names = logs(path)?;
        // The engine itself reports a CURRENT that names no MANIFEST.
        names.extend(current(path).map(|(name, _)| name));
        self.seen.retain(|name, _| names.contains(name));
        for name in names {
            if let Some(flawed) = self.first_flawed(path, &name)? {
                return Err(flawed.error(name));
            }
        }
        Ok(())
    }

    /// Returns the first record of a file that must not be read, in the part not seen before.
    ///
    /// Returns `None` if the writer deleted the file meanwhile.
    fn first_flawed(&mut self, path: &Path, name: &str) -> Result<Option<Flawed>> {
        let file = path.join(name);
        let fail = |e| Error::io(&file, e);
        let mut opened = match File::open(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fail)?,
        };
        let from = self.seen.entry(name.to_owned()).or_default();
        opened.seek(SeekFrom::Start(*from)).map_err(fail)?;
        let known = &mut self.id;
        let mut is_foreign = |batch: &[u8]| match DatabaseId::of_batch(batch) {
            Some(id) if *known != Some(id) => {
                let own = id.is_of(path)?;
                *known = if own { Some(id) } else { *known };
                Ok(!own)
            }
            _ => Ok(false),
        };
        let mut never = |_: &[u8]| Ok(false);
        let is_foreign: &mut dyn FnMut(&[u8]) -> Result<bool> =
            if log_number(name).is_some() { &mut is_foreign } else { &mut never };
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            (&mut opened).take(BLOCK as u64).read_to_end(&mut block).map_err(fail)?;
            if let Some((at, flaw)) = flawed_in(&block, is_foreign)? {
                return Ok(Some(Flawed { at: *from + at as u64, flaw }));
            }
            if block.len() < BLOCK {
                return Ok(None);
            }
            *from += BLOCK as u64;
        }
    }
}

/// Searches one block, and stops where the engine would stop.
fn flawed_in(
    block: &[u8],
    is_foreign: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<Option<(usize, Flaw)>> {
    for fragment in Fragments::of(block) {
        if RECYCLED.contains(&fragment.kind) {
            return Ok(Some((fragment.at, Flaw::Recycled)));
        }
        let Ok(stored) = fragment.stored else { break };
        if [FULL, FIRST].contains(&fragment.kind) && is_foreign(stored)? {
            return Ok(Some((fragment.at, Flaw::Foreign)));
        }
    }
    Ok(None)
}

/// Creates a directory of links in which the logs end before the first such record.
///
/// Returns `None` if no log has such a record. Logs after the truncated one are left out, because
/// their changes came later.
///
/// # Errors
///
/// Returns [`Error::Io`] if the temporary directory cannot be created.
pub(in crate::store) fn cut_short(path: &Path) -> Result<Option<TempDir>> {
    let mut records = LogRecords::default();
    for name in logs(path)? {
        if let Some(flawed) = records.first_flawed(path, &name)? {
            return cut_at(path, &name, flawed.at).map(Some);
        }
    }
    Ok(None)
}

/// Reads a log up to the first such record. Returns also that record as an error.
///
/// # Errors
///
/// Returns [`Error::Io`] if the log cannot be read.
pub(in crate::store) fn read_sound(path: &Path, name: &str) -> Result<(Vec<u8>, Option<Error>)> {
    let flawed = LogRecords::default().first_flawed(path, name)?;
    let file = path.join(name);
    let mut bytes = Vec::new();
    let read = |log: File| log.take(flawed.map_or(u64::MAX, |f| f.at)).read_to_end(&mut bytes);
    File::open(&file).and_then(read).map_err(|e| Error::io(&file, e))?;
    Ok((bytes, flawed.map(|flawed| flawed.error(name.to_owned()))))
}

/// Creates a directory of links in which a log has only its first bytes, and later logs are absent.
fn cut_at(path: &Path, name: &str, at: u64) -> Result<TempDir> {
    let path = fs::canonicalize(path).map_err(|e| Error::io(path, e))?;
    let fail = |e| Error::io(&path, e);
    let links = tempfile::tempdir().map_err(|e| Error::io(std::env::temp_dir(), e))?;
    for entry in fs::read_dir(&path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let found = entry.file_name().to_string_lossy().into_owned();
        let link = links.path().join(&found);
        // The engine appends to its text log at every opening, so it must not be linked.
        if found.starts_with("LOG") || log_number(&found) > log_number(name) {
            continue;
        }
        if found == name {
            let mut beginning = File::open(entry.path()).map_err(fail)?.take(at);
            let mut file = File::create(&link).map_err(|e| Error::io(&link, e))?;
            std::io::copy(&mut beginning, &mut file).map_err(|e| Error::io(&link, e))?;
        } else {
            symlink(entry.path(), &link).map_err(|e| Error::io(&link, e))?;
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::disk::fragments::{HEADER, encoded as record};

    fn recycled_in(block: &[u8]) -> Option<usize> {
        let found = flawed_in(block, &mut |_| Ok(false)).unwrap();
        found.map(|(at, flaw)| {
            assert_eq!(flaw, Flaw::Recycled);
            at
        })
    }

    #[test]
    fn types_of_recycled_logs_are_found_behind_sound_records_only() {
        let sound = [record(1, b"one"), record(2, b""), record(130, b"three")].concat();
        assert_eq!(recycled_in(&sound), None);
        for kind in RECYCLED {
            let bad = [&sound[..], &record(kind, b"four")].concat();
            assert_eq!(recycled_in(&bad), Some(sound.len()), "type {kind}");
            assert_eq!(recycled_in(&bad[..sound.len() + HEADER]), Some(sound.len()));
            assert_eq!(recycled_in(&bad[..sound.len() + HEADER - 1]), None);
            let mut torn = bad.clone();
            torn[HEADER] ^= 1;
            assert_eq!(recycled_in(&torn), None, "the engine leaves the block at `one`");
            let zeros = [&sound[..], &[0; HEADER], &record(kind, b"four")].concat();
            assert_eq!(recycled_in(&zeros), None, "the engine leaves the block at zeros");
        }
    }

    #[test]
    fn a_growing_log_is_looked_through_from_its_last_block() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("000004.log");
        let block = record(1, &vec![7; BLOCK - HEADER]);
        let (mut bytes, mut seen) = (Vec::new(), LogRecords::default());
        for blocks in 1..4 {
            bytes.extend(&block);
            fs::write(&log, [&bytes[..], &record(1, b"more")].concat()).unwrap();
            seen.require(directory.path()).unwrap();
            assert_eq!(seen.seen["000004.log"], (blocks * BLOCK) as u64);
        }
        let at = bytes.len();
        fs::write(&log, [&bytes[..], &record(131, b"")].concat()).unwrap();
        let error = seen.require(directory.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("recycled log at byte {at}")), "{error}");
        assert_eq!(seen.seen["000004.log"], at as u64);
        fs::remove_file(&log).unwrap();
        seen.require(directory.path()).unwrap();
        assert!(seen.seen.is_empty());
    }

    #[test]
    fn logs_are_cut_before_the_record_and_later_ones_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let whole = [record(1, b"one"), record(1, b"two")].concat();
        let put = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
        for name in ["000004.log", "000007.log", "000012.log", "CURRENT", "LOG", "LOG.old.1"] {
            put(name, &whole);
        }
        assert!(cut_short(directory.path()).unwrap().is_none());
        put("000007.log", &[&whole[..], &record(8, b"three")].concat());
        let cut = cut_short(directory.path()).unwrap().expect("a log has to be cut");
        let mut names: Vec<_> = fs::read_dir(cut.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["000004.log", "000007.log", "CURRENT"]);
        for name in names {
            assert_eq!(fs::read(cut.path().join(&name)).unwrap(), whole, "{name}");
        }
    }
}
