//! Backups and checkpoints: copies of an index, made while it is in use.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Index;
use super::core::plan_of;
use crate::error::{Error, Fault, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::store::codec::HeaderRecord;
use crate::store::{Record, Records, RestoreFrom};

/// Settings that a backup is made with.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct BackupOptions {
    keep: Option<u32>,
}

impl BackupOptions {
    /// Starts from keeping every backup.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps so many of the newest backups, this one among them. Default = all.
    pub fn keep(mut self, newest: u32) -> Self {
        self.keep = Some(newest);
        self
    }
}

/// What a backup did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Number of the backup, rising by one.
    pub id: u32,
    /// Files that it consists of.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Files that no earlier backup had.
    pub copied_files: u64,
    /// Bytes of the files that were copied.
    pub copied_bytes: u64,
    /// Numbers of the older backups that were removed.
    pub removed: Vec<u32>,
}

/// One backup in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Number of the backup.
    pub id: u32,
    /// When it was made; the beginning of 1970 where that cannot be read.
    pub created: SystemTime,
    /// Files that it consists of, shared ones too.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// What is wrong with its record, or a file that is missing.
    pub damage: Option<String>,
}

/// Settings that a backup is restored with.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct RestoreOptions {
    id: Option<u32>,
    replace: bool,
}

impl RestoreOptions {
    /// Starts from the newest backup and a target that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores the backup of this number. Default = the newest.
    pub fn id(mut self, id: u32) -> Self {
        self.id = Some(id);
        self
    }

    /// Gives up the index that the target holds. Default = false.
    ///
    /// It stays until the backup is copied and was opened, so that there must be room for both.
    pub fn replace(mut self, yes: bool) -> Self {
        self.replace = yes;
        self
    }
}

/// What a restoring did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Number of the backup.
    pub id: u32,
    /// Documents of the index.
    pub documents: u64,
    /// Files that were copied.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

/// A directory of backups of one index or several.
///
/// ```
/// use hamdex::backup::Backup;
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path();
/// let index = Index::<u64>::create(path.join("pages"), &IndexOptions::new())?;
/// index.insert(b"first", 0xff)?;
/// index.backup(path.join("backups"))?;
/// index.insert(b"second", 0xfe)?;
///
/// let backup = Backup::open(path.join("backups"))?;
/// assert_eq!(backup.list()?.len(), 1);
/// backup.verify(None, &())?;
/// backup.restore(path.join("restored"))?;
/// assert_eq!(Index::<u64>::open(path.join("restored"))?.len()?, 1);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Backup {
    directory: PathBuf,
    records: Records,
}

impl Backup {
    /// Opens a directory that backups were made into.
    ///
    /// # Errors
    ///
    /// [`Error::NoBackup`] for any other, [`Error::Io`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref().to_owned();
        Ok(Self { records: Records::open(&directory)?, directory })
    }

    /// Lists the backups, oldest first, without reading their files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]. Damage is told in the list.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        let mut list = Vec::new();
        for id in self.records.ids()? {
            match self.records.read(Some(id)) {
                Ok(record) => list.push(info(&record)),
                Err(error) if error.fault() == Fault::Damage => list.push(BackupInfo {
                    id,
                    created: SystemTime::UNIX_EPOCH,
                    files: 0,
                    bytes: 0,
                    damage: Some(error.to_string()),
                }),
                // Removed since the directory was read.
                Err(Error::NoBackup { .. }) => (),
                Err(error) => return Err(error),
            }
        }
        Ok(list)
    }

    /// Reads every file of a backup, the newest without a number, and compares checksums.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for damage, [`Error::NoBackup`], [`Error::Cancelled`], [`Error::Io`].
    pub fn verify(&self, id: Option<u32>, progress: &dyn Progress) -> Result<BackupInfo> {
        let record = self.records.read(id)?;
        progress.begin("reading files", Some(record.bytes()));
        for file in &record.files {
            progress::check(progress)?;
            self.records.verify(&record, file)?;
            progress.advance(file.bytes);
        }
        Ok(info(&record))
    }

    /// Makes an index of the newest backup, in a directory that is absent or empty.
    ///
    /// # Errors
    ///
    /// As [`Backup::restore_with`].
    pub fn restore(&self, target: impl AsRef<Path>) -> Result<RestoreReport> {
        self.restore_with(target, &RestoreOptions::new())
    }

    /// Makes an index of a backup.
    ///
    /// Every checksum is compared, and the result is opened once and sealed before it takes its
    /// place. A restoring that was cut short never opens as an index; run it again.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for a damaged backup, which leaves the target as it was;
    /// [`Error::NoBackup`]; [`Error::AlreadyExists`] for a target that holds an index which is not
    /// to be replaced, or anything else; [`Error::Locked`] for an index or backups in use;
    /// [`Error::Io`] and [`Error::Store`] for want of space, too.
    pub fn restore_with(
        &self,
        target: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<RestoreReport> {
        let from =
            RestoreFrom { directory: &self.directory, id: options.id, replace: options.replace };
        let restored = from.restore(target.as_ref(), tables)?;
        Ok(RestoreReport {
            id: restored.record.id,
            documents: restored.documents,
            files: restored.record.files.len() as u64,
            bytes: restored.record.bytes(),
        })
    }
}

