//! Operations: derives a call from a number, equal in every process, and applies it to a model.

use std::path::Path;

use fastrand::Rng;
use hamdex::any::AnyBuilder;
use hamdex::build::BuildOptions;
use hamdex::{Durability, NewDocument, Result};

use crate::copies;
use crate::oracle::Model;
use crate::setup::{Handle, Setup};

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
    Insert(Vec<(Vec<u8>, u128)>, Durability),
    InsertIfNew(Vec<(Vec<u8>, u128)>),
    Remove(Vec<Vec<u8>>, Durability),
    Build(Vec<(Vec<u8>, u128)>),
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

/// Returns a row number, which a build packs, or a text.
fn key(setup: Setup, owner: u64, at: u64) -> Vec<u8> {
    if setup.rows {
        return (owner * 1000 + at).to_be_bytes().to_vec();
    }
    format!("{owner:07}-{at:03}").into_bytes()
}

/// Draws a fingerprint: shared, near others, in the last range of a table, or random.
pub(crate) fn fingerprint(setup: Setup, rng: &mut Rng) -> u128 {
    let all = setup.narrow(!0);
    match rng.u32(0..8) {
        0 => rng.u128(0..4),
        1 => all ^ setup.narrow(1_u128.checked_shl(rng.u32(0..144)).unwrap_or(0)),
        2..=4 => {
            let mut near = rng.u128(0..12).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            for _ in 0..rng.u32(0..6) {
                near ^= 1 << rng.u32(0..setup.bits);
            }
            setup.narrow(near)
        }
        _ => setup.narrow(rng.u128(..)),
    }
}

fn documents(setup: Setup, rng: &mut Rng, owner: u64, count: u64) -> Vec<(Vec<u8>, u128)> {
    (0..count).map(|at| (key(setup, owner, at), fingerprint(setup, rng))).collect()
}

/// Returns an operation by its number in the sequence of a seed.
pub(crate) fn operation(setup: Setup, seed: u64, number: u64, size: Size) -> Operation {
    let rng = &mut Rng::with_seed(seed.wrapping_mul(31).wrapping_add(number));
    let synced = Durability::Synced;
    let buffered = Durability::Buffered;
    match number % CYCLE {
        // A host's database is backed up by the host, and is not built.
        0 | 11 | BUILD | 15 if setup.attached => {
            Operation::Insert(documents(setup, rng, number, 40), synced)
        }
        1 | 6 => Operation::Insert(documents(setup, rng, number, 30), synced),
        2 => Operation::Insert(documents(setup, rng, number.saturating_sub(1), 20), synced),
        3 => {
            let gone = (0..40).step_by(3).map(|at| key(setup, number.saturating_sub(3), at));
            Operation::Remove(gone.collect(), synced)
        }
        4 => Operation::InsertIfNew(documents(setup, rng, number, 15)),
        5 => Operation::Fold,
        7 => Operation::Remove((0..30).map(|at| key(setup, number - 1, at)).collect(), buffered),
        8 => Operation::Flush,
        9 => Operation::Insert(documents(setup, rng, number.saturating_sub(9), 25), buffered),
        10 => Operation::Compact,
        11 => Operation::BackUp(number),
        BUILD => Operation::Build(build(setup, rng, number, size)),
        13 => Operation::FoldStep,
        14 => {
            // Removes documents of an earlier cycle, so that the index stays small.
            let old = number.saturating_sub(3 * CYCLE)..number.saturating_sub(2 * CYCLE);
            let gone = old.flat_map(|owner| (0..200).map(move |at| key(setup, owner, at)));
            Operation::Remove(gone.collect(), buffered)
        }
        15 => Operation::Return(number),
        0 if number > 0 => Operation::Checkpoint,
        _ => Operation::Insert(documents(setup, rng, number, 40), buffered),
    }
}

fn build(setup: Setup, rng: &mut Rng, number: u64, size: Size) -> Vec<(Vec<u8>, u128)> {
    let mut all = documents(setup, rng, number, 150);
    all.extend(documents(setup, rng, number - 1, 20));
    if size == Size::Large {
        all.extend((0..60_000_u64).map(|at| {
            let mut long = format!("{number:07}-{at:06}-").into_bytes();
            long.resize(200, b'.');
            (long, setup.narrow(rng.u128(..)))
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
                    let near = |(other, f): (&Vec<u8>, &u128)| {
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
    pub(crate) fn run(&self, index: Handle, path: &Path) -> Result<Handle> {
        let setup = index.setup;
        match self {
            Self::Insert(documents, durability) => index.insert(documents, *durability)?,
            Self::InsertIfNew(documents) => {
                index.insert_if_new(documents, NEAR)?;
            }
            Self::Remove(keys, durability) => {
                index.remove(keys, *durability)?;
            }
            Self::Build(documents) => {
                drop(index);
                finish(setup, setup.build(path)?, documents)?;
                return setup.open(path);
            }
            Self::Fold => index.merge()?,
            Self::FoldStep => {
                index.merge_step()?;
            }
            Self::Flush => index.flush()?,
            Self::Compact => index.compact()?,
            Self::BackUp(number) => copies::back_up(&index, path, *number)?,
            Self::Return(number) => {
                copies::back_up(&index, path, *number)?;
                drop(index);
                copies::restore(path)?;
                return setup.open(path);
            }
            Self::Checkpoint => copies::checkpoint(&index, path)?,
        }
        Ok(index)
    }
}

/// Resumes an unfinished build of the same documents.
pub(crate) fn resume(setup: Setup, path: &Path, documents: &[(Vec<u8>, u128)]) -> Result<()> {
    let builder = AnyBuilder::resume(path, &BuildOptions::new().memory(16 << 20))?;
    finish(setup, builder, documents)
}

/// Pushes the documents that a build does not have yet, and finishes it.
pub(crate) fn finish(
    setup: Setup,
    mut builder: AnyBuilder,
    documents: &[(Vec<u8>, u128)],
) -> Result<()> {
    let first = builder.resume_after().map_or(0, |last| last + 1);
    for (origin, (key, fingerprint)) in (0..).zip(documents) {
        if origin >= first {
            let features = setup.features_of(*fingerprint);
            let document = NewDocument::new(key, *fingerprint);
            let document = match &features {
                Some(features) => document.features(features),
                None => document,
            };
            builder.push_document(&document, origin)?;
        }
    }
    builder.finish(&(), &mut |_, _| ()).map(drop)
}
