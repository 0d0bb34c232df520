//! Readers: a snapshot of the index, which any number of threads may search.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::check_features::{Checker, features_of};
use super::deltas::Deltas;
use super::documents::Documents;
use super::postings::expand;
use super::probing::range_bytes;
use super::query::{Explanation, Match, Query, SearchPath, TableExplanation, Work, check_distance};
use super::ranges::{Moment, OfPacks, OfRuns, Ranges};
use super::search::Found;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::committer::Unmerged;
use crate::index::core::{Core, Header};
use crate::index::resident::{self, Resident};
use crate::plan::{Costs, Plan};
use crate::resident::NearFingerprint;
use crate::store::codec::{self, Document, State};
use crate::store::{Family, Postings, Runs, Snapshot, View, counting_reads, keys};

/// A consistent snapshot of an index.
///
/// Later inserts and removals do not show in it. Cloning is cheap, and clones share the snapshot. A
/// reader keeps the space of data that is removed later, until it is dropped.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
/// let before = index.reader()?;
/// index.insert(b"page", 0xff)?;
/// assert!(before.search(0xff)?.is_empty());
/// assert_eq!(index.reader()?.search(0xff)?.len(), 1);
/// # Ok::<(), hamdex::Error>(())
/// ```
pub struct Reader<F> {
    inner: Arc<Inner<F>>,
}

struct Inner<F> {
    core: Arc<Core>,
    snapshot: Arc<Snapshot>,
    documents: u64,
    /// Holds every fingerprint that the snapshot has outside of runs, and possibly more.
    unmerged: Unmerged<F>,
    /// Holds everything that the snapshot holds, and possibly more.
    resident: Option<Arc<Resident<F>>>,
    /// As of the snapshot, or older: what has left memory since is in them.
    runs: Arc<Runs>,
    ranges: Arc<Ranges<F>>,
    moment: Moment,
    /// Spare cursors.
    postings: Mutex<Vec<Postings>>,
}

impl<F> Clone for Reader<F> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<F> std::fmt::Debug for Reader<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("header", &self.inner.core.header)
            .field("documents", &self.inner.documents)
            .finish_non_exhaustive()
    }
}

impl<F: Fingerprint> Reader<F> {
    /// `runs` may be older than the snapshot if `unmerged` holds what was merged since.
    pub(in crate::index) fn new(
        core: Arc<Core>,
        snapshot: Arc<Snapshot>,
        unmerged: Unmerged<F>,
        resident: Option<Arc<Resident<F>>>,
        runs: Option<Arc<Runs>>,
        (ranges, moment): (Arc<Ranges<F>>, Moment),
    ) -> Result<Self> {
        let documents = State::of(&snapshot)?.documents;
        let runs = runs.unwrap_or_else(|| {
            let at_once = range_bytes::<F>(&core.plan, documents);
            Arc::new(Runs::new(Arc::clone(&snapshot), at_once, moment.runs))
        });
        let postings = Mutex::default();
        Ok(Self {
            inner: Arc::new(Inner {
                core,
                snapshot,
                documents,
                unmerged,
                resident,
                runs,
                ranges,
                moment,
                postings,
            }),
        })
    }

    /// Returns the runs, which later readers may share.
    pub(in crate::index) fn runs(&self) -> &Arc<Runs> {
        &self.inner.runs
    }

    /// Returns what memory holds of the unmerged fingerprints. Reads them first, if it has to.
    pub(in crate::index) fn unmerged(&self) -> Result<&Unmerged<F>> {
        let unmerged = &self.inner.unmerged;
        unmerged.read_once(|most| Deltas::some(self.snapshot(), self.plan().tables(), most))?;
        Ok(unmerged)
    }

    pub(in crate::index) fn resident(&self) -> Option<&Resident<F>> {
        self.inner.resident.as_deref()
    }

    /// Returns the costs by which searches and joins choose their way.
    pub(crate) fn costs(&self) -> Costs {
        self.inner.core.costs
    }

    pub(super) fn core(&self) -> &Core {
        &self.inner.core
    }

