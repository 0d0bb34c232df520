//! External sorting of records into one sorted stream.
//!
//! Records that fit the budget are not written to disk; otherwise sorted chunks are spilled to
//! files. Files are in push order, and each has consecutive pushes, so the first records of the
//! input are durable once the first files are.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use super::chunk::Chunk;
use super::merge::{Run, Sorted, names, next_merge};
use super::spill::{OwnedFile, SpillFile, SpillReader, SpillWriter, block_bytes};
use crate::error::{Error, Result, StoreErrorKind};

/// Sorts records by key bytes in bounded memory; equal keys stay in push order.
///
/// Files returned by [`RecordSorter::take_spilled`] or [`RecordSorter::seal`], or passed to
/// [`RecordSorter::resume`], belong to the caller and are never removed here. All others are
/// removed with the sorter or its stream.
#[derive(Debug)]
pub(crate) struct RecordSorter {
    dir: PathBuf,
    name: String,
    budget: usize,
    chunk: Chunk,
    files: Vec<OwnedFile>,
    /// How many of `files` were returned to the caller.
    named: usize,
    background: Background,
    next_number: u32,
    records: u64,
}

impl RecordSorter {
    /// Creates an empty sorter that spills to `dir/name-NNNN.run` above `budget` bytes.
    ///
    /// The directory must exist; it is only used if the budget is exceeded.
    pub(crate) fn new(dir: &Path, budget: usize, name: &str) -> Self {
        Self {
            dir: dir.to_path_buf(),
            name: name.to_owned(),
            budget,
            chunk: Chunk::default(),
            files: Vec::new(),
            named: 0,
            background: Background::default(),
            next_number: 0,
            records: 0,
        }
    }

