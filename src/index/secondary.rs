//! Secondaries: an index that another process writes, read along.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::core::plan_of;
use super::health::Event;
use super::{Header, Index, Match, OpenOptions, Query, Reader};
use crate::error::Result;
use crate::exclusion::Lock;
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
    current: RwLock<Current<F>>,
    spare: Lock<Spare>,
}

/// What searches read.
#[derive(Debug)]
struct Current<F: Fingerprint> {
    index: Arc<Index<F>>,
    /// Of the call that made it.
    turn: u64,
}

/// What was current before; the next to move on, once nobody reads from it any more.
#[derive(Debug, Default)]
struct Spare {
    store: Option<Arc<Store>>,
    /// Counts the calls.
    turn: u64,
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
        let (store, plan) = open_store::<F>(&path, &options)?;
        let index = Arc::new(Index::over(store, plan, &options)?);
        let current = RwLock::new(Current { index, turn: 0 });
        Ok(Self { path, options, current, spare: Lock::default() })
    }

    /// Takes in everything that was written since the last call.
    ///
    /// Returns whether there was anything. Costs what reading the new entries of the log costs
    /// while the writer only logs, and as much as opening after it has written table files: by a
    /// flush, a compaction or a build. Calls at the same time take turns, but for loading.
    ///
    /// # Errors
    ///
    /// As [`Secondary::open`]. The state of before stays and goes on answering.
    pub fn catch_up(&self) -> Result<bool> {
        let (before, events) = (self.index().shared.store.sequence(), &self.options.events);
        let began = events.began();
        // Loading into memory is for all threads, so nothing is held meanwhile.
        let (store, plan, turn, reopened) = {
            let mut spare = self.spare.lock();
            spare.turn += 1;
            let moved = match spare.store.take().and_then(Arc::into_inner) {
                // An error is that of opening, if it lasts.
                Some(store) => moved(store).unwrap_or(None),
                None => None,
            };
            // Somebody still holds the spare one, or the writer has written files since.
            let reopened = moved.is_none();
            let (store, plan) = match moved {
                Some(moved) => moved,
                None => open_store::<F>(&self.path, &self.options)?,
            };
            (store, plan, spare.turn, reopened)
        };
        let next = Arc::new(Index::over(store, plan, &self.options)?);
        let last = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            if current.turn > turn {
                // Another call that began later has ended before this one.
                return Ok(current.index.shared.store.sequence() != before);
            }
            std::mem::replace(&mut *current, Current { index: Arc::clone(&next), turn })
        };
        self.spare.lock().store = Some(Arc::clone(&last.index.shared.store));
        events.ended(began, |took| Event::CaughtUp { reopened, took });
        Ok(next.shared.store.sequence() != before)
    }

    /// Returns the present state, an index for reading only.
    ///
    /// It stays as it is for as long as it is held, whatever is caught up with meanwhile.
    pub fn index(&self) -> Arc<Index<F>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).index)
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

/// Moves a store on; `None` when it has to be opened anew.
fn moved(mut store: Store) -> Result<Option<(Store, Plan)>> {
    if !store.catch_up()? {
        return Ok(None);
    }
    let plan = plan_of(store.header())?;
    Ok(Some((store, plan)))
}

fn open_store<F: Fingerprint>(path: &Path, options: &OpenOptions) -> Result<(Store, Plan)> {
    let mut plan: Option<Plan> = None;
    let scratch = options.scratch.as_deref();
    let store = Store::open_secondary(path, scratch, options.memory, |record| {
        let header = Header::of(record);
        header.require_width::<F>()?;
        options.require(&header)?;
        Ok(plan.insert(plan_of(record)?).tables().len())
    })?;
    Ok((store, plan.expect("opening reads the header")))
}
