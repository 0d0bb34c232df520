//! Secondaries: a read-only index that follows another process while it writes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::core::plan_of;
use super::health::Event;
use super::{Index, IndexOptions, Match, Query, Reader};
use crate::error::Result;
use crate::exclusion::Lock;
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::store::{Opening, Store};

/// A read-only index that follows the process that writes it.
///
/// It shows the index as of the last [`Secondary::catch_up`]: only whole batches, and at least all
/// that were acknowledged before that call. Searches continue while it catches up. It takes no
/// lock, and any number of secondaries may follow one writer. Until a bulk build is finished they
/// show the old documents, then the new ones.
///
/// Every table file is kept open, so the limit of open files must allow it.
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
    options: IndexOptions,
    current: RwLock<Current<F>>,
    spare: Lock<Spare>,
}

/// The state that searches read.
#[derive(Debug)]
struct Current<F: Fingerprint> {
    index: Arc<Index<F>>,
    /// Number of the call that made it.
    turn: u64,
}

/// The previous state, advanced next, once no reader uses it.
#[derive(Debug, Default)]
struct Spare {
    store: Option<Arc<Store>>,
    /// Number of calls.
    turn: u64,
}

impl<F: Fingerprint> Secondary<F> {
    /// Opens an index as a secondary.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::open_read_only`], but ignores an unfinished build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &IndexOptions::new())
    }

    /// Opens an index as a secondary with the given settings.
    ///
    /// The memory budget applies to each of two states: one is read while the other catches up.
    /// Each catch-up loads resident fingerprints again, and the next search reads the delta entries.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions, Secondary};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let writer = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// let options = IndexOptions::new().memory(64 << 20).scratch(directory.path());
    /// let secondary = Secondary::<u64>::open_with(&path, &options)?;
    /// assert!(!secondary.catch_up()?);
    /// # drop(writer);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Secondary::open`], and
    /// [`HeaderMismatch`](crate::Error::HeaderMismatch) if a setting differs from the expected one.
    pub fn open_with(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let options = options.clone().read_only(true);
        let (store, plan) = open_store::<F>(&path, &options)?;
        let index = Arc::new(Index::over(store, plan, &options)?);
        let current = RwLock::new(Current { index, turn: 0 });
        Ok(Self { path, options, current, spare: Lock::default() })
    }

    /// Applies everything that was written since the last call.
    ///
    /// Returns whether there was anything. Reads the new entries of the log, or opens the index
    /// again if the writer wrote table files by a flush, a compaction or a build. Concurrent calls
    /// take turns, except for loading resident fingerprints.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions, Secondary};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let writer = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// let secondary = Secondary::<u64>::open(&path)?;
    /// writer.insert(b"page", 0xff)?;
    /// assert!(secondary.catch_up()?);
    /// assert_eq!(secondary.get(b"page")?, Some(0xff));
    /// assert_eq!(secondary.index().stats(&())?.documents, 1);
    /// assert_eq!(secondary.reader()?.len(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Secondary::open`]. The previous state then continues to answer.
    pub fn catch_up(&self) -> Result<bool> {
        let (before, events) = (self.index().shared.store.sequence(), &self.options.events);
        let began = events.began();
        // Loading into memory uses all threads, so hold no lock meanwhile.
        let (store, plan, turn, reopened) = {
            let mut spare = self.spare.lock();
            spare.turn += 1;
            let moved = match spare.store.take().and_then(Arc::into_inner) {
                // If the error is permanent, opening again returns it.
                Some(store) => moved(store).unwrap_or(None),
                None => None,
            };
            // A reader still uses the spare state, or the writer has written table files.
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
                // A later call has already finished.
                return Ok(current.index.shared.store.sequence() != before);
            }
            std::mem::replace(&mut *current, Current { index: Arc::clone(&next), turn })
        };
        self.spare.lock().store = Some(Arc::clone(&last.index.shared.store));
        events.ended(began, |took| Event::CaughtUp { reopened, took });
        Ok(next.shared.store.sequence() != before)
    }

    /// Returns the current state as a read-only index.
    ///
    /// It does not change while it is held, even if the secondary catches up.
    pub fn index(&self) -> Arc<Index<F>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).index)
    }

    /// Returns a snapshot of the current state for reading.
    ///
    /// # Errors
    ///
    /// Returns an error on damage or a failure of the store.
    pub fn reader(&self) -> Result<Reader<F>> {
        self.index().reader()
    }

    /// Returns every document within the distance, nearest first, then by key.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::search`].
    pub fn search(&self, query: impl Into<Query<F>>) -> Result<Vec<Match<F>>> {
        self.reader()?.search(query)
    }

    /// Returns the fingerprint of a document, or `None` if it is not stored.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<F>> {
        self.reader()?.get(key)
    }
}

/// Advances a store. Returns `None` if it has to be opened again.
fn moved(mut store: Store) -> Result<Option<(Store, Plan)>> {
    if !store.catch_up()? {
        return Ok(None);
    }
    let plan = plan_of(store.header())?;
    Ok(Some((store, plan)))
}

fn open_store<F: Fingerprint>(path: &Path, options: &IndexOptions) -> Result<(Store, Plan)> {
    let opening = Opening::to_follow(path, options.scratch.as_deref(), options.memory)?;
    let plan = options.plan_of::<F>(opening.header())?;
    let store = opening.with_tables(plan.tables().len())?;
    Ok((store, plan))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::store::codec::HeaderRecord;

    #[test]
    fn a_header_that_the_writer_changes_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let writer = Index::<u64>::create(&path, &IndexOptions::new()).unwrap();
        let secondary = Secondary::<u64>::open(&path).unwrap();
        let store = &writer.shared.store;
        let state = |format| {
            let mut batch = store.batch().unwrap();
            batch.put_header(&HeaderRecord { format, ..store.header().clone() });
            batch.commit().unwrap();
            // The first one advances the state that the next one reads.
            let results = [secondary.catch_up(), secondary.catch_up()];
            results.map(|result| result.map(|_| secondary.index().header().format))
        };
        assert!(state(3).into_iter().all(|found| found.unwrap() == 3));
        for found in state(9) {
            assert!(matches!(found, Err(Error::FormatVersion { stored: 9, .. })), "{found:?}");
        }
        assert_eq!(secondary.index().header().format, 3, "the last one that could be read");
    }
}
