//! Secondaries: an index that another process writes, read along.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::core::plan_of;
use super::{Header, Index, Match, OpenOptions, Query, Reader};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::store::Store;

/// A reader of an index that another process goes on writing.
///
/// It shows the index as it was at the last [`Secondary::catch_up`]: always whole batches, and
/// never less than what was acknowledged before that call. Searches go on while it catches up.
/// It takes no lock, and any number of them may follow one writer. Bulk builds are followed too:
/// until one is finished the old documents are seen, from then on the new ones.
///
/// Every table file is held open; mind the system's limit of open files.
///
/// ```
/// use hamdex::{Index, IndexOptions, Secondary};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path();
/// let primary = Index::<u64>::create(path, &IndexOptions::new())?;
/// let secondary = Secondary::<u64>::open(path)?;
/// primary.insert(b"page", 0xff)?;
/// assert!(secondary.search(0xff)?.is_empty());
/// secondary.catch_up()?;
/// assert_eq!(secondary.search(0xff)?.len(), 1);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Secondary<F: Fingerprint> {
    path: PathBuf,
    options: OpenOptions,
    current: RwLock<Arc<Index<F>>>,
    /// What was current before; the next to move on, once nobody reads from it any more.
    spare: Mutex<Option<Arc<Store>>>,
}

impl<F: Fingerprint> Secondary<F> {
    /// Opens an index for reading along.
    ///
    /// # Errors
    ///
    /// As [`Index::open_read_only`], but for an unfinished build, which is passed over.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::new())
    }

    /// Opens an index for reading along, with settings.
    ///
    /// The memory budget is for each of two states, of which one is read while the other catches
    /// up. Resident fingerprints are loaded anew by each catching up.
    ///
    /// # Errors
    ///
    /// As [`Secondary::open`], and [`HeaderMismatch`](crate::Error::HeaderMismatch) for what was
    /// expected and differs.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let options = options.clone().read_only(true);
        let current = open(&path, &options)?;
        let current = RwLock::new(Arc::new(current));
        Ok(Self { path, options, current, spare: Mutex::new(None) })
    }

    /// Takes in everything that was written since the last call.
    ///
    /// Returns whether there was anything. Costs what reading the new entries of the log costs
    /// while the writer only logs, and as much as opening after it has written table files: by a
    /// flush, a compaction or a build.
    ///
    /// # Errors
    ///
    /// As [`Secondary::open`]. The state of before stays and goes on answering.
    pub fn catch_up(&self) -> Result<bool> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match spare.take().and_then(Arc::into_inner).map(|store| self.moved(store)) {
            Some(Ok(Some(index))) => index,
            // Somebody still holds the spare one, or the writer has written files since.
            _ => open(&self.path, &self.options)?,
        };
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = next.shared.store.sequence() != current.shared.store.sequence();
        *spare = Some(Arc::clone(&current.shared.store));
        *current = Arc::new(next);
        Ok(changed)
    }

    /// Moves a store on; `None` when it has to be opened anew.
    fn moved(&self, mut store: Store) -> Result<Option<Index<F>>> {
        if !store.catch_up()? {
            return Ok(None);
        }
        let plan = plan_of(store.header())?;
        Index::over(store, plan, &self.options).map(Some)
    }

    /// Returns the present state, an index for reading only.
    ///
    /// It stays as it is for as long as it is held, whatever is caught up with meanwhile.
    pub fn index(&self) -> Arc<Index<F>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Freezes the present state for reading.
    ///
    /// # Errors
    ///
    /// Damage or failures of the store.
    pub fn reader(&self) -> Result<Reader<F>> {
        self.index().reader()
    }

    /// Finds every document within the distance, nearest first, then by key.
    ///
    /// # Errors
    ///
    /// As [`Reader::search`].
    pub fn search(&self, query: impl Into<Query<F>>) -> Result<Vec<Match<F>>> {
        self.reader()?.search(query)
    }

    /// Returns the fingerprint of a document, `None` when it is not stored.
    ///
    /// # Errors
    ///
    /// As [`Reader::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<F>> {
        self.reader()?.get(key)
    }
}

fn open<F: Fingerprint>(path: &Path, options: &OpenOptions) -> Result<Index<F>> {
    let mut plan: Option<Plan> = None;
    let scratch = options.scratch.as_deref();
    let store = Store::open_secondary(path, scratch, options.memory, |record| {
        let header = Header::of(record);
        header.require_width::<F>()?;
        options.require(&header)?;
        Ok(plan.insert(plan_of(record)?).tables().len())
    })?;
    let plan = plan.expect("opening reads the header");
    Index::over(store, plan, options)
}
