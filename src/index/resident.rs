//! Resident searching: all fingerprints in memory, the store staying the truth.
//!
//! Memory may hold more than a snapshot does and never less: writes add what they touch, new
//! fingerprints and removed ones alike, before they commit. What was touched since loading is
//! looked up in the snapshot before it counts; what was not is there in every snapshot.
#![expect(
    clippy::indexing_slicing,
    reason = "queries are numbered here; one that slips must panic, not lose matches"
)]

use std::sync::Arc;

use super::entries::Entries;
use super::reader::each_document;
use super::search::Found;
use super::{Index, Reader};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::plan::{Costs, Plan};
use crate::resident::{Account, Near, ResidentTables};
use crate::store::{Snapshot, View};

/// So many fingerprints are compared one by one before they get tables of their own.
const RECENT: usize = 1024;

/// Tables of touched fingerprints are merged when so many of one size have come together.
const MERGED: usize = 4;

/// One state of the memory, shared by readers and replaced by writes.
#[derive(Debug, Clone)]
pub(super) struct Resident<F> {
    /// Every fingerprint at the time of loading.
    base: Arc<ResidentTables<F>>,
    /// Fingerprints touched since then, older and larger sets first.
    touched: Vec<Arc<ResidentTables<F>>>,
    /// Those that wait for tables, by batches.
    waiting: Vec<Arc<Vec<F>>>,
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
        let new = |base| {
            let (touched, waiting, recent) = Default::default();
            Self { base, touched, waiting, recent, budget, costs }
        };
        Ok(base.map(new))
    }

    /// Returns the state after a write; `None` if that does not fit the budget.
    ///
    /// Builds no tables, so that a write may call it under its lock.
    pub(super) fn touch(&self, fingerprints: &Arc<Vec<F>>) -> Option<Self> {
        let mut next = self.clone();
        if fingerprints.len() > RECENT / 4 {
            next.waiting.push(Arc::clone(fingerprints));
        } else {
            next.recent.extend_from_slice(fingerprints);
            if next.recent.len() > RECENT {
                next.waiting.push(Arc::new(std::mem::take(&mut next.recent)));
            }
        }
        (next.bytes() <= next.budget).then_some(next)
    }

    /// Tells whether enough was touched to be worth tables.
    pub(super) fn wants_merging(&self) -> bool {
        self.waiting.iter().map(|some| some.len()).sum::<usize>() > RECENT
    }

    /// Returns the tables of what was touched, with what waits for tables in them.
    ///
    /// Takes time, and all threads.
    pub(super) fn merged(&self) -> Result<Vec<Arc<ResidentTables<F>>>> {
        let tables = |mut members: Vec<F>| {
            members.sort_unstable();
            members.dedup();
            let most = ResidentTables::<F>::MOST_TABLES;
            ResidentTables::of_distinct(&members, most, self.costs).map(Arc::new)
        };
        let waiting = self.waiting.iter().flat_map(|some| some.iter().copied());
        let mut touched = self.touched.clone();
        touched.push(tables(waiting.collect())?);
        while let Some(alike) = alike(&touched) {
            let members = touched.drain(alike..).flat_map(|tables| tables.members()).collect();
            touched.push(tables(members)?);
        }
        Ok(touched)
    }

    /// Tells whether writes, and no merging or loading, made this out of an earlier state.
    pub(super) fn continues(&self, before: &Self) -> bool {
        let tables = |state: &Self| state.touched.last().map(Arc::as_ptr);
        Arc::ptr_eq(&self.base, &before.base) && tables(self) == tables(before)
    }

    /// Puts tables in the place of what an earlier state had; `None` if that does not fit.
    pub(super) fn with_merged(
        &self,
        before: &Self,
        touched: Vec<Arc<ResidentTables<F>>>,
    ) -> Option<Self> {
        let mut next = Self { touched, ..self.clone() };
        next.waiting.drain(..before.waiting.len());
        (next.bytes() <= next.budget).then_some(next)
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let touched: usize = self.touched.iter().map(|tables| tables.bytes()).sum();
        let bare: usize = self.bare().map(<[F]>::len).sum();
        self.base.bytes() + touched + bare * F::BYTES
    }

    /// What was touched and is in no tables.
    fn bare(&self) -> impl Iterator<Item = &[F]> {
        let waiting = self.waiting.iter().map(|some| some.as_slice());
        waiting.chain(std::iter::once(self.recent.as_slice()))
    }

    /// Finds what memory holds within the distance of each query.
    pub(super) fn find(&self, queries: &[F], distance: u32) -> Result<Vec<Held<F>>> {
        let mut held: Vec<Held<F>> = Vec::new();
        held.resize_with(queries.len(), Held::default);
        let mut any_touched = false;
        for tables in &self.touched {
            tables.sweep(queries, distance, |hit| {
                any_touched = true;
                held[hit.query].found.push((hit.distance, hit.fingerprint));
            })?;
        }
        for (query, held) in queries.iter().zip(&mut held) {
            for some in self.bare() {
                kernel::within(some, *query, distance, &mut |at, apart| {
                    any_touched = true;
                    held.found.push((apart, some[at]));
                });
            }
        }
        if any_touched {
            for held in &mut held {
                held.touched = held.found.iter().map(|(_, fingerprint)| *fingerprint).collect();
                held.touched.sort_unstable();
            }
        }
        self.base.sweep(queries, distance, |hit| {
            held[hit.query].found.push((hit.distance, hit.fingerprint));
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
        let held = held.into_iter().next();
        Ok(held.expect("an answer for each query").found)
    }

    /// Returns the tables, if nothing was touched since they were loaded.
    pub(super) fn untouched(&self) -> Option<&ResidentTables<F>> {
        let touched = !self.touched.is_empty() || self.bare().any(|some| !some.is_empty());
        (!touched).then_some(&*self.base)
    }

    /// Counts what a search of the fingerprints at loading reads.
    pub(super) fn account(&self, query: F, distance: u32) -> Account {
        self.base.account(query, distance)
    }
}

/// Drops what has no document in the view.
pub(super) fn settled<F: Fingerprint>(view: &mut View, held: Held<F>) -> Result<Vec<Near<F>>> {
    let mut near = Vec::with_capacity(held.found.len());
    for (distance, fingerprint) in held.found {
        let mut stored = held.touched.binary_search(&fingerprint).is_err();
        if !stored {
            each_document(view, fingerprint, |_| {
                stored = true;
                false
            })?;
        }
        if stored {
            near.push(Near { distance, fingerprint });
        }
    }
    Ok(near)
}

/// Returns where the sets of about equal size begin, if enough of them end the list.
fn alike<F: Fingerprint>(touched: &[Arc<ResidentTables<F>>]) -> Option<usize> {
    let first = touched.len().checked_sub(MERGED)?;
    let last = touched.last()?.len();
    let alike = touched[first].len() < last * MERGED;
    alike.then_some(first)
}

impl<F: Fingerprint> Index<F> {
    /// Holds all fingerprints in memory for searching, within a budget in bytes.
    ///
    /// Takes 24 bytes for each distinct fingerprint of 64 bits and less where the budget is
    /// small, down to a half; a third more for a moment while loading. Returns whether it fits; if
    /// not, or when later inserts outgrow the budget, searches read the store as before. Inserts
    /// and removals of this handle show at once, and go on while it loads. Reads the first table
    /// once and uses all threads of the current rayon pool.
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
        let core = &self.shared.core;
        let watch = self.shared.committer.watch()?;
        let loaded = Resident::load(watch.reader.snapshot(), &core.plan, budget, core.costs)?;
        self.shared.committer.install(watch, loaded);
        Ok(self.shared.committer.resident().is_some())
    }

    /// Returns the bytes of memory that resident fingerprints take, `None` without them.
    pub fn resident_bytes(&self) -> Option<usize> {
        self.shared.committer.resident().map(|resident| resident.bytes())
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Tells whether searches of this reader go through memory.
    pub fn is_resident(&self) -> bool {
        self.resident().is_some()
    }
}
