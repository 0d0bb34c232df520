//! State: remembers what earlier runs kept, so that the next run keeps only what is new.
//!
//! A state is an index with a directory inside. The directory has one *segment* per committed
//! shard: the documents that the shard kept, with their evidence. Documents are numbered in the
//! order in which they were kept, and these numbers are their keys in the index.
//!
//! Renaming a segment from `.part` to `.pending` commits its shard. Before the rename nothing of
//! the shard is visible: its results are in a directory with a temporary name, and `.part` files
//! are ignored. After it, [`State::open`] completes the commit: it renames the results, inserts the
//! documents into the index and renames the segment to `.segment`. Each step can be repeated after
//! an interruption, because equal keys make the inserts idempotent.

mod segment;
mod shard;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use self::segment::{DONE, FAMILY, Foot, PENDING, Record, Segment, WRITTEN, Writer, numbers};
pub use self::shard::{Decided, Known, NewShard, ShardInfo, Trail};
use self::shard::{absolute, number_of, path_of, publish};
use super::{Decision, Decisions, Dedup, DedupOptions};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::{Durability, Index, IndexOptions, Query};
use crate::progress::{self, Progress};
use crate::store::{STATE_DIR, make_directory, rename_durably};
use crate::verify::Verification;

/// Prefix of the directory of results that are not committed.
const STAGE: &str = ".hamdex-shard-";

/// Documents inserted into the index per batch.
const BATCH: u64 = 8192;
/// Fewest and most fingerprints searched together.
const SEARCHED: (usize, usize) = (1 << 12, 1 << 17);
/// Near fingerprints that one search should return.
const FOUND: usize = 1 << 21;

/// The documents kept by a series of deduplications, on disk.
///
/// [`State::decide`] decides about a shard as [`Dedup::finish`] would if the kept documents of all
/// earlier shards preceded it. [`State::commit`] adds the result to the state, atomically. With
/// [`Linkage::Representative`](crate::join::Linkage::Representative), a series of shards gives the
/// same result as one run over all documents. With [`Linkage::Chain`](crate::join::Linkage::Chain),
/// a document that is linked only through a removed one is kept.
///
/// ```
/// use hamdex::IndexOptions;
/// use hamdex::dedup::{Decided, Decision, Dedup, Known, NewShard, DedupOptions, State};
///
/// let directory = tempfile::tempdir()?;
/// let settings = DedupOptions::new(2);
/// let mut state = State::<u64>::create(directory.path(), &IndexOptions::new(), &settings)?;
/// for (input, fingerprints) in [("monday", [0b0001, 0xffff]), ("tuesday", [0b0011, 0xff00])] {
///     let mut dedup = Dedup::<u64>::new(&settings)?;
///     for fingerprint in fingerprints {
///         dedup.push(fingerprint, &[], ())?;
///     }
///     let Decided { decisions, trail, .. } = state.decide(dedup, &())?;
///     let show = |at: u32| Ok(Known { label: format!("{at}"), place: format!("{input}:{at}") });
///     let shard = NewShard { input, content: "", results: None };
///     state.commit(&shard, (&decisions, &trail), &show, &())?;
///     if let Decision::Stored { key, .. } = decisions.of(0) {
///         assert_eq!(trail.known(key).unwrap().place, "monday:0");
///     }
/// }
/// assert_eq!(state.shard("monday").unwrap().kept, 2);
/// assert_eq!(state.shard("tuesday").unwrap().kept, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct State<F: Fingerprint> {
    index: Index<F>,
    directory: PathBuf,
    settings: DedupOptions,
    token: String,
    shards: Vec<ShardInfo>,
    /// Whether the last commit failed; the state must then be opened again.
    failed: bool,
}

impl<F: Fingerprint> State<F> {
    /// Returns the settings of the state at a path, if any.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] or [`Error::Io`] if they cannot be read.
    pub fn settings_at(path: &Path) -> Result<Option<DedupOptions>> {
        Ok(DedupOptions::read(&path.join(STATE_DIR))?.map(|(settings, _)| settings))
    }

    /// Creates and opens a state in an absent or empty directory.
    ///
    /// An interrupted creation leaves an index without documents; with the same settings it is
    /// reused. `options` are those of the index.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] for [`Verification::Contains`]: it keeps the longest document,
    ///   but documents kept by earlier shards cannot be replaced.
    /// - [`Error::AlreadyExists`] if the directory contains anything else.
    /// - Those of [`Index::create`].
    pub fn create(path: &Path, options: &IndexOptions, settings: &DedupOptions) -> Result<Self> {
        require_order(settings.verification)?;
        let options = options.clone().distance(settings.distance);
        let index = match Index::<F>::create(path, &options) {
            Err(Error::AlreadyExists { .. }) => adopted(path, &options)?,
            index => index?,
        };
        let directory = path.join(STATE_DIR);
        make_directory(&directory)?;
        fail_point!("state.created");
        settings.write(&directory, &format!("{:016x}", fastrand::u64(..)))?;
        fail_point!("state.begun");
        Self::over(index, directory, &())
    }

