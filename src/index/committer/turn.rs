//! Turns: from the writer lock to the moment at which a batch has landed.

use std::sync::Arc;

use super::Committer;
use super::flights::Flight;
use super::journal::Noted;
use crate::error::Result;
use crate::exclusion::{Held, Locked};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::reader::Reader;
use crate::store::Batch;
use crate::sync;
#[cfg(feature = "rocksdb-interop")]
use crate::{exclusion, store::HostBatch};

/// The turn to write: what is read of the store stays true until it ends.
///
/// Batches of documents under new keys may still be on their way.
pub(in crate::index) struct Turn<'s, F: Fingerprint> {
    committer: &'s Committer<F>,
    writer: Locked<'s, ()>,
}

/// What a batch changes.
pub(in crate::index) struct Appended<F> {
    /// Fingerprints of all documents that come, go or change, once each.
    pub(in crate::index) changed: Vec<F>,
    /// How many of them get singles.
    pub(in crate::index) singles: usize,
    /// Those that lose their last document, and with it their entries in the tables.
    pub(in crate::index) orphans: Vec<F>,
    pub(in crate::index) inserted: u64,
    pub(in crate::index) removed: u64,
    /// Hashes of the keys, if all of them are new and get documents.
    pub(in crate::index) new_keys: Option<Vec<u64>>,
}

/// A batch that is announced, to be committed; dropped, it never was.
pub(in crate::index) struct Ready<'s, F: Fingerprint> {
    committer: &'s Committer<F>,
    batch: Batch<'s>,
    hold: Hold<'s, F>,
}

/// What keeps true what a batch was staged by.
enum Hold<'s, F> {
    /// Others may add documents under other keys meanwhile.
    Beside { _noted: Noted<'s, F>, _flight: Flight<'s>, _held: Held },
    /// Nobody else writes meanwhile.
    Alone { noted: Option<Noted<'s, F>>, _writer: Locked<'s, ()> },
}

impl<'s, F: Fingerprint> Turn<'s, F> {
    pub(super) fn begin(committer: &'s Committer<F>) -> Self {
        Self { committer, writer: committer.writer.lock() }
    }

    /// Waits until none of the keys, told by their hashes, is on its way.
    pub(in crate::index) fn wait_for(&self, keys: &[u64]) {
        self.committer.flights.wait_for(keys);
    }

    /// Waits until nothing is on its way.
    pub(in crate::index) fn wait_for_all(&self) {
        self.committer.flights.wait_for_all();
    }

    /// Reads what all batches that have landed left.
    pub(in crate::index) fn read(&self) -> Result<Reader<F>> {
        self.committer.read()
    }

    /// Goes on with a batch that changes nothing of the index's.
    pub(in crate::index) fn pass(self, batch: Batch<'s>) -> Ready<'s, F> {
        let hold = Hold::Alone { noted: None, _writer: self.writer };
        Ready { committer: self.committer, batch, hold }
    }

    /// Counts the documents and announces what a batch will change.
    ///
    /// Ends the turn of others' waiting at once where every key is new.
    pub(in crate::index) fn announce(
        self,
        mut batch: Batch<'s>,
        appended: Appended<F>,
    ) -> Result<Ready<'s, F>> {
        let Appended { changed, singles, orphans, inserted, removed, new_keys } = appended;
        let committer = self.committer;
        let flight = new_keys.map(|keys| committer.flights.take_off(keys));
        if let Some(lane) = flight.as_ref().map(Flight::lane) {
            batch.put_lane(lane, committer.store.lane(lane)?.saturating_add(inserted));
        } else {
            let mut state = committer.store.state()?;
            state.documents = (state.documents + inserted).saturating_sub(removed);
            batch.put_state(&state);
        }
        let changed = Arc::new(changed);
        let noted = committer.journal.note(Arc::clone(&changed));
        committer.folds.announce(singles as u64, &orphans);
        let mut published = committer.published();
        published.singles |= singles > 0;
        if let Some(resident) = &published.resident {
            // Without memory for it searches go by the store from now on.
            published.resident = resident.mark_dirty(&changed).map(Arc::new);
        }
        drop(published);
        let hold = match flight {
            Some(flight) => Hold::Beside { _noted: noted, _flight: flight, _held: Held::new() },
            None => Hold::Alone { noted: Some(noted), _writer: self.writer },
        };
        Ok(Ready { committer, batch, hold })
    }
}

impl<F: Fingerprint> Ready<'_, F> {
    /// Commits the batch, if it changes anything, shows it to readers and lets it land.
    ///
    /// It survives the process from then on, not yet a loss of power.
    pub(in crate::index) fn commit(self) -> Result<()> {
        let Self { committer, batch, hold } = self;
        if matches!(hold, Hold::Alone { noted: None, .. }) {
            return Ok(());
        }
        let began = committer.core.events.began();
        let commit = || {
            match &hold {
                Hold::Beside { .. } => {
                    fail_point!("insert.staged");
                    sync::pause();
                    batch.commit()?;
                    fail_point!("insert.logged");
                }
                Hold::Alone { .. } => {
                    fail_point!("replace.staged");
                    sync::pause();
                    batch.commit()?;
                    fail_point!("replace.logged");
                }
            }
            Ok(())
        };
        let committed = commit();
        // Whoever waits for it to land searches at once, and has to see it. Even a write that
        // failed may have changed something.
        committer.withdraw();
        drop(hold);
        committer.core.events.wrote(began);
        committer.merge_resident();
        committed
    }

    /// Has a host commit the batch, and shows it to readers and lets it land.
    #[cfg(feature = "rocksdb-interop")]
    pub(in crate::index) fn commit_by<R>(self, write: impl FnOnce(HostBatch) -> R) -> R {
        let Self { committer, batch, hold } = self;
        let written = exclusion::lend(|| write(batch.into_host()));
        committer.withdraw();
        drop(hold);
        committer.merge_resident();
        written
    }
}
