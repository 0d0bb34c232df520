//! Resident searching: all fingerprints in memory, the store staying the truth.
//!
//! Memory may hold more than a snapshot does and never less: writes add what they touch, new
//! fingerprints and removed ones alike, before they commit. What was touched since loading is
//! looked up in the snapshot before it counts; what was not is there in every snapshot.

use std::sync::Arc;

use super::entries::Entries;
use super::search::Found;
use super::{Index, Reader, Shared};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::plan::{Costs, Plan};
use crate::resident::{Account, ResidentTables};
use crate::store::Snapshot;

/// So many fingerprints are compared one by one before they get tables of their own.
const RECENT: usize = 1024;

/// Tables of touched fingerprints are merged when so many of one size have come together.
const MERGED: usize = 4;

/// One state of the memory, shared by readers and replaced by writes.
#[derive(Debug)]
pub(super) struct Resident<F> {
    /// Every fingerprint at the time of loading.
    base: Arc<ResidentTables<F>>,
    /// Fingerprints touched since then, older and larger sets first.
    touched: Vec<Arc<ResidentTables<F>>>,
    /// The latest of them.
    recent: Vec<F>,
    /// Bytes that all of it may take.
    budget: usize,
    costs: Costs,
}

/// What memory has for one query.
#[derive(Debug)]
pub(super) struct Held<F> {
    /// In the order of search results; those touched may not be in the snapshot.
    pub(super) found: Vec<Found<F>>,
    /// Which of them were touched since loading, rising.
    pub(super) touched: Vec<F>,
}

impl<F> Default for Held<F> {
    fn default() -> Self {
        Self { found: Vec::new(), touched: Vec::new() }
    }
}

impl<F: Fingerprint> Resident<F> {
    /// Reads a snapshot into memory; `None` if it does not fit the budget.
    ///
    /// Takes fewer tables where the budget is small, which costs time and loses nothing.
    pub(super) fn load(
        snapshot: &Snapshot,
        plan: &Plan,
        budget: usize,
        costs: Costs,
    ) -> Result<Option<Self>> {
        let mut members: Vec<F> = Vec::new();
        if let Some(table) = plan.tables().first() {
            let mut entries = Entries::new(snapshot, 0)?;
            while let Some(permuted) = entries.next()? {
                members.push(permuted);
                if members.len().is_multiple_of(1 << 20)
                    && !ResidentTables::<F>::could_fit(members.len(), budget)
                {
                    return Ok(None);
                }
            }
            if !table.permutation().is_identity() {
                for member in &mut members {
                    *member = table.permutation().invert(*member);
                }
            }
        }
        let base = ResidentTables::of_distinct_within(&members, budget, costs)?.map(Arc::new);
        let new = |base| Self { base, touched: Vec::new(), recent: Vec::new(), budget, costs };
        Ok(base.map(new))
    }

    /// Returns the state after a write; `None` if that does not fit the budget.
    pub(super) fn touch(&self, fingerprints: &[F]) -> Result<Option<Self>> {
        let mut touched = self.touched.clone();
        let mut recent = self.recent.clone();
        recent.extend_from_slice(fingerprints);
        if recent.len() > RECENT {
            recent.sort_unstable();
            recent.dedup();
            let tables = ResidentTables::<F>::MOST_TABLES;
            touched.push(Arc::new(ResidentTables::of_distinct(&recent, tables, self.costs)?));
            recent = Vec::new();
            while let Some(alike) = alike(&touched) {
                let mut members: Vec<F> =
                    touched.drain(alike..).flat_map(|tables| tables.members()).collect();
                members.sort_unstable();
                members.dedup();
                touched.push(Arc::new(ResidentTables::of_distinct(&members, tables, self.costs)?));
            }
        }
        let base = Arc::clone(&self.base);
        let next = Self { base, touched, recent, budget: self.budget, costs: self.costs };
        Ok((next.bytes() <= self.budget).then_some(next))
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let touched: usize = self.touched.iter().map(|tables| tables.bytes()).sum();
        self.base.bytes() + touched + self.recent.len() * F::BYTES
    }

