//! Against an index: documents near a stored one are found before groups are formed.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Index, Query};
use crate::progress::{self, Progress};
use crate::verify::EvidenceFile;

use super::settings::Settings;

/// Documents searched together, on all threads.
const BATCH: usize = 4096;

/// Positions of documents near a stored one, rising, each with the nearest of these.
#[derive(Debug, Default)]
pub(super) struct Stored {
    positions: Vec<u32>,
    near: Vec<(u32, Option<f64>)>,
    keys: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl Stored {
    /// Searches every document in the index, verified where that is asked for.
    pub(super) fn search<F: Fingerprint>(
        index: &Index<F>,
        fingerprints: &[F],
        evidence: Option<&EvidenceFile>,
        settings: &Settings,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut stored = Self::default();
        progress.begin("searching", Some(fingerprints.len() as u64));
        let mut first = 0_u32;
        for batch in fingerprints.chunks(BATCH) {
            progress::check(progress)?;
            let query = |(&fingerprint, position): (&F, u32)| -> Result<Query<F>> {
                let query = Query::new(fingerprint).distance(settings.distance).limit(1);
                Ok(match evidence {
                    None => query,
                    Some(evidence) => {
                        query.verify(settings.verification, evidence.read(position as usize)?)
                    }
                })
            };
            let queries: Vec<_> = batch.iter().zip(first..).map(query).collect::<Result<_>>()?;
            for (matches, position) in index.search_batch(&queries)?.iter().zip(first..) {
                if let Some(nearest) = matches.first() {
                    stored.positions.push(position);
                    stored.near.push((nearest.distance, nearest.similarity));
                    stored.keys.extend_from_slice(&nearest.key);
                    stored.ends.push(stored.keys.len());
                }
            }
            first = first.saturating_add(u32::try_from(batch.len()).unwrap_or(u32::MAX));
            progress.advance(batch.len() as u64);
        }
        Ok(stored)
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(super) fn holds(&self, position: u32) -> bool {
        self.positions.binary_search(&position).is_ok()
    }

    /// Returns the stored document that one is near to: key, distance and similarity.
    pub(super) fn of(&self, position: u32) -> Option<(&[u8], u32, Option<f64>)> {
        let at = self.positions.binary_search(&position).ok()?;
        let &(distance, similarity) = self.near.get(at)?;
        let before = at.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(at).copied()?;
        let key = self.keys.get(before.copied().unwrap_or(0)..end)?;
        Some((key, distance, similarity))
    }
}
