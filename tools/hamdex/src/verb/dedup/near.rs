//! Against an index: documents near a stored one are taken out before groups are formed.

use std::path::Path;

use hamdex::{Fingerprint, Index, OpenOptions, Progress, Query};

use super::collect::Documents;
use crate::failure::Result;
use crate::session::Session;
use crate::size::Size;
use crate::verb::gather::Keys;

/// Documents searched together, on all threads.
const BATCH: usize = 4096;

/// What was taken out: origins, rising, with the nearest stored document of each.
#[derive(Debug, Default)]
pub(super) struct Stored {
    origins: Vec<u64>,
    distances: Vec<u32>,
    keys: Keys,
}

impl Stored {
    pub(super) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Returns key and distance of the stored document that a row is near to.
    pub(super) fn of(&self, origin: u64) -> Option<(&[u8], u32)> {
        let at = self.origins.binary_search(&origin).ok()?;
        Some((self.keys.get(at), *self.distances.get(at)?))
    }
}

/// Takes out every document within the distance of a stored one.
pub(super) fn drop_stored<F: Fingerprint>(
    session: &Session,
    path: &Path,
    documents: &mut Documents<F>,
    distance: u32,
    memory: Size,
) -> Result<Stored> {
    let index = Index::<F>::open_with(path, &OpenOptions::new().read_only(true).memory(memory.0))?;
    let mut stored = Stored::default();
    session.console.begin("searching", Some(documents.len() as u64));
    let origins = documents.origins.chunks(BATCH);
    for (fingerprints, origins) in documents.fingerprints.chunks(BATCH).zip(origins) {
        let query = |&fingerprint: &F| Query::new(fingerprint).distance(distance).limit(1);
        let queries: Vec<_> = fingerprints.iter().map(query).collect();
        for (matches, &origin) in index.search_batch(&queries)?.iter().zip(origins) {
            if let Some(nearest) = matches.first() {
                stored.origins.push(origin);
                stored.distances.push(nearest.distance);
                stored.keys.push(&nearest.key);
            }
        }
        session.console.advance(fingerprints.len() as u64);
    }
    session.console.end_phase();
    let near: Vec<bool> = documents
        .origins
        .iter()
        .map(|origin| stored.origins.binary_search(origin).is_ok())
        .collect();
    documents.retain(|position| !near.get(position).copied().unwrap_or(false));
    Ok(stored)
}
