//! Choosing: groups of near-duplicates each become one kept document and its duplicates.

use hamdex::Fingerprint;
use hamdex::join::Linkage;

use super::collect::Documents;
use crate::advise::Settled;
use crate::failure::Result;
use crate::session::Session;
use crate::verb::clusters::groups;
use crate::verb::linking::Linking;

/// What becomes of every document.
#[derive(Debug)]
pub(super) struct Choice {
    /// Number of each document's cluster from 1, or 0 for one that stands alone.
    cluster_of: Vec<u32>,
    /// Position of the kept document of each cluster.
    kept: Vec<u32>,
}

impl Choice {
    /// Number of the document's cluster, from 1; `None` when it stands alone.
    pub(super) fn cluster(&self, position: usize) -> Option<u32> {
        self.cluster_of.get(position).copied().filter(|&cluster| cluster > 0)
    }

    /// Position of the document that is kept of a cluster.
    pub(super) fn kept(&self, cluster: u32) -> usize {
        let kept = (cluster as usize).checked_sub(1).and_then(|at| self.kept.get(at));
        kept.map_or(0, |&position| position as usize)
    }

    pub(super) fn clusters(&self) -> usize {
        self.kept.len()
    }
}

/// Groups the documents and picks one of each group.
///
/// The one with the highest rank is kept, of equals the first. With [`Linkage::Representative`]
/// all others of the group have passed the verification with that one.
pub(super) fn choose<F: Fingerprint>(
    session: &Session,
    documents: &Documents<F>,
    settled: &Settled,
    linkage: Linkage,
) -> Result<Choice> {
    let linking = Linking::new(settled, &documents.evidence, linkage);
    let order = documents.ranks.best_first(documents.len());
    let labels = linking.labels(session, &documents.fingerprints, order.as_deref())?;
    Ok(pick(&groups(&labels), &labels))
}

fn pick(groups: &[Vec<u32>], labels: &[u32]) -> Choice {
    let mut choice = Choice { cluster_of: vec![0; labels.len()], kept: Vec::new() };
    for (group, number) in groups.iter().zip(1..) {
        for &position in group {
            if let Some(cluster) = choice.cluster_of.get_mut(position as usize) {
                *cluster = number;
            }
        }
        let first = group.first().copied().unwrap_or(0);
        choice.kept.push(labels.get(first as usize).copied().unwrap_or(first));
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_know_their_cluster_and_what_is_kept_of_it() {
        let labels = [2, 1, 2, 4, 4];
        let choice = pick(&groups(&labels), &labels);
        let clusters: Vec<_> = (0..5).map(|at| choice.cluster(at)).collect();
        assert_eq!(clusters, [Some(1), None, Some(1), Some(2), Some(2)]);
        assert_eq!((choice.clusters(), choice.kept(1), choice.kept(2)), (2, 2, 4));
    }
}
