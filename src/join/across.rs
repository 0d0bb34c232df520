//! Across two indexes: near fingerprints become pairs of a document here and one there.

use std::sync::{Mutex, PoisonError};

use super::documents::Visit;
use super::pairing::{Documents, Pairing, Side, Sink};
use super::postings::Postings;
use super::{JoinOptions, Pair, join, join_sources};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{Checker, Index, Reader, check_distance};
use crate::progress::Progress;
use crate::verify::Nearness;

impl<F: Fingerprint> Index<F> {
    /// Visits all near pairs of a document here and one of another index.
    ///
    /// As [`Reader::pairs_with`], over the present state of both.
    ///
    /// # Errors
    ///
    /// As [`Reader::pairs_with`].
    pub fn pairs_with(
        &self,
        other: &Self,
        near: impl Into<Nearness>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        self.reader()?.pairs_with(&other.reader()?, near, progress, visit)
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Visits all near pairs of a document here and one of another index, and counts them.
    ///
    /// In every pair `a` is a key of this index and `b` one of the other; they may be the same
    /// key. Pairs come once and in no order. Pairs within one of the indexes cost nothing. Memory
    /// is that of [`Reader::pairs`], for both together.
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
    /// [`HeaderMismatch`](crate::Error::HeaderMismatch) for indexes whose fingerprints were made
    /// by different pipelines; for the rest as [`Reader::pairs`].
    pub fn pairs_with(
        &self,
        other: &Self,
        near: impl Into<Nearness>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        let Nearness { distance, verification, memory, .. } = near.into();
        check_distance::<F>(distance)?;
        let (ours, theirs) = (&self.header().pipeline, &other.header().pipeline);
        // Fingerprints from outside may be of any pipeline; the caller knows.
        if ours != theirs && !ours.is_empty() && !theirs.is_empty() {
            return Err(Error::HeaderMismatch {
                what: "pipeline",
                stored: ours.clone(),
                wanted: theirs.clone(),
            });
        }
        let postings = [Postings::new(self, progress), Postings::new(other, progress)];
        let [of_ours, of_theirs] = &postings;
        // Each may take its share, as large as the index is.
        let both = u128::from((self.len() + other.len()).max(1));
        let our_memory = memory as u128 * u128::from(self.len()) / both;
        let our_memory = usize::try_from(our_memory).expect("a share of a usize");
        let held = match self.held(of_ours, our_memory)? {
            Some(ours) => other
                .held(of_theirs, memory.saturating_sub(our_memory))?
                .map(|theirs| (ours, theirs)),
            None => None,
        };
        let side = |reader, held| {
            let checker = Checker::new(Self::snapshot(reader), reader.header(), verification)?;
            Ok::<_, Error>(Side { documents: Documents::of(reader, held), checker })
        };
        let ours = side(self, held.as_ref().map(|(ours, _)| ours))?;
        let theirs = side(other, held.as_ref().map(|(_, theirs)| theirs))?;
        let sink = Mutex::new(Sink::new(visit, false));
        let pairing = Pairing { ours: &ours, theirs: &theirs, sink: &sink };
        let near = |pairs: &[Pair<F>]| pairing.near(pairs);
        if let Some((ours, theirs)) = &held {
            let sets = [&ours.fingerprints[..], &theirs.fingerprints[..]];
            join(sets, JoinOptions::new(distance), progress, &near)?;
        } else {
            let options = JoinOptions::new(distance).memory(memory);
            join_sources([of_ours, of_theirs], options, progress, &near)?;
        }
        let count = sink.lock().unwrap_or_else(PoisonError::into_inner).count();
        Ok(count)
    }
}
