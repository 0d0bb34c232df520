//! Joins over an index: pairs and clusters of documents with near fingerprints.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::checked;
use super::first_table::FirstTable;
use super::held::{self, Held};
use super::pairing::{Pairing, Side, Sink};
use super::pending::Stored;
use super::postings::Postings;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Checker, Index, Reader, check_distance};
use crate::join::sets::join;
use crate::join::{Diameter, JoinOptions, Pair, clusters, diameter};
use crate::progress::{self, Progress};
use crate::verify::DuplicateRule;

/// Number of fingerprints per task when equal ones are paired.
const EQUAL_CHUNK: usize = 1 << 12;

/// Two documents whose fingerprints are within the distance.
///
/// Passed to the visitor of [`Index::pairs`].
///
/// ```
/// use hamdex::join::DocumentPair;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// index.insert(b"copy", 0xfe)?;
/// index.pairs(3, &(), &mut |DocumentPair { a, b, distance, .. }| {
///     assert_eq!((a, b, distance), (&b"copy"[..], &b"page"[..], 1));
///     Ok(())
/// })?;
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DocumentPair<'a> {
    /// The smaller key; between two indexes, the key of the first one.
    pub a: &'a [u8],
    /// The larger key; between two indexes, the key of the second one.
    pub b: &'a [u8],
    /// The number of bits in which their fingerprints differ.
    pub distance: u32,
    /// The similarity that the verification measured; `None` without a verification.
    pub similarity: Option<f64>,
}

/// Two or more documents that near-duplicates link, directly or through others.
///
/// Returned by [`Index::clusters`].
///
/// ```
/// use hamdex::join::Cluster;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// index.insert(b"copy", 0xfe)?;
/// let cluster: Cluster = index.clusters(3, &())?.remove(0);
/// assert_eq!((cluster.keys.len(), cluster.diameter.bits), (2, 1));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cluster {
    /// Keys of the documents, ascending.
    pub keys: Vec<Vec<u8>>,
    /// The largest distance between two of the fingerprints.
    pub diameter: Diameter,
}

/// The callback that receives every pair.
pub(super) type Visit<'a> = dyn FnMut(DocumentPair<'_>) -> Result<()> + Send + 'a;

impl<F: Fingerprint> Index<F> {
    /// Visits every pair of near documents once and returns the number of pairs.
    ///
    /// See [`Reader::pairs`]; reads the current state.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// index.insert(b"page", 0b0111)?;
    /// index.insert(b"copy", 0b0011)?;
    /// index.insert(b"other", 0xffff)?;
    /// let found = index.pairs(3, &(), &mut |pair| {
    ///     assert_eq!((pair.a, pair.b, pair.distance), (&b"copy"[..], &b"page"[..], 1));
    ///     Ok(())
    /// })?;
    /// assert_eq!(found, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::pairs`].
    pub fn pairs(
        &self,
        near: impl Into<DuplicateRule>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        self.reader()?.pairs(near, progress, visit)
    }