    /// Continues after the files of a checkpoint, given in its order.
    ///
    /// Removes other files with the sorter's name from `dir`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be opened; [`Error::Corrupt`] if it is truncated or another
    /// file.
    pub(crate) fn resume(
        dir: &Path,
        budget: usize,
        name: &str,
        files: Vec<SpillFile>,
    ) -> Result<Self> {
        let mut sorter = Self::new(dir, budget, name);
        for file in files {
            SpillReader::open_named(&file)?;
            sorter.records += file.records;
            let number = sorter.number_of(&file.path);
            sorter.next_number = sorter.next_number.max(number.map_or(0, |n| n + 1));
            sorter.files.push(OwnedFile::kept(file));
        }
        sorter.named = sorter.files.len();
        let io = |e| Error::io(dir, e);
        for entry in fs::read_dir(dir).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let known =
                sorter.files.iter().any(|owned| owned.file.path.file_name() == path.file_name());
            if !known && sorter.number_of(&path).is_some() {
                fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
            }
        }
        Ok(sorter)
    }

    fn number_of(&self, path: &Path) -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix(&self.name)?.strip_prefix('-')?.strip_suffix(".run")?.parse().ok()
    }

    /// Adds a record.
    ///
    /// Key and payload may have any length up to 4 GiB together, even above the budget.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a chunk of this or an earlier call cannot be spilled.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        if !self.chunk.push(key, payload, self.chunk_limit()) {
            self.spill()?;
            self.chunk.push(key, payload, self.chunk_limit());
        }
        self.records += 1;
        Ok(())
    }

    /// Returns the number of records pushed, including those before a resume.
    pub(crate) fn len(&self) -> u64 {
        self.records
    }

    /// Returns the number of chunks that were or are being spilled.
    ///
    /// If a push raises it, all records before that push are in files.
    pub(crate) fn spills(&self) -> u32 {
        self.next_number
    }

    /// The first chunk may use the whole budget; later ones share it with the chunk being spilled.
    #[inline]
    fn chunk_limit(&self) -> usize {
        if self.next_number == 0 { self.budget } else { self.budget / 2 }
    }

    fn spill(&mut self) -> Result<()> {
        self.collect()?;
        if self.chunk.len() == 0 {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.chunk);
        let wait = chunk.memory() > self.budget / 2;
        let path = self.next_path();
        let block_bytes = block_bytes(self.budget);
        let threads = rayon::current_num_threads();
        self.background.start(move || {
            // Not the current pool: all its workers may be waiting for this sorter.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|e| Error::io(&path, std::io::Error::other(e)))?;
            pool.install(|| spill_chunk(chunk, &path, block_bytes))
        });
        if wait { self.collect() } else { Ok(()) }
    }

    fn next_path(&mut self) -> PathBuf {
        let number = self.next_number;
        self.next_number += 1;
        self.dir.join(format!("{}-{number:04}.run", self.name))
    }

    /// Waits for the chunk being spilled, if any.
    fn collect(&mut self) -> Result<()> {
        self.files.extend(self.background.wait()?);
        Ok(())
    }

    /// Returns the durable files finished since the last call, in push order. Does not block.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a chunk could not be spilled.
    pub(crate) fn take_spilled(&mut self) -> Result<Vec<SpillFile>> {
        if self.background.is_finished() {
            self.collect()?;
        }
        let new = names(self.files.split_at_mut(self.named).1);
        self.named = self.files.len();
        Ok(new)
    }

    /// Makes all records pushed so far durable and returns all files in push order.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a chunk could not be spilled; [`Error::Store`] if one was lost earlier.
    pub(crate) fn seal(&mut self) -> Result<Vec<SpillFile>> {
        self.spill()?;
        self.collect()?;
        self.expect_all(self.files.iter().map(|owned| owned.file.records).sum())?;
        self.named = self.files.len();
        Ok(names(&mut self.files))
    }

    /// Sorts the records in memory and returns the stream of all records.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Corrupt`] if a file is damaged; [`Error::Store`] if an earlier error
    /// lost records.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        self.collect()?;
        let block_bytes = block_bytes(self.budget);
        while let Some(range) = next_merge(&self.files, self.budget, block_bytes) {
            let path = self.next_path();
            let start = range.start;
            let runs = self.files.drain(range).map(Run::file).collect::<Result<Vec<_>>>()?;
            let merged = Sorted::new(runs).spill(&path, block_bytes)?;
            self.files.insert(start, merged);
        }
        let mut runs = self.files.drain(..).map(Run::file).collect::<Result<Vec<_>>>()?;
        if self.chunk.len() > 0 {
            let records = self.chunk.len() as u64;
            let chunk = std::mem::take(&mut self.chunk).sort();
            runs.push(Run::chunk(chunk, records, block_bytes));
        }
        let sorted = Sorted::new(runs);
        self.expect_all(sorted.len())?;
        Ok(sorted)
    }

    /// Returns an error if records are missing: a chunk that failed to spill is lost, so a later
    /// call must not succeed.
    fn expect_all(&self, records: u64) -> Result<()> {
        if records == self.records {
            return Ok(());
        }
        let lost = self.records.saturating_sub(records);
        let message = format!("sorting {}: an earlier error lost {lost} records", self.name);
        Err(Error::Store { kind: StoreErrorKind::Other, message })
    }
}

fn spill_chunk(chunk: Chunk, path: &Path, block_bytes: usize) -> Result<OwnedFile> {
    let records = chunk.len() as u64;
    let mut sorted = chunk.sort();
    let mut writer = SpillWriter::create(path)?;
    let mut block = Vec::new();
    while sorted.next_block(&mut block, block_bytes) {
        writer.write_block(&block)?;
    }
    writer.finish(records, true)
}

/// The thread that spills a chunk; dropping this waits for it.
#[derive(Debug, Default)]
struct Background(Option<JoinHandle<Result<OwnedFile>>>);

impl Background {
    fn start(&mut self, work: impl FnOnce() -> Result<OwnedFile> + Send + 'static) {
        self.0 = Some(std::thread::spawn(work));
    }

    fn is_finished(&self) -> bool {
        self.0.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn wait(&mut self) -> Result<Option<OwnedFile>> {
        match self.0.take().map(JoinHandle::join) {
            None => Ok(None),
            Some(Ok(outcome)) => outcome.map(Some),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Dropping the result removes the file that the thread may have finished.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests;
