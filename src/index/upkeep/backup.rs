//! Backups and checkpoints: copies of an index, made while it is in use.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Fault, Result};
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::index::core::plan_of;
use crate::progress::{self, Progress};
use crate::store::codec::HeaderRecord;
use crate::store::{Record, Records, RestoreFrom, StateCopy, restore_state, state_in};

/// Settings for a backup: how many backups to keep.
///
/// ```
/// use hamdex::backup::BackupOptions;
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// let index = Index::<u64>::create(&path, &IndexOptions::new())?;
/// for _ in 0..3 {
///     index.backup_with(directory.path().join("backups"), &BackupOptions::new().keep(2))?;
/// }
/// assert_eq!(hamdex::backup::Backup::open(directory.path().join("backups"))?.list()?.len(), 2);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct BackupOptions {
    keep: Option<u32>,
}

impl BackupOptions {
    /// Creates options that keep every backup.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only the newest `newest` backups, including this one. Default: all.
    pub fn keep(mut self, newest: u32) -> Self {
        self.keep = Some(newest);
        self
    }
}

/// Result of a backup: its number, its size and what was copied.
///
/// ```
/// use hamdex::backup::BackupReport;
/// # use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = Index::<u64>::create(directory.path().join("pages"), &IndexOptions::new())?;
/// # let backups = directory.path().join("backups");
/// index.backup(&backups)?;
/// let second: BackupReport = index.backup(&backups)?;
/// assert_eq!(second.id, 2);
/// assert!(second.copied_files < second.files, "unchanged files are shared");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Number of the backup, increasing by one.
    pub id: u32,
    /// Number of files in the backup.
    pub files: u64,
    /// Size of these files in bytes.
    pub bytes: u64,
    /// Number of files that no earlier backup had.
    pub copied_files: u64,
    /// Size of the copied files in bytes.
    pub copied_bytes: u64,
    /// Numbers of the older backups that were removed.
    pub removed: Vec<u32>,
}

/// One backup in a directory.
///
/// ```
/// use hamdex::backup::{Backup, BackupInfo};
/// # use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = Index::<u64>::create(directory.path().join("pages"), &IndexOptions::new())?;
/// # let backups = directory.path().join("backups");
/// index.backup(&backups)?;
/// let listed: Vec<BackupInfo> = Backup::open(&backups)?.list()?;
/// assert_eq!((listed[0].id, &listed[0].damage), (1, &None));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Number of the backup.
    pub id: u32,
    /// Time of the backup, or the beginning of 1970 if the record is damaged.
    pub created: SystemTime,
    /// Number of files in the backup, including shared ones.
    pub files: u64,
    /// Size of these files in bytes.
    pub bytes: u64,
    /// Description of a damaged record or a missing file.
    pub damage: Option<String>,
}

/// Settings for a restore: which backup, and whether to replace an index.
///
/// ```
/// use hamdex::backup::{Backup, RestoreOptions};
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// # let backups = directory.path().join("backups");
/// let index = Index::<u64>::create(&path, &IndexOptions::new())?;
/// index.backup(&backups)?;
/// index.insert(b"page", 0xff)?;
/// drop(index);
/// Backup::open(&backups)?.restore_with(&path, &RestoreOptions::new().id(1).replace(true))?;
/// assert!(Index::<u64>::open(&path)?.is_empty()?);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct RestoreOptions {
    id: Option<u32>,
    replace: bool,
}

impl RestoreOptions {
    /// Creates options for the newest backup and an empty target.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores the backup with this number. Default: the newest.
    pub fn id(mut self, id: u32) -> Self {
        self.id = Some(id);
        self
    }

    /// Replaces an existing index in the target. Default: false.
    ///
    /// The old index stays until the backup is copied and was opened, so the disk needs space for
    /// both.
    pub fn replace(mut self, yes: bool) -> Self {
        self.replace = yes;
        self
    }
}

/// Result of a restore: the backup and its size.
///
/// ```
/// use hamdex::backup::{Backup, RestoreOptions, RestoreReport};
/// # use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = Index::<u64>::create(directory.path().join("pages"), &IndexOptions::new())?;
/// # let (backups, copy) = (directory.path().join("backups"), directory.path().join("copy"));
/// index.insert(b"page", 0xff)?;
/// index.backup(&backups)?;
/// let newest = RestoreOptions::new();
/// let report: RestoreReport = Backup::open(&backups)?.restore_with(&copy, &newest)?;
/// assert_eq!((report.id, report.documents), (1, 1));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Number of the backup.
    pub id: u32,
    /// Number of documents in the index.
    pub documents: u64,
    /// Number of files copied.
    pub files: u64,
    /// Size of these files in bytes.
    pub bytes: u64,
}

/// A directory of backups of one or more indexes.
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
/// let newest = hamdex::backup::RestoreOptions::new();
/// assert_eq!(backup.restore_with(path.join("again"), &newest)?.documents, 1);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Backup {
    directory: PathBuf,
    records: Records,
}

