//! Bases: sound indexes whose copies are damaged; equal for a seed in every process.

use std::path::Path;

use fastrand::Rng;
use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Index};

use crate::operation::{fingerprint, open};
use crate::oracle::{Model, copy, small};
use crate::report::Verdict;

/// The kinds of bases.
pub(crate) const BASES: [Base; 4] = [Base::Tables, Base::Log, Base::Killed, Base::Built];

/// The kind of a base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// Closed; merged runs and newer delta entries, all in table files.
    Tables,
    /// Closed; all data in the log.
    Log,
    /// Data in tables and in the log, as after a kill.
    Killed,
    /// Closed; built in bulk.
    Built,
}

impl Base {
    pub(crate) fn name(self) -> String {
        format!("base-{self:?}").to_lowercase()
    }

    /// Creates the index.
    pub(crate) fn make(self, directory: &Path, seed: u64) -> Verdict {
        let path = directory.join(self.name());
        let documents = documents(seed);
        let (most, rest) = documents.split_at(documents.len() * 4 / 5);
        match self {
            Self::Tables => {
                let index = Index::create(&path, &small())?;
                index.insert_batch(most, Durability::Buffered)?;
                index.merge(&())?;
                index.insert_batch(rest, Durability::Buffered)?;
                index.flush()?;
            }
            Self::Log => {
                drop(Index::<u64>::create(&path, &small())?);
                drop(open(&path)?);
                let index = open(&path)?;
                for batch in documents.chunks(40) {
                    index.insert_batch(batch, Durability::Buffered)?;
                }
            }
            Self::Killed => {
                let open = directory.join("open");
                let index = Index::create(&open, &small())?;
                index.insert_batch(most, Durability::Buffered)?;
                index.merge(&())?;
                for batch in rest.chunks(20) {
                    index.insert_batch(batch, Durability::Synced)?;
                }
                copy(&open, &path)?;
            }
            Self::Built => {
                let build = BuildOptions::new().memory(16 << 20);
                let mut builder = Builder::<u64>::create(&path, &small(), &build)?;
                for (origin, (key, fingerprint)) in (0..).zip(&documents) {
                    builder.push(key, *fingerprint, origin)?;
                }
                builder.finish(&(), &mut |_, _| ())?;
            }
        }
        Ok(())
    }
}

fn documents(seed: u64) -> Vec<(Vec<u8>, u64)> {
    let rng = &mut Rng::with_seed(seed);
    (0..500_u32).map(|at| (format!("document-{at:05}").into_bytes(), fingerprint(rng))).collect()
}

/// Returns the documents of every base.
pub(crate) fn model(seed: u64) -> Model {
    documents(seed).into_iter().collect()
}
