//! Backups: copies the files that no earlier backup has, and restores a backup atomically.
//!
//! Writers and readers continue during a backup. The state of a deduplication is copied after the
//! index, so it has every shard whose documents the index has. A shard that was not complete before
//! the index was copied is restored as one that is yet to be added to the index.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rocksdb::backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
use rocksdb::{Env, ErrorKind};
use xxhash_rust::xxh3::Xxh3Default;

use super::backup_record::{BACKUP_LOCK, Record, Records};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::store::bytes::codec;
use crate::store::disk::directory::{
    Lock, STAGE_DIR, STATE_DIR, copy, exists, make, remove_stage, sync, write_whole,
};
use crate::store::disk::files::read_some;
use crate::store::disk::staging::Staging;
use crate::store::open::tuning::MIN_MEMORY;
use crate::store::{Access, HeaderRecord, Opening, Store, engine_error};

/// Extensions of a state's segments: committed, and in the index too.
pub(crate) const PENDING: &str = "pending";
pub(crate) const DONE: &str = "segment";

/// Name of the settings of a state.
pub(crate) const SETTINGS: &str = "settings";

/// File that lists the copies of a state's files, written last.
const LISTING: &str = "listing";

/// Bytes per read.
const BUFFER: usize = 1 << 18;

/// Result of a backup.
#[derive(Debug)]
pub(crate) struct BackedUp {
    pub(crate) record: Record,
    pub(crate) state: StateCopy,
    pub(crate) copied_files: u64,
    pub(crate) copied_bytes: u64,
    /// Ids of older backups that were removed.
    pub(crate) removed: Vec<u32>,
}