fn info(record: &Record) -> BackupInfo {
    let created = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(record.created));
    BackupInfo {
        id: record.id,
        created: created.unwrap_or(SystemTime::UNIX_EPOCH),
        files: record.files.len() as u64,
        bytes: record.bytes(),
        damage: None,
    }
}

pub(super) fn tables(record: &HeaderRecord) -> Result<usize> {
    plan_of(record).map(|plan| plan.tables().len())
}

impl<F: Fingerprint> Index<F> {
    /// Adds a backup to a directory, beside writers and readers.
    ///
    /// It holds every call that was acknowledged before it began, and of those made meanwhile
    /// some, each whole. What earlier backups in the directory have is not copied again. What is
    /// copied is read back and compared.
    ///
    /// A handle that was opened for reading only backs up the present state of the index, also
    /// while another process writes to it; it needs room for the linked files' copies unless the
    /// directory lies on the index's file system.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] for a directory with other things in it,
    /// [`Error::InvalidOption`] for one that lies in the index, [`Error::Locked`] while another
    /// backup is made into it, [`Error::Attached`] where the database is a host's, and failures of
    /// the environment, for want of space too.
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_with(directory, &BackupOptions::new())
    }

    /// Adds a backup to a directory with settings.
    ///
    /// # Errors
    ///
    /// As [`Index::backup`]; [`Error::InvalidOption`] for keeping none.
    pub fn backup_with(
        &self,
        directory: impl AsRef<Path>,
        options: &BackupOptions,
    ) -> Result<BackupReport> {
        if options.keep == Some(0) {
            let reason = "0, but the backup that is made is one; keep 1 at least".to_owned();
            return Err(Error::InvalidOption { name: "keep", reason });
        }
        let done = self.shared.store.back_up(directory.as_ref(), options.keep, tables)?;
        Ok(BackupReport {
            id: done.record.id,
            files: done.record.files.len() as u64,
            bytes: done.record.bytes(),
            copied_files: done.copied_files,
            copied_bytes: done.copied_bytes,
            removed: done.removed,
        })
    }

    /// Copies the index as it is now into a directory that is absent or empty.
    ///
    /// On the same file system the table files are linked, so that it takes little time and no
    /// space until one of both changes. The copy opens as an index of its own.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] where something is, [`Error::Attached`] where the database is a
    /// host's, and failures of the environment.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// let index = Index::<u64>::create(path.join("pages"), &IndexOptions::new())?;
    /// index.insert(b"first", 0xff)?;
    /// index.checkpoint(path.join("copy"))?;
    /// index.insert(b"second", 0xfe)?;
    /// assert_eq!(Index::<u64>::open(path.join("copy"))?.len()?, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn checkpoint(&self, directory: impl AsRef<Path>) -> Result<()> {
        self.shared.store.checkpoint(directory.as_ref(), tables)
    }
}
