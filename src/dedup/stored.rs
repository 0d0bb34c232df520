//! Finds documents near a stored one before groups are formed.
#![expect(clippy::indexing_slicing, reason = "the lists have an entry for each position")]

use xxhash_rust::xxh3::xxh3_128;

use super::order::Excluded;
use super::settings::DedupOptions;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Index, Query};
use crate::progress::{self, Progress};
use crate::verify::EvidenceFile;

/// Documents searched together, on all threads.
const BATCH: usize = 4096;

/// Positions of documents near a stored one, ascending, each with the nearest of these.
#[derive(Debug, Default)]
pub(super) struct Stored {
    positions: Vec<u32>,
    near: Vec<(u32, Option<f64>)>,
    keys: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

/// Returns a document's [`key_hash`] in the index, by position, if any.
///
/// ```
/// use hamdex::dedup::{OwnKey, key_hash};
///
/// let keys = [Some("a1"), None];
/// let own: &OwnKey = &|position| keys[position as usize].map(|key| key_hash(key.as_bytes()));
/// assert_eq!((own(0), own(1)), (Some(key_hash(b"a1")), None));
/// ```
pub type OwnKey<'a> = dyn Fn(u32) -> Option<u128> + 'a;

/// Hashes a document key, for [`Dedup::finish_against_others`].
///
/// Two different keys have equal hashes with probability 2^-128, unless the keys are chosen to
/// collide.
///
/// [`Dedup::finish_against_others`]: super::Dedup::finish_against_others
///
/// ```
/// use hamdex::dedup::key_hash;
///
/// assert_eq!(key_hash(b"a1"), key_hash(b"a1"));
/// assert_ne!(key_hash(b"a1"), key_hash(b"a2"));
/// ```
pub fn key_hash(key: &[u8]) -> u128 {
    xxh3_128(key)
}

/// A search for documents in an index, verified if there is evidence.
pub(super) struct Search<'a, F: Fingerprint> {
    pub(super) index: &'a Index<F>,
    /// `None` if no document is itself in the index.
    pub(super) own: Option<&'a OwnKey<'a>>,
    pub(super) evidence: Option<&'a EvidenceFile>,
    pub(super) settings: &'a DedupOptions,
}

impl<F: Fingerprint> Search<'_, F> {
    /// Finds the nearest stored document for every document that is not excluded.
    pub(super) fn run(
        &self,
        fingerprints: &[F],
        excluded: &Excluded,
        progress: &dyn Progress,
    ) -> Result<Stored> {
        let mut stored = Stored::default();
        progress.begin("searching", Some(fingerprints.len() as u64));
        let mut first = 0_u32;
        for batch in fingerprints.chunks(BATCH) {
            progress::check(progress)?;
            let asked: Vec<(F, u32)> = batch
                .iter()
                .copied()
                .zip(first..)
                .filter(|&(_, position)| !excluded.holds(position))
                .collect();
            let queries: Vec<_> =
                asked.iter().map(|&asked| self.query(asked)).collect::<Result<_>>()?;
            let found = self.index.search_batch(&queries)?;
            for (matches, &(_, position)) in found.iter().zip(&asked) {
                let own = self.own.and_then(|own| own(position));
                let nearest = match own {
                    Some(own) => matches.iter().find(|near| key_hash(&near.key) != own),
                    None => matches.first(),
                };
                if let Some(nearest) = nearest {
                    stored.push(position, (&nearest.key, nearest.distance, nearest.similarity));
                }
            }
            first += u32::try_from(batch.len()).expect("positions have 32 bits");
            progress.advance(batch.len() as u64);
        }
        Ok(stored)
    }

    fn query(&self, (fingerprint, position): (F, u32)) -> Result<Query<F>> {
        // At most one of two matches has the document's own key.
        let limit = if self.own.is_some() { 2 } else { 1 };
        let query = Query::new(fingerprint).distance(self.settings.distance).limit(limit);
        Ok(match self.evidence {
            None => query,
            Some(evidence) => {
                query.verify(self.settings.verification, evidence.read(position as usize)?)
            }
        })
    }
}

impl Stored {
    /// Adds a document and the stored one near it. Positions must ascend.
    pub(super) fn push(
        &mut self,
        position: u32,
        (key, distance, similarity): (&[u8], u32, Option<f64>),
    ) {
        // Four digits, as reports show them.
        let similarity = similarity.map(|value| (value * 1e4).round() / 1e4);
        self.positions.push(position);
        self.near.push((distance, similarity));
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(super) fn holds(&self, position: u32) -> bool {
        self.positions.binary_search(&position).is_ok()
    }

    /// Returns key, distance and similarity of the stored document near a document.
    pub(super) fn of(&self, position: u32) -> Option<(&[u8], u32, Option<f64>)> {
        let at = self.positions.binary_search(&position).ok()?;
        let (distance, similarity) = self.near[at];
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some((&self.keys[start..self.ends[at]], distance, similarity))
    }
}
