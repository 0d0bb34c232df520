//! The builder: takes documents in, checkpoints, and ends in a live index.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::STAGING;
use super::assemble::Assembly;
use super::manifest::Manifest;
use super::options::{Abandoned, BuildOptions, BuildReport, Repeats};
use super::sorter::RecordSorter;
use super::spills::Outside;
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::{Header, IndexOptions, NewDocument, new_header, plan_of};
use crate::plan::Plan;
use crate::progress::{self, Progress};
use crate::store::{Access, MIN_MEMORY, Store, keys, make_directory};

/// Longest time of reading that a kill may cost.
const CHECKPOINT_EVERY: Duration = Duration::from_mins(1);

/// Name of the spill files of documents.
const DOCUMENTS: &str = "documents";

/// Pushes between two looks at the clock and at finished spill files.
const LOOK_EVERY: u64 = 1 << 14;

/// Builds an index offline, far faster than inserts, in bounded memory.
///
/// Documents may come in any order. Nothing shows before [`Builder::finish`]; a build that is
/// dropped or killed can be resumed or abandoned, and until then the index does not open.
///
/// ```
/// use hamdex::build::{BuildOptions, Builder};
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// let mut builder = Builder::<u64>::create(&path, &IndexOptions::new(), &BuildOptions::new())?;
/// for row in 0..1000_u64 {
///     builder.push(&row.to_be_bytes(), row.wrapping_mul(0x9e37_79b9_7f4a_7c15), row)?;
/// }
/// let report = builder.finish(&(), &mut |_, _| ())?;
/// assert_eq!(report.documents, 1000);
/// assert_eq!(Index::<u64>::open(&path)?.len()?, 1000);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder<F: Fingerprint> {
    store: Store,
    plan: Plan,
    generation: u32,
    staging: PathBuf,
    spills: PathBuf,
    memory: usize,
    repeats: Repeats,
    sorter: RecordSorter,
    manifest: Manifest,
    left: Option<PathBuf>,
    /// Where spilled chunks end: records pushed so far and the origin of the last one.
    boundaries: VecDeque<(u64, u64)>,
    last_origin: Option<u64>,
    checkpoint: Instant,
    payload: Vec<u8>,
    width: std::marker::PhantomData<fn() -> F>,
}

impl<F: Fingerprint> Builder<F> {
    /// Begins a build of a new index, or one that merges into an existing index.
    ///
    /// An existing index keeps its plan, distance, pipeline and whether it keeps features. Pushed
    /// documents take the place of stored ones with the same key.
    ///
    /// # Errors
    ///
    /// [`Error::HeaderMismatch`] where `options` name something else than an existing index
    /// holds; else as [`Index::create`](crate::Index::create) and
    /// [`Index::open`](crate::Index::open).
    pub fn create(
        path: impl AsRef<Path>,
        options: &IndexOptions,
        build: &BuildOptions,
    ) -> Result<Self> {
        let path = path.as_ref();
        let (mut store, plan, made_index) = match Self::open(path, Access::Write) {
            Ok((store, plan)) => {
                let plan_wanted = options.plan.as_ref().map(Plan::to_string);
                Header::of(store.header()).require(
                    plan_wanted,
                    options.distance,
                    options.pipeline.clone(),
                    options.keep_features,
                )?;
                (store, plan, false)
            }
            Err(Error::NotFound { .. }) => {
                let (header, plan) = new_header::<F>(options)?;
                let resources: Vec<_> = options.resources.parts().collect();
                let tables = plan.tables().len();
                (Store::create(path, header, &resources, tables, MIN_MEMORY)?, plan, true)
            }
            Err(error) => return Err(error),
        };
        // A build that was killed after it went live left its files.
        let left = clear(path)?;
        let staging = path.join(STAGING);
        make_directory(&staging)?;
        let outside = build.tmp.as_deref().map(|tmp| Outside::create(tmp, path)).transpose()?;
        let manifest =
            Manifest { outside, inputs: build.inputs.clone(), made_index, ..Manifest::default() };
        fail_point!("build.begun");
        manifest.write(&staging)?;
        fail_point!("build.manifest");
        let generation = store.begin_build()?;
        let spills = manifest.directory(&staging);
        let sorter = RecordSorter::new(&spills, documents_budget(build), DOCUMENTS);
        let builder = Self::over(store, plan, generation, build, sorter, manifest);
        Ok(Self { left, ..builder })
    }

