//! State: what earlier runs kept is known to the next one, which keeps only what is new.
//!
//! A state is an index and, in a directory within it, one *segment* for each shard that
//! was committed: the documents that it kept, with what a verification compares of them. Documents
//! of the index are numbered in the order in which they were kept; their keys are those numbers.
//!
//! A shard is committed by one rename, of its segment to a name that says that it is pending.
//! Before, nothing of it is to be seen: its results are in a directory of another name, its segment
//! under a name that nobody reads. Behind, [`State::open`] does what is left to do, as often as it
//! is cut short: the results get their name, the index takes the documents, whose keys make that
//! the same whether it is done once or twice, and the segment gets its own name.

mod segment;
mod shard;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use self::segment::{DONE, FAMILY, Foot, PENDING, Record, Segment, WRITTEN, Writer, numbers};
pub use self::shard::{Decided, Known, NewShard, ShardInfo, Trail};
use self::shard::{absolute, number_of, path_of, publish};
use super::{Decision, Decisions, Dedup, Settings};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::{Durability, Index, IndexOptions, OpenOptions, Query};
use crate::progress::{self, Progress};
use crate::store::{make_directory, rename_durably};
use crate::verify::Verification;

/// The directory within the index.
const DIRECTORY: &str = "dedup.state";
/// Begins the name of a directory of results that is not committed.
const STAGE: &str = ".hamdex-shard-";

/// Documents that the index takes at once.
const BATCH: u64 = 8192;
/// Fingerprints that are searched together: fewest, and most.
const SEARCHED: (usize, usize) = (1 << 12, 1 << 17);
/// Near fingerprints of one search to aim at.
const FOUND: usize = 1 << 21;

/// What a series of deduplications has kept, on disk.
///
/// [`State::decide`] decides about a shard as [`Dedup::finish`] would if the kept documents of all
/// earlier shards came before its own; [`State::commit`] makes the outcome part of the state,
/// whole or not at all. Where groups hold what is near their first document
/// ([`Linkage::Representative`](crate::join::Linkage::Representative)), shards one after another
/// give what one run over all documents gives. Where they hold what chains connect, a document is
/// kept that only a removed one would have connected.
///
/// ```
/// use hamdex::IndexOptions;
/// use hamdex::dedup::{Decided, Decision, Dedup, Known, NewShard, Settings, State};
///
/// let directory = tempfile::tempdir()?;
/// let settings = Settings::new(2);
/// let mut state = State::<u64>::create(directory.path(), &IndexOptions::new(), &settings)?;
/// for (input, fingerprints) in [("monday", [0b0001, 0xffff]), ("tuesday", [0b0011, 0xff00])] {
///     let mut dedup = Dedup::<u64>::new(&settings)?;
///     for fingerprint in fingerprints {
///         dedup.push(fingerprint, &[], ())?;
///     }
///     let Decided { decisions, trail } = state.decide(dedup, &())?;
///     let show = |at: u32| Known { label: format!("{at}"), place: format!("{input}:{at}") };
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
    settings: Settings,
    token: String,
    shards: Vec<ShardInfo>,
    /// Whether the last commit failed, so that only opening tells what is stored.
    failed: bool,
}

impl<F: Fingerprint> State<F> {
    /// Returns the settings of the state at a path; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if they cannot be read.
    pub fn settings_at(path: &Path) -> Result<Option<Settings>> {
        Ok(Settings::read(&path.join(DIRECTORY))?.map(|(settings, _)| settings))
    }

    /// Makes a state in a directory that is absent or empty, and opens it.
    ///
    /// An index without documents that has the same settings becomes a state: that is what a
    /// creation leaves that was cut short. `options` are those of the index.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] for [`Verification::Contains`], which keeps the longest document:
    ///   results that are written cannot be taken back.
    /// - [`Error::AlreadyExists`] for a directory that holds anything else.
    /// - Those of [`Index::create`].
    pub fn create(path: &Path, options: &IndexOptions, settings: &Settings) -> Result<Self> {
        require_order(settings.verification)?;
        let options = options.clone().distance(settings.distance);
        let index = match Index::<F>::create(path, &options) {
            Err(Error::AlreadyExists { .. }) => adopted(path, &options)?,
            index => index?,
        };
        let directory = path.join(DIRECTORY);
        make_directory(&directory)?;
        fail_point!("state.created");
        settings.write(&directory, &format!("{:016x}", fastrand::u64(..)))?;
        fail_point!("state.begun");
        Self::over(index, directory, &())
    }

