//! The decision about every document, by position.
#![expect(clippy::indexing_slicing, reason = "labels are positions, as grouping made them")]

use rayon::prelude::*;

use super::groups::{Groups, groups};
use super::stored::Stored;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::join::{self, Diameter, Labelled};
use crate::progress::{self, Progress};
use crate::verify::{EvidenceFile, Verification};

/// Documents measured between two checks for cancellation.
const MEASURED_TOGETHER: usize = 1024;

/// Documents measured before their results are stored.
const SLAB: usize = 64 * MEASURED_TOGETHER;

/// The decision about one document: kept, duplicate or already stored.
///
/// ```
/// use hamdex::dedup::{Decision, Dedup, DedupOptions};
///
/// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
/// for fingerprint in [0b0000, 0b0001, 0xffff] {
///     dedup.push(fingerprint, &[], ())?;
/// }
/// for (position, decision) in dedup.finish(&())?.iter().enumerate() {
///     match decision {
///         Decision::Kept { .. } => println!("keep {position}"),
///         Decision::Duplicate { kept, .. } => println!("{position} duplicates {kept}"),
///         Decision::Stored { .. } => unreachable!("no index was searched"),
///     }
/// }
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision<'a> {
    /// The document is kept.
    Kept {
        /// Number of its cluster, from 1; `None` if it has no duplicate or was excluded.
        cluster: Option<u32>,
    },
    /// The document is removed because another one of its cluster is kept.
    Duplicate {
        /// Position of the kept document.
        kept: u32,
        /// Distance of the two in bits. Exceeds the distance of the settings only with
        /// [`Linkage::Chain`](crate::join::Linkage::Chain).
        distance: u32,
        /// Similarity of the two. Below the threshold of the verification only with
        /// [`Linkage::Chain`](crate::join::Linkage::Chain); `None` if nothing is verified.
        similarity: Option<f64>,
        /// Number of their cluster, from 1.
        cluster: u32,
    },
    /// The document is removed because a document of the index is near.
    Stored {
        /// Key of the nearest stored document.
        key: &'a [u8],
        /// Distance of the two in bits.
        distance: u32,
        /// Similarity of the two, to four digits; `None` if nothing is verified.
        similarity: Option<f64>,
    },
}

/// A group of near-duplicates, of which one is kept.
///
/// See [`Decisions::clusters`] for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cluster<'a> {
    /// Number of the cluster, from 1. Larger clusters come first, then those that start first.
    pub number: u32,
    /// Position of the kept document.
    pub kept: u32,
    /// Positions of all members, ascending; at least two.
    pub members: &'a [u32],
}

/// The decisions about all documents; see [`Dedup`](super::Dedup).
///
/// ```
/// use hamdex::dedup::{Decision, Dedup, DedupOptions};
///
/// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
/// for fingerprint in [0xffff, 0b0000, 0b0001] {
///     dedup.push(fingerprint, &[], ())?;
/// }
/// let decisions = dedup.finish(&())?;
/// assert_eq!((decisions.len(), decisions.kept(), decisions.removed()), (3, 2, 1));
/// assert_eq!((decisions.cluster(0), decisions.cluster(2)), (None, Some(1)));
/// assert_eq!(decisions.kept_of(1), Some(1));
/// assert_eq!(decisions.of(0), Decision::Kept { cluster: None });
/// assert_eq!(decisions.fingerprint(2), 0b0001);
/// assert_eq!((decisions.is_empty(), decisions.near_stored()), (false, 0));
/// assert_eq!(decisions.fingerprints(), [0xffff, 0b0000, 0b0001]);
/// assert_eq!(decisions.iter().next(), Some(Decision::Kept { cluster: None }));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Decisions<F> {
    fingerprints: Vec<F>,
    /// Number of each document's cluster, from 1; 0 if it is in none.
    cluster_of: Vec<u32>,
    groups: Groups,
    /// Position of the kept document of each cluster.
    kept: Vec<u32>,
    removed: Removed,
    stored: Stored,
}

/// The duplicates, each compared with the kept document of its cluster.
#[derive(Debug, Default)]
struct Removed {
    /// Ascending.
    positions: Vec<u32>,
    distances: Vec<u8>,
    /// Not a number if the two were not compared.
    similarities: Vec<f64>,
}

impl Removed {
    /// Returns distance and similarity of a duplicate.
    fn of(&self, position: u32) -> Option<(u32, Option<f64>)> {
        let at = self.positions.binary_search(&position).ok()?;
        let similarity = self.similarities[at];
        Some((self.distances[at].into(), Some(similarity).filter(|found| !found.is_nan())))
    }
}

