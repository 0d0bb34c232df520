//! Runs: up to hundreds of ascending permuted fingerprints become one key and one value.
//!
//! The key is the last member, so one forward seek to the low end of a range finds the only run
//! that can hold it. The value is one width byte, then the differences between neighbours, last
//! pair first, each as a big-endian number of that width. An empty value is a run of one member.
//! Manku et al., section 3.2, compress their tables for the same reason.
//!
//! Invariant: members are distinct and ascending, and the runs of a table never overlap.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Number of members per run when runs are written.
///
/// With ten million fingerprints, a bucket under a 16-bit prefix holds 153. In much longer runs
/// most decoded members are outside the range; much shorter runs cost a key and a step each.
pub(crate) const RUN_MEMBERS: usize = 128;

/// Members decoded between two comparisons with the low end of a range.
const GROUP: usize = 32;

/// Encodes the differences of ascending members into `out`.
///
/// The caller stores the last member as the key. Fewer than two members leave `out` empty.
pub(crate) fn encode<F: Fingerprint>(members: &[F], out: &mut Vec<u8>) {
    out.clear();
    let pairs = || members.iter().zip(members.iter().skip(1));
    let mut union = F::ZERO;
    for (low, high) in pairs() {
        union = union | high.overflowing_sub(*low).0;
    }
    if members.len() < 2 {
        return;
    }
    let leading = (union.widen().leading_zeros() - (128 - F::BITS)) / 8;
    let skip = usize::try_from(leading).expect("a byte count fits").min(F::BYTES - 1);
    let width = F::BYTES - skip;
    out.reserve(1 + width * (members.len() - 1));
    out.push(u8::try_from(width).expect("a fingerprint has at most 16 bytes"));
    for (low, high) in pairs().rev() {
        let delta = high.overflowing_sub(*low).0.to_bytes();
        out.extend(delta.as_ref().iter().skip(skip));
    }
}

/// Decodes a whole run into `members`, last member first.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] for a width, length or difference that no encoder writes.
pub(crate) fn decode<F: Fingerprint>(
    last: F,
    value: &[u8],
    table: usize,
    members: &mut Vec<F>,
) -> Result<()> {
    decode_down_to(F::ZERO, last, value, table, members)
}

/// Decodes a run into `members`, last member first, and stops a little below `low`.
///
/// A range often begins inside a run, and members below it need not be decoded.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] for a width, length or difference that no encoder writes.
pub(crate) fn decode_down_to<F: Fingerprint>(
    low: F,
    last: F,
    value: &[u8],
    table: usize,
    members: &mut Vec<F>,
) -> Result<()> {
    members.clear();
    members.push(last);
    let Some((&width, deltas)) = value.split_first() else { return Ok(()) };
    let valid = match width {
        1 => walk::<F, 1>(low, last, deltas, members),
        2 => walk::<F, 2>(low, last, deltas, members),
        3 => walk::<F, 3>(low, last, deltas, members),
        4 => walk::<F, 4>(low, last, deltas, members),
        5 => walk::<F, 5>(low, last, deltas, members),
        6 => walk::<F, 6>(low, last, deltas, members),
        7 => walk::<F, 7>(low, last, deltas, members),
        8 => walk::<F, 8>(low, last, deltas, members),
        9 => walk::<F, 9>(low, last, deltas, members),
        10 => walk::<F, 10>(low, last, deltas, members),
        11 => walk::<F, 11>(low, last, deltas, members),
        12 => walk::<F, 12>(low, last, deltas, members),
        13 => walk::<F, 13>(low, last, deltas, members),
        14 => walk::<F, 14>(low, last, deltas, members),
        15 => walk::<F, 15>(low, last, deltas, members),
        16 => walk::<F, 16>(low, last, deltas, members),
        _ => false,
    };
    if valid {
        return Ok(());
    }
    Err(Error::corrupt(
        format!("table {table}"),
        format!("run ending in {} does not decode ({} bytes)", last.hex(), value.len()),
    ))
}

/// Subtracts differences of `W` bytes. Returns false if one is zero or the result is negative.
fn walk<F: Fingerprint, const W: usize>(
    low: F,
    last: F,
    deltas: &[u8],
    members: &mut Vec<F>,
) -> bool {
    let (deltas, rest) = deltas.as_chunks::<W>();
    if W > F::BYTES || !rest.is_empty() || deltas.is_empty() {
        return false;
    }
    let mut current = last;
    let mut broken = false;
    for group in deltas.chunks(GROUP) {
        members.extend(group.iter().map(|delta| {
            let delta = widen::<F, W>(delta);
            let (next, borrowed) = current.overflowing_sub(delta);
            broken |= borrowed;
            broken |= delta == F::ZERO;
            current = next;
            next
        }));
        if current < low {
            break;
        }
    }
    !broken
}

/// Reads `W` big-endian bytes.
///
/// Copies them into a whole word first: two loads instead of one per byte, which takes a third less
/// time per run.
#[inline]
fn widen<F: Fingerprint, const W: usize>(bytes: &[u8; W]) -> F {
    if W <= 8 {
        let mut word = [0; 8];
        if let Some(tail) = word.last_chunk_mut::<W>() {
            *tail = *bytes;
        }
        return F::truncate(u128::from(u64::from_be_bytes(word)));
    }
    let mut word = [0; 16];
    if let Some(tail) = word.last_chunk_mut::<W>() {
        *tail = *bytes;
    }
    F::truncate(u128::from_be_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<F: Fingerprint>(members: &[F]) {
        let mut value = Vec::new();
        encode(members, &mut value);
        let mut back = Vec::new();
        decode(*members.last().unwrap(), &value, 0, &mut back).unwrap();
        back.reverse();
        assert_eq!(back, members);
    }

    #[test]
    fn runs_decode_to_what_was_encoded_at_every_width() {
        round_trip(&[7_u64]);
        round_trip(&[0_u64, 1]);
        round_trip(&[0_u64, u64::MAX]);
        round_trip(&[0_u32, 255, 256, 70_000, u32::MAX]);
        for shift in 0..64 {
            round_trip(&[1_u64, 1 + (1 << shift)]);
        }
        for shift in 0..128 {
            round_trip(&[0_u128, 1 << shift]);
        }
        let many: Vec<u64> = (0..1000_u64).map(|i| i * i * 77_777).collect();
        round_trip(&many);
    }

    #[test]
    fn runs_have_golden_bytes() {
        let mut value = Vec::new();
        encode(&[0x10_u64, 0x12, 0x1_0012], &mut value);
        assert_eq!(value, [3, 1, 0, 0, 0, 0, 2]);
        encode(&[9_u64], &mut value);
        assert!(value.is_empty());
    }

    #[test]
    fn damaged_runs_are_refused_and_never_panic() {
        let mut members = Vec::new();
        for bad in [
            &[0_u8, 1][..],
            &[17, 1],
            &[255],
            &[2],
            &[2, 1],
            &[2, 0, 1, 0],
            &[1, 0],
            &[1, 200],
            &[9, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[1, 60, 60],
        ] {
            assert!(
                matches!(decode(100_u64, bad, 4, &mut members), Err(Error::Corrupt { .. })),
                "{bad:?}"
            );
        }
    }
}
