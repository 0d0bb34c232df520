//! The builder: collects documents, writes checkpoints, and makes the result live.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::STAGING;
use super::assemble::Assembly;
use super::manifest::Manifest;
use super::options::{Abandoned, BuildOptions, BuildReport, DiskNeeds, Repeats};
use super::spills::Outside;
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::{Header, IndexOptions, NewDocument, new_header, plan_of};
use crate::plan::Plan;
use crate::progress::{self, Progress};
use crate::sort::RecordSorter;
use crate::sort::spill::SpillFile;
use crate::store::{Access, MIN_MEMORY, Opening, Store, keys, make_directory};

/// Longest time of pushing that a kill may lose.
const CHECKPOINT_EVERY: Duration = Duration::from_mins(1);

/// Name of the spill files of documents.
const DOCUMENTS: &str = "documents";

/// Pushes between two checks of the clock and of finished spill files.
const CHECK_EVERY: u64 = 1 << 14;

/// Builds an index offline in bounded memory, much faster than inserts.
///
/// Documents may be pushed in any order. Nothing is visible before [`Builder::finish`]. A build
/// that is dropped or killed can be resumed or abandoned; until then the index does not open.
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
    /// Ends of spilled chunks: records pushed so far, and the origin of the last one.
    boundaries: VecDeque<(u64, u64)>,
    last_origin: Option<u64>,
    checkpoint: Instant,
    payload: Vec<u8>,
    width: std::marker::PhantomData<fn() -> F>,
}

