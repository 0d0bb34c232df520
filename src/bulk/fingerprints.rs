//! External sorting of fingerprints into one ascending stream.
//!
//! Fingerprints that fit the budget are radix sorted in memory; otherwise sorted runs are spilled.
//! The merge needs no tree: all values up to a common bound are gathered from the runs and radix
//! sorted. The bound is the smallest of the last values read, so no smaller value can follow.
#![expect(clippy::indexing_slicing, reason = "places are within the values that were read")]

use std::path::{Path, PathBuf};

use rdst::RadixSort;

use super::spool::{CHUNK_VALUES, encode, read_block, reserve};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::sort::next_merge;
use crate::sort::spill::{OwnedFile, SpillReader, SpillWriter, block_bytes};

/// Sorts fingerprints in bounded memory; equal ones are all kept.
#[derive(Debug)]
pub(crate) struct FingerprintSorter<F> {
    dir: PathBuf,
    name: String,
    budget: usize,
    values: Vec<F>,
    files: Vec<OwnedFile>,
    next_number: u32,
}

impl<F: Fingerprint> FingerprintSorter<F> {
    /// Creates an empty sorter that spills to `dir/name-NNNN.run` above `budget` bytes.
    ///
    /// The directory must exist; it is only used if the budget is exceeded.
    pub(crate) fn new(dir: &Path, budget: usize, name: &str) -> Self {
        Self {
            dir: dir.to_path_buf(),
            name: name.to_owned(),
            budget,
            values: Vec::new(),
            files: Vec::new(),
            next_number: 0,
        }
    }

