//! Operations: derives a call from a number, equal in every process, and applies it to a model.

use std::path::Path;

use fastrand::Rng;
use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Error, Index, IndexOptions, Result};

use crate::copies;
use crate::oracle::Model;

/// Number of operations after which the kinds repeat.
pub(crate) const CYCLE: u64 = 16;

/// The position of the bulk build in a cycle.
pub(crate) const BUILD: u64 = 12;

/// Distance at which new documents are rejected as duplicates.
const NEAR: u32 = 3;

/// The size of a build: few documents, or enough to need spill files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Large,
}

/// A call on an index.
#[derive(Debug)]
pub(crate) enum Operation {
    Insert(Vec<(Vec<u8>, u64)>, Durability),
    InsertIfNew(Vec<(Vec<u8>, u64)>),
    Remove(Vec<Vec<u8>>, Durability),
    Build(Vec<(Vec<u8>, u64)>),
    Fold,
    FoldStep,
    Flush,
    Compact,
    /// Backs up; the value is the number of the operation.
    BackUp(u64),
    /// Backs up and restores over the index; the value is the number of the operation.
    Return(u64),
    Checkpoint,
}

fn key(owner: u64, at: u64) -> Vec<u8> {
    format!("{owner:07}-{at:03}").into_bytes()
}

/// Draws a fingerprint: shared, near others, in the last range of a table, or random.
pub(crate) fn fingerprint(rng: &mut Rng) -> u64 {
    match rng.u32(0..8) {
        0 => rng.u64(0..4),
        1 => !0 ^ 1_u64.checked_shl(rng.u32(0..72)).unwrap_or(0),
        2..=4 => {
            let mut near = rng.u64(0..12).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for _ in 0..rng.u32(0..6) {
                near ^= 1 << rng.u32(0..64);
            }
            near
        }
        _ => rng.u64(..),
    }
}

fn documents(rng: &mut Rng, owner: u64, count: u64) -> Vec<(Vec<u8>, u64)> {
    (0..count).map(|at| (key(owner, at), fingerprint(rng))).collect()
}

/// Returns an operation by its number in the sequence of a seed.
pub(crate) fn operation(seed: u64, number: u64, size: Size) -> Operation {
    let rng = &mut Rng::with_seed(seed.wrapping_mul(31).wrapping_add(number));
    let synced = Durability::Synced;
    let buffered = Durability::Buffered;
    match number % CYCLE {
        1 | 6 => Operation::Insert(documents(rng, number, 30), synced),
        2 => Operation::Insert(documents(rng, number.saturating_sub(1), 20), synced),
        3 => {
            let gone = (0..40).step_by(3).map(|at| key(number.saturating_sub(3), at));
            Operation::Remove(gone.collect(), synced)
        }
        4 => Operation::InsertIfNew(documents(rng, number, 15)),
        5 => Operation::Fold,
        7 => Operation::Remove((0..30).map(|at| key(number - 1, at)).collect(), buffered),
        8 => Operation::Flush,
        9 => Operation::Insert(documents(rng, number.saturating_sub(9), 25), buffered),
        10 => Operation::Compact,
        11 => Operation::BackUp(number),
        BUILD => Operation::Build(build(rng, number, size)),
        13 => Operation::FoldStep,
        14 => {
            // Removes documents of an earlier cycle, so that the index stays small.
            let old = number.saturating_sub(3 * CYCLE)..number.saturating_sub(2 * CYCLE);
            let gone = old.flat_map(|owner| (0..200).map(move |at| key(owner, at)));
            Operation::Remove(gone.collect(), buffered)
        }
        15 => Operation::Return(number),
        0 if number > 0 => Operation::Checkpoint,
        _ => Operation::Insert(documents(rng, number, 40), buffered),
    }
}

fn build(rng: &mut Rng, number: u64, size: Size) -> Vec<(Vec<u8>, u64)> {
    let mut all = documents(rng, number, 150);
    all.extend(documents(rng, number - 1, 20));
    if size == Size::Large {
        all.extend((0..60_000_u64).map(|at| {
            let mut long = format!("{number:07}-{at:06}-").into_bytes();
            long.resize(200, b'.');
            (long, rng.u64(..))
        }));
    }
    all
}