impl<F: Fingerprint> Builder<F> {
    /// Starts a build of a new index, or a merge into an existing one.
    ///
    /// An existing index keeps its plan, distance, pipeline and feature setting. Pushed documents
    /// replace stored ones with the same key.
    ///
    /// # Errors
    ///
    /// Returns [`Error::HeaderMismatch`] if a setting in `options` differs from the stored one;
    /// also those of [`Index::create`](crate::Index::create) and
    /// [`Index::open`](crate::Index::open).
    pub fn create(
        path: impl AsRef<Path>,
        options: &IndexOptions,
        build: &BuildOptions,
    ) -> Result<Self> {
        let path = path.as_ref();
        let (mut store, plan, made_index) = match Self::open(path, Access::Write) {
            Ok((store, plan)) => {
                options.require(&Header::of(store.header()))?;
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
        // A build that was killed after it went live leaves its files.
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

    /// Resumes a build that was killed or dropped.
    ///
    /// Push the same documents again, except those up to and including [`Builder::resume_after`].
    /// A build that was killed after its documents were written accepts no others, and does not
    /// report their repeated keys again.
    /// An index that was moved can be resumed, unless its spill files are outside and on another
    /// file system.
    ///
    /// # Errors
    ///
    /// The build stays as it was.
    ///
    /// - [`Error::NothingToResume`] if there is no unfinished build.
    /// - [`Error::HeaderMismatch`] if the [inputs](BuildOptions::inputs) differ.
    /// - [`Error::ForeignSpills`] if the spill files outside belong to another index.
    /// - [`Error::Corrupt`] if files of the build are damaged.
    /// - Those of [`Index::open`](crate::Index::open).
    ///
    /// ```
    /// use hamdex::build::{BuildOptions, Builder};
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let build = BuildOptions::new();
    /// let mut killed = Builder::<u64>::create(&path, &IndexOptions::new(), &build)?;
    /// killed.push(b"page", 7, 0)?;
    /// drop(killed);
    /// let mut builder = Builder::<u64>::resume(&path, &build)?;
    /// // So few documents were not durable yet, so they are pushed again.
    /// assert_eq!(builder.resume_after(), None);
    /// builder.push(b"page", 7, 0)?;
    /// builder.finish(&(), &mut |_, _| ())?;
    /// assert_eq!(Index::<u64>::open(&path)?.get(b"page")?, Some(7));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn resume(path: impl AsRef<Path>, build: &BuildOptions) -> Result<Self> {
        let path = path.as_ref();
        let (mut store, plan) = Self::open(path, Access::Build)?;
        let Some(generation) = store.building()? else {
            return Err(Error::NothingToResume { path: path.to_owned() });
        };
        let staging = path.join(STAGING);
        // A symbolic link instead of the directory would lead outside the index.
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
        match manifest.written {
            Some(_) => store.keep_documents(generation)?,
            None => store.drop_generation(generation)?,
        }
        fail_point!("resume.dropped");
        Ok(Self::over(store, plan, generation, build, sorter, manifest))
    }

    /// Drops an unfinished build and restores the index as it was before.
    ///
    /// An index that the build created stays, empty. Spill files in a directory that is not this
    /// index's also stay, and the directory is returned.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NothingToResume`] if there is no unfinished build; also those of
    /// [`Index::open`](crate::Index::open).
    ///
    /// ```
    /// use hamdex::build::{BuildOptions, Builder};
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(Builder::<u64>::create(&path, &IndexOptions::new(), &BuildOptions::new())?);
    /// assert!(Index::<u64>::open(&path).is_err(), "the build is unfinished");
    /// assert!(Builder::<u64>::abandon(&path)?.made_index);
    /// assert!(Index::<u64>::open(&path)?.is_empty()?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
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
        let opening = Opening::new(path, MIN_MEMORY, access)?;
        Header::of(opening.header()).require_width::<F>()?;
        let plan = plan_of(opening.header())?;
        Ok((opening.with_tables(plan.tables().len())?, plan))
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

    /// Returns the origin after which documents must be pushed again.
    pub fn resume_after(&self) -> Option<u64> {
        self.manifest.last_origin
    }

    /// Returns a spill directory that belongs to another index, if any.
    ///
    /// An earlier build names it. It was left unchanged, because the original of a copied index may
    /// still need it.
    ///
    /// ```
    /// use hamdex::IndexOptions;
    /// use hamdex::build::{BuildOptions, Builder};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let build = BuildOptions::new().inputs("crawl of May");
    /// let builder = Builder::<u64>::create(&path, &IndexOptions::new(), &build)?;
    /// assert_eq!(builder.left(), None);
    /// assert!(builder.knows_inputs());
    /// assert_eq!(builder.plan().tables().len(), 4);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn left(&self) -> Option<&Path> {
        self.left.as_deref()
    }

    /// Returns true if the build's inputs were described by [`BuildOptions::inputs`].
    pub fn knows_inputs(&self) -> bool {
        self.manifest.inputs.is_some()
    }

    /// Returns the plan of the permutation tables.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Adds a document; [`BuildOptions::repeats`] decides between equal keys.
    ///
    /// `origin` is the caller's number of the document, for instance its row, and must rise with
    /// every push. It identifies duplicates, and where to continue after a kill. May wait until
    /// earlier documents are sorted and written, which happens outside the current rayon pool: so
    /// its workers may share a builder in a mutex.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidKey`], after which the build can continue, or [`Error::Io`].
    #[inline]
    pub fn push(&mut self, key: &[u8], fingerprint: F, origin: u64) -> Result<()> {
        self.push_document(&NewDocument::new(key, fingerprint), origin)
    }

    /// Adds a document like [`Builder::push`], with its features if it has any.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::push`]. Returns [`Error::InvalidOption`] if the features are not an
    /// encoded [`FeatureSet`](crate::verify::FeatureSet), or if the index does not keep features;
    /// the build can continue.
    ///
    /// ```
    /// use hamdex::verify::FeatureSet;
    /// use hamdex::build::{BuildOptions, Builder};
    /// use hamdex::{IndexOptions, NewDocument};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let options = IndexOptions::new().keep_features(true);
    /// let mut builder = Builder::<u64>::create(&path, &options, &BuildOptions::new())?;
    /// let features = FeatureSet::from_hashes(&[1 << 40, 2 << 40]).encode();
    /// builder.push_document(&NewDocument::new(b"page", 7).features(&features), 0)?;
    /// assert_eq!(builder.finish(&(), &mut |_, _| ())?.documents, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[inline]
    pub fn push_document(&mut self, document: &NewDocument<'_, F>, origin: u64) -> Result<()> {
        let NewDocument { key, fingerprint, features } = *document;
        if self.manifest.written.is_some() {
            let reason = "the documents of this build are written; finish or abandon it".to_owned();
            return Err(Error::InvalidOption { name: "build", reason });
        }
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
        if self.sorter.len().is_multiple_of(CHECK_EVERY) {
            self.checkpoint_if_due()
        } else {
            Ok(())
        }
    }

    /// Records finished spill files; forces a checkpoint once a minute.
    fn checkpoint_if_due(&mut self) -> Result<()> {
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

    /// Makes all documents pushed so far durable.
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

    /// Sorts the documents, writes all families and makes the result live.
    ///
    /// Calls `duplicate` with key and origin of every document that was dropped because of another
    /// one with its key. Spill files are removed as soon as the documents are written.
    ///
    /// # Errors
    ///
    /// - [`Error::RepeatedKey`] if repeats are refused; nothing is visible then.
    /// - [`Error::Store`] of the kind `NoSpace` if the disk cannot hold the index
    ///   ([`DiskNeeds`]); the build can be resumed.
    /// - [`Error::Cancelled`], [`Error::Io`], and damage or failures of the store; the build can be
    ///   resumed.
    pub fn finish(
        mut self,
        progress: &dyn Progress,
        duplicate: &mut dyn FnMut(&[u8], u64),
    ) -> Result<BuildReport> {
        progress::check(progress)?;
        // Do not redo spills or long work after a kill; everything else is redone quickly.
        if self.sorter.spills() > 0 || self.checkpoint.elapsed() > CHECKPOINT_EVERY / 6 {
            progress.begin("sealing", None);
            self.seal()?;
        }
        fail_point!("build.sealed");
        self.require_space()?;
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
        let (written, postings) = match self.manifest.written {
            Some(written) => (written, None),
            None => assembly.documents(self.sorter, duplicate)?,
        };
        if self.manifest.written.is_none() && postings.is_none() {
            let files = self.manifest.spill_files(&self.spills);
            self.manifest.written = Some(written);
            self.manifest.last_origin = self.last_origin;
            self.manifest.files.clear();
            self.manifest.write(&self.staging)?;
            fail_point!("build.documents");
            for SpillFile { path, .. } in files {
                fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
            }
        }
        let report = assembly.rest(written, postings)?;
        self.store.finish_build(self.generation, report.documents, written.packed)?;
        fail_point!("build.finished");
        clear(self.store.path())?;
        Ok(report)
    }
}

impl<F: Fingerprint> Builder<F> {
    /// Fails if the disk cannot hold the index and its spill files.
    ///
    /// Builds that fit the memory are not compared, and those of other keys than row numbers only
    /// with half of the estimate, because their keys compress.
    fn require_space(&self) -> Result<()> {
        let files = self.manifest.spill_files(&self.spills);
        let sum = |of: fn(&SpillFile) -> u64| files.iter().map(of).sum::<u64>();
        let (records, spilled) = (sum(|file| file.records), sum(|file| file.bytes));
        let Some(each) = spilled.checked_div(records) else { return Ok(()) };
        let key_bytes = each.saturating_sub(F::BYTES as u64 + 10);
        let documents = records.max(self.store.state()?.documents);
        let needs = DiskNeeds::of(&self.plan, documents, key_bytes);
        let outside = self.spills != self.staging;
        let needed = match key_bytes {
            8 if outside || self.store.header().keeps_features => needs.index,
            8 => needs.peak,
            _ => needs.index / 2,
        };
        DiskNeeds::require(needed, if outside { 0 } else { spilled }, &self.staging)
    }
}

/// Memory for the pushed documents; the rest is for sorting their postings.
fn documents_budget(build: &BuildOptions) -> usize {
    build.memory.max(MIN_MEMORY) / 2
}

/// Removes the staging directory of an index, and its spill files outside.
///
/// Returns the directory outside if it is not this index's; its files stay. A manifest that does
/// not decode names no directory.
pub(super) fn clear(index: &Path) -> Result<Option<PathBuf>> {
    let staging = index.join(STAGING);
    let outside = Manifest::read(&staging).ok().flatten().and_then(|manifest| manifest.outside);
    let left = match outside {
        Some(outside) => outside.clear(index)?,
        None => None,
    };
    // If it is a symbolic link, only the link is removed.
    match fs::remove_dir_all(&staging) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(&staging, error))
        }
        _ => Ok(left),
    }
}