    /// Opens a state and completes an interrupted commit.
    ///
    /// # Errors
    ///
    /// - [`Error::NotFound`] if there is no state.
    /// - [`Error::Locked`] if another process has it open.
    /// - Those of [`Index::open_with`]; [`Error::Corrupt`] and [`Error::Io`].
    ///
    /// ```
    /// use hamdex::dedup::{DedupOptions, State};
    /// use hamdex::{IndexOptions};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path();
    /// assert_eq!(State::<u64>::settings_at(path)?, None);
    /// drop(State::<u64>::create(path, &IndexOptions::new(), &DedupOptions::new(2))?);
    /// let state = State::<u64>::open(path, &IndexOptions::new(), &())?;
    /// assert_eq!(state.settings().distance, 2);
    /// state.require(&DedupOptions::new(2))?;
    /// assert!(state.shards().is_empty() && state.index().is_empty()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: &Path, options: &IndexOptions, progress: &dyn Progress) -> Result<Self> {
        if Self::settings_at(path)?.is_none() {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        let index = Index::open_with(path, options)?;
        Self::over(index, path.join(STATE_DIR), progress)
    }

    fn over(index: Index<F>, directory: PathBuf, progress: &dyn Progress) -> Result<Self> {
        let Some((settings, token)) = DedupOptions::read(&directory)? else {
            return Err(Error::NotFound { path: directory });
        };
        let shards = Vec::new();
        let mut state = Self { index, directory, settings, token, shards, failed: false };
        // One after a kill; after a restore, all that were added during the backup.
        let mut pending = Vec::new();
        for (number, extension) in numbers(&state.directory)? {
            let path = state.segment(number, extension);
            match extension {
                WRITTEN => fs::remove_file(&path).map_err(|e| Error::io(&path, e))?,
                PENDING => {
                    pending.push(number);
                    state.shards.push(ShardInfo::of(number, &Segment::open(&path)?.foot));
                }
                _ => state.shards.push(ShardInfo::of(number, &Segment::open(&path)?.foot)),
            }
        }
        state.shards.sort_by_key(|shard| shard.number);
        state.require_all()?;
        pending.sort_unstable();
        for number in pending {
            state.apply(number, progress)?;
        }
        Ok(state)
    }

    /// Returns an error if a segment is missing.
    fn require_all(&self) -> Result<()> {
        let mut next = (1, 0);
        for shard in &self.shards {
            if (shard.number, shard.first) != next {
                let detail = format!("the file of shard {} is missing", next.0);
                return Err(Error::corrupt(FAMILY, detail));
            }
            next = (shard.number + 1, shard.first + shard.kept);
        }
        Ok(())
    }

    /// Returns an error unless `settings` equal those of the state.
    ///
    /// # Errors
    ///
    /// [`Error::HeaderMismatch`] if distance, verification or linkage differ.
    pub fn require(&self, settings: &DedupOptions) -> Result<()> {
        self.settings.require_alike(settings)
    }

    /// Returns the settings of all shards.
    pub fn settings(&self) -> &DedupOptions {
        &self.settings
    }

    /// Returns the index of all kept documents.
    pub fn index(&self) -> &Index<F> {
        &self.index
    }

    /// Returns all shards in commit order.
    pub fn shards(&self) -> &[ShardInfo] {
        &self.shards
    }

    /// Returns the last shard whose input has this name.
    pub fn shard(&self, input: &str) -> Option<&ShardInfo> {
        self.shards.iter().rev().find(|shard| shard.input == input)
    }