    /// Groups documents that near-duplicates link, largest group first.
    ///
    /// See [`Reader::clusters`]; reads the current state.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// for (key, fingerprint) in [("a", 0b0001), ("b", 0b0011), ("c", 0b0111), ("d", 0xff00)] {
    ///     index.insert(key.as_bytes(), fingerprint)?;
    /// }
    /// let clusters = index.clusters(1, &())?;
    /// assert_eq!(clusters[0].keys, [b"a", b"b", b"c"]);
    /// assert_eq!(clusters[0].diameter.bits, 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::clusters`].
    pub fn clusters(
        &self,
        near: impl Into<DuplicateRule>,
        progress: &dyn Progress,
    ) -> Result<Vec<Cluster>> {
        self.reader()?.clusters(near, progress)
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Visits every pair of near documents once and returns the number of pairs.
    ///
    /// `near` is a distance, or a [`DuplicateRule`] with a verification of the stored features or a
    /// memory limit. Pairs are visited in no particular order. If they fit the limit, fingerprints
    /// and keys are held in memory: about 40 bytes and the key per document at 64 bits. Otherwise
    /// a third of the memory collects pairs, whose keys are read together, and the first table is
    /// read once per part of the join. Documents with the same fingerprint are paired too: a million
    /// copies of a page are half a trillion pairs, while [`clusters`](Self::clusters) returns them as
    /// a million keys. Tasks of the current rayon pool wait for `visit`, so it must start no work
    /// there.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"a", 0b0111)?;
    /// index.insert(b"b", 0b0011)?;
    /// let reader = index.reader()?;
    /// let pairs = reader.pairs(3, &(), &mut |pair| {
    ///     assert_eq!((pair.a, pair.b, pair.distance), (&b"a"[..], &b"b"[..], 1));
    ///     Ok(())
    /// })?;
    /// assert_eq!(pairs, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidDistance`](crate::Error::InvalidDistance),
    /// [`Cancelled`](crate::Error::Cancelled), the errors of `visit`, and storage errors. With a
    /// verification it also returns [`NoFeatureSets`](crate::Error::NoFeatureSets),
    /// [`NoFeatureSet`](crate::Error::NoFeatureSet) and
    /// [`InvalidOption`](crate::Error::InvalidOption) like [`Reader::search`].
    pub fn pairs(
        &self,
        near: impl Into<DuplicateRule>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        let DuplicateRule { distance, verification, memory, .. } = near.into();
        check_distance::<F>(distance)?;
        let checker = Checker::new(self.snapshot(), self.header(), verification)?;
        let postings = Postings::new(self, progress);
        let sink = Mutex::new(Sink::new(visit, true));
        let pairing = Pairing::new(checker.as_ref(), &sink);
        let options = JoinOptions::new(distance).costs(self.costs());
        if let Some(held) = self.held(&postings, memory)? {
            progress.begin("pairing equal fingerprints", Some(held.fingerprints.len() as u64));
            let chunks = held.fingerprints.par_chunks(EQUAL_CHUNK).enumerate();
            chunks.try_for_each(|(chunk, fingerprints)| {
                progress::check(progress)?;
                for at in (chunk * EQUAL_CHUNK..).take(fingerprints.len()) {
                    let keys = held.documents_at(at);
                    if keys.len() > 1 {
                        pairing.equal::<F>(keys, progress)?;
                    }
                }
                progress.advance(fingerprints.len() as u64);
                Ok(())
            })?;
            let side = Side::new(&held, checker.as_ref());
            let near = |pairs: &[Pair<F>]| pairing.near([&side, &side], pairs);
            join([&held.fingerprints], options, progress, &near)?;
        } else {
            progress.begin("pairing equal fingerprints", Some(self.len()));
            postings.repeated::<F>(&|keys| pairing.equal::<F>(keys.iter(), progress))?;
            let (postings, checkers) = ([&postings], [checker.as_ref()]);
            let tables = [FirstTable::new(self, progress)?];
            let stored = Stored { tables, postings, checkers, pairing: &pairing };
            stored.join(options.memory(memory), progress)?;
        }
        let count = sink.lock().unwrap_or_else(PoisonError::into_inner).count();
        Ok(count)
    }

    /// Reads all documents into memory, or returns `None` if the join would not fit too.
    pub(super) fn held(&self, postings: &Postings<'_>, memory: usize) -> Result<Option<Held<F>>> {
        let documents = usize::try_from(self.len()).unwrap_or(usize::MAX);
        let joining = documents.saturating_mul(2 * F::BYTES);
        match memory.checked_sub(joining) {
            Some(left) if u32::try_from(documents).is_ok() => Held::read(postings, left),
            _ => Ok(None),
        }
    }

    /// Groups documents that near-duplicates link, largest group first.
    ///
    /// Links chain: two members of a group may be farther apart than the distance. If `near` has a
    /// verification and [`Linkage::Representative`](crate::join::Linkage::Representative), groups
    /// have a representative instead, the smallest key. Groups of equal size are sorted by their
    /// first key. Documents without a near-duplicate are in no group. Memory grows with the
    /// distinct fingerprints and the keys in groups; with a verification it is about 80 bytes and
    /// the key for each document.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"a", 0b0111)?;
    /// index.insert(b"b", 0b0011)?;
    /// let clusters = index.reader()?.clusters(3, &())?;
    /// assert_eq!(clusters[0].keys, [b"a", b"b"]);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::pairs`].
    pub fn clusters(
        &self,
        near: impl Into<DuplicateRule>,
        progress: &dyn Progress,
    ) -> Result<Vec<Cluster>> {
        let near = near.into();
        check_distance::<F>(near.distance)?;
        let checker = Checker::new(self.snapshot(), self.header(), near.verification)?;
        let mut clusters = match checker {
            None => self.linked(near.distance, near.memory, progress)?,
            Some(checker) => checked::clusters(self, checker, near, progress)?,
        };
        clusters.sort_unstable_by(|a, b| {
            b.keys.len().cmp(&a.keys.len()).then_with(|| a.keys.cmp(&b.keys))
        });
        Ok(clusters)
    }

    /// Groups the connected components of near fingerprints, in no particular order.
    fn linked(
        &self,
        distance: u32,
        memory: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Cluster>> {
        let postings = Postings::new(self, progress);
        let options = JoinOptions::new(distance).costs(self.costs());
        if let Some(held) = self.held(&postings, memory)? {
            let leaders = clusters(&held.fingerprints, options, progress)?;
            return groups(&held, leaders, progress);
        }
        progress.begin("reading fingerprints", Some(self.len()));
        let (mut fingerprints, repeated) = postings.distinct::<F>()?;
        let mut leaders = clusters(&fingerprints, options, progress)?;
        let mut many = vec![false; leaders.len()];
        for (at, &leader) in leaders.iter().enumerate() {
            many[leader as usize] |= leader as usize != at;
        }
        for at in repeated {
            many[leaders[at] as usize] = true;
        }
        // Only groups of several documents need keys.
        let mut grouped = leaders.iter().map(|&leader| many[leader as usize]);
        fingerprints.retain(|_| grouped.next() == Some(true));
        leaders.retain(|&leader| many[leader as usize]);
        progress.begin("reading documents", None);
        let held = Held::of(&postings, fingerprints, usize::MAX)?;
        groups(&held.ok_or_else(held::too_many)?, leaders, progress)
    }
}

/// Groups the documents of the fingerprints that have the same leader.
fn groups<F: Fingerprint>(
    held: &Held<F>,
    leaders: Vec<u32>,
    progress: &dyn Progress,
) -> Result<Vec<Cluster>> {
    let mut members: Vec<(u32, u32)> = leaders.into_iter().zip(0..).collect();
    members.par_sort_unstable();
    let groups: Vec<&[(u32, u32)]> = members.chunk_by(|a, b| a.0 == b.0).collect();
    progress.begin("collecting groups", Some(groups.len() as u64));
    let clusters = groups.into_par_iter().map(|group| {
        progress::check(progress)?;
        progress.advance(1);
        let positions = || group.iter().map(|&(_, position)| position as usize);
        let keys = positions().flat_map(|position| held.documents_at(position));
        let mut keys: Vec<Vec<u8>> = keys.map(<[u8]>::to_vec).collect();
        if keys.len() < 2 {
            return Ok(None);
        }
        keys.sort_unstable();
        let fingerprints: Vec<F> =
            positions().map(|position| held.fingerprints[position]).collect();
        Ok(Some(Cluster { keys, diameter: diameter(&fingerprints) }))
    });
    clusters.filter_map(Result::transpose).collect()
}
