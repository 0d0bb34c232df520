//! Attached indexes: an index in a host's database, written by the host's batches.

use std::sync::Arc;

use super::write::Outcome;
use super::write::steps::Step;
use super::{Durability, Index, IndexOptions, Match, Reader, new_header};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::store::{Db, HostBatch, HostSnapshot, Opening, Store};

/// A host's batch with an index's changes, and the counts of these changes.
pub(crate) struct Done<F> {
    pub(crate) batch: HostBatch,
    pub(crate) inserted: u64,
    pub(crate) replaced: u64,
    pub(crate) removed: u64,
    /// For every step the document near which its own was refused.
    pub(crate) refused: Vec<Option<Match<F>>>,
}

impl<F: Fingerprint> Index<F> {
    /// Creates an empty index in a host's database.
    pub(crate) fn attach_new(db: Arc<Db>, name: &str, options: &IndexOptions) -> Result<Self> {
        let (header, plan) = new_header::<F>(options)?;
        let resources: Vec<_> = options.resources.parts().collect();
        let store = Store::attach_new(db, name, header, &resources, plan.tables().len())?;
        Self::over(store, plan, options)
    }

    /// Opens an index in a host's database.
    pub(crate) fn attach(db: Arc<Db>, name: &str, options: &IndexOptions) -> Result<Self> {
        let opening = Opening::in_host(db, name)?;
        let plan = options.plan_of::<F>(opening.header())?;
        let store = opening.with_tables(plan.tables().len())?;
        Self::over(store, plan, options)
    }

    /// Applies steps in a host's batch, which `write` writes or drops.
    ///
    /// Until `write` returns, no other writer changes the data that the batch was made from.
    pub(crate) fn commit_steps<T, E: From<crate::Error>>(
        &self,
        steps: &[Step<'_, F>],
        batch: HostBatch,
        write: impl FnOnce(Done<F>) -> Result<T, E>,
    ) -> Result<T, E> {
        let shared = &*self.shared;
        for step in steps {
            step.check(self.header().keeps_features)?;
        }
        let (turn, (refused, changes)) = shared.decide(steps)?;
        let batch = shared.store.batch_behind(batch)?;
        let (ready, outcome) = shared.prepare(turn, batch, &shared.in_order(&changes)?)?;
        let Outcome { inserted, replaced, removed, .. } = outcome;
        let written =
            ready.commit_by(|batch| write(Done { batch, inserted, replaced, removed, refused }));
        shared.merge_for_writers();
        written
    }

    /// Writes a host's batch. It survives the end of the process, not yet a power loss.
    pub(crate) fn write_host(&self, batch: HostBatch) -> Result<()> {
        self.shared.store.write_host(batch)
    }

    /// Waits until earlier writes have the given durability.
    pub(crate) fn make_durable(&self, durability: Durability) -> Result<()> {
        self.shared.make_durable(durability)
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Returns the snapshot of the host's database. `None` unless the index is attached.
    pub(crate) fn host_snapshot(&self) -> Option<&HostSnapshot<'_>> {
        self.snapshot().of_host()
    }
}