impl Store {
    /// Adds a backup to a directory, then removes all but the newest `keep`.
    ///
    /// A read-only store backs up a linked copy of its files, because the engine cannot keep
    /// another process from deleting them.
    pub(crate) fn back_up(
        &self,
        directory: &Path,
        keep: Option<u32>,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<BackedUp> {
        self.require_own("back it up")?;
        require_outside(&self.path, directory)?;
        let _lock = begin(directory)?;
        let state = self.path.join(STATE_DIR);
        let before = names(&state)?;
        let state = (state.as_path(), &before);
        fail_point!("backup.begun");
        if self.role.seal().is_some() {
            let done = self.back_up_locked(directory, keep, state)?;
            self.follow()?;
            return Ok(done);
        }
        let stage = directory.join(STAGE_DIR);
        let sequence = self.copy_to(&stage)?;
        let copy = Opening::new(&stage, MIN_MEMORY, Access::Write)?;
        let tables = tables(copy.header())?;
        let copy = copy.with_tables(tables)?;
        copy.require_sequence(sequence)?;
        let done = copy.back_up_locked(directory, keep, state)?;
        drop(copy);
        remove_stage(directory)?;
        Ok(done)
    }

    /// `state` is a directory that may exist, and its files before the index is copied.
    fn back_up_locked(
        &self,
        directory: &Path,
        keep: Option<u32>,
        (state, files): (&Path, &HashSet<String>),
    ) -> Result<BackedUp> {
        let before = match Records::open(directory) {
            Ok(records) => {
                tidy_states(directory, &records)?;
                records.ids()?
            }
            Err(_) => Vec::new(),
        };
        let earlier = before.last().map(|id| state_place(directory, *id));
        if state.is_dir() {
            // Without a listing the backup is incomplete.
            let next = before.last().map_or(1, |id| id + 1);
            make(&state_place(directory, next))?;
        }
        let shared = names(&directory.join("shared_checksum"))?;
        let mut engine = engine(directory)?;
        // Flush first: data in memory becomes files that later backups share.
        engine.create_new_backup_flush(&*self.db, true).map_err(|e| engine_error("backup", e))?;
        fail_point!("backup.copied");
        let records = Records::open(directory)?;
        let record = records.read(None)?;
        let copied = record.files.iter().filter(|file| {
            let name = file.path.strip_prefix("shared_checksum/");
            name.is_none_or(|name| !shared.contains(name))
        });
        let (mut copied_files, mut copied_bytes) = (0, 0);
        for file in copied {
            if let Err(error) = records.verify(&record, file) {
                records.forget(record.id)?;
                return Err(error);
            }
            copied_files += 1;
            copied_bytes += file.bytes;
        }
        fail_point!("backup.verified");
        let place = state_place(directory, record.id);
        let copy = StateFrom { state, before: files, earlier: earlier.as_deref() };
        let state = if state.is_dir() { copy.copy(&place)? } else { StateCopy::default() };
        fail_point!("backup.state");
        // Without a limit this only removes what an interrupted backup left.
        engine
            .purge_old_backups(keep.map_or(u32::MAX as usize, |keep| keep as usize))
            .map_err(|e| engine_error("backup", e))?;
        fail_point!("backup.purged");
        let after = kept(&records, keep)?;
        tidy_states(directory, &records)?;
        let removed = before.into_iter().filter(|id| !after.contains(id)).collect();
        Ok(BackedUp { record, state, copied_files, copied_bytes, removed })
    }
}

/// Returns the remaining backups, after removing damaged ones that the engine cannot remove.
fn kept(records: &Records, keep: Option<u32>) -> Result<Vec<u32>> {
    let mut ids = records.ids()?;
    let Some(keep) = keep else { return Ok(ids) };
    let sound: Vec<_> = ids.iter().copied().filter(|id| records.read(Some(*id)).is_ok()).collect();
    let oldest = sound.len().checked_sub(keep as usize).and_then(|at| sound.get(at)).copied();
    for id in ids.clone().into_iter().filter(|id| oldest.is_some_and(|oldest| *id < oldest)) {
        records.forget(id)?;
        ids.retain(|kept| *kept != id);
    }
    Ok(ids)
}

/// Opens the engine over a directory.
fn engine(directory: &Path) -> Result<BackupEngine> {
    let fail = |error| engine_error("backup", error);
    let options = BackupEngineOptions::new(directory).map_err(fail)?;
    let env = Env::new().map_err(fail)?;
    BackupEngine::open(&options, &env).map_err(fail)
}

/// Locks a directory of backups, or an empty one, and removes what an interrupted backup left.
fn begin(directory: &Path) -> Result<Lock> {
    make(directory)?;
    if !exists(directory, BACKUP_LOCK)? && !names(directory)?.is_empty() {
        return Err(Error::AlreadyExists { path: directory.to_owned() });
    }
    let lock = Lock::alone(directory, BACKUP_LOCK)?;
    remove_stage(directory)?;
    Ok(lock)
}

/// Prevents the removal of backups while they are read. `None` if there is no lock file.
fn share(directory: &Path) -> Result<Option<Lock>> {
    let name = directory.join(BACKUP_LOCK);
    match File::open(&name) {
        Ok(file) => Lock::shared(directory, file).map(Some),
        // The directory was copied without the lock file, or the engine alone created it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(&name, error)),
    }
}

/// Fails if one directory contains the other: clearing one would remove the other.
fn require_outside(index: &Path, backups: &Path) -> Result<()> {
    let whole = |path: &Path| std::path::absolute(path).map_err(|e| Error::io(path, e));
    let found = |path: &Path| path.canonicalize().or_else(|_| whole(path));
    let (one, other) = (found(index)?, found(backups)?);
    if one.starts_with(&other) || other.starts_with(&one) {
        let (index, backups) = (index.display(), backups.display());
        let reason = format!("{index} and {backups} must not contain each other");
        return Err(Error::InvalidOption { name: "directory", reason });
    }
    Ok(())
}

/// Returns the names in a directory, or nothing if it does not exist.
fn names(directory: &Path) -> Result<HashSet<String>> {
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(HashSet::new()),
        entries => entries
            .map_err(|e| Error::io(directory, e))?
            .map(|entry| {
                let entry = entry.map_err(|e| Error::io(directory, e))?;
                Ok(entry.file_name().to_string_lossy().into_owned())
            })
            .collect(),
    }
}

/// Which backup to restore.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RestoreFrom<'a> {
    /// The directory of backups.
    pub(crate) directory: &'a Path,
    /// The backup's id; `None` for the newest.
    pub(crate) id: Option<u32>,
    /// Whether an existing index in the target is replaced.
    pub(crate) replace: bool,
}