impl Backup {
    /// Opens a directory of backups.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoBackup`] if the directory holds no backups, and [`Error::Io`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref().to_owned();
        Ok(Self { records: Records::open(&directory)?, directory })
    }

    /// Lists the backups, oldest first, without reading their files.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`]. Damage is reported in the list.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        let mut list = Vec::new();
        for id in self.records.ids()? {
            match self.records.read(Some(id)) {
                Ok(record) => list.push(self.info(&record)?),
                Err(error) if error.fault() == Fault::Damage => list.push(BackupInfo {
                    id,
                    created: SystemTime::UNIX_EPOCH,
                    files: 0,
                    bytes: 0,
                    damage: Some(error.to_string()),
                }),
                // Removed after the directory was read.
                Err(Error::NoBackup { .. }) => (),
                Err(error) => return Err(error),
            }
        }
        Ok(list)
    }

    /// Reads every file of a backup and compares checksums.
    ///
    /// Checks the newest backup if `id` is `None`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for damage, [`Error::NoBackup`] if there is no such backup,
    /// [`Error::Cancelled`] and [`Error::Io`].
    pub fn verify(&self, id: Option<u32>, progress: &dyn Progress) -> Result<BackupInfo> {
        let record = self.records.read(id)?;
        progress.begin("reading files", Some(record.bytes()));
        for file in &record.files {
            progress::check(progress)?;
            self.records.verify(&record, file)?;
            progress.advance(file.bytes);
        }
        restore_state(&self.directory, record.id, None)?;
        self.info(&record)
    }

    /// Restores the newest backup into a new or empty directory.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Backup::restore_with`].
    pub fn restore(&self, target: impl AsRef<Path>) -> Result<RestoreReport> {
        self.restore_with(target, &RestoreOptions::new())
    }

    /// Restores a backup with the given settings.
    ///
    /// Compares every checksum, then opens the copy once and seals it before moving it to the
    /// target. An interrupted restore never opens as an index; run it again. [`RestoreOptions`] has
    /// an example.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for a damaged backup, which leaves the target unchanged,
    /// [`Error::NoBackup`] if there is no such backup, [`Error::AlreadyExists`] if the target is
    /// not empty and not to be replaced, [`Error::Locked`] if index or backups are in use, and
    /// [`Error::Io`] or [`Error::Store`], also on a full disk.
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
            files: restored.record.files.len() as u64 + restored.state.files,
            bytes: restored.record.bytes() + restored.state.bytes,
        })
    }

    fn info(&self, record: &Record) -> Result<BackupInfo> {
        let created = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(record.created));
        let (state, damage) = match state_in(&self.directory, record.id) {
            Ok(state) => (state, None),
            Err(error) if error.fault() == Fault::Damage => {
                (StateCopy::default(), Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        Ok(BackupInfo {
            id: record.id,
            created: created.unwrap_or(SystemTime::UNIX_EPOCH),
            files: record.files.len() as u64 + state.files,
            bytes: record.bytes() + state.bytes,
            damage,
        })
    }
}

pub(super) fn tables(record: &HeaderRecord) -> Result<usize> {
    plan_of(record).map(|plan| plan.tables().len())
}

impl<F: Fingerprint> Index<F> {
    /// Adds a backup to a directory while writers and readers continue.
    ///
    /// The backup holds every call that was acknowledged before it began, and some of those made
    /// meanwhile, each completely. Files that earlier backups in the directory have are not copied
    /// again. Copied files are read back and compared. If the index has a
    /// [`State`](crate::dedup::State), the backup has it too.
    ///
    /// A read-only handle backs up the current state of the index, also while another process
    /// writes. If the directory is on another file system, this temporarily needs space for a
    /// second copy.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let index = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let report = index.backup(directory.path().join("backups"))?;
    /// assert_eq!((report.id, report.files), (1, report.copied_files));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::AlreadyExists`] if the directory holds other files,
    /// [`Error::InvalidOption`] if it contains or is inside the index, [`Error::Locked`] during
    /// another backup, [`Error::Attached`] for a host's database, and failures of the environment
    /// such as a full disk.
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_with(directory, &BackupOptions::new())
    }

    /// Adds a backup to a directory with the given settings.
    ///
    /// [`BackupOptions`] has an example.
    ///
    /// ```
    /// use hamdex::backup::BackupOptions;
    /// # use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = Index::<u64>::create(directory.path().join("pages"), &IndexOptions::new())?;
    /// # let backups = directory.path().join("backups");
    /// index.backup(&backups)?;
    /// let report = index.backup_with(&backups, &BackupOptions::new().keep(1))?;
    /// assert_eq!((report.id, report.removed), (2, vec![1]));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::backup`], and [`Error::InvalidOption`] for `keep(0)`.
    pub fn backup_with(
        &self,
        directory: impl AsRef<Path>,
        options: &BackupOptions,
    ) -> Result<BackupReport> {
        if options.keep == Some(0) {
            let reason = "0 would remove the new backup; keep at least 1".to_owned();
            return Err(Error::InvalidOption { name: "keep", reason });
        }
        let done = self.shared.store.back_up(directory.as_ref(), options.keep, tables)?;
        Ok(BackupReport {
            id: done.record.id,
            files: done.record.files.len() as u64 + done.state.files,
            bytes: done.record.bytes() + done.state.bytes,
            copied_files: done.copied_files + done.state.copied_files,
            copied_bytes: done.copied_bytes + done.state.copied_bytes,
            removed: done.removed,
        })
    }

    /// Copies the current index into a new or empty directory.
    ///
    /// On the same file system table files are linked. This is fast and needs no space until one of
    /// the two changes. The copy opens as a separate index.
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
    ///
    /// # Errors
    ///
    /// Returns [`Error::AlreadyExists`] if the directory is not empty, [`Error::Attached`] for a
    /// host's database, and failures of the environment.
    pub fn checkpoint(&self, directory: impl AsRef<Path>) -> Result<()> {
        self.shared.store.checkpoint(directory.as_ref(), tables)
    }
}
