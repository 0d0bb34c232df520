//! Choosing: groups of near-duplicates each become one kept document and its duplicates.

use hamdex::{Fingerprint, join};

use super::collect::{Documents, Ranks};
use crate::failure::Result;
use crate::session::Session;
use crate::verb::clusters::groups;

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
pub(super) fn choose<F: Fingerprint>(
    session: &Session,
    documents: &Documents<F>,
    distance: u32,
) -> Result<Choice> {
    let labels = join::clusters(&documents.fingerprints, distance, &session.console)?;
    session.console.end_phase();
    Ok(pick(&groups(&labels), documents.len(), &documents.ranks))
}

fn pick(groups: &[Vec<u32>], len: usize, ranks: &Ranks) -> Choice {
    let mut choice = Choice { cluster_of: vec![0; len], kept: Vec::new() };
    for (group, number) in groups.iter().zip(1..) {
        for &position in group {
            if let Some(cluster) = choice.cluster_of.get_mut(position as usize) {
                *cluster = number;
            }
        }
        choice.kept.push(best(group, ranks));
    }
    choice
}

/// Returns the member with the highest rank, of equals the first.
fn best(group: &[u32], ranks: &Ranks) -> u32 {
    let first = group.first().copied().unwrap_or(0);
    group.iter().copied().fold(first, |best, position| {
        let (a, b) = (position as usize, best as usize);
        let higher = match ranks {
            Ranks::Order => false,
            Ranks::Length(lengths) => lengths.get(a) > lengths.get(b),
            Ranks::Newest(stamps) => match (stamps.get(a), stamps.get(b)) {
                (Some(a), Some(b)) => a.order(b).is_gt(),
                _ => false,
            },
        };
        if higher { position } else { best }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Stamp;

    #[test]
    fn the_highest_rank_is_kept_and_of_equals_the_first() {
        let groups = [vec![0, 2, 3], vec![1, 4]];
        let kept = |ranks: &Ranks| pick(&groups, 6, ranks).kept;
        assert_eq!(kept(&Ranks::Order), [0, 1]);
        assert_eq!(kept(&Ranks::Length(vec![5, 7, 9, 9, 7, 100])), [2, 1]);
        let stamps = ["2020", "2020", "2024", "", "2021", "2030"].map(|stamp| match stamp {
            "" => Stamp::Missing,
            stamp => Stamp::Text(stamp.into()),
        });
        assert_eq!(kept(&Ranks::Newest(stamps.into())), [2, 4]);
    }

    #[test]
    fn documents_know_their_cluster() {
        let choice = pick(&[vec![0, 2]], 3, &Ranks::Order);
        assert_eq!(
            (choice.cluster(0), choice.cluster(1), choice.cluster(2)),
            (Some(1), None, Some(1))
        );
        assert_eq!((choice.clusters(), choice.kept(1)), (1, 0));
    }
}