    /// Goes on with a build that was killed or dropped.
    ///
    /// The caller pushes the same documents again, without those up to and including
    /// [`Builder::resume_after`]. An index that was moved resumes too, unless its spill files are
    /// outside and on another file system.
    ///
    /// # Errors
    ///
    /// [`Error::NothingToResume`] without an unfinished build, [`Error::HeaderMismatch`] for other
    /// [inputs](BuildOptions::inputs), [`Error::ForeignSpills`] if the spill files outside are
    /// another index's, [`Error::Corrupt`] when its files are damaged, else as
    /// [`Index::open`](crate::Index::open). The build is then as it was.
    pub fn resume(path: impl AsRef<Path>, build: &BuildOptions) -> Result<Self> {
        let path = path.as_ref();
        let (mut store, plan) = Self::open(path, Access::Build)?;
        let Some(generation) = store.building()? else {
            return Err(Error::NothingToResume { path: path.to_owned() });
        };
        let staging = path.join(STAGING);
        // A link instead of the directory would lead out of the index.
        let staged = fs::symlink_metadata(&staging).is_ok_and(|found| found.is_dir());
        let manifest = if staged { Manifest::read(&staging)? } else { None };
        let manifest =
            manifest.ok_or_else(|| Error::corrupt("build manifest", "the file is missing"))?;
        if let (Some(stored), Some(wanted)) = (&manifest.inputs, &build.inputs)
            && stored != wanted
        {
            let (stored, wanted) = (stored.clone(), wanted.clone());
            return Err(Error::HeaderMismatch { what: "inputs", stored, wanted });
        }
        if let Some(outside) = &manifest.outside {
            outside.require(path)?;
        }
        let spills = manifest.directory(&staging);
        let files = manifest.spill_files(&spills);
        let sorter = RecordSorter::resume(&spills, documents_budget(build), DOCUMENTS, files)?;
        store.drop_generation(generation)?;
        fail_point!("resume.dropped");
        Ok(Self::over(store, plan, generation, build, sorter, manifest))
    }

    /// Drops an unfinished build; the index is then as it was before it.
    ///
    /// An index that the build was to make stays behind empty. Spill files in a directory that is
    /// not this index's stay too, and the directory is returned.
    ///
    /// # Errors
    ///
    /// [`Error::NothingToResume`] without an unfinished build, else as
    /// [`Index::open`](crate::Index::open).
    pub fn abandon(path: impl AsRef<Path>) -> Result<Abandoned> {
        let path = path.as_ref();
        let (mut store, _) = Self::open(path, Access::Build)?;
        let manifest = Manifest::read(&path.join(STAGING)).ok().flatten();
        store.abandon_build()?;
        fail_point!("abandon.done");
        let made_index = manifest.is_some_and(|manifest| manifest.made_index);
        Ok(Abandoned { made_index, left: clear(path)? })
    }

    fn open(path: &Path, access: Access) -> Result<(Store, Plan)> {
        let mut plan = None;
        let store = Store::open(path, MIN_MEMORY, access, |record| {
            Header::of(record).require_width::<F>()?;
            let built = plan_of(record)?;
            Ok(plan.insert(built).tables().len())
        })?;
        Ok((store, plan.expect("opening reads the header")))
    }

    fn over(
        store: Store,
        plan: Plan,
        generation: u32,
        build: &BuildOptions,
        sorter: RecordSorter,
        manifest: Manifest,
    ) -> Self {
        let staging = store.path().join(STAGING);
        Self {
            store,
            plan,
            generation,
            spills: manifest.directory(&staging),
            staging,
            repeats: build.repeats,
            left: None,
            memory: build.memory.max(MIN_MEMORY),
            sorter,
            last_origin: manifest.last_origin,
            manifest,
            boundaries: VecDeque::new(),
            checkpoint: Instant::now(),
            payload: Vec::new(),
            width: std::marker::PhantomData,
        }
    }

    /// Returns the origin of the last document that need not be pushed again.
    pub fn resume_after(&self) -> Option<u64> {
        self.manifest.last_origin
    }

    /// Returns a spill directory that an earlier build left and that is not this index's.
    ///
    /// Nothing there was removed; it may be what the original of a copied index still needs.
    pub fn left(&self) -> Option<&Path> {
        self.left.as_deref()
    }

    /// Returns true if the inputs of this build were named by [`BuildOptions::inputs`].
    pub fn knows_inputs(&self) -> bool {
        self.manifest.inputs.is_some()
    }

    /// Returns the plan of the permutation tables.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes a document in; which one of equal keys counts is up to [`BuildOptions::repeats`].
    ///
    /// `origin` is the caller's number of the document, a row for instance, and rises with
    /// every push. It names duplicates and where to go on after a kill.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`], after which the build may go on; [`Error::Io`].
    #[inline]
    pub fn push(&mut self, key: &[u8], fingerprint: F, origin: u64) -> Result<()> {
        self.push_document(&NewDocument::new(key, fingerprint), origin)
    }