    /// Returns a path for the results of the next shard.
    ///
    /// The path is inside `results`; [`State::commit`] renames it. Removes what an uncommitted
    /// shard of this state left there. The name includes a random number of the state, so nothing
    /// else is removed.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if that cannot be removed.
    ///
    /// ```
    /// use hamdex::IndexOptions;
    /// use hamdex::dedup::{Dedup, Known, NewShard, DedupOptions, State};
    ///
    /// let (place, settings) = (tempfile::tempdir()?, DedupOptions::new(2));
    /// let path = place.path().join("state");
    /// let mut state = State::<u64>::create(&path, &IndexOptions::new(), &settings)?;
    /// let (stage, results) = (state.stage(place.path())?, place.path().join("monday"));
    /// std::fs::create_dir(&stage)?;
    /// std::fs::write(stage.join("kept.jsonl"), "")?;
    /// let decided = state.decide(Dedup::<u64>::new(&settings)?, &())?;
    /// let shard = NewShard { input: "monday", content: "", results: Some((&stage, &results)) };
    /// let show = |_| Ok(Known { label: String::new(), place: String::new() });
    /// state.commit(&shard, (&decided.decisions, &decided.trail), &show, &())?;
    /// assert!(results.join("kept.jsonl").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stage(&self, results: &Path) -> Result<PathBuf> {
        let stage = results.join(self.stage_name());
        match fs::remove_dir_all(&stage) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(&stage, error)),
            _ => Ok(stage),
        }
    }

    fn stage_name(&self) -> String {
        format!("{STAGE}{}-{}", self.token, self.next_number())
    }

    fn next_number(&self) -> u64 {
        self.shards.last().map_or(1, |shard| shard.number + 1)
    }

    /// Number of the next document.
    fn next_document(&self) -> u64 {
        self.shards.last().map_or(0, |shard| shard.first + shard.kept)
    }

    /// Decides about a shard, given what earlier shards kept.
    ///
    /// Takes the memory of [`Dedup::finish`] over the shard and the kept documents within its
    /// distance.
    ///
    /// # Errors
    ///
    /// - [`Error::HeaderMismatch`] if the settings of `dedup` differ from the state's.
    /// - [`Error::InvalidOption`] if the index has a document that no shard added, or if the last
    ///   commit failed.
    /// - Those of [`Dedup::finish`] and [`Index::near_batch`].
    pub fn decide<R: Ord + Sync>(
        &self,
        dedup: Dedup<F, R>,
        progress: &dyn Progress,
    ) -> Result<Decided<F>> {
        self.require_sound()?;
        self.require(dedup.settings())?;
        let near = self.near(dedup.fingerprints(), progress)?;
        let mut known = Vec::with_capacity(near.len());
        let mut open: Option<(u64, Segment)> = None;
        let records = near.iter().map(|&number| {
            progress::check(progress)?;
            let shard = self.shard_of(number)?;
            let segment = match &open {
                Some((held, segment)) if *held == shard.number => segment,
                _ => {
                    let segment = Segment::open(&self.segment(shard.number, DONE))?;
                    &open.insert((shard.number, segment)).1
                }
            };
            let Record { fingerprint, label, place, evidence } = segment.record(number)?;
            known.push((number, Known { label, place }));
            Ok((number.to_be_bytes().to_vec(), print_of(&fingerprint)?, evidence))
        });
        let (decisions, evidence) = dedup.finish_behind(records, progress)?;
        Ok(Decided { decisions, trail: Trail { evidence, known } })
    }

    /// Returns the numbers of kept documents within the distance of any fingerprint, ascending.
    fn near(&self, fingerprints: &[F], progress: &dyn Progress) -> Result<Vec<u64>> {
        let mut asked = fingerprints.to_vec();
        asked.sort_unstable();
        asked.dedup();
        let reader = self.index.reader()?;
        progress.begin("searching", Some(asked.len() as u64));
        let mut near: Vec<F> = Vec::new();
        let (mut at, mut together) = (0, SEARCHED.0);
        while let Some(batch) = asked.get(at..asked.len().min(at + together)) {
            if batch.is_empty() {
                break;
            }
            progress::check(progress)?;
            let found = reader.near_batch(batch, self.settings.distance)?;
            let count = found.iter().map(Vec::len).sum::<usize>();
            near.extend(found.into_iter().flatten().map(|found| found.fingerprint));
            near.sort_unstable();
            near.dedup();
            at += batch.len();
            progress.advance(batch.len() as u64);
            let fitting = FOUND.saturating_mul(batch.len()) / count.max(1);
            together = fitting.min(together * 8).clamp(SEARCHED.0, SEARCHED.1);
        }
        let mut numbers = Vec::new();
        for batch in near.chunks(SEARCHED.1) {
            let queries: Vec<_> = batch.iter().map(|&f| Query::new(f).distance(0)).collect();
            for found in reader.search_batch(&queries)?.into_iter().flatten() {
                let number = number_of(&found.key).filter(|&n| n < self.next_document());
                numbers.push(number.ok_or_else(|| foreign(&found.key))?);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn shard_of(&self, number: u64) -> Result<&ShardInfo> {
        let after = self.shards.partition_point(|shard| shard.first <= number);
        let shard = after.checked_sub(1).and_then(|at| self.shards.get(at));
        shard.ok_or_else(|| foreign(&number.to_be_bytes()))
    }

    /// Adds a shard to the state: its kept documents and its results.
    ///
    /// `show` returns the label and the place of a kept document, by position. When the call
    /// returns, the shard survives a power loss. If the process dies during the call, opening the
    /// state shows the shard either completely or not at all.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] if the directory of results exists, or if the last commit failed.
    /// - Those of [`Index::insert_batch`], and [`Error::Io`]. Open the state again to see whether
    ///   it contains the shard.
    pub fn commit(
        &mut self,
        shard: &NewShard<'_>,
        (decisions, trail): (&Decisions<F>, &Trail),
        show: &dyn Fn(u32) -> Result<Known>,
        progress: &dyn Progress,
    ) -> Result<()> {
        self.require_sound()?;
        let results = shard.results.map(|(stage, results)| absolute(stage, results)).transpose()?;
        self.failed = true;
        let number = self.next_number();
        let first = self.next_document();
        let part = self.segment(number, WRITTEN);
        let mut writer = Writer::create(part.clone(), first)?;
        let mut count = 0;
        for (decision, position) in decisions.iter().zip(0_u32..) {
            if !matches!(decision, Decision::Kept { .. }) {
                continue;
            }
            let Known { label, place } = show(position)?;
            let evidence = match &trail.evidence {
                Some(evidence) => evidence.read(position as usize)?,
                None => Vec::new(),
            };
            let fingerprint = decisions.fingerprint(position).to_bytes().as_ref().to_vec();
            writer.push(&Record { fingerprint, label, place, evidence })?;
            count += 1;
        }
        let (input, content) = (shard.input.to_owned(), shard.content.to_owned());
        let foot = Foot { first, count, input, content, results };
        writer.finish(&foot)?;
        fail_point!("state.staged");
        rename_durably(&part, &self.segment(number, PENDING))?;
        fail_point!("state.committed");
        self.shards.push(ShardInfo::of(number, &foot));
        self.apply(number, progress)?;
        self.failed = false;
        Ok(())
    }

    fn require_sound(&self) -> Result<()> {
        if self.failed {
            let reason = "the last commit failed; open the state again".to_owned();
            return Err(Error::InvalidOption { name: "state", reason });
        }
        Ok(())
    }

    /// Completes a commit; may be repeated after an interruption.
    fn apply(&self, number: u64, progress: &dyn Progress) -> Result<()> {
        let pending = self.segment(number, PENDING);
        let segment = Segment::open(&pending)?;
        if let Some((stage, results)) = &segment.foot.results {
            publish(&path_of(stage), &path_of(results))?;
            fail_point!("state.published");
        }
        let Foot { first, count, .. } = segment.foot;
        progress.begin("adding to the state", Some(count));
        let mut next = first;
        while next < first + count {
            let end = (first + count).min(next + BATCH);
            let documents: Vec<([u8; 8], F)> = (next..end)
                .map(|number| {
                    let record = segment.record(number)?;
                    Ok((number.to_be_bytes(), print_of(&record.fingerprint)?))
                })
                .collect::<Result<_>>()?;
            let last = end == first + count;
            let durability = if last { Durability::Synced } else { Durability::Buffered };
            self.index.insert_batch(&documents, durability)?;
            fail_point!("state.added");
            progress.advance(end - next);
            next = end;
        }
        rename_durably(&pending, &self.segment(number, DONE))?;
        fail_point!("state.done");
        Ok(())
    }

    fn segment(&self, number: u64, extension: &str) -> PathBuf {
        self.directory.join(format!("{number:08}.{extension}"))
    }
}

/// Returns an error if the verification may prefer a later document to an earlier one.
fn require_order(verification: Verification) -> Result<()> {
    if let Verification::Contains(_) = verification {
        let reason =
            "contains keeps the longest document of a group, but a state cannot replace what \
             earlier shards kept; use edit or jaccard"
                .to_owned();
        return Err(Error::InvalidOption { name: "verify", reason });
    }
    Ok(())
}

/// Opens the empty index that an interrupted creation left.
fn adopted<F: Fingerprint>(path: &Path, options: &IndexOptions) -> Result<Index<F>> {
    let exists = || Error::AlreadyExists { path: path.to_owned() };
    let expected = IndexOptions::new()
        .memory(options.memory)
        .distance(options.distance.unwrap_or_default())
        .pipeline(options.pipeline.clone().unwrap_or_default());
    let other =
        |error: &Error| matches!(error, Error::NotFound { .. } | Error::HeaderMismatch { .. });
    let opened = Index::<F>::open_with(path, &expected);
    let index = opened.map_err(|error| if other(&error) { exists() } else { error })?;
    if index.is_empty()? { Ok(index) } else { Err(exists()) }
}

fn print_of<F: Fingerprint>(bytes: &[u8]) -> Result<F> {
    F::from_bytes(bytes).ok_or_else(|| Error::corrupt(FAMILY, "a fingerprint of another width"))
}

/// The error for a document that no shard added.
fn foreign(key: &[u8]) -> Error {
    Error::InvalidOption {
        name: "state",
        reason: format!(
            "the index contains document {}, which no shard added; only dedup may insert into a \
             state",
            key.escape_ascii()
        ),
    }
}

#[cfg(test)]
mod tests;
