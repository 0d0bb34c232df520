//! Delta runs: the fingerprints that one batch added, or removed, become one key and one value.
//!
//! The key is a number that no other one has, so a delta run is never overwritten, and new ones are
//! stored behind all others. That of removed fingerprints ends with the byte 00. The value is the last
//! member, then the members as in a [`run`].

use super::keys::{Delta, Kind};
use super::run;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Most members that a writer stores together. Readers hold a delta run in memory.
pub(crate) const MOST_MEMBERS: usize =
    if cfg!(any(test, feature = "model")) { 1 << 8 } else { 1 << 12 };

/// Which delta run it is, and what it says of its members.
///
/// Of those with the same member, the one with the highest number decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) number: u64,
    pub(crate) delta: Delta,
}

impl Name {
    /// Returns the key.
    pub(crate) fn key(self) -> Vec<u8> {
        [&[Kind::DeltaRun as u8], self.number.to_be_bytes().as_slice(), self.delta.value()].concat()
    }

    /// Decodes a key. Returns `None` for one of another kind.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if the kind matches and the rest is unknown.
    pub(crate) fn of(key: &[u8]) -> Result<Option<Self>> {
        let Some((&kind, rest)) = key.split_first() else { return Ok(None) };
        if kind != Kind::DeltaRun as u8 {
            return Ok(None);
        }
        let Some((number, delta)) = rest.split_first_chunk() else {
            return Err(corrupt(format!("key of a delta run has {} bytes", key.len())));
        };
        Ok(Some(Self { number: u64::from_be_bytes(*number), delta: Delta::of(delta, 0)? }))
    }
}

/// Encodes ascending members, at least one.
pub(crate) fn encode<F: Fingerprint>(members: &[F]) -> Vec<u8> {
    let last = members.last().expect("a delta run has members");
    let mut differences = Vec::new();
    run::encode(members, &mut differences);
    [last.to_bytes().as_ref(), &differences].concat()
}

/// Decodes all members, last one first.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] for a value that no writer stores.
pub(crate) fn decode<F: Fingerprint>(value: &[u8], members: &mut Vec<F>) -> Result<()> {
    match value.split_at_checked(F::BYTES) {
        Some((last, differences)) => {
            let last = F::from_bytes(last).expect("as many bytes as a fingerprint has");
            run::decode(last, differences, 0, members)
        }
        None => Err(corrupt(format!("delta run has only {} bytes", value.len()))),
    }
}

fn corrupt(detail: String) -> Error {
    Error::corrupt("table 0", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_run_decodes_to_its_members_or_is_refused() {
        for members in [vec![0_u64], vec![u64::MAX], vec![0, u64::MAX], vec![3, 4, 1 << 40]] {
            let value = encode(&members);
            let mut decoded = Vec::new();
            decode(&value, &mut decoded).unwrap();
            decoded.reverse();
            assert_eq!(decoded, members);
            for length in 0..value.len() {
                let cut = decode::<u64>(value.split_at(length).0, &mut decoded);
                assert!(length == 8 || cut.is_err() || decoded.len() < members.len(), "{length}");
            }
        }
        assert_eq!(encode(&[0x10_u64, 0x12, 0x1_0012]).len(), 8 + 1 + 2 * 3);
    }

    #[test]
    fn keys_of_delta_runs_are_behind_all_others_and_in_order() {
        let added = |number| Name { number, delta: Delta::Added };
        let removed = |number| Name { number, delta: Delta::Removed };
        assert_eq!(added(1).key(), [3, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(removed(1).key(), [3, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        let ascending = [added(0), removed(1), added(2), added(255), removed(256)].map(Name::key);
        assert!(ascending.is_sorted() && [2; 17].as_slice() < &*ascending[0]);
        for name in [added(0), removed(0), added(u64::MAX), removed(u64::MAX)] {
            assert_eq!(Name::of(&name.key()).unwrap(), Some(name));
        }
        assert_eq!(Name::of(&[2, 0]).unwrap(), None);
        assert_eq!(Name::of(&[]).unwrap(), None);
        for damaged in [&[3, 0][..], &[3, 0, 0, 0, 0, 0, 0, 0, 1, 1]] {
            assert_eq!(Name::of(damaged).unwrap_err().code(), "damaged");
        }
    }
}
