//! The seal: states outside the database what the database must contain at least.
//!
//! `RocksDB` takes what looks like a torn end of its MANIFEST or log for the trace of a power loss,
//! and continues from an earlier state. A flipped bit or a truncated file can look the same. The
//! seal distinguishes them. It holds two lower bounds that a power loss cannot violate: the last
//! sequence number known to be synced, and length and checksum of the synced beginning of the
//! MANIFEST. A database that opens with less is damaged. After a regular close the seal also holds
//! length and checksum of the last log, which must then match exactly.
//!
//! The file has two slots, written alternately, so a torn write leaves the previous record. The
//! file is synced when it is created. Later it need not be: an older bound is weaker, never wrong.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use bincode::{Decode, Encode};

use super::directory::{exists, open_kept};
use super::files::{current, last_log, log_name, read_some};
use crate::error::{Error, Result};
use crate::store::bytes::codec;

/// The file's name in the index's directory.
pub(in crate::store) const SEAL_FILE: &str = "hamdex.seal";

/// Offsets of the slots, far enough apart that no sector holds parts of both.
const SLOTS: [u64; 2] = [0, 4096];

/// Size of an encoded record in bytes.
const RECORD: usize = 1 + 8 * 8 + 4;

const KEY: &[u8] = b"seal";

/// Lower bounds of what was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub(in crate::store) struct Bounds {
    /// Increases with every record. Selects the slot, and the highest one is valid.
    turn: u64,
    /// Last synced sequence number.
    sequence: u64,
    /// Number in the MANIFEST's name.
    manifest: u64,
    /// Number of synced bytes of the MANIFEST.
    length: u64,
    /// Checksum of these bytes.
    checksum: u64,
    /// Number of the last log after a regular close, or 0 while the index is open.
    log: u64,
    /// Length of that log in bytes.
    log_length: u64,
    /// Checksum of that log.
    log_checksum: u64,
}

impl Bounds {
    /// Reads the bounds of an index. Returns `None` if none were ever written.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if neither slot decodes.
    pub(in crate::store) fn read(path: &Path) -> Result<Option<Self>> {
        let Some(slots) = read_slots(path)? else { return Ok(None) };
        let newest = slots.iter().flatten().max_by_key(|bounds| bounds.turn);
        newest.copied().map(Some).ok_or_else(|| Error::corrupt(SEAL_FILE, "no slot decodes"))
    }

    /// Reads the bounds and compares them with the files.
    pub(in crate::store) fn of_files(path: &Path) -> Result<Option<Self>> {
        let bounds = Self::read(path)?;
        if let Some(bounds) = &bounds {
            bounds.require_files(path)?;
        }
        Ok(bounds)
    }

    /// Fails unless MANIFEST and log contain what was sealed.
    ///
    /// A newer MANIFEST passes with any log: the process that switched to it ended before sealing
    /// it.
    fn require_files(&self, path: &Path) -> Result<()> {
        let (name, number) = current(path)?;
        match number.cmp(&self.manifest) {
            Ordering::Greater => Ok(()),
            Ordering::Less => {
                let detail = format!("MANIFEST-{:06} has replaced it", self.manifest);
                Err(Error::corrupt(name, detail))
            }
            Ordering::Equal => {
                self.require_manifest(path, &name)?;
                self.require_log(path)
            }
        }
    }

    /// Returns the sealed MANIFEST, if it is older than one with this number and has what was sealed.
    pub(super) fn manifest_before(&self, path: &Path, number: u64) -> Result<Option<String>> {
        let name = format!("MANIFEST-{:06}", self.manifest);
        if self.manifest >= number || !exists(path, &name)? {
            return Ok(None);
        }
        match self.require_manifest(path, &name) {
            Err(Error::Corrupt { .. }) => Ok(None),
            found => found.map(|()| Some(name)),
        }
    }

    fn require_manifest(&self, path: &Path, name: &str) -> Result<()> {
        let file = path.join(name);
        let fail = |e| Error::io(&file, e);
        let mut beginning = File::open(&file).map_err(fail)?.take(self.length);
        let mut hasher = crc32fast::Hasher::new();
        let read = hash(&mut beginning, &mut hasher).map_err(fail)?;
        if read < self.length {
            let detail = format!("has {read} bytes, but {} were synced", self.length);
            return Err(Error::corrupt(name, detail));
        }
        if u64::from(hasher.finalize()) != self.checksum {
            return Err(Error::corrupt(name, "checksum does not match what was synced"));
        }
        Ok(())
    }

    /// Later logs pass: a process that stopped while opening the index created them.
    fn require_log(&self, path: &Path) -> Result<()> {
        if self.log == 0 {
            return Ok(());
        }
        let name = log_name(self.log);
        if digest(&path.join(&name))? == (self.log_length, self.log_checksum) {
            return Ok(());
        }
        Err(Error::corrupt(name, "is not what was synced when the index was closed"))
    }

    /// Returns the last synced sequence number.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Fails unless an opened database reaches the synced sequence number.
    pub(in crate::store) fn require_sequence(&self, found: u64) -> Result<()> {
        if found >= self.sequence {
            return Ok(());
        }
        let detail = format!("ends at change {found}, but {} were synced", self.sequence);
        Err(Error::corrupt("log", detail))
    }
}