impl<F: Fingerprint> Decisions<F> {
    /// Derives the decisions from labels that name the kept documents.
    ///
    /// Measures the duplicates that were not yet compared with the kept document.
    pub(super) fn new(
        fingerprints: Vec<F>,
        Labelled { labels, similarities }: Labelled,
        stored: Stored,
        (evidence, verification): (Option<&EvidenceFile>, Verification),
        progress: &dyn Progress,
    ) -> Result<Self> {
        let groups = groups(&labels);
        let kept: Vec<u32> = groups.iter().map(|group| labels[group[0] as usize]).collect();
        let mut cluster_of = labels;
        cluster_of.fill(0);
        for (group, number) in groups.iter().zip(1..) {
            for &position in group {
                cluster_of[position as usize] = number;
            }
        }
        let kept_of = |position: u32| {
            let cluster = cluster_of[position as usize] as usize;
            cluster.checked_sub(1).map(|at| kept[at]).filter(|&kept| kept != position)
        };
        let measuring = measuring(verification);
        let measure = |&(position, kept): &(u32, u32)| -> Result<(u8, f64)> {
            let (a, b) = (position as usize, kept as usize);
            let distance = fingerprints[a].distance(fingerprints[b]);
            let known = similarities.get(position);
            let similarity = match evidence {
                Some(evidence) if known.is_none() => {
                    evidence.check_while(measuring, (distance, a, b), progress)?
                }
                Some(_) => known,
                None => None,
            };
            let distance = u8::try_from(distance).expect("fingerprints have at most 128 bits");
            Ok((distance, similarity.unwrap_or(f64::NAN)))
        };
        let members = groups.iter().map(<[u32]>::len).sum::<usize>() - groups.len();
        progress.begin("measuring", Some(members as u64));
        let mut removed = Removed::default();
        let mut pairs = (0..).zip(&cluster_of).filter_map(|(at, _)| Some((at, kept_of(at)?)));
        loop {
            let slab: Vec<(u32, u32)> = pairs.by_ref().take(SLAB).collect();
            if slab.is_empty() {
                break;
            }
            let batches = slab.par_chunks(MEASURED_TOGETHER).map(|batch| {
                progress::check(progress)?;
                let measured = batch.iter().map(measure).collect::<Result<Vec<_>>>()?;
                progress.advance(batch.len() as u64);
                Ok(measured)
            });
            for (distance, similarity) in batches.collect::<Result<Vec<_>>>()?.into_iter().flatten()
            {
                removed.distances.push(distance);
                removed.similarities.push(similarity);
            }
            removed.positions.extend(slab.iter().map(|&(position, _)| position));
        }
        drop(pairs);
        Ok(Self { fingerprints, cluster_of, groups, kept, removed, stored })
    }