/// Result of a restore.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) record: Record,
    pub(crate) state: StateCopy,
    pub(crate) documents: u64,
}

impl RestoreFrom<'_> {
    /// Copies the files of a backup, opens them once and moves them to the target.
    ///
    /// The target does not change before the files are copied and were opened without an error.
    pub(crate) fn restore(
        self,
        target: &Path,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<Restored> {
        let _lock = share(self.directory)?;
        let record = Records::open(self.directory)?.read(self.id)?;
        require_outside(target, self.directory)?;
        let staging = Staging::begin(target, self.replace)?;
        let stage = staging.stage();
        engine(self.directory)?
            .restore_from_backup(&stage, &stage, &RestoreOptions::default(), record.id)
            .map_err(|error| failure(record.id, error))?;
        let state = restore_state(self.directory, record.id, Some(&stage.join(STATE_DIR)))?;
        fail_point!("restore.copied");
        let documents = staging.recover(record.sequence, tables)?;
        staging.place()?;
        Ok(Restored { record, state, documents })
    }
}

/// Files of a deduplication's state in a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StateCopy {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Those that no earlier backup had.
    pub(crate) copied_files: u64,
    pub(crate) copied_bytes: u64,
}

impl StateCopy {
    fn of(listing: &[Listed]) -> Self {
        let bytes = listing.iter().map(|(_, bytes, _)| bytes).sum();
        Self { files: listing.len() as u64, bytes, ..Self::default() }
    }
}

/// A file of a state: its name, its length and the hash of its bytes.
type Listed = (String, u64, u128);

/// Returns the directory of a state's copy in a directory of backups.
fn state_place(directory: &Path, id: u32) -> PathBuf {
    directory.join(STATE_DIR).join(id.to_string())
}

/// Removes copies of states whose backup is gone, and backups whose copy is incomplete.
fn tidy_states(directory: &Path, records: &Records) -> Result<()> {
    let ids = records.ids()?;
    for name in names(&directory.join(STATE_DIR))? {
        let Ok(id) = name.parse::<u32>() else { continue };
        let place = state_place(directory, id);
        let complete = exists(&place, LISTING)?;
        if complete && ids.contains(&id) {
            continue;
        }
        if !complete && ids.contains(&id) {
            records.forget(id)?;
        }
        fs::remove_dir_all(&place).map_err(|e| Error::io(&place, e))?;
    }
    Ok(())
}

/// A state to copy.
struct StateFrom<'a> {
    state: &'a Path,
    /// Names of its files before the index was copied.
    before: &'a HashSet<String>,
    /// The copy of the backup before, whose files are shared.
    earlier: Option<&'a Path>,
}

impl StateFrom<'_> {
    /// Copies the files, compares each copy, and writes the listing.
    fn copy(&self, place: &Path) -> Result<StateCopy> {
        make(place)?;
        let found = names(self.state)?;
        let mut shards = BTreeSet::new();
        for name in &found {
            match name.split_once('.') {
                Some((number, DONE | PENDING)) if number.parse::<u64>().is_ok() => {
                    shards.insert(number);
                }
                _ => {}
            }
        }
        let mut listing = Vec::new();
        let shared: Vec<Listed> = match self.earlier.map(read_listing) {
            Some(Ok(Some(listing))) => listing,
            _ => Vec::new(),
        };
        let (mut copied_files, mut copied_bytes) = (0, 0);
        // A state whose settings are not written yet remembers nothing.
        let settings = found.contains(SETTINGS).then_some((SETTINGS.to_owned(), SETTINGS));
        let shards = shards.into_iter().filter(|_| settings.is_some()).map(|number| {
            let done = format!("{number}.{DONE}");
            let name =
                if self.before.contains(&done) { done } else { format!("{number}.{PENDING}") };
            (name, number)
        });
        for (name, from) in settings.clone().into_iter().chain(shards) {
            let from = self.found(from)?;
            let (bytes, hash) = digest(&from)?;
            let (to, listed) = (place.join(&name), (name, bytes, hash));
            let linked = shared.contains(&listed)
                && self.earlier.is_some_and(|e| fs::hard_link(e.join(&listed.0), &to).is_ok());
            if !linked {
                copy(&from, &to).map_err(|e| Error::io(&to, e))?;
                if digest(&to)? != (bytes, hash) {
                    let detail = format!("{}: the copy differs", to.display());
                    return Err(Error::corrupt("backup", detail));
                }
                copied_files += 1;
                copied_bytes += bytes;
            }
            listing.push(listed);
        }
        let bytes = codec::encode(LISTING.as_bytes(), &listing);
        write_whole(&place.join(format!("{LISTING}.new")), &place.join(LISTING), &bytes)?;
        place.parent().map_or(Ok(()), sync)?;
        Ok(StateCopy { copied_files, copied_bytes, ..StateCopy::of(&listing) })
    }

    /// Returns the path of the settings or of a shard, which may be renamed at any time.
    fn found(&self, name: &str) -> Result<PathBuf> {
        let whole = self.state.join(name);
        if name == SETTINGS {
            return Ok(whole);
        }
        let pending = format!("{name}.{PENDING}");
        let is_pending = exists(self.state, &pending)?;
        Ok(self.state.join(if is_pending { pending } else { format!("{name}.{DONE}") }))
    }
}

