//! Linking: fingerprints and their evidence become groups, by chains or by representatives.

use hamdex::join::{self, Diameter, Linkage};
use hamdex::{Fingerprint, Verification};

use crate::advise::Settled;
use crate::evidence::{Evidence, Kept};
use crate::failure::Result;
use crate::session::Session;

/// What two documents need to come into one group.
#[derive(Debug)]
pub(super) struct Linking<'a> {
    distance: u32,
    verification: Verification,
    evidence: Option<&'a Evidence>,
    linkage: Linkage,
}

impl<'a> Linking<'a> {
    pub(super) fn new(settled: &Settled, evidence: &'a Kept, linkage: Linkage) -> Self {
        Self {
            distance: settled.distance,
            verification: settled.verification,
            evidence: evidence.of(settled.verification),
            linkage,
        }
    }

    /// Returns for every position the position that names its group.
    ///
    /// `order` lists the positions, those first that are rather to stand for a group; without it
    /// the first position of a group does.
    pub(super) fn labels<F: Fingerprint>(
        &self,
        session: &Session,
        fingerprints: &[F],
        order: Option<&[u32]>,
    ) -> Result<Vec<u32>> {
        let labels = match order {
            None => self.grouped(session, fingerprints, &|position| position)?,
            Some(order) => {
                let at = |place: u32| order.get(place as usize).copied().unwrap_or(place);
                let ordered: Vec<F> = order
                    .iter()
                    .filter_map(|&position| fingerprints.get(position as usize).copied())
                    .collect();
                let grouped = self.grouped(session, &ordered, &at)?;
                let mut labels = vec![0; grouped.len()];
                for (&position, label) in order.iter().zip(grouped) {
                    if let Some(slot) = labels.get_mut(position as usize) {
                        *slot = at(label);
                    }
                }
                labels
            }
        };
        session.console.end_phase();
        Ok(labels)
    }

    /// Groups fingerprints, whose documents are where `at` says.
    fn grouped<F: Fingerprint>(
        &self,
        session: &Session,
        fingerprints: &[F],
        at: &(dyn Fn(u32) -> u32 + Sync),
    ) -> Result<Vec<u32>> {
        let (distance, console) = (self.distance, &session.console);
        if self.evidence.is_none() && self.linkage == Linkage::Chain {
            return Ok(join::clusters(fingerprints, distance, console)?);
        }
        let piece = |place: u32| {
            self.evidence.map_or(0, |evidence| u64::from(evidence.piece(at(place) as usize)))
        };
        let digests: Vec<u64> = (0..).zip(fingerprints).map(|(place, _)| piece(place)).collect();
        let verify = |a: u32, b: u32, apart: u32| match self.evidence {
            None => Ok(apart <= distance),
            Some(evidence) => {
                let (a, b) = (at(a) as usize, at(b) as usize);
                Ok(evidence.check(self.verification, apart, a, b)?.is_some())
            }
        };
        let linkage = self.linkage;
        Ok(join::verified_clusters(fingerprints, &digests, distance, linkage, console, &verify)?)
    }
}

/// The largest distance within a group; a bound from below for very large ones.
pub(super) fn diameter<F: Fingerprint>(fingerprints: &[F], group: &[u32]) -> Diameter {
    let members: Vec<F> =
        group.iter().filter_map(|&position| fingerprints.get(position as usize).copied()).collect();
    join::diameter(&members)
}