    /// Opens a state, and does what the last commit was kept from doing.
    ///
    /// # Errors
    ///
    /// - [`Error::NotFound`] if there is no state.
    /// - [`Error::Locked`] while another process has it open.
    /// - Those of [`Index::open_with`]; [`Error::Corrupt`] and [`Error::Io`].
    pub fn open(path: &Path, options: &OpenOptions, progress: &dyn Progress) -> Result<Self> {
        if Self::settings_at(path)?.is_none() {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        let index = Index::open_with(path, options)?;
        Self::over(index, path.join(DIRECTORY), progress)
    }

    fn over(index: Index<F>, directory: PathBuf, progress: &dyn Progress) -> Result<Self> {
        let Some((settings, token)) = Settings::read(&directory)? else {
            return Err(Error::NotFound { path: directory });
        };
        let shards = Vec::new();
        let mut state = Self { index, directory, settings, token, shards, failed: false };
        let mut pending = None;
        for (number, extension) in numbers(&state.directory)? {
            let path = state.segment(number, extension);
            match extension {
                WRITTEN => fs::remove_file(&path).map_err(|e| Error::io(&path, e))?,
                PENDING => {
                    pending = Some(number);
                    state.shards.push(ShardInfo::of(number, &Segment::open(&path)?.foot));
                }
                _ => state.shards.push(ShardInfo::of(number, &Segment::open(&path)?.foot)),
            }
        }
        state.shards.sort_by_key(|shard| shard.number);
        state.require_all()?;
        if let Some(number) = pending {
            state.apply(number, progress)?;
        }
        Ok(state)
    }

    /// Refuses a state of which a segment is missing.
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

    /// Fails unless settings decide as those of the state do.
    ///
    /// # Errors
    ///
    /// [`Error::HeaderMismatch`] that names the distance, the verification or the linkage.
    pub fn require(&self, settings: &Settings) -> Result<()> {
        self.settings.require_alike(settings)
    }

    /// Returns the settings that all shards are decided by.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the index of all kept documents.
    pub fn index(&self) -> &Index<F> {
        &self.index
    }

    /// Returns all shards, in the order in which they were committed.
    pub fn shards(&self) -> &[ShardInfo] {
        &self.shards
    }

    /// Returns the last shard that was read from an input of this name.
    pub fn shard(&self, input: &str) -> Option<&ShardInfo> {
        self.shards.iter().rev().find(|shard| shard.input == input)
    }

    /// Returns where to make the results of the next shard, in the directory for results.
    ///
    /// What a shard left there that was not committed is removed, and nothing else: the name holds
    /// a random number of this state.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
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

    /// Decides about a shard, behind what earlier shards kept.
    ///
    /// Memory is that of [`Dedup::finish`] over the shard and the kept documents within the
    /// distance of it.
    ///
    /// # Errors
    ///
    /// - [`Error::HeaderMismatch`] if `dedup` has other settings than the state.
    /// - [`Error::InvalidOption`] if the index holds a document that no shard has added.
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

    /// Finds the kept documents within the distance of any fingerprint, by rising number.
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

    /// Makes a shard part of the state: what it kept, and its results.
    ///
    /// `show` says what is shown of a kept document later, by its position. Once the call returns,
    /// the shard survives a loss of power. A process that ends within it leaves the state as it
    /// was, or as it is to be once it is opened.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] for a directory of results that exists.
    /// - Those of [`Index::insert_batch`], and [`Error::Io`]; opening the state again then tells
    ///   whether the shard is part of it.
    pub fn commit(
        &mut self,
        shard: &NewShard<'_>,
        (decisions, trail): (&Decisions<F>, &Trail),
        show: &dyn Fn(u32) -> Known,
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
            let Known { label, place } = show(position);
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

    /// Does what a commit promises, from the start or from where it was cut short.
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

/// Refuses a verification that may keep a later document instead of an earlier one.
fn require_order(verification: Verification) -> Result<()> {
    if let Verification::Contains(_) = verification {
        let reason =
            "contains keeps the longest document of a group, but what earlier shards kept \
                      is written; use edit or jaccard"
                .to_owned();
        return Err(Error::InvalidOption { name: "verify", reason });
    }
    Ok(())
}

/// Opens an index that a creation made before it was cut short.
fn adopted<F: Fingerprint>(path: &Path, options: &IndexOptions) -> Result<Index<F>> {
    let exists = || Error::AlreadyExists { path: path.to_owned() };
    let expected = OpenOptions::new()
        .memory(options.memory)
        .expect_distance(options.distance.unwrap_or_default())
        .expect_pipeline(options.pipeline.clone().unwrap_or_default());
    let other =
        |error: &Error| matches!(error, Error::NotFound { .. } | Error::HeaderMismatch { .. });
    let opened = Index::<F>::open_with(path, &expected);
    let index = opened.map_err(|error| if other(&error) { exists() } else { error })?;
    if index.is_empty()? { Ok(index) } else { Err(exists()) }
}

fn print_of<F: Fingerprint>(bytes: &[u8]) -> Result<F> {
    F::from_bytes(bytes).ok_or_else(|| Error::corrupt(FAMILY, "a fingerprint of another width"))
}

/// A document that dedup did not add.
fn foreign(key: &[u8]) -> Error {
    Error::InvalidOption {
        name: "state",
        reason: format!(
            "holds the document {}, which no shard has added; a state takes documents from dedup \
             alone",
            key.escape_ascii()
        ),
    }
}

#[cfg(test)]
mod tests;
