//! Synthetic fingerprints: mostly random, some of them near copies of earlier ones.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Result, Write};
use std::path::Path;

/// `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014): the same numbers everywhere for a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Flips up to `most` bits.
    pub(crate) fn flip(&mut self, fingerprint: u64, most: u64) -> u64 {
        let flips = self.below(most + 1);
        (0..flips).fold(fingerprint, |f, _| f ^ 1 << self.below(64))
    }
}

/// Makes `count` fingerprints, one in five a copy of an earlier one with 0 to 3 flips.
pub(crate) fn mixed(seed: u64, count: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut all: Vec<u64> = Vec::new();
    for _ in 0..count {
        let earlier = usize::try_from(random.below(all.len() as u64)).unwrap_or(0);
        let next = match all.get(earlier) {
            Some(&earlier) if random.below(5) == 0 => random.flip(earlier, 3),
            _ => random.next(),
        };
        all.push(next);
    }
    all
}

/// Writes raw little-endian fingerprints.
#[allow(clippy::little_endian_bytes)]
pub(crate) fn write(path: &Path, fingerprints: &[u64]) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for fingerprint in fingerprints {
        file.write_all(&fingerprint.to_le_bytes())?;
    }
    file.flush()
}

/// Reads the first `most` raw little-endian fingerprints, or all where there are fewer.
pub(crate) fn read_some(path: &Path, most: usize) -> Result<Vec<u64>> {
    read(path)?.take(most).collect()
}

/// Makes queries that differ from stored fingerprints in up to `flips` bits.
pub(crate) fn near(seed: u64, stored: &[u64], flips: u32, count: usize) -> Vec<u64> {
    let mut random = Random(seed);
    let mut pick = || {
        let at = usize::try_from(random.below(stored.len() as u64)).unwrap_or(0);
        let original = stored.get(at).copied().unwrap_or(0);
        random.flip(original, flips.into())
    };
    (0..count).map(|_| pick()).collect()
}

/// Makes queries that have nothing to do with what is stored.
pub(crate) fn random(seed: u64, count: usize) -> Vec<u64> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next()).collect()
}

/// Reads raw little-endian fingerprints one by one.
#[allow(clippy::little_endian_bytes)]
pub(crate) fn read(path: &Path) -> Result<impl Iterator<Item = Result<u64>>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    Ok(std::iter::from_fn(move || {
        let mut bytes = [0; 8];
        match file.read_exact(&mut bytes) {
            Ok(()) => Some(Ok(u64::from_le_bytes(bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(error)),
        }
    }))
}