    /// Takes a document in together with the features that it may bring.
    ///
    /// As [`Builder::push`].
    ///
    /// # Errors
    ///
    /// As [`Builder::push`], and [`Error::InvalidOption`] for features that no
    /// [`FeatureSet`](crate::verify::FeatureSet) encodes to or that the index does not keep;
    /// the build may go on.
    #[inline]
    pub fn push_document(&mut self, document: &NewDocument<'_, F>, origin: u64) -> Result<()> {
        let NewDocument { key, fingerprint, features } = *document;
        keys::check_document(key)?;
        document.check_features(self.store.header().keeps_features)?;
        self.payload.clear();
        self.payload.extend_from_slice(fingerprint.to_bytes().as_ref());
        self.payload.extend_from_slice(features.unwrap_or_default());
        self.payload.extend_from_slice(&origin.to_be_bytes());
        let spills = self.sorter.spills();
        self.sorter.push(key, &self.payload)?;
        if spills != self.sorter.spills()
            && let Some(last) = self.last_origin
        {
            self.boundaries.push_back((self.sorter.len() - 1, last));
        }
        self.last_origin = Some(origin);
        if self.sorter.len().is_multiple_of(LOOK_EVERY) { self.look() } else { Ok(()) }
    }

    /// Writes down what has become durable, and makes it so when the last time is long ago.
    fn look(&mut self) -> Result<()> {
        if self.checkpoint.elapsed() < CHECKPOINT_EVERY {
            let files = self.sorter.take_spilled()?;
            if files.is_empty() {
                return Ok(());
            }
            self.manifest.add(&files);
            let records = self.manifest.records();
            while let Some((end, origin)) = self.boundaries.front().copied() {
                if end > records {
                    break;
                }
                self.manifest.last_origin = Some(origin);
                self.boundaries.pop_front();
            }
            return self.manifest.write(&self.staging);
        }
        self.seal()
    }

    /// Makes every document pushed so far durable.
    fn seal(&mut self) -> Result<()> {
        let files = self.sorter.seal()?;
        let known = self.manifest.file_count();
        self.manifest.add(files.split_at(known).1);
        self.manifest.last_origin = self.last_origin;
        self.boundaries.clear();
        fail_point!("build.spilled");
        self.manifest.write(&self.staging)?;
        self.checkpoint = Instant::now();
        Ok(())
    }

    /// Sorts, writes all families and makes the result live.
    ///
    /// `duplicate` is called with key and origin of every document that was dropped because
    /// another one with its key counts.
    ///
    /// # Errors
    ///
    /// [`Error::RepeatedKey`] where repeats are refused, before anything shows;
    /// [`Error::Cancelled`], [`Error::Io`], and damage or failures of the store; the build can
    /// then be resumed.
    pub fn finish(
        mut self,
        progress: &dyn Progress,
        duplicate: &mut dyn FnMut(&[u8], u64),
    ) -> Result<BuildReport> {
        progress::check(progress)?;
        // What was spilled or took long must not be read again; the rest is quickly redone.
        if self.sorter.spills() > 0 || self.checkpoint.elapsed() > CHECKPOINT_EVERY / 6 {
            progress.begin("sealing", None);
            self.seal()?;
        }
        fail_point!("build.sealed");
        self.store.create_generation(self.generation)?;
        let assembly = Assembly::<F> {
            store: &self.store,
            plan: &self.plan,
            generation: self.generation,
            staging: &self.staging,
            spills: &self.spills,
            memory: self.memory,
            repeats: self.repeats,
            progress,
            width: std::marker::PhantomData,
        };
        let report = assembly.run(self.sorter, duplicate)?;
        self.store.finish_build(self.generation, report.documents)?;
        fail_point!("build.finished");
        clear(self.store.path())?;
        Ok(report)
    }
}

/// Memory for the documents while they are read; the rest is for their postings.
fn documents_budget(build: &BuildOptions) -> usize {
    build.memory.max(MIN_MEMORY) / 2
}

/// Removes the staging directory of an index, and its spill files if they are elsewhere.
///
/// Returns a directory that the manifest names but that is not this index's; it stays as it is. A
/// manifest that does not decode names none.
pub(super) fn clear(index: &Path) -> Result<Option<PathBuf>> {
    let staging = index.join(STAGING);
    let outside = Manifest::read(&staging).ok().flatten().and_then(|manifest| manifest.outside);
    let left = match outside {
        Some(outside) => outside.clear(index)?,
        None => None,
    };
    // Of a link only the link is removed.
    match fs::remove_dir_all(&staging) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(&staging, error))
        }
        _ => Ok(left),
    }
}