/// State of an index's seal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealState {
    /// The seal is intact and belongs to the current files.
    Whole,
    /// There is no seal, so lost changes would not be detected.
    Missing,
    /// Some of its bytes are not what was written.
    Damaged {
        /// What is damaged.
        detail: String,
    },
    /// The seal names an earlier MANIFEST than the current one, so nothing is compared.
    ///
    /// Either it belongs to another index, or the last writer ended before it could seal.
    Stale {
        /// Number of the MANIFEST in the seal.
        sealed: u64,
        /// Number of the current MANIFEST.
        current: u64,
    },
}

/// Number of attempts to read a damaged slot, since a writer may be writing it.
const LOOKS: u32 = 3;

impl SealState {
    /// Returns the state of an index's seal, without opening the index.
    ///
    /// Does not compare the seal with the database: opening an index does. An index without a seal
    /// opens, because a copy may have been made without it; the next writing handle creates one.
    /// Retries for up to 20 ms if the seal looks damaged or stale.
    ///
    /// ```
    /// use hamdex::inspect::SealState;
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
    /// assert_eq!(SealState::read(&path)?, SealState::Whole);
    /// # std::fs::remove_file(path.join("hamdex.seal")).unwrap();
    /// # assert_eq!(SealState::read(&path)?, SealState::Missing);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if a file cannot be read, and [`Error::Corrupt`] if CURRENT names no
    /// MANIFEST.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut state = Self::look(path)?;
        for _ in 1..LOOKS {
            if state == Self::Whole || state == Self::Missing {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            state = Self::look(path)?;
        }
        Ok(state)
    }

    fn look(path: &Path) -> Result<Self> {
        let Some(slots) = read_slots(path)? else { return Ok(Self::Missing) };
        let damaged = |detail: String| Ok(Self::Damaged { detail });
        let bad = slots.iter().filter(|slot| slot.is_none()).count();
        if bad > 0 {
            return damaged(format!("{bad} of 2 slots do not decode"));
        }
        let name = path.join(SEAL_FILE);
        let bytes = std::fs::read(&name).map_err(|e| Error::io(&name, e))?;
        let whole = SLOTS.map(|at| usize::try_from(at).expect("slots begin the file") + RECORD);
        if whole.iter().all(|end| *end != bytes.len()) {
            return damaged(format!("it has {} bytes", bytes.len()));
        }
        // Nothing is ever written between the slots.
        let [first, _] = whole;
        let second = bytes.len() - RECORD;
        if let Some(at) = (first..second).find(|at| bytes.get(*at) != Some(&0)) {
            return damaged(format!("byte {at} was changed"));
        }
        let sealed = slots.iter().flatten().map(|bounds| (bounds.turn, bounds.manifest)).max();
        let sealed = sealed.map_or(0, |(_, manifest)| manifest);
        let (_, current) = current(path)?;
        Ok(if sealed < current { Self::Stale { sealed, current } } else { Self::Whole })
    }

    /// Returns the state as an error, for a report that lists problems.
    pub(super) fn damage(&self) -> Option<Error> {
        let detail = match self {
            // A killed writer leaves a stale seal. That is not damage.
            Self::Whole | Self::Stale { .. } => return None,
            Self::Missing => "is missing".to_owned(),
            Self::Damaged { detail } => detail.clone(),
        };
        Some(Error::corrupt(SEAL_FILE, detail))
    }
}

/// Reads both slots. Returns `None` if there is no file.
fn read_slots(path: &Path) -> Result<Option<[Option<Bounds>; 2]>> {
    let name = path.join(SEAL_FILE);
    let mut file = match File::open(&name) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|e| Error::io(&name, e))?,
    };
    let mut slot = |at| {
        let mut bytes = [0; RECORD];
        match file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes)) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(Error::io(&name, error)),
            Ok(()) => Ok(codec::decode(SEAL_FILE, KEY, &bytes).ok()),
        }
    };
    let [first, second] = SLOTS;
    Ok(Some([slot(first)?, slot(second)?]))
}

