//! A spool of fingerprints: storage that is read several times, in push order.
//!
//! The first fingerprints stay in memory up to a budget; the others go to one checksummed file.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::sort::spill::{OwnedFile, SpillReader, SpillWriter};

/// Fingerprints per chunk.
pub(crate) const CHUNK_VALUES: usize = 16 << 10;

/// Collects fingerprints that are read several times from the start.
#[derive(Debug)]
pub(crate) struct FingerprintSpool<F> {
    path: PathBuf,
    in_memory: usize,
    memory: Vec<F>,
    writer: Option<SpillWriter>,
    /// Encoded fingerprints that do not fill a block yet.
    block: Vec<u8>,
    in_file: u64,
}

impl<F: Fingerprint> FingerprintSpool<F> {
    /// Creates an empty spool that writes to `dir/name.spool` above `budget` bytes.
    pub(crate) fn new(dir: &Path, budget: usize, name: &str) -> Self {
        Self {
            path: dir.join(format!("{name}.spool")),
            in_memory: budget / F::BYTES,
            memory: Vec::new(),
            writer: None,
            block: Vec::new(),
            in_file: 0,
        }
    }

    /// Appends fingerprints.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`] if writing fails.
    pub(crate) fn push_all(&mut self, fingerprints: &[F]) -> Result<()> {
        let room = self.in_memory - self.memory.len();
        let (head, tail) =
            fingerprints.split_at_checked(room).unwrap_or((fingerprints, Default::default()));
        reserve(&mut self.memory, head.len(), self.in_memory);
        self.memory.extend_from_slice(head);
        for part in tail.chunks(CHUNK_VALUES) {
            encode(part, &mut self.block);
            self.in_file += part.len() as u64;
            if self.block.len() >= CHUNK_VALUES * F::BYTES {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn write_block(&mut self) -> Result<()> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => SpillWriter::create(&self.path)?,
        };
        self.writer.insert(writer).write_block(&self.block)?;
        self.block.clear();
        Ok(())
    }

    /// Finishes writing.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`] if writing fails.
    pub(crate) fn finish(mut self) -> Result<SpooledFingerprints<F>> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let file = self.writer.map(|writer| writer.finish(self.in_file, false)).transpose()?;
        Ok(SpooledFingerprints { memory: self.memory, file })
    }
}

/// A finished spool. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct SpooledFingerprints<F> {
    memory: Vec<F>,
    file: Option<OwnedFile>,
}

impl<F: Fingerprint> SpooledFingerprints<F> {
    /// Returns the number of fingerprints.
    pub(crate) fn len(&self) -> u64 {
        self.memory.len() as u64 + self.file.as_ref().map_or(0, |owned| owned.file.records)
    }

    /// Returns a reader at the first fingerprint.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`] if reading fails; [`crate::Error::Corrupt`] if the file is truncated.
    pub(crate) fn read(&self) -> Result<SpoolReader<'_, F>> {
        let open = |owned: &OwnedFile| SpillReader::open_named(&owned.file);
        let file = self.file.as_ref().map(open).transpose()?;
        Ok(SpoolReader { memory: &self.memory, file, block: Vec::new() })
    }
}

/// One pass over a spool.
#[derive(Debug)]
pub(crate) struct SpoolReader<'a, F> {
    memory: &'a [F],
    file: Option<SpillReader>,
    block: Vec<u8>,
}

impl<F: Fingerprint> SpoolReader<'_, F> {
    /// Replaces `out` with the next thousands of fingerprints; returns false after the last.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`] if reading fails; [`crate::Error::Corrupt`] if the file is damaged.
    pub(crate) fn next_chunk(&mut self, out: &mut Vec<F>) -> Result<bool> {
        out.clear();
        let (head, tail) = self.memory.split_at_checked(CHUNK_VALUES).unwrap_or((self.memory, &[]));
        self.memory = tail;
        out.extend_from_slice(head);
        match &mut self.file {
            Some(file) if out.is_empty() => read_block(file, &mut self.block, out),
            _ => Ok(!out.is_empty()),
        }
    }
}

/// Grows a vector by doubling, but not beyond `limit`.
pub(crate) fn reserve<F>(values: &mut Vec<F>, more: usize, limit: usize) {
    let needed = values.len() + more;
    if values.capacity() < needed {
        let doubled = (2 * values.len()).max(CHUNK_VALUES).min(limit).max(needed);
        values.reserve_exact(doubled - values.len());
    }
}

/// Appends fingerprints as big-endian bytes.
pub(crate) fn encode<F: Fingerprint>(fingerprints: &[F], block: &mut Vec<u8>) {
    block.reserve(fingerprints.len() * F::BYTES);
    for fingerprint in fingerprints {
        block.extend_from_slice(fingerprint.to_bytes().as_ref());
    }
}

/// Replaces `out` with the fingerprints of the next block; returns false after the last.
pub(crate) fn read_block<F: Fingerprint>(
    file: &mut SpillReader,
    block: &mut Vec<u8>,
    out: &mut Vec<F>,
) -> Result<bool> {
    out.clear();
    let more = file.next_block(block)?;
    if !block.len().is_multiple_of(F::BYTES) {
        return Err(file.corrupt("a block ends within a fingerprint"));
    }
    out.extend(block.chunks_exact(F::BYTES).filter_map(F::from_bytes));
    Ok(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn drain<F: Fingerprint>(spooled: &SpooledFingerprints<F>) -> Result<Vec<F>> {
        let (mut all, mut chunk) = (Vec::new(), Vec::new());
        let mut reader = spooled.read()?;
        while reader.next_chunk(&mut chunk)? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    fn spooled<F: Fingerprint>(dir: &Path, budget: usize, values: &[F]) -> SpooledFingerprints<F> {
        let mut spool = FingerprintSpool::new(dir, budget, "distinct");
        for part in values.chunks(777) {
            spool.push_all(part).unwrap();
        }
        spool.finish().unwrap()
    }

    #[test]
    fn a_spool_reads_back_twice_under_any_budget() {
        let dir = tempfile::tempdir().unwrap();
        for len in [0, 1, 5_000, 50_000] {
            let values: Vec<u128> = (0..len).map(|i| i * 0x9e37_79b9_7f4a_7c15_1234).collect();
            for budget in [0, 16, 100_000, 1 << 30] {
                let spooled = spooled(dir.path(), budget, &values);
                assert_eq!(spooled.len(), u64::try_from(len).unwrap());
                assert_eq!(drain(&spooled).unwrap(), values, "budget {budget}");
                assert_eq!(drain(&spooled).unwrap(), values, "budget {budget}, second pass");
            }
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0, "files are left");
    }

    #[test]
    fn a_flipped_byte_in_a_spool_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let values: Vec<u32> = (0..100_000).collect();
        let spooled = spooled(dir.path(), 1000, &values);
        let path = &spooled.file.as_ref().unwrap().file.path;
        let mut bytes = std::fs::read(path).unwrap();
        bytes[70_000] ^= 1;
        std::fs::write(path, bytes).unwrap();
        assert!(matches!(drain(&spooled), Err(Error::Corrupt { .. })));
    }
}
