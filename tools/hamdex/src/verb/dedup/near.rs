//! Against an index: documents near a stored one are taken out before groups are formed.

use std::path::Path;

use hamdex::{Fingerprint, Index, OpenOptions, Progress, Query};

use super::collect::Documents;
use crate::advise::Settled;
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
    near: Vec<(u32, Option<f64>)>,
    keys: Keys,
}

impl Stored {
    pub(super) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Returns the stored document that a row is near to: key, distance and similarity.
    pub(super) fn of(&self, origin: u64) -> Option<(&[u8], u32, Option<f64>)> {
        let at = self.origins.binary_search(&origin).ok()?;
        let &(distance, similarity) = self.near.get(at)?;
        Some((self.keys.get(at), distance, similarity))
    }
}

/// Takes out every document near a stored one, and verified with it where that is asked for.
pub(super) fn drop_stored<F: Fingerprint>(
    session: &Session,
    path: &Path,
    documents: &mut Documents<F>,
    settled: &Settled,
    memory: Size,
) -> Result<Stored> {
    let index = Index::<F>::open_with(path, &OpenOptions::new().read_only(true).memory(memory.0))?;
    let mut stored = Stored::default();
    session.console.begin("searching", Some(documents.len() as u64));
    let mut done = 0;
    let origins = documents.origins.chunks(BATCH);
    for (fingerprints, origins) in documents.fingerprints.chunks(BATCH).zip(origins) {
        let query = |(&fingerprint, position): (&F, usize)| -> Result<Query<F>> {
            let query = Query::new(fingerprint).distance(settled.distance).limit(1);
            Ok(match documents.evidence.of(settled.verification) {
                None => query,
                Some(evidence) => query.verify(settled.verification, evidence.read(position)?),
            })
        };
        let queries: Vec<_> = fingerprints.iter().zip(done..).map(query).collect::<Result<_>>()?;
        for (matches, &origin) in index.search_batch(&queries)?.iter().zip(origins) {
            if let Some(nearest) = matches.first() {
                stored.origins.push(origin);
                stored.near.push((nearest.distance, nearest.similarity));
                stored.keys.push(&nearest.key);
            }
        }
        done += fingerprints.len();
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