impl Operation {
    /// Applies the effect of the call to a model.
    pub(crate) fn apply(&self, model: &mut Model) {
        match self {
            Self::Insert(documents, _) | Self::Build(documents) => {
                model.extend(documents.iter().cloned());
            }
            Self::InsertIfNew(documents) => {
                for (key, new) in documents {
                    let near = |(other, f): (&Vec<u8>, &u64)| {
                        other != key && (f ^ new).count_ones() <= NEAR
                    };
                    if !model.iter().any(near) {
                        model.insert(key.clone(), *new);
                    }
                }
            }
            Self::Remove(keys, _) => {
                for key in keys {
                    model.remove(key);
                }
            }
            Self::Fold
            | Self::FoldStep
            | Self::Flush
            | Self::Compact
            | Self::BackUp(_)
            | Self::Return(_)
            | Self::Checkpoint => (),
        }
    }

    /// Returns true if the call is durable against a power loss when it returns.
    pub(crate) fn is_synced(&self) -> bool {
        match self {
            Self::Insert(_, durability) | Self::Remove(_, durability) => {
                *durability == Durability::Synced
            }
            Self::Build(_) | Self::Return(_) => true,
            Self::InsertIfNew(_)
            | Self::Fold
            | Self::FoldStep
            | Self::Flush
            | Self::Compact
            | Self::BackUp(_)
            | Self::Checkpoint => false,
        }
    }

    /// Returns true if the call needs the index closed.
    pub(crate) fn closes(&self) -> bool {
        matches!(self, Self::Build(_) | Self::Return(_))
    }

    /// Makes the call; if it needs the index closed, closes and reopens it.
    pub(crate) fn run(&self, index: Index<u64>, path: &Path) -> Result<Index<u64>> {
        match self {
            Self::Insert(documents, durability) => {
                index.insert_batch(documents, *durability)?;
            }
            Self::InsertIfNew(documents) => {
                index.insert_batch_if_new(documents, NEAR, Durability::Buffered)?;
            }
            Self::Remove(keys, durability) => {
                index.remove_batch(keys, *durability)?;
            }
            Self::Build(documents) => {
                drop(index);
                finish(begin(path)?, documents)?;
                return open(path);
            }
            Self::Fold => {
                index.merge(&())?;
            }
            Self::FoldStep => {
                index.merge_step()?;
            }
            Self::Flush => index.flush()?,
            Self::Compact => {
                index.compact()?;
            }
            Self::BackUp(number) => copies::back_up(&index, path, *number)?,
            Self::Return(number) => {
                copies::back_up(&index, path, *number)?;
                drop(index);
                copies::restore(path)?;
                return open(path);
            }
            Self::Checkpoint => copies::checkpoint(&index, path)?,
        }
        Ok(index)
    }
}

/// Opens an index with little memory.
pub(crate) fn open(path: &Path) -> Result<Index<u64>> {
    Index::open_with(path, &hamdex::IndexOptions::new().memory(16 << 20))
}

fn memory() -> BuildOptions {
    BuildOptions::new().memory(16 << 20)
}

fn begin(path: &Path) -> Result<Builder<u64>> {
    Builder::create(path, &IndexOptions::new(), &memory())
}

/// Resumes an unfinished build of the same documents.
pub(crate) fn resume(path: &Path, documents: &[(Vec<u8>, u64)]) -> Result<()> {
    finish(Builder::resume(path, &memory())?, documents)
}

fn finish(mut builder: Builder<u64>, documents: &[(Vec<u8>, u64)]) -> Result<()> {
    let first = builder.resume_after().map_or(0, |last| last + 1);
    for (origin, (key, fingerprint)) in (0..).zip(documents) {
        if origin >= first {
            builder.push(key, *fingerprint, origin)?;
        }
    }
    builder.finish(&(), &mut |_, _| ()).map(drop)
}

/// Opens an index, or creates it if it does not exist.
pub(crate) fn open_or_create(path: &Path) -> Result<Index<u64>> {
    match open(path) {
        Err(Error::NotFound { .. }) => Index::create(path, &crate::oracle::small()),
        opened => opened,
    }
}