/// Returns length and checksum of a file. A missing file has length 0 and an impossible checksum.
fn digest(file: &Path) -> Result<(u64, u64)> {
    let mut hasher = crc32fast::Hasher::new();
    match File::open(file).and_then(|mut file| hash(&mut file, &mut hasher)) {
        Ok(read) => Ok((read, u64::from(hasher.finalize()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((0, u64::MAX)),
        Err(error) => Err(Error::io(file, error)),
    }
}

/// Opens the current MANIFEST, and returns the number in its name.
pub(super) fn open_current(directory: &Path) -> Result<(File, u64)> {
    let (name, number) = current(directory)?;
    let name = directory.join(name);
    File::open(&name).map(|file| (file, number)).map_err(|e| Error::io(&name, e))
}

/// Adds all bytes of a reader to a checksum and returns their number.
fn hash(reader: &mut impl Read, hasher: &mut crc32fast::Hasher) -> std::io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut sum = 0;
    loop {
        let read = read_some(reader, &mut buffer)?;
        if read == 0 {
            return Ok(sum);
        }
        hasher.update(buffer.split_at(read).0);
        sum += read as u64;
    }
}

/// The seal of an index that is open for writing.
///
/// Dropped after the database, so that it covers what the database writes when it closes.
#[derive(Debug)]
pub(in crate::store) struct Seal {
    directory: PathBuf,
    state: Mutex<State>,
    /// Whether the whole log is synced and will not grow any more.
    ended: AtomicBool,
}

#[derive(Debug)]
struct State {
    file: File,
    bounds: Bounds,
    manifest: File,
    /// Checksum of the first `bounds.length` bytes of the MANIFEST.
    hasher: crc32fast::Hasher,
}

impl Seal {
    /// Seals a database that was just opened for writing. `bounds` are those checked before.
    pub(in crate::store) fn begin(directory: &Path, bounds: Option<Bounds>) -> Result<Self> {
        let file = open_kept(&directory.join(SEAL_FILE))?;
        let (manifest, number) = open_current(directory)?;
        let is_new = bounds.is_none();
        let bounds = Bounds { manifest: number, length: 0, log: 0, ..bounds.unwrap_or_default() };
        let mut state = State { file, bounds, manifest, hasher: crc32fast::Hasher::new() };
        // Write both slots: the older one names a MANIFEST that no longer exists.
        for _ in SLOTS {
            state.write(directory)?;
        }
        let seal = Self {
            directory: directory.to_owned(),
            state: Mutex::new(state),
            ended: AtomicBool::new(false),
        };
        if is_new {
            // A new file has no older record that a power loss would leave.
            seal.sync()?;
        }
        Ok(seal)
    }

    /// Makes the seal itself survive a power loss.
    fn sync(&self) -> Result<()> {
        self.state().file.sync_all().map_err(|e| Error::io(self.directory.join(SEAL_FILE), e))
    }

    /// Records that everything up to a sequence number is synced.
    pub(in crate::store) fn synced(&self, sequence: u64) -> Result<()> {
        let mut state = self.state();
        state.renew(&self.directory)?;
        if sequence > state.bounds.sequence || state.is_behind(&self.directory)? {
            state.bounds.sequence = state.bounds.sequence.max(sequence);
            state.write(&self.directory)?;
        }
        Ok(())
    }

    /// Records what the database added to its MANIFEST, unless another thread is doing so.
    pub(in crate::store) fn follow(&self) -> Result<()> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        if state.is_behind(&self.directory)? { state.write(&self.directory) } else { Ok(()) }
    }

    /// Records that the log is synced and complete.
    pub(in crate::store) fn end(&self) {
        self.ended.store(true, atomic::Ordering::Relaxed);
    }

    /// Seals the final MANIFEST, and the last log too if all of it is synced.
    fn close(&self, synced: bool) -> Result<()> {
        let mut state = self.state();
        state.renew(&self.directory)?;
        let log = last_log(&self.directory)?;
        if synced && log > 0 {
            (state.bounds.log_length, state.bounds.log_checksum) =
                digest(&self.directory.join(log_name(log)))?;
            state.bounds.log = log;
        }
        state.write(&self.directory)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Switches to another MANIFEST if the database did.
    fn renew(&mut self, directory: &Path) -> Result<()> {
        if current(directory)?.1 != self.bounds.manifest {
            (self.manifest, self.bounds.manifest) = open_current(directory)?;
            self.bounds.length = 0;
            self.hasher.reset();
        }
        Ok(())
    }

    /// Returns true if the MANIFEST is longer than its bound.
    fn is_behind(&self, directory: &Path) -> Result<bool> {
        let metadata = self.manifest.metadata().map_err(|e| Error::io(directory, e))?;
        Ok(metadata.len() > self.bounds.length)
    }

    /// Extends the bounds to the current length of the MANIFEST and writes the next slot.
    fn write(&mut self, directory: &Path) -> Result<()> {
        let fail = |e| Error::io(directory.join(SEAL_FILE), e);
        let start = SeekFrom::Start(self.bounds.length);
        self.manifest.seek(start).map_err(fail)?;
        let mut hasher = self.hasher.clone();
        let grown = hash(&mut self.manifest, &mut hasher).map_err(fail)?;
        if grown > 0 {
            // A bound must never be ahead of the disk, or a power loss could violate it.
            self.manifest.sync_data().map_err(fail)?;
            self.bounds.length += grown;
            self.hasher = hasher;
        }
        self.bounds.checksum = u64::from(self.hasher.clone().finalize());
        self.bounds.turn += 1;
        let slot = if self.bounds.turn.is_multiple_of(2) { SLOTS[0] } else { SLOTS[1] };
        let record = codec::encode(KEY, &self.bounds);
        self.file.seek(SeekFrom::Start(slot)).map_err(fail)?;
        self.file.write_all(&record).map_err(fail)
    }
}

impl Drop for Seal {
    fn drop(&mut self) {
        // If this fails, the bounds of an earlier call remain, which still hold.
        let _ = self.close(self.ended.load(atomic::Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests;
