//! Near fingerprints: searches for the fingerprints alone, without the documents that have them.

use rayon::prelude::*;

use super::Index;
use super::query::{Query, SearchPath, check_distance};
use super::reader::{Reader, each_document};
use super::resident::Held;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::resident::Near;
use crate::store::View;

/// Queries of a batch that one thread answers together.
const BATCH: usize = 1024;

impl<F: Fingerprint> Reader<F> {
    /// Finds every distinct fingerprint within the distance, nearest first.
    ///
    /// Equally near ones rise. Documents are not looked up, so this is the fastest search.
    ///
    /// # Errors
    ///
    /// [`InvalidDistance`](crate::Error::InvalidDistance) above a quarter of the width, and
    /// damage or failures of the store.
    pub fn near(&self, fingerprint: F, distance: u32) -> Result<Vec<Near<F>>> {
        check_distance::<F>(distance)?;
        let Some(resident) = self.resident() else {
            return self.near_by(fingerprint, distance, SearchPath::Auto);
        };
        if let Some(tables) = resident.untouched() {
            return tables.search(fingerprint, distance);
        }
        let held = resident.find(&[fingerprint], distance)?.into_iter().next();
        self.with_view(|view| settled(view, held.unwrap_or_default()))
    }

    /// Answers many searches for fingerprints in parallel, in the order of the queries.
    ///
    /// # Errors
    ///
    /// As [`Reader::near`].
    pub fn near_batch(&self, fingerprints: &[F], distance: u32) -> Result<Vec<Vec<Near<F>>>> {
        check_distance::<F>(distance)?;
        if let Some(tables) = self.resident().and_then(|resident| resident.untouched()) {
            return tables.search_batch(fingerprints, distance);
        }
        let answers: Vec<Vec<_>> = fingerprints
            .par_chunks(BATCH)
            .map(|some| {
                self.with_view(|view| {
                    if let Some(resident) = self.resident() {
                        let held = resident.find(some, distance)?.into_iter();
                        return held.map(|held| settled(view, held)).collect::<Result<Vec<_>>>();
                    }
                    let auto = SearchPath::Auto;
                    some.iter().map(|query| self.near_in(view, *query, distance, auto)).collect()
                })
            })
            .collect::<Result<_>>()?;
        Ok(answers.into_iter().flatten().collect())
    }

    /// [`Reader::near`] by way of the store.
    pub(crate) fn near_by(
        &self,
        fingerprint: F,
        distance: u32,
        path: SearchPath,
    ) -> Result<Vec<Near<F>>> {
        self.with_view(|view| self.near_in(view, fingerprint, distance, path))
    }

    fn near_in(
        &self,
        view: &mut View,
        fingerprint: F,
        distance: u32,
        path: SearchPath,
    ) -> Result<Vec<Near<F>>> {
        let query = Query::new(fingerprint).distance(distance).path(path);
        let found = self.find(view, &query, distance, &mut Vec::new())?;
        let near = |(distance, fingerprint)| Near { distance, fingerprint };
        Ok(found.into_iter().map(near).collect())
    }
}

/// Drops what has no document in the view.
fn settled<F: Fingerprint>(view: &mut View, held: Held<F>) -> Result<Vec<Near<F>>> {
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

impl<F: Fingerprint> Index<F> {
    /// Finds every distinct fingerprint within the distance, nearest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::near`].
    pub fn near(&self, fingerprint: F, distance: u32) -> Result<Vec<Near<F>>> {
        self.reader()?.near(fingerprint, distance)
    }

    /// Answers many searches for fingerprints in parallel, in the order of the queries.
    ///
    /// # Errors
    ///
    /// As [`Reader::near`].
    pub fn near_batch(&self, fingerprints: &[F], distance: u32) -> Result<Vec<Vec<Near<F>>>> {
        self.reader()?.near_batch(fingerprints, distance)
    }
}
