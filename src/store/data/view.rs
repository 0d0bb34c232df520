//! Views: the cursors of a search, kept for many searches.
//!
//! Creating an iterator costs more than a seek with it. The `self_cell` type holds iterators with
//! their snapshot.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self_cell::self_cell;

use super::cursor::{Cursor, Snapshot};
use crate::error::{Error, Result};
use crate::store::Family;

/// Longest time for which new readers get the same table cursors.
///
/// They keep files and memory tables that were replaced meanwhile. In tests only merges end it, so
/// that searches meet every state in which they may be older than the reader.
const SHARED: Duration =
    if cfg!(any(test, feature = "model")) { Duration::MAX } else { Duration::from_millis(100) };

type Cursors<'a> = Vec<Option<Cursor<'a>>>;

self_cell!(
    struct Opened {
        owner: Arc<Snapshot>,
        #[covariant]
        dependent: Cursors,
    }
);

impl Opened {
    fn over(snapshot: Arc<Snapshot>, families: usize) -> Self {
        Self::new(snapshot, |_| (0..families).map(|_| None).collect())
    }

    /// Passes a cursor to `body`. Returns `None` if there is no such cursor.
    fn with<R>(
        &mut self,
        at: usize,
        family: Family,
        at_once: usize,
        body: impl FnOnce(&mut Cursor<'_>) -> Result<R>,
    ) -> Option<Result<R>> {
        self.with_dependent_mut(|snapshot, cursors| {
            let slot = cursors.get_mut(at)?;
            if slot.is_none() {
                match snapshot.probe(family, at_once) {
                    Ok(cursor) => *slot = Some(cursor),
                    Err(error) => return Some(Err(error)),
                }
            }
            Some(body(slot.as_mut().expect("the cursor was just opened")))
        })
    }
}

/// The runs of all tables at one moment, with cursors that several readers share.
pub(crate) struct Runs {
    snapshot: Arc<Snapshot>,
    taken: Instant,
    number: u64,
    /// Bytes that the cursor of a table reads at once from a file.
    at_once: Arc<[usize]>,
    spare: Mutex<Vec<Tables>>,
}

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// Cursors of all tables, each opened at first use.
struct Tables {
    opened: Opened,
    at_once: Arc<[usize]>,
}

impl Runs {
    /// `at_once` are the expected bytes of a range of each table, which are then read at once from a
    /// file.
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        at_once: impl Iterator<Item = usize>,
        number: u64,
    ) -> Self {
        let (taken, spare) = (Instant::now(), Mutex::default());
        Self { snapshot, taken, number, at_once: at_once.collect(), spare }
    }

    /// Returns the number that they were made with.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether a new reader should make its own.
    pub(crate) fn are_old(&self) -> bool {
        self.taken.elapsed() > SHARED
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Tables>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn borrow(&self) -> Tables {
        let spare = self.spare().pop();
        spare.unwrap_or_else(|| {
            let tables = self.snapshot.store().tables();
            let opened = Opened::over(Arc::clone(&self.snapshot), tables);
            Tables { opened, at_once: Arc::clone(&self.at_once) }
        })
    }
}

/// The cursor of the postings in one snapshot, opened at first use.
pub(crate) struct Postings(Opened);

impl Postings {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self(Opened::over(snapshot, 1))
    }

    /// Passes the cursor to `body`.
    pub(crate) fn with<R>(&mut self, body: impl FnOnce(&mut Cursor<'_>) -> Result<R>) -> Result<R> {
        self.0.with(0, Family::Postings, 0, body).expect("there is one cursor")
    }
}

/// All cursors of a search.
pub(crate) struct View {
    tables: Tables,
    postings: Postings,
}

impl View {
    /// Borrows the cursors of tables.
    pub(crate) fn new(runs: &Runs, postings: Postings) -> Self {
        Self { tables: runs.borrow(), postings }
    }

    /// Gives the cursors of tables back, and returns that of the postings.
    pub(crate) fn close(self, runs: &Runs) -> Postings {
        let Self { tables, postings } = self;
        runs.spare().push(tables);
        postings
    }

    /// Passes the cursor of a table to `body`.
    pub(crate) fn table<R>(
        &mut self,
        table: usize,
        body: impl FnOnce(&mut Cursor<'_>) -> Result<R>,
    ) -> Result<R> {
        let Tables { opened, at_once } = &mut self.tables;
        let family = Family::Table(table);
        let at_once = at_once.get(table).copied().unwrap_or_default();
        opened
            .with(table, family, at_once, body)
            .unwrap_or_else(|| Err(Error::corrupt(family.to_string(), "no such table in the plan")))
    }

    /// Returns the postings.
    pub(crate) fn postings(&mut self) -> &mut Postings {
        &mut self.postings
    }
}
