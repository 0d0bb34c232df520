//! Files of fingerprints, queries near them, and random numbers.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Result, Write};
use std::path::Path;

use crate::measure::Outcome;

/// `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014): equal seeds give equal numbers everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
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

/// The finaliser of `SplitMix64`: separates numbers that differ in few bits.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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

/// Reads up to `most` raw little-endian fingerprints.
pub(crate) fn read_some(path: &Path, most: usize) -> Result<Vec<u64>> {
    read(path)?.take(most).collect()
}

/// Generates queries that differ from stored fingerprints in up to `flips` bits.
pub(crate) fn near(seed: u64, stored: &[u64], flips: u32, count: usize) -> Vec<u64> {
    let mut random = Random(seed);
    let mut pick = || {
        let at = usize::try_from(random.below(stored.len() as u64)).unwrap_or(0);
        let original = stored.get(at).copied().unwrap_or(0);
        random.flip(original, flips.into())
    };
    (0..count).map(|_| pick()).collect()
}

/// Reads up to `most` fingerprints of a corpus.
///
/// A `.jsonl` file has the output of `hamdex fingerprint`; other files have raw little-endian u64.
pub(crate) fn read_corpus(path: &Path, most: u64) -> Outcome<Vec<u64>> {
    let most = usize::try_from(most)?;
    if path.extension().is_none_or(|extension| extension != "jsonl") {
        return Ok(read_some(path, most)?);
    }
    let lines = BufReader::with_capacity(1 << 20, File::open(path)?).lines();
    lines.take(most).map(|line| of_line(&line?)).collect()
}

fn of_line(line: &str) -> Outcome<u64> {
    let row: serde_json::Value = serde_json::from_str(line)?;
    let text = row.get("fingerprint").and_then(serde_json::Value::as_str);
    let text = text.ok_or_else(|| format!("no \"fingerprint\" in {line}"))?;
    Ok(u64::from_str_radix(text, 16)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_of_a_corpus_are_read_from_lines_and_from_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let (lines, raw) = (dir.path().join("a.jsonl"), dir.path().join("a.u64"));
        let text = "{\"id\":\"1\",\"fingerprint\":\"00000000000000ff\",\"features\":3}\n\
                    {\"id\":\"2\",\"fingerprint\":\"8000000000000000\",\"features\":1}\n";
        std::fs::write(&lines, text).unwrap();
        assert_eq!(read_corpus(&lines, 9).unwrap(), [0xff, 1 << 63]);
        assert_eq!(read_corpus(&lines, 1).unwrap(), [0xff]);
        write(&raw, &[7, 9]).unwrap();
        assert_eq!(read_corpus(&raw, 9).unwrap(), [7, 9]);
        std::fs::write(&lines, "{\"id\":\"1\"}\n").unwrap();
        assert!(read_corpus(&lines, 9).is_err());
    }
}