/// Reads the listing of a copy; `None` if there is no copy.
fn read_listing(place: &Path) -> Result<Option<Vec<Listed>>> {
    if !place.is_dir() {
        return Ok(None);
    }
    let name = place.join(LISTING);
    match fs::read(&name) {
        Ok(bytes) => codec::decode(STATE_DIR, LISTING.as_bytes(), &bytes).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let detail = format!("{} is missing: the backup is incomplete", name.display());
            Err(Error::corrupt("backup", detail))
        }
        Err(error) => Err(Error::io(&name, error)),
    }
}

/// Returns the files of a state in a backup, without reading them.
pub(crate) fn state_in(directory: &Path, id: u32) -> Result<StateCopy> {
    let listing = read_listing(&state_place(directory, id))?;
    Ok(listing.map_or_else(StateCopy::default, |listing| StateCopy::of(&listing)))
}

/// Compares every file of a state in a backup with its hash, and copies it to `target`.
pub(crate) fn restore_state(directory: &Path, id: u32, target: Option<&Path>) -> Result<StateCopy> {
    let place = state_place(directory, id);
    let listing = read_listing(&place)?.unwrap_or_default();
    if let Some(target) = target.filter(|_| !listing.is_empty()) {
        make(target)?;
    }
    for (name, bytes, hash) in &listing {
        let (from, sum) = (place.join(name), (*bytes, *hash));
        let missing = !exists(&place, name)?;
        let to = target.map(|target| target.join(name));
        if let Some(to) = to.as_ref().filter(|_| !missing) {
            copy(&from, to).map_err(|e| Error::io(to, e))?;
        }
        if missing || digest(to.as_ref().unwrap_or(&from))? != sum {
            let what = if missing { "is missing" } else { "does not match its checksum" };
            let detail = format!("{STATE_DIR}/{id}/{name} {what}");
            return Err(Error::corrupt(format!("backup {id}"), detail));
        }
    }
    if let Some(target) = target.filter(|_| !listing.is_empty()) {
        sync(target)?;
    }
    Ok(StateCopy::of(&listing))
}

/// Returns the length of a file and the hash of its bytes.
fn digest(path: &Path) -> Result<(u64, u128)> {
    let fail = |e| Error::io(path, e);
    let mut file = File::open(path).map_err(fail)?;
    let (mut hash, mut bytes) = (Xxh3Default::new(), 0);
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = read_some(&mut file, &mut buffer).map_err(fail)?;
        if read == 0 {
            return Ok((bytes, hash.digest128()));
        }
        hash.update(buffer.split_at(read).0);
        bytes += read as u64;
    }
}

/// The engine does not know a backup whose record it could not read.
fn failure(id: u32, error: rocksdb::Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return Error::corrupt(format!("backup {id}"), error.into_string());
    }
    engine_error(&format!("backup {id}"), error)
}