    /// Finds what memory holds within the distance of each query.
    pub(super) fn find(&self, queries: &[F], distance: u32) -> Result<Vec<Held<F>>> {
        let mut held: Vec<Held<F>> = Vec::new();
        held.resize_with(queries.len(), Held::default);
        let mut any_touched = false;
        for tables in &self.touched {
            tables.sweep(queries, distance, |hit| {
                if let Some(held) = held.get_mut(hit.query) {
                    any_touched = true;
                    held.found.push((hit.distance, hit.fingerprint));
                }
            })?;
        }
        for (query, held) in queries.iter().zip(&mut held) {
            kernel::within(&self.recent, *query, distance, &mut |at, apart| {
                if let Some(&fingerprint) = self.recent.get(at) {
                    any_touched = true;
                    held.found.push((apart, fingerprint));
                }
            });
        }
        if any_touched {
            for held in &mut held {
                held.touched = held.found.iter().map(|(_, fingerprint)| *fingerprint).collect();
                held.touched.sort_unstable();
            }
        }
        self.base.sweep(queries, distance, |hit| {
            if let Some(held) = held.get_mut(hit.query) {
                held.found.push((hit.distance, hit.fingerprint));
            }
        })?;
        for held in held.iter_mut().filter(|held| held.found.len() > 1) {
            held.found.sort_unstable();
            held.found.dedup();
        }
        Ok(held)
    }

    /// [`Resident::find`] for one query, without what was touched being told.
    pub(super) fn find_one(&self, query: F, distance: u32) -> Result<Vec<Found<F>>> {
        let held = self.find(std::slice::from_ref(&query), distance)?;
        Ok(held.into_iter().next().unwrap_or_default().found)
    }

    /// Returns the tables, if nothing was touched since they were loaded.
    pub(super) fn untouched(&self) -> Option<&ResidentTables<F>> {
        (self.touched.is_empty() && self.recent.is_empty()).then_some(&*self.base)
    }

    /// Counts what a search of the fingerprints at loading reads.
    pub(super) fn account(&self, query: F, distance: u32) -> Account {
        self.base.account(query, distance)
    }
}

/// Returns where the sets of about equal size begin, if enough of them end the list.
fn alike<F: Fingerprint>(touched: &[Arc<ResidentTables<F>>]) -> Option<usize> {
    let first = touched.len().checked_sub(MERGED)?;
    let last = touched.last()?.len();
    let alike = touched.get(first)?.len() < last * MERGED;
    alike.then_some(first)
}

impl<F: Fingerprint> Shared<F> {
    /// Adds what a write is about to change to the memory, before it commits.
    ///
    /// Without memory for it searches go by the store from now on; the write itself is not held
    /// up. The caller holds the writer lock.
    pub(super) fn touch(&self, added: &[F], gone: &[F]) {
        let Some(resident) = self.resident() else { return };
        let changed: Vec<F> = added.iter().chain(gone).copied().collect();
        let next = resident.touch(&changed).ok().flatten().map(Arc::new);
        self.set_resident(next);
    }
}

impl<F: Fingerprint> Index<F> {
    /// Holds all fingerprints in memory for searching, within a budget in bytes.
    ///
    /// Takes 24 bytes for each distinct fingerprint of 64 bits and less where the budget is
    /// small, down to a half; a third more for a moment while loading. Returns whether it fits; if
    /// not, or when later inserts outgrow the budget, searches read the store as before. Inserts
    /// and removals of this handle show at once.
    /// Calling it again loads anew, which makes searches after many inserts faster. See
    /// [`OpenOptions::resident`](crate::OpenOptions::resident) for loading when opening.
    ///
    /// # Errors
    ///
    /// Damage or failures of the store; [`InvalidOption`](crate::Error::InvalidOption) for 2^32
    /// fingerprints and more.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions, Query, SearchPath};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert!(index.load_resident(64 << 20)?);
    /// index.insert(b"copy", 0xfe)?;
    /// let near = index.search(Query::new(0xff).path(SearchPath::Resident))?;
    /// assert_eq!(near.len(), 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn load_resident(&self, budget: usize) -> Result<bool> {
        let _writer = self.shared.only_writer();
        let snapshot = self.shared.store.snapshot();
        let core = &self.shared.core;
        let loaded = Resident::load(&snapshot, &core.plan, budget, core.costs)?.map(Arc::new);
        let fits = loaded.is_some();
        self.shared.set_resident(loaded);
        self.shared.publish();
        Ok(fits)
    }

    /// Returns the bytes of memory that resident fingerprints take, `None` without them.
    pub fn resident_bytes(&self) -> Option<usize> {
        self.shared.resident().map(|resident| resident.bytes())
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Tells whether searches of this reader go through memory.
    pub fn is_resident(&self) -> bool {
        self.resident().is_some()
    }
}
