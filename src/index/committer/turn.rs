//! Turns: from the writer lock until a batch is finished.

use std::sync::Arc;

use super::Committer;
use super::flights::Flight;
use super::journal::{Entry, Noted};
use crate::error::Result;
use crate::exclusion::{Held, Locked};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::read::reader::Reader;
use crate::store::keys::Delta;
use crate::store::{Batch, delta_run};
use crate::sync;
#[cfg(feature = "rocksdb-interop")]
use crate::{exclusion, store::HostBatch};

/// The turn to write: what is read of the store stays valid until it ends.
///
/// Batches of documents under new keys may still be in flight.
pub(in crate::index) struct Turn<'s, F: Fingerprint> {
    committer: &'s Committer<F>,
    writer: Locked<'s, ()>,
}

/// The changes of a batch.
pub(in crate::index) struct Appended<F> {
    /// Fingerprints of all documents that are added, removed or changed, without duplicates.
    pub(in crate::index) changed: Vec<F>,
    /// How many of them get delta entries.
    pub(in crate::index) delta_entries: usize,
    /// Fingerprints that lose their last document, and with it their table entries.
    pub(in crate::index) orphans: Vec<F>,
    pub(in crate::index) inserted: u64,
    pub(in crate::index) removed: u64,
    /// Hashes of the keys.
    pub(in crate::index) keys: Arc<[u64]>,
    /// Whether all of them are new.
    pub(in crate::index) adds_only: bool,
}

/// An announced batch, ready to be committed. Dropping it changes nothing.
pub(in crate::index) struct Ready<'s, F: Fingerprint> {
    committer: &'s Committer<F>,
    batch: Batch<'s>,
    hold: Hold<'s, F>,
}

/// What keeps the data valid from which a batch was staged.
enum Hold<'s, F> {
    /// Other batches may add documents under other keys.
    Beside { _noted: Noted<'s, F>, _flight: Flight<'s>, _held: Held },
    /// No other batch is written meanwhile.
    Alone { noted: Option<Noted<'s, F>>, _writer: Locked<'s, ()> },
}

impl<'s, F: Fingerprint> Turn<'s, F> {
    pub(super) fn begin(committer: &'s Committer<F>) -> Self {
        Self { committer, writer: committer.writer.lock() }
    }

    /// Waits until none of the keys with these hashes is in flight.
    pub(in crate::index) fn wait_for(&self, keys: &[u64]) {
        self.committer.flights.wait_for(keys);
    }

    /// Waits until nothing is in flight.
    pub(in crate::index) fn wait_for_all(&self) {
        self.committer.flights.wait_for_all();
    }

    /// Returns a reader of everything that finished batches wrote.
    pub(in crate::index) fn read(&self) -> Result<Reader<F>> {
        self.committer.read()
    }

    /// Stages delta runs of fingerprints that are added, and of orphans, both distinct.
    pub(in crate::index) fn stage_deltas(
        &self,
        batch: &mut Batch<'_>,
        added: &[F],
        orphans: &[F],
    ) -> Result<()> {
        let committer = self.committer;
        let Some(table) = committer.core.plan.tables().first() else { return Ok(()) };
        for (fingerprints, delta) in [(added, Delta::Added), (orphans, Delta::Removed)] {
            let members = fingerprints.iter().map(|member| table.permutation().apply(*member));
            let mut members: Vec<F> = members.collect();
            members.sort_unstable();
            for members in members.chunks(delta_run::MOST_MEMBERS) {
                let name = delta_run::Name { number: committer.folds.next_run(), delta };
                batch.put_delta_run(name, members)?;
            }
        }
        Ok(())
    }

    /// Continues with a batch that changes nothing in the index.
    pub(in crate::index) fn pass(self, batch: Batch<'s>) -> Ready<'s, F> {
        let hold = Hold::Alone { noted: None, _writer: self.writer };
        Ready { committer: self.committer, batch, hold }
    }

    /// Begins a flight of a batch that adds no documents.
    pub(super) fn take_off(&self) -> Flight<'s> {
        self.committer.flights.take_off(Arc::default())
    }

    /// Commits a batch that changes where entries are stored, and no answer.
    ///
    /// The turn must have waited for everything in flight.
    pub(in crate::index) fn move_entries(self, batch: Batch<'s>) -> Result<()> {
        let Self { writer, .. } = self;
        fail_point!("repack.staged");
        sync::pause();
        batch.commit()?;
        fail_point!("repack.logged");
        drop(writer);
        Ok(())
    }

    /// Counts the documents and announces the changes of a batch.
    ///
    /// Releases the writer lock at once if every key is new.
    pub(in crate::index) fn announce(
        self,
        mut batch: Batch<'s>,
        appended: Appended<F>,
    ) -> Result<Ready<'s, F>> {
        let Appended { changed, delta_entries, orphans, inserted, removed, keys, adds_only } =
            appended;
        let committer = self.committer;
        let flight = adds_only.then(|| committer.flights.take_off(Arc::clone(&keys)));
        if let Some(lane) = flight.as_ref().map(Flight::lane) {
            batch.put_lane(lane, committer.store.lane(lane)?.saturating_add(inserted));
        } else {
            let mut state = committer.store.state()?;
            state.documents = (state.documents + inserted).saturating_sub(removed);
            batch.put_state(&state);
        }
        let changed = Arc::new(changed);
        let noted = committer.journal.note(Entry { fingerprints: Arc::clone(&changed), keys });
        let added = changed.get(..delta_entries).expect("they come first");
        committer.folds.announce(added.len() + orphans.len());
        let mut published = committer.published();
        published.unmerged.add(added, !orphans.is_empty());
        if let Some(resident) = &published.resident {
            // If memory is missing, searches read the store from now on.
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
    /// Commits the batch if it changes anything, then publishes and finishes it.
    ///
    /// The batch survives the end of the process, not yet a power loss.
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
        // Calls that wait for this batch search at once and must see it. Even a failed write may
        // have changed something.
        committer.withdraw();
        committer.serve_merge();
        drop(hold);
        committer.core.events.wrote(began);
        committer.build_wanted();
        committed
    }

    /// Lets a host commit the batch, then publishes and finishes it.
    #[cfg(feature = "rocksdb-interop")]
    pub(in crate::index) fn commit_by<R>(self, write: impl FnOnce(HostBatch) -> R) -> R {
        let Self { committer, batch, hold } = self;
        let written = exclusion::lend(|| write(batch.into_host()));
        committer.withdraw();
        drop(hold);
        committer.build_wanted();
        written
    }
}
