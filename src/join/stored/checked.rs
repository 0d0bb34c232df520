//! Verified clusters of an index: groups of documents that pass a verification.

use super::documents::Cluster;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{Checker, Reader};
use crate::join::{JoinOptions, diameter, verified_clusters};
use crate::progress::{self, Progress};
use crate::store::Family;
use crate::store::codec::{self, Document};
use crate::verify::{self, DuplicateRule};

/// Documents between two progress reports.
const REPORT_EVERY: u64 = 1 << 14;

/// Groups the documents of a snapshot; the groups are in no particular order.
pub(super) fn clusters<F: Fingerprint>(
    reader: &Reader<F>,
    checker: Checker<'_>,
    near: DuplicateRule,
    progress: &dyn Progress,
) -> Result<Vec<Cluster>> {
    let documents = Documents::read(reader, progress)?;
    let evidence = |position: u32| checker.evidence::<F>(documents.key(position));
    let labels = verified_clusters(
        &documents.fingerprints,
        &documents.digests,
        JoinOptions::new(near.distance).costs(reader.costs()),
        near.linkage,
        progress,
        &|a, b, distance| checker.compare(distance, &evidence(a)?, &evidence(b)?, documents.key(b)),
    )?;
    let mut members: Vec<(u32, u32)> = labels.into_iter().zip(0..).collect();
    members.sort_unstable();
    let groups = members.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
    let cluster = |group: &[(u32, u32)]| {
        let positions = || group.iter().map(|&(_, position)| position);
        let fingerprints: Vec<F> = positions().map(|at| documents.fingerprint(at)).collect();
        let keys = positions().map(|at| documents.key(at).to_vec()).collect();
        Cluster { keys, diameter: diameter(&fingerprints) }
    };
    Ok(groups.map(cluster).collect())
}

/// Documents by ascending key; their feature sets stay in the store.
struct Documents<F> {
    fingerprints: Vec<F>,
    digests: Vec<u64>,
    keys: Vec<u8>,
    ends: Vec<usize>,
}

impl<F: Fingerprint> Documents<F> {
    fn read(reader: &Reader<F>, progress: &dyn Progress) -> Result<Self> {
        if u32::try_from(reader.len()).is_err() {
            return Err(Error::InvalidOption {
                name: "verify",
                reason: format!(
                    "{} documents are too many to cluster with a verification; the maximum is {}",
                    reader.len(),
                    u32::MAX
                ),
            });
        }
        progress.begin("reading documents", Some(reader.len()));
        let mut documents = Self {
            fingerprints: Vec::new(),
            digests: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
        };
        let mut cursor = reader.snapshot().sweep(Family::Docs)?;
        while let Some((key, bytes)) = cursor.entry()? {
            let document = codec::decode::<Document<F>>("docs", key, bytes)?;
            let read = documents.ends.len() as u64 + 1;
            // A document without features gets a unique digest, so that verifying it returns an
            // error.
            let digest = document.features.as_deref().map_or(!read, verify::digest);
            documents.fingerprints.push(document.fingerprint);
            documents.digests.push(digest);
            documents.keys.extend_from_slice(key);
            documents.ends.push(documents.keys.len());
            if read.is_multiple_of(REPORT_EVERY) {
                progress.advance(REPORT_EVERY);
                progress::check(progress)?;
            }
            cursor.next();
        }
        Ok(documents)
    }

    fn fingerprint(&self, position: u32) -> F {
        self.fingerprints[position as usize]
    }

    fn key(&self, position: u32) -> &[u8] {
        let position = position as usize;
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..self.ends[position]]
    }
}
