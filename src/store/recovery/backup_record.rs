//! Backup records: the engine's record of each backup, parsed strictly.
//!
//! A record is a text file `meta/<id>`: seconds since 1970, the sequence number at the beginning,
//! an optional line of metadata, the number of files, and for each file its path and CRC-32C. The
//! engine skips a record that it cannot read, as if the backup did not exist. Here such a record is
//! reported as damage.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::Lines;

use crate::error::{Error, Result};
use crate::store::disk::directory::exists;
use crate::store::disk::files::read_some;

/// Subdirectory of the records in a directory of backups.
pub(super) const RECORDS: &str = "meta";

/// Name of the lock file, which also marks a directory of backups.
pub(super) const BACKUP_LOCK: &str = "hamdex.backup";

/// Bytes per read.
const BUFFER: usize = 1 << 18;

/// Most bytes of a file's name that file systems allow.
const LONGEST_NAME: usize = 255;

/// The record of one backup.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) id: u32,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// The database's sequence number when the backup began.
    pub(crate) sequence: u64,
    pub(crate) files: Vec<BackupFile>,
}

/// A file of a backup.
#[derive(Debug, Clone)]
pub(crate) struct BackupFile {
    /// Relative to the directory of backups.
    pub(crate) path: String,
    pub(crate) checksum: u32,
    pub(crate) bytes: u64,
}

/// The records of a directory of backups.
#[derive(Debug)]
pub(crate) struct Records {
    directory: PathBuf,
}

impl Records {
    /// Opens the records of a directory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoBackup`] if the directory holds no backups.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        if !exists(directory, RECORDS)? {
            return Err(Error::NoBackup { path: directory.to_owned(), id: None });
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// Returns the ids of all completed backups, ascending.
    pub(crate) fn ids(&self) -> Result<Vec<u32>> {
        let place = self.directory.join(RECORDS);
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&place).map_err(|e| Error::io(&place, e))? {
            let name = entry.map_err(|e| Error::io(&place, e))?.file_name();
            ids.extend(name.to_str().and_then(number::<u32>).filter(|id| *id > 0));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Reads the record `id`, or the newest.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoBackup`] if there is no such record, and [`Error::Corrupt`] if the record
    /// does not parse or a file is missing.
    pub(crate) fn read(&self, id: Option<u32>) -> Result<Record> {
        let none = || Error::NoBackup { path: self.directory.clone(), id };
        let id = match id {
            Some(id) => id,
            None => self.ids()?.pop().ok_or_else(none)?,
        };
        let name = self.name(id);
        let bytes = match std::fs::read(&name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(none()),
            read => read.map_err(|e| Error::io(&name, e))?,
        };
        let damage = |detail: &str| Error::corrupt(format!("backup {id}"), detail);
        let text = std::str::from_utf8(&bytes).map_err(|_| damage("its record is not text"))?;
        let mut record = parse(id, text).ok_or_else(|| damage("its record does not parse"))?;
        for file in &mut record.files {
            let path = self.directory.join(&file.path);
            file.bytes = match std::fs::metadata(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(damage(&format!("{} is missing", file.path)));
                }
                found => found.map_err(|e| Error::io(&path, e))?.len(),
            };
        }
        Ok(record)
    }

    /// Reads a whole file and compares its checksum.
    pub(crate) fn verify(&self, record: &Record, file: &BackupFile) -> Result<()> {
        let name = self.directory.join(&file.path);
        let mut open = File::open(&name).map_err(|e| Error::io(&name, e))?;
        let mut buffer = vec![0; BUFFER];
        let mut checksum = 0;
        loop {
            let read = read_some(&mut open, &mut buffer).map_err(|e| Error::io(&name, e))?;
            if read == 0 {
                break;
            }
            checksum = crc32c::crc32c_append(checksum, buffer.split_at(read).0);
        }
        if checksum == file.checksum {
            return Ok(());
        }
        let detail = format!("{}: the checksum does not match", file.path);
        Err(Error::corrupt(format!("backup {}", record.id), detail))
    }

    /// Removes a record, and with it the backup.
    pub(super) fn forget(&self, id: u32) -> Result<()> {
        let name = self.name(id);
        std::fs::remove_file(&name).map_err(|e| Error::io(&name, e))
    }

    fn name(&self, id: u32) -> PathBuf {
        self.directory.join(RECORDS).join(id.to_string())
    }
}

impl Record {
    /// Returns the total size of all files in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Parses a number only in its canonical form.
fn number<T: std::str::FromStr + ToString>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

fn parse(id: u32, text: &str) -> Option<Record> {
    let mut lines = text.strip_suffix('\n')?.lines();
    let created = number(lines.next()?)?;
    let sequence = number(lines.next()?)?;
    let mut line = lines.next()?;
    if line.starts_with("metadata ") {
        line = lines.next()?;
    }
    let files = files(id, lines)?;
    let current = format!("private/{id}/CURRENT");
    let whole = number(line) == Some(files.len()) && files.iter().any(|f| f.path == current);
    whole.then_some(Record { id, created, sequence, files })
}

fn files(id: u32, lines: Lines<'_>) -> Option<Vec<BackupFile>> {
    let mut seen = HashSet::new();
    let private = format!("private/{id}/");
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let (path, kind, checksum) = (words.next()?, words.next()?, words.next()?);
            let name = ["shared_checksum/", &private].iter().find_map(|p| path.strip_prefix(p))?;
            let sound = kind == "crc32" && words.next().is_none() && seen.insert(path);
            let checksum = number(checksum)?;
            (sound && is_plain(name)).then(|| BackupFile {
                path: path.to_owned(),
                checksum,
                bytes: 0,
            })
        })
        .collect()
}

/// Returns true for a name that the engine may have given to a file.
///
/// No system call refuses it, so an error of one is never the fault of a damaged record.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(plain)
        && !name.bytes().all(|byte| byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "1700000000\n42\n3\nshared_checksum/000009_sABC_12.sst crc32 7\n\
                          private/5/CURRENT crc32 8\nprivate/5/MANIFEST-000005 crc32 9\n";

    #[test]
    fn a_record_is_read_as_the_engine_writes_it() {
        let record = parse(5, RECORD).unwrap();
        assert_eq!((record.created, record.sequence, record.files.len()), (1_700_000_000, 42, 3));
        assert_eq!(record.files[0].path, "shared_checksum/000009_sABC_12.sst");
        assert_eq!(record.files[2].checksum, 9);
        let noted = RECORD.replacen("42\n", "42\nmetadata 00ff\n", 1);
        assert_eq!(parse(5, &noted).unwrap().files.len(), 3);
    }

    #[test]
    fn a_record_with_a_line_less_or_a_path_elsewhere_is_damage() {
        for cut in 0..RECORD.len() {
            assert!(parse(5, &RECORD[..cut]).is_none(), "cut to {cut}");
        }
        assert!(parse(6, RECORD).is_none(), "the files of another backup");
        for (from, to) in [
            ("private/5/MANIFEST", "private/5/../MANIFEST"),
            ("MANIFEST-000005", ".."),
            ("MANIFEST-000005", "MANIFEST\0-00005"),
            ("MANIFEST-000005", "MANIFEST-00000\u{e9}"),
            ("MANIFEST-000005", &"5".repeat(256)),
            ("shared_checksum/", "/etc/"),
            ("crc32 7", "crc32 07"),
            ("crc32 7", "crc32 7 7"),
            ("\n3\n", "\n2\n"),
            ("private/5/CURRENT", "private/5/CURRENU"),
        ] {
            assert!(parse(5, &RECORD.replacen(from, to, 1)).is_none(), "{to}");
        }
    }
}