    /// Returns the decision about a document, by position.
    ///
    /// A position out of range is kept, without a cluster.
    pub fn of(&self, position: u32) -> Decision<'_> {
        if let Some((key, distance, similarity)) = self.stored.of(position) {
            return Decision::Stored { key, distance, similarity };
        }
        let cluster = self.cluster(position);
        match (cluster, self.removed.of(position)) {
            (Some(cluster), Some((distance, similarity))) => {
                let kept = self.kept_of(cluster).expect("a cluster keeps a document");
                Decision::Duplicate { kept, distance, similarity, cluster }
            }
            _ => Decision::Kept { cluster },
        }
    }

    /// Returns the decisions about all documents, in the order they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = Decision<'_>> {
        (0..).zip(&self.cluster_of).map(|(position, _)| self.of(position))
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.cluster_of.len()
    }

    /// Returns true if there is no document.
    pub fn is_empty(&self) -> bool {
        self.cluster_of.is_empty()
    }

    /// Returns the number of kept documents, including excluded ones.
    pub fn kept(&self) -> usize {
        self.len() - self.removed()
    }

    /// Returns the number of removed documents.
    pub fn removed(&self) -> usize {
        self.removed.positions.len() + self.stored.len()
    }

    /// Returns the number of documents removed because a stored one is near.
    pub fn near_stored(&self) -> usize {
        self.stored.len()
    }

    /// Returns the fingerprints of all documents, in the order they were pushed.
    pub fn fingerprints(&self) -> &[F] {
        &self.fingerprints
    }

    /// Returns the fingerprint of a document; zero if out of range.
    pub fn fingerprint(&self, position: u32) -> F {
        self.fingerprints.get(position as usize).copied().unwrap_or_default()
    }

    /// Returns the number of a document's cluster, from 1, if any.
    pub fn cluster(&self, position: u32) -> Option<u32> {
        self.cluster_of.get(position as usize).copied().filter(|&cluster| cluster > 0)
    }

    /// Returns the position of the kept document of a cluster.
    pub fn kept_of(&self, cluster: u32) -> Option<u32> {
        (cluster as usize).checked_sub(1).and_then(|at| self.kept.get(at)).copied()
    }

    /// Returns all clusters, the largest first.
    ///
    /// ```
    /// use hamdex::dedup::{Dedup, DedupOptions};
    ///
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
    /// for fingerprint in [0xffff, 0b0000, 0b0001, 0b0110] {
    ///     dedup.push(fingerprint, &[], ())?;
    /// }
    /// let decisions = dedup.finish(&())?;
    /// let largest = decisions.clusters().next().expect("three documents are near");
    /// assert_eq!((largest.number, largest.kept, largest.members), (1, 1, &[1, 2, 3][..]));
    /// assert_eq!(decisions.diameter(largest).bits, 3);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = Cluster<'_>> {
        let numbered = self.groups.iter().zip(&self.kept).enumerate();
        numbered.map(|(at, (members, &kept))| {
            let number = u32::try_from(at + 1).expect("positions have 32 bits");
            Cluster { number, kept, members }
        })
    }

    /// Returns the largest distance within a cluster.
    ///
    /// It is a lower bound if the cluster is very large.
    pub fn diameter(&self, cluster: Cluster<'_>) -> Diameter {
        let members: Vec<F> = cluster.members.iter().map(|&at| self.fingerprint(at)).collect();
        join::diameter(&members)
    }
}

/// Returns the same verification with a threshold that every pair passes, to measure only.
pub(super) fn measuring(verification: Verification) -> Verification {
    match verification {
        Verification::None => Verification::None,
        Verification::Jaccard(_) => Verification::Jaccard(0.0),
        Verification::Zhou { k, .. } => Verification::Zhou { k, threshold: 0.0 },
        Verification::Edit(_) | Verification::EditByLength { .. } => Verification::Edit(0.0),
        Verification::Contains(_) => Verification::Contains(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::Similarities;

    fn decisions(labels: &[u32]) -> Decisions<u64> {
        let fingerprints = (0..labels.len() as u64).collect();
        let nothing = (None, Verification::None);
        let labels = Labelled { labels: labels.to_vec(), similarities: Similarities::default() };
        Decisions::new(fingerprints, labels, Stored::default(), nothing, &()).unwrap()
    }

    #[test]
    fn documents_know_their_cluster_and_what_is_kept_of_it() {
        let decisions = decisions(&[2, 1, 2, 4, 4]);
        let clusters: Vec<_> = (0..5).map(|at| decisions.cluster(at)).collect();
        assert_eq!(clusters, [Some(1), None, Some(1), Some(2), Some(2)]);
        assert_eq!((decisions.kept_of(0), decisions.kept_of(1)), (None, Some(2)));
        assert_eq!((decisions.kept_of(2), decisions.kept_of(3)), (Some(4), None));
        let duplicate = |kept, distance, cluster| Decision::Duplicate {
            kept,
            distance,
            similarity: None,
            cluster,
        };
        assert_eq!(
            decisions.iter().collect::<Vec<_>>(),
            [
                duplicate(2, 1, 1),
                Decision::Kept { cluster: None },
                Decision::Kept { cluster: Some(1) },
                duplicate(4, 3, 2),
                Decision::Kept { cluster: Some(2) },
            ]
        );
        assert_eq!((decisions.len(), decisions.kept(), decisions.removed()), (5, 3, 2));
    }

    #[test]
    fn clusters_are_numbered_by_size() {
        let decisions = decisions(&[0, 0, 2, 2, 2]);
        let clusters: Vec<_> = decisions.clusters().collect();
        assert_eq!(
            clusters,
            [
                Cluster { number: 1, kept: 2, members: &[2, 3, 4] },
                Cluster { number: 2, kept: 0, members: &[0, 1] },
            ]
        );
        assert_eq!(decisions.diameter(clusters[0]).bits, 3);
        assert_eq!(decisions.of(9), Decision::Kept { cluster: None });
    }

    #[test]
    fn no_documents_need_no_decision() {
        let none = decisions(&[]);
        assert!(none.is_empty() && none.iter().next().is_none() && none.clusters().len() == 0);
    }
}
