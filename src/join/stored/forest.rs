//! Spanning forests: fewest near pairs that connect the same documents as all.
//!
//! The pairs of a join are sorted by one fingerprint and then by the other, outside memory. Each time
//! they are read beside the postings, which number the fingerprints and name the documents. So
//! memory holds one parent per distinct fingerprint, and neither fingerprints nor keys.

mod links;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use self::links::{Links, Sorting};
use super::documents::{DocumentPair, Visit};
use super::first_table::FirstTable;
use super::postings::Postings;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{Index, Reader, check_distance};
use crate::join::sets::{Source, join_sources};
use crate::join::{JoinOptions, Pair, UnionFind};
use crate::progress::Progress;
use crate::sort::Sorted;
use crate::verify::{DuplicateRule, Verification};

/// Bytes of the number and of the distance before the key in a record.
const HEAD: usize = size_of::<u32>() + 1;

impl<F: Fingerprint> Index<F> {
    /// Visits a spanning forest of the near documents; returns its size.
    ///
    /// See [`Reader::spanning_forest`]; reads the current state.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// for (key, fingerprint) in [("a", 0b00), ("b", 0b01), ("c", 0b11), ("d", 0xff00)] {
    ///     index.insert(key.as_bytes(), fingerprint)?;
    /// }
    /// let tmp = std::env::temp_dir();
    /// assert_eq!(index.spanning_forest(2, &tmp, &(), &mut |_| Ok(()))?, 2);
    /// assert_eq!(index.pairs(2, &(), &mut |_| Ok(()))?, 3);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::spanning_forest`].
    pub fn spanning_forest(
        &self,
        near: impl Into<DuplicateRule>,
        tmp: &Path,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        self.reader()?.spanning_forest(near, tmp, progress, visit)
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Visits a spanning forest of the near documents; returns its size.
    ///
    /// The forest is a part of the pairs that [`pairs`](Self::pairs) visits. It connects the same
    /// documents, and leaves out every pair that others connect already: a group of n documents has
    /// n - 1 pairs, a million copies of a page a million instead of half a trillion. Which pairs
    /// these are is not specified. Pairs are visited from one thread, in no particular order.
    ///
    /// Memory is 4 bytes for each distinct fingerprint, and what the join takes within the limit of
    /// `near`. A quarter of the limit, and at most 1 GiB, sorts pairs of different fingerprints,
    /// about as many as there are documents at most. What exceeds it is written to a new directory
    /// in `tmp`, which is removed at the end: at 64 bits about 35 bytes and the key for each pair.
    ///
    /// With a verification, every pair is checked as [`pairs`](Self::pairs) does, memory holds the
    /// keys of all documents that have a near one, and `tmp` is not used.
    ///
    /// Source of the union of sets: Tarjan and van Leeuwen, JACM 1984, section 2.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// for key in ["a", "b", "c"] {
    ///     index.insert(key.as_bytes(), 7)?;
    /// }
    /// let tmp = std::env::temp_dir();
    /// let pairs = index.reader()?.spanning_forest(3, &tmp, &(), &mut |pair| {
    ///     assert_eq!((pair.a, pair.distance), (&b"a"[..], 0));
    ///     Ok(())
    /// })?;
    /// assert_eq!(pairs, 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`pairs`](Self::pairs), [`Io`](crate::Error::Io) of `tmp`, and
    /// [`InvalidOption`](crate::Error::InvalidOption) for more than `u32::MAX` distinct
    /// fingerprints.
    pub fn spanning_forest(
        &self,
        near: impl Into<DuplicateRule>,
        tmp: &Path,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        let near = near.into();
        check_distance::<F>(near.distance)?;
        if near.verification != Verification::None {
            return self.verified_forest(near, progress, visit);
        }
        let place = tempfile::Builder::new().prefix("hamdex-pairs-").tempdir_in(tmp);
        let place = place.map_err(|e| Error::io(tmp, e))?;
        let sorting = Sorting::new(place.path(), near.memory);
        let postings = Postings::new(self, progress);
        let links = self.links(near, sorting, progress)?;
        progress.begin("numbering fingerprints", Some(self.len()));
        let (links, count) = number::<F>(&postings, links, sorting)?;
        progress.begin("linking documents", Some(self.len()));
        link::<F>(&postings, links, count, visit)
    }

    /// Joins the fingerprints, and sorts enough of the pairs by the smaller one.
    fn links(
        &self,
        near: DuplicateRule,
        sorting: Sorting<'_>,
        progress: &dyn Progress,
    ) -> Result<Sorted> {
        let memory = near.memory.saturating_sub(sorting.memory());
        let options = JoinOptions::new(near.distance).costs(self.costs()).memory(memory);
        let links = Mutex::new(Links::<F>::new(sorting, self.len()));
        let add =
            |pairs: &[Pair<F>]| links.lock().unwrap_or_else(PoisonError::into_inner).add(pairs);
        let table = FirstTable::new(self, progress)?;
        join_sources([&table as &dyn Source<F>], options, progress, &add)?;
        links.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }

    /// Visits the checked pairs that connect two groups of those before.
    fn verified_forest(
        &self,
        near: DuplicateRule,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut sets = UnionFind::default();
        let mut found = 0;
        self.pairs(near, progress, &mut |pair| {
            let [a, b] = [pair.a, pair.b].map(|key| match numbers.get(key) {
                Some(&number) => number,
                None => *numbers.entry(key.to_vec()).or_insert_with(|| sets.push()),
            });
            if sets.union(a, b) {
                found += 1;
                visit(pair)?;
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Replaces the smaller fingerprint of each link by its number and first document.
///
/// Returns the links by their larger fingerprint, and the number of distinct fingerprints.
fn number<F: Fingerprint>(
    postings: &Postings<'_>,
    links: Sorted,
    sorting: Sorting<'_>,
) -> Result<(Sorted, u32)> {
    let mut links = Beside::<F>::new(links)?;
    let mut numbered = sorting.sorter("numbered");
    let mut record = Vec::new();
    let (mut count, mut last) = (0_u32, None);
    postings.each(|fingerprint: F, key| {
        if last.replace(fingerprint) == Some(fingerprint) {
            return Ok(true);
        }
        while links.is_at(fingerprint)? {
            let other = F::from_bytes(&links.payload).ok_or_else(damaged)?;
            let distance = u8::try_from(fingerprint.distance(other)).map_err(|_| damaged())?;
            record.clear();
            record.extend(count.to_be_bytes());
            record.push(distance);
            record.extend(key);
            numbered.push(other.to_bytes().as_ref(), &record)?;
            links.advance()?;
        }
        count = count.checked_add(1).ok_or_else(|| Error::InvalidOption {
            name: "distance",
            reason: format!("more than {} distinct fingerprints cannot be linked", u32::MAX),
        })?;
        Ok(true)
    })?;
    links.finish()?;
    Ok((numbered.finish()?, count))
}

/// Visits the links that connect two groups of those before, and the documents of one fingerprint.
fn link<F: Fingerprint>(
    postings: &Postings<'_>,
    links: Sorted,
    count: u32,
    visit: &mut Visit<'_>,
) -> Result<u64> {
    let mut links = Beside::<F>::new(links)?;
    let mut sets = UnionFind::new(count);
    let mut found = 0;
    let mut visit = |a: &[u8], b: &[u8], distance: u32| {
        found += 1;
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        visit(DocumentPair { a, b, distance, similarity: None })
    };
    let mut first = Vec::new();
    let (mut number, mut last) = (0_u32, None);
    postings.each(|fingerprint: F, key| {
        if last == Some(fingerprint) {
            visit(&first, key, 0)?;
            return Ok(true);
        }
        number += u32::from(last.replace(fingerprint).is_some());
        first.clear();
        first.extend_from_slice(key);
        while links.is_at(fingerprint)? {
            let (head, key) = links.payload.split_first_chunk::<HEAD>().ok_or_else(damaged)?;
            let [other @ .., distance] = *head;
            if sets.union(u32::from_be_bytes(other), number) {
                visit(key, &first, u32::from(distance))?;
            }
            links.advance()?;
        }
        Ok(true)
    })?;
    links.finish()?;
    Ok(found)
}

/// Sorted records that are read beside the postings, by the fingerprint that is their key.
struct Beside<F> {
    sorted: Sorted,
    /// Fingerprint and payload of the next record.
    fingerprint: Option<F>,
    payload: Vec<u8>,
}

impl<F: Fingerprint> Beside<F> {
    fn new(sorted: Sorted) -> Result<Self> {
        let mut beside = Self { sorted, fingerprint: None, payload: Vec::new() };
        beside.advance()?;
        Ok(beside)
    }

    /// Returns true if the next record belongs to this fingerprint.
    #[inline]
    fn is_at(&self, fingerprint: F) -> Result<bool> {
        match self.fingerprint {
            Some(next) if next < fingerprint => Err(missing()),
            next => Ok(next == Some(fingerprint)),
        }
    }

    fn advance(&mut self) -> Result<()> {
        self.fingerprint = None;
        self.payload.clear();
        if let Some((key, payload)) = self.sorted.next()? {
            self.fingerprint = Some(F::from_bytes(key).ok_or_else(damaged)?);
            self.payload.extend_from_slice(payload);
        }
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        if self.fingerprint.is_some() { Err(missing()) } else { Ok(()) }
    }
}

fn missing() -> Error {
    Error::corrupt("postings", "a second read finds fewer fingerprints")
}

fn damaged() -> Error {
    Error::corrupt("sorted pairs", "a record is truncated")
}

#[cfg(test)]
mod tests;