    /// Adds every fingerprint after applying `permute`.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`] if a run cannot be spilled.
    pub(crate) fn push_permuted(
        &mut self,
        mut fingerprints: &[F],
        permute: impl Fn(F) -> F,
    ) -> Result<()> {
        // A fifth of the budget is for the scratch space of the sort.
        let limit = (self.budget / 5 * 4 / F::BYTES).max(CHUNK_VALUES);
        while !fingerprints.is_empty() {
            let room = limit - self.values.len();
            let (head, tail) =
                fingerprints.split_at_checked(room).unwrap_or((fingerprints, Default::default()));
            reserve(&mut self.values, head.len(), limit);
            self.values.extend(head.iter().map(|fingerprint| permute(*fingerprint)));
            fingerprints = tail;
            if !tail.is_empty() {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        sort(&mut self.values);
        let path = self.next_path();
        let mut writer = RunWriter::create(&path, self.block_bytes())?;
        writer.write(&self.values)?;
        self.files.push(writer.finish()?);
        self.values.clear();
        Ok(())
    }

    /// Half the block size for records, because a merge also holds the sorted batch and its scratch
    /// space.
    fn block_bytes(&self) -> usize {
        block_bytes(self.budget) / 2
    }

    fn next_path(&mut self) -> PathBuf {
        let number = self.next_number;
        self.next_number += 1;
        self.dir.join(format!("{}-{number:04}.run", self.name))
    }

    /// Sorts and returns the ascending stream.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`]; [`crate::Error::Corrupt`] if a file is damaged.
    pub(crate) fn finish(mut self) -> Result<SortedFingerprints<F>> {
        if self.files.is_empty() {
            sort(&mut self.values);
            return Ok(SortedFingerprints { runs: Vec::new(), values: self.values, at: 0 });
        }
        self.spill()?;
        self.values = Vec::new();
        let block_bytes = self.block_bytes();
        while let Some(range) = next_merge(&self.files, self.budget, block_bytes) {
            let path = self.next_path();
            let start = range.start;
            let mut merged = SortedFingerprints::<F>::merge(self.files.drain(range).collect())?;
            let mut writer = RunWriter::create(&path, block_bytes)?;
            let mut batch = Vec::new();
            while merged.next_chunk(&mut batch)? {
                writer.write(&batch)?;
            }
            self.files.insert(start, writer.finish()?);
        }
        SortedFingerprints::merge(self.files)
    }
}

fn sort<F: Fingerprint>(values: &mut [F]) {
    // In place, and still faster here than the variant that copies.
    values.radix_sort_builder().with_low_mem_tuner().sort();
}

#[derive(Debug)]
struct RunWriter {
    writer: SpillWriter,
    block: Vec<u8>,
    block_bytes: usize,
    written: u64,
}

impl RunWriter {
    fn create(path: &Path, block_bytes: usize) -> Result<Self> {
        let writer = SpillWriter::create(path)?;
        Ok(Self { writer, block: Vec::with_capacity(block_bytes), block_bytes, written: 0 })
    }

    fn write<F: Fingerprint>(&mut self, values: &[F]) -> Result<()> {
        for part in values.chunks(self.block_bytes / F::BYTES) {
            self.block.clear();
            encode(part, &mut self.block);
            self.writer.write_block(&self.block)?;
        }
        self.written += values.len() as u64;
        Ok(())
    }

    fn finish(self) -> Result<OwnedFile> {
        self.writer.finish(self.written, false)
    }
}

#[derive(Debug)]
struct Run<F> {
    reader: SpillReader,
    _owned: OwnedFile,
    block: Vec<u8>,
    values: Vec<F>,
    at: usize,
}

impl<F: Fingerprint> Run<F> {
    fn open(owned: OwnedFile) -> Result<Self> {
        let reader = SpillReader::open_named(&owned.file)?;
        Ok(Self { reader, _owned: owned, block: Vec::new(), values: Vec::new(), at: 0 })
    }

    /// Reads the next block if this one is used up; returns its last value if more follow on disk.
    fn refill(&mut self) -> Result<Option<F>> {
        if self.at == self.values.len() {
            self.at = 0;
            read_block(&mut self.reader, &mut self.block, &mut self.values)?;
        }
        Ok(if self.reader.is_at_end() { None } else { self.values.last().copied() })
    }

    fn take_up_to(&mut self, bound: Option<F>) -> &[F] {
        let rest = &self.values[self.at..];
        let count = bound.map_or(rest.len(), |bound| rest.partition_point(|value| *value <= bound));
        self.at += count;
        &rest[..count]
    }
}

/// An ascending stream of fingerprints. Dropping it removes its files.
#[derive(Debug)]
pub(crate) struct SortedFingerprints<F> {
    runs: Vec<Run<F>>,
    /// All fingerprints, if nothing was spilled.
    values: Vec<F>,
    at: usize,
}

impl<F: Fingerprint> SortedFingerprints<F> {
    fn merge(files: Vec<OwnedFile>) -> Result<Self> {
        let runs = files.into_iter().map(Run::open).collect::<Result<Vec<_>>>()?;
        Ok(Self { runs, values: Vec::new(), at: 0 })
    }

    /// Replaces `out` with the next thousands of fingerprints; returns false after the last.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`]; [`crate::Error::Corrupt`] if a file is damaged.
    pub(crate) fn next_chunk(&mut self, out: &mut Vec<F>) -> Result<bool> {
        out.clear();
        if self.runs.is_empty() {
            let rest = &self.values[self.at..];
            out.extend(rest.iter().take(CHUNK_VALUES));
            self.at += out.len();
            return Ok(!out.is_empty());
        }
        let mut bound: Option<F> = None;
        for run in &mut self.runs {
            if let Some(last) = run.refill()? {
                bound = Some(bound.map_or(last, |bound| bound.min(last)));
            }
        }
        let mut contributors = 0;
        for run in &mut self.runs {
            let taken = run.take_up_to(bound);
            contributors += usize::from(!taken.is_empty());
            out.extend_from_slice(taken);
        }
        if contributors > 1 {
            sort(out);
        }
        Ok(!out.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn mix(number: u64) -> u64 {
        let mixed = (number ^ 0x5eed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn sorter(dir: &Path, budget: usize, values: &[u64]) -> FingerprintSorter<u64> {
        let mut sorter = FingerprintSorter::new(dir, budget, "table-0");
        for part in values.chunks(1000) {
            sorter.push_permuted(part, |value| value.rotate_left(16)).unwrap();
        }
        sorter
    }

    fn drain<F: Fingerprint>(mut sorted: SortedFingerprints<F>) -> Result<Vec<F>> {
        let (mut all, mut chunk) = (Vec::new(), Vec::new());
        while sorted.next_chunk(&mut chunk)? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    #[test]
    fn any_budget_gives_the_same_result_as_sorting_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (len, modulus) in [(0, 1), (1, 1), (16_385, u64::MAX), (300_000, u64::MAX), (99_000, 3)]
        {
            let values: Vec<u64> = (0..len).map(|i| mix(i) % modulus).collect();
            let mut expected: Vec<u64> = values.iter().map(|v| v.rotate_left(16)).collect();
            expected.sort_unstable();
            for budget in [0, 200_000, 1 << 30] {
                let sorted = sorter(dir.path(), budget, &values).finish().unwrap();
                assert!(drain(sorted).unwrap() == expected, "{len} values, budget {budget}");
            }
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0, "files are left");
    }

    #[test]
    fn more_runs_than_are_read_together_merge_in_generations() {
        let dir = tempfile::tempdir().unwrap();
        let values: Vec<u64> = (0..1_400_000).map(mix).collect();
        let sorter = sorter(dir.path(), 0, &values);
        assert!(sorter.files.len() > 80, "{} files", sorter.files.len());
        let all = drain(sorter.finish().unwrap()).unwrap();
        assert_eq!(all.len(), values.len());
        assert!(all.is_sorted());
        assert_eq!(dir.path().read_dir().unwrap().count(), 0, "files are left");
    }

    #[test]
    fn a_flipped_byte_in_a_run_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let values: Vec<u64> = (0..100_000).map(mix).collect();
        let sorter = sorter(dir.path(), 0, &values);
        let path = &sorter.files[1].file.path;
        let mut bytes = std::fs::read(path).unwrap();
        bytes[50_000] ^= 0x10;
        std::fs::write(path, bytes).unwrap();
        let outcome = sorter.finish().and_then(drain);
        assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{outcome:?}");
    }
}
