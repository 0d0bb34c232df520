//! Near fingerprints: searches for the fingerprints alone, without the documents that have them.

use super::Index;
use super::query::{Query, SearchPath, Work, check_distance};
use super::reader::{Reader, each_document};
use super::resident::Held;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::resident::Near;
use crate::store::View;

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

    /// Lets searches be surprised by crowded prefixes again.
    pub(crate) fn forget_heavy(&self) {
        self.core().heavy.forget();
    }

    /// [`Reader::near`] by way of the store.
    pub(crate) fn near_by(
        &self,
        fingerprint: F,
        distance: u32,
        path: SearchPath,
    ) -> Result<Vec<Near<F>>> {
        let query = Query::new(fingerprint).path(path);
        let found =
            self.with_view(|view| self.find(view, &query, distance, &mut Work::default()))?;
        let near = |(distance, fingerprint)| Near { distance, fingerprint };
        Ok(found.into_iter().map(near).collect())
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

impl<F: Fingerprint> Index<F> {
    /// Finds every distinct fingerprint within the distance, nearest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::near`].
    pub fn near(&self, fingerprint: F, distance: u32) -> Result<Vec<Near<F>>> {
        self.reader()?.near(fingerprint, distance)
    }
}