    /// Returns the ranges of the reader's runs that are in memory.
    pub(super) fn ranges(&self) -> OfRuns<'_, F> {
        self.inner.ranges.of_runs(self.inner.runs.number())
    }

    /// Returns the ranges of the snapshot's packs that are in memory.
    pub(super) fn packs(&self) -> OfPacks<'_, F> {
        self.inner.ranges.of_packs(self.inner.moment.packs)
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.inner.snapshot
    }

    /// Returns the number of stored documents.
    pub fn len(&self) -> u64 {
        self.inner.documents
    }

    /// Returns true if no document is stored.
    pub fn is_empty(&self) -> bool {
        self.inner.documents == 0
    }

    /// Returns the settings that were fixed when the index was created.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// let reader = index.reader()?;
    /// assert_eq!((reader.header().distance, reader.plan().tables().len()), (3, 4));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn header(&self) -> &Header {
        &self.inner.core.header
    }

    /// Returns the plan of the permutation tables.
    pub fn plan(&self) -> &Plan {
        &self.inner.core.plan
    }

    /// Returns the fingerprint of a document, or `None` if it is not stored.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let reader = index.reader()?;
    /// index.remove(b"page")?;
    /// assert_eq!(reader.get(b"page")?, Some(0xff));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidKey`](crate::Error::InvalidKey), and an error on damage or a failure of the
    /// store.
    pub fn get(&self, key: &[u8]) -> Result<Option<F>> {
        keys::check_document(key)?;
        match self.inner.snapshot.get(Family::Docs, key)? {
            Some(bytes) => {
                codec::decode::<Document<F>>("docs", key, &bytes).map(|d| Some(d.fingerprint))
            }
            None => Ok(None),
        }
    }

    /// Returns the encoded feature set of a document, or `None` if it has none.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.reader()?.features(b"page")?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidKey`](crate::Error::InvalidKey), and an error on damage or a failure of the
    /// store.
    pub fn features(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        keys::check_document(key)?;
        features_of::<F>(&self.inner.snapshot, key)
    }

    /// Returns every document within the distance, nearest first, then by key.
    ///
    /// If the query requests a check, only documents that pass it are returned. Searches that are
    /// expected to take long use all threads of rayon's current pool. While files are slow, ranges
    /// and postings are read on up to eight threads of the handle, which wait together.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let matches = index.reader()?.search(0xfe)?;
    /// assert_eq!((&matches[0].key[..], matches[0].distance), (&b"page"[..], 1));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidDistance`](crate::Error::InvalidDistance) above a quarter of the width, and
    /// an error on damage or a failure of the store. With a check also returns
    /// [`NoFeatureSets`](crate::Error::NoFeatureSets) if the index keeps none,
    /// [`NoFeatureSet`](crate::Error::NoFeatureSet) if a near document has none, and
    /// [`InvalidOption`](crate::Error::InvalidOption) for a check of texts, a threshold out of
    /// range or evidence that does not decode.
    pub fn search(&self, query: impl Into<Query<F>>) -> Result<Vec<Match<F>>> {
        self.with_view(|view| self.answer(view, &query.into()))
    }

    /// Searches, and reports expected and actual cost with the answer.
    ///
    /// Reads the store, also what [`Reader::search`] would find in memory of earlier searches.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let explanation = index.reader()?.explain(0xfe)?;
    /// assert_eq!((explanation.distance, explanation.matches.len()), (3, 1));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::search`].
    pub fn explain(&self, query: impl Into<Query<F>>) -> Result<Explanation<F>> {
        let query = query.into();
        let distance = query.effective_distance(self.inner.core.header.distance)?;
        // The search may find skewed prefixes. Report what was expected before it.
        let choice = self.choose(&query, distance)?;
        let mut work = Work { count_blocks: true, ..Work::default() };
        let start = Instant::now();
        let (found, of_documents) = self.with_view(|view| {
            let found = self.find(view, &query, distance, &mut work)?;
            let (expanded, blocks) = counting_reads(|| self.expand(view, &found, &query, None));
            Ok((expanded?, blocks))
        })?;
        let actual = start.elapsed();
        let mut tables = work.tables;
        let (costs, entries) = (&self.inner.core.costs, self.inner.documents);
        let of_documents_nanos = costs.documents_nanos(F::BITS, distance, entries);
        let account = self.resident().map(|held| held.account(query.fingerprint, distance));
        if let (SearchPath::Resident, Some(account)) = (choice.path, &account) {
            tables.extend(account.tables.iter().enumerate().map(TableExplanation::of_memory));
        }
        let candidates = tables.iter().map(|table| table.candidates).sum();
        let blocks = of_documents + tables.iter().map(|table| table.blocks).sum::<u64>();
        Ok(Explanation {
            plan: self.inner.core.plan.to_string(),
            path: choice.path,
            distance,
            tables,
            entries,
            predicted: nanos(choice.tables_nanos + of_documents_nanos),
            predicted_scan: nanos(choice.scan_nanos + of_documents_nanos),
            predicted_resident: account.map(|found| nanos(found.nanos + of_documents_nanos)),
            actual,
            candidates,
            blocks,
            matches: found,
        })
    }

    /// Returns every distinct fingerprint within the distance, nearest first.
    ///
    /// Fingerprints at the same distance are ascending. Looks up no documents if none are unmerged,
    /// so this is the fastest search.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// index.insert(b"copy", 0xff)?;
    /// assert_eq!(index.reader()?.near(0xfe, 3)?.len(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidDistance`](crate::Error::InvalidDistance) above a quarter of the width, and
    /// an error on damage or a failure of the store.
    pub fn near(&self, fingerprint: F, distance: u32) -> Result<Vec<NearFingerprint<F>>> {
        check_distance::<F>(distance)?;
        let Some(resident) = self.resident() else {
            return self.near_by(fingerprint, distance, SearchPath::Auto);
        };
        if let Some(tables) = resident.clean() {
            return tables.search(fingerprint, distance);
        }
        let held = resident.find(&[fingerprint], distance)?.into_iter().next();
        let held = held.expect("an answer for each query");
        self.with_view(|view| resident::only_stored(view, held))
    }

    /// Drops fingerprints without a document, which delta entries or memory beside runs may add.
    pub(super) fn only_stored(
        &self,
        view: &mut View,
        found: Vec<Found<F>>,
    ) -> Result<Vec<NearFingerprint<F>>> {
        let mut dirty = Vec::new();
        if !self.inner.unmerged.is_merged() {
            dirty.extend(found.iter().map(|(_, fingerprint)| *fingerprint));
            dirty.sort_unstable();
        }
        resident::only_stored(view, resident::Held { found, dirty })
    }

    /// Forgets skewed prefixes and kept ranges, so that searches read them again.
    pub(crate) fn forget(&self) {
        self.core().skewed.forget();
        self.inner.ranges.clear();
    }

    /// Like [`Reader::near`], but reads the store, by the path.
    pub(crate) fn near_by(
        &self,
        fingerprint: F,
        distance: u32,
        path: SearchPath,
    ) -> Result<Vec<NearFingerprint<F>>> {
        let query = Query::new(fingerprint).path(path);
        self.with_view(|view| {
            let found = self.find(view, &query, distance, &mut Work::default())?;
            self.only_stored(view, found)
        })
    }

    /// Iterates over all documents in ascending order of keys.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.reader()?.documents()?.count(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns failures of the store. Damage is returned as an item of the iterator.
    pub fn documents(&self) -> Result<Documents<F>> {
        Ok(Documents::new(Arc::clone(&self.inner.snapshot)))
    }

    pub(crate) fn answer(&self, view: &mut View, query: &Query<F>) -> Result<Vec<Match<F>>> {
        let distance = query.effective_distance(self.inner.core.header.distance)?;
        let found = self.find(view, query, distance, &mut Work::default())?;
        self.expand(view, &found, query, Some(self.packs()))
    }

    /// Returns the documents of fingerprints that pass the check, nearest first, then by key.
    ///
    /// Without `packs`, reads all postings from the store, on this thread.
    pub(in crate::index) fn expand(
        &self,
        view: &mut View,
        found: &[Found<F>],
        query: &Query<F>,
        packs: Option<OfPacks<'_, F>>,
    ) -> Result<Vec<Match<F>>> {
        let inner = &*self.inner;
        let checker = Checker::new(&inner.snapshot, &inner.core.header, query.verification)?;
        let ahead = |found: &[Found<F>]| {
            if packs.is_some() {
                self.read_ahead(found);
            }
        };
        let Some(checker) = checker else {
            return expand(view, found, query.limit, packs, ahead, |_, _| Ok(Some(None)));
        };
        Checker::require_evidence(&query.evidence)?;
        expand(view, found, query.limit, packs, ahead, |key, distance| {
            let stored = checker.evidence::<F>(key)?;
            Ok(checker.compare(distance, &query.evidence, &stored, key)?.map(Some))
        })
    }

    /// Passes pooled cursors to `body`, or new ones if all are in use.
    pub(crate) fn with_view<R>(&self, body: impl FnOnce(&mut View) -> Result<R>) -> Result<R> {
        let Inner { snapshot, runs, postings, .. } = &*self.inner;
        let spare = || postings.lock().unwrap_or_else(PoisonError::into_inner);
        let pooled = spare().pop();
        let pooled = pooled.unwrap_or_else(|| Postings::new(Arc::clone(snapshot)));
        let mut view = View::new(runs, pooled);
        let result = body(&mut view);
        spare().push(view.close(runs));
        result
    }
}

/// Converts nanoseconds, and limits them to ten thousand years.
pub(super) fn nanos(nanos: f64) -> Duration {
    Duration::from_secs_f64((nanos / 1e9).clamp(0.0, 3e11))
}
