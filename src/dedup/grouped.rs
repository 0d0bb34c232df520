//! Units of many documents: their texts on disk, their groups, and the documents of each group.
#![expect(clippy::indexing_slicing, reason = "positions are those that a deduplication returned")]

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::decisions::Decision;
use super::engine::Dedup;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::text::Pipeline;

/// Units that are read and fingerprinted together.
const BATCH: usize = 1024;

/// A distinct unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) number: u32,
    pub(super) documents: u32,
    /// The last document that has it.
    pub(super) last: u32,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

/// Units after their deduplication.
pub(super) struct Grouped {
    /// Position of each unit in the engine; [`NOWHERE`] without features.
    pub(super) positions: Vec<u32>,
    /// Position that names the group of each position.
    groups: Vec<u32>,
}

/// Above every position.
pub(super) const NOWHERE: u32 = u32::MAX;

impl Grouped {
    /// Deduplicates units; of a group the one with the most documents is kept.
    pub(super) fn of<F: Fingerprint>(
        mut engine: Dedup<F, u32>,
        known: &[(u128, Known)],
        texts: &Written,
        pipeline: &Pipeline,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let verification = engine.settings().verification;
        let mut positions = Vec::with_capacity(known.len());
        progress.begin("fingerprinting units", Some(known.len() as u64));
        for batch in known.chunks(BATCH) {
            progress::check(progress)?;
            let make = |(_, known): &(u128, Known)| {
                let unit = texts.read(known)?;
                Ok(verification.fingerprint_and_evidence::<F>(pipeline, &unit))
            };
            let made = batch.par_iter().map(make).collect::<Result<Vec<_>>>()?;
            for (made, (_, known)) in made.into_iter().zip(batch) {
                positions.push(match made {
                    Some((sketch, evidence)) => {
                        engine.push(sketch.fingerprint, &evidence, known.documents)?
                    }
                    None => NOWHERE,
                });
            }
            progress.advance(batch.len() as u64);
        }
        let decisions = engine.finish(progress)?;
        let group = |(decision, position)| match decision {
            Decision::Duplicate { kept, .. } => kept,
            Decision::Kept { .. } | Decision::Stored { .. } => position,
        };
        let groups = decisions.iter().zip(0..).map(group).collect();
        Ok(Self { positions, groups })
    }

    /// Returns the group of a unit, by its place among the known ones.
    pub(super) fn group(&self, place: usize) -> Option<u32> {
        let position = *self.positions.get(place)?;
        self.groups.get(position as usize).copied()
    }

    /// Counts the documents of each group, a document with several units of it once.
    pub(super) fn documents(
        &self,
        known: &[(u128, Known)],
        documents: u32,
        lists: Written,
        progress: &dyn Progress,
    ) -> Result<Vec<u32>> {
        let mut counts = vec![0_u32; self.groups.len()];
        let mut last = vec![NOWHERE; self.groups.len()];
        let mut lists = lists.rewound()?;
        for document in 0..documents {
            if document % 4096 == 0 {
                progress::check(progress)?;
            }
            for _ in 0..lists.number()? {
                let number = lists.number()?;
                let place = known.binary_search_by_key(&number, |(_, known)| known.number);
                let group = place.ok().and_then(|place| self.group(place));
                if let Some(group) = group.filter(|&group| last[group as usize] != document) {
                    last[group as usize] = document;
                    counts[group as usize] += 1;
                }
            }
        }
        Ok(counts)
    }
}

/// An unnamed file being written.
#[derive(Debug)]
pub(super) struct Spool {
    file: BufWriter<File>,
    /// Names the file in errors.
    name: PathBuf,
    len: u64,
}

impl Spool {
    pub(super) fn new(directory: Option<&Path>) -> Result<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|e| Error::io(&directory, e))?;
        let name = format!("temporary file in {}", directory.display()).into();
        Ok(Self { file: BufWriter::with_capacity(1 << 18, file), name, len: 0 })
    }

    /// Appends bytes and returns their offset.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.name, e))?;
        let offset = self.len;
        self.len += bytes.len() as u64;
        Ok(offset)
    }

    pub(super) fn finish(self) -> Result<Written> {
        let Self { file, name, .. } = self;
        let file = file.into_inner().map_err(|e| Error::io(&name, e.into_error()))?;
        Ok(Written { file, name })
    }
}

/// The file once it is complete.
pub(super) struct Written {
    file: File,
    name: PathBuf,
}

impl Written {
    /// Reads the text of a unit.
    pub(super) fn read(&self, known: &Known) -> Result<String> {
        let mut bytes = vec![0; known.bytes as usize];
        let read = self.file.read_exact_at(&mut bytes, known.offset);
        read.map_err(|e| Error::io(&self.name, e))?;
        String::from_utf8(bytes).map_err(|e| Error::corrupt("units", e.to_string()))
    }

    /// Reads numbers from the begin.
    fn rewound(mut self) -> Result<Numbers> {
        self.file.rewind().map_err(|e| Error::io(&self.name, e))?;
        Ok(Numbers { file: BufReader::with_capacity(1 << 18, self.file), name: self.name })
    }
}

struct Numbers {
    file: BufReader<File>,
    name: PathBuf,
}

impl Numbers {
    fn number(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact(&mut bytes).map_err(|e| Error::io(&self.name, e))?;
        Ok(u32::from_be_bytes(bytes))
    }
}
