//! Delta runs: the fingerprints that one batch added become one key and one value.
//!
//! The key is a number that no other one has, so a delta run is never overwritten, and new ones are
//! stored behind all others. The value is the last member, then the members as in a [`run`].

use super::keys::Kind;
use super::run;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Most members that a writer stores together. Readers hold a delta run in memory.
pub(crate) const MOST_MEMBERS: usize = if cfg!(test) { 1 << 8 } else { 1 << 12 };

/// Returns the key of a delta run.
pub(crate) fn key(number: u64) -> [u8; 9] {
    let mut key = [Kind::DeltaRun as u8; 9];
    let (_, tail) = key.split_at_mut(1);
    tail.copy_from_slice(&number.to_be_bytes());
    key
}

/// Decodes the number of a delta run. Returns `None` for a key of another kind.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] if the kind matches but the length does not.
pub(crate) fn number(key: &[u8]) -> Result<Option<u64>> {
    match key.split_first() {
        Some((&kind, rest)) if kind == Kind::DeltaRun as u8 => {
            let number = rest.try_into().map(u64::from_be_bytes);
            number.map(Some).map_err(|_| {
                corrupt(format!("key of a delta run has {} bytes, expected 9", key.len()))
            })
        }
        _ => Ok(None),
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
        assert_eq!(key(1), [3, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(key(255) < key(256) && [2; 17].as_slice() < key(0).as_slice());
        assert_eq!(number(&key(u64::MAX)).unwrap(), Some(u64::MAX));
        assert_eq!(number(&[2, 0]).unwrap(), None);
        assert_eq!(number(&[]).unwrap(), None);
        assert_eq!(number(&[3, 0]).unwrap_err().code(), "damaged");
    }
}
