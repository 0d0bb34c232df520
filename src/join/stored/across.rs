//! Joins of two indexes: near pairs of a document of one and a document of the other.

use std::sync::{Mutex, PoisonError};

use super::documents::Visit;
use super::first_table::FirstTable;
use super::pairing::{Pairing, Side, Sink};
use super::pending::Stored;
use super::postings::Postings;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{Checker, Index, Reader, check_distance};
use crate::join::sets::join;
use crate::join::{JoinOptions, Pair};
use crate::progress::Progress;
use crate::verify::DuplicateRule;

impl<F: Fingerprint> Index<F> {
    /// Visits all near pairs between documents of two indexes.
    ///
    /// See [`Reader::pairs_with`]; reads the current state of both indexes.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    /// let old = Index::<u64>::create(a.path(), &IndexOptions::new())?;
    /// let new = Index::<u64>::create(b.path(), &IndexOptions::new())?;
    /// old.insert(b"page", 0b0111)?;
    /// new.insert(b"copy", 0b0011)?;
    /// assert_eq!(old.pairs_with(&new, 3, &(), &mut |_| Ok(()))?, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::pairs_with`].
    pub fn pairs_with(
        &self,
        other: &Self,
        near: impl Into<DuplicateRule>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        self.reader()?.pairs_with(&other.reader()?, near, progress, visit)
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Visits all near pairs between documents of two indexes and returns their number.
    ///
    /// In every pair `a` is a key of this index and `b` a key of the other; they may be equal. Each
    /// pair is visited once, in no particular order. Pairs within one index cost nothing. Memory is
    /// that of [`Reader::pairs`], with both indexes added.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    /// let old = Index::<u64>::create(a.path(), &IndexOptions::new())?;
    /// let new = Index::<u64>::create(b.path(), &IndexOptions::new())?;
    /// old.insert(b"page", 0b0111)?;
    /// new.insert(b"copy", 0b0011)?;
    /// new.insert(b"other", 0xffff)?;
    /// let found = old.pairs_with(&new, 3, &(), &mut |pair| {
    ///     assert_eq!((pair.a, pair.b, pair.distance), (&b"page"[..], &b"copy"[..], 1));
    ///     Ok(())
    /// })?;
    /// assert_eq!(found, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`HeaderMismatch`](crate::Error::HeaderMismatch) if the pipelines of the indexes
    /// differ, and the errors of [`Reader::pairs`].
    pub fn pairs_with(
        &self,
        other: &Self,
        near: impl Into<DuplicateRule>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        let DuplicateRule { distance, verification, memory, .. } = near.into();
        check_distance::<F>(distance)?;
        let (ours, theirs) = (&self.header().pipeline, &other.header().pipeline);
        // An empty descriptor means fingerprints from outside; only the caller knows their
        // pipeline.
        if ours != theirs && !ours.is_empty() && !theirs.is_empty() {
            return Err(Error::HeaderMismatch {
                what: "pipeline",
                stored: ours.clone(),
                wanted: theirs.clone(),
            });
        }
        let postings = [Postings::new(self, progress), Postings::new(other, progress)];
        let [of_ours, of_theirs] = &postings;
        // The memory limit is divided in proportion to the sizes of the indexes.
        let both = u128::from((self.len() + other.len()).max(1));
        let our_memory = memory as u128 * u128::from(self.len()) / both;
        let our_memory = usize::try_from(our_memory).expect("a share of a usize");
        let held = match self.held(of_ours, our_memory)? {
            Some(ours) => other
                .held(of_theirs, memory.saturating_sub(our_memory))?
                .map(|theirs| (ours, theirs)),
            None => None,
        };
        let checkers = [
            Checker::new(self.snapshot(), self.header(), verification)?,
            Checker::new(other.snapshot(), other.header(), verification)?,
        ];
        let [our_checker, their_checker] = checkers.each_ref().map(Option::as_ref);
        let sink = Mutex::new(Sink::new(visit, false));
        let pairing = Pairing::new(their_checker, &sink);
        let options = JoinOptions::new(distance).costs(self.costs());
        if let Some((ours, theirs)) = &held {
            let sides = [Side::new(ours, our_checker), Side::new(theirs, their_checker)];
            let near = |pairs: &[Pair<F>]| pairing.near(sides.each_ref(), pairs);
            let sets = [&ours.fingerprints[..], &theirs.fingerprints[..]];
            join(sets, options, progress, &near)?;
        } else {
            let (postings, checkers) = (postings.each_ref(), [our_checker, their_checker]);
            let tables = [FirstTable::new(self, progress)?, FirstTable::new(other, progress)?];
            let stored = Stored { tables, postings, checkers, pairing: &pairing };
            stored.join(options.memory(memory), progress)?;
        }
        let count = sink.lock().unwrap_or_else(PoisonError::into_inner).count();
        Ok(count)
    }
}
