//! Bases: sound indexes whose copies are damaged; equal for a seed in every process.

use std::path::Path;

use fastrand::Rng;
use hamdex::Durability;

use crate::operation::{fingerprint, finish};
use crate::oracle::{Model, copy};
use crate::report::Verdict;
use crate::setup::Setup;

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

    /// Returns the settings of the base of a seed; each base has other ones.
    pub(crate) fn setup(self, seed: u64) -> Setup {
        let place = BASES.iter().position(|base| *base == self).unwrap_or(0);
        Setup::drawn(seed.wrapping_add(place as u64)).own()
    }

    /// Creates the index.
    pub(crate) fn make(self, directory: &Path, seed: u64) -> Verdict {
        let path = directory.join(self.name());
        let setup = self.setup(seed);
        let documents = documents(setup, seed);
        let (most, rest) = documents.split_at(documents.len() * 4 / 5);
        match self {
            Self::Tables => {
                let index = setup.create(&path)?;
                index.insert(most, Durability::Buffered)?;
                index.merge()?;
                index.insert(rest, Durability::Buffered)?;
                index.flush()?;
            }
            Self::Log => {
                drop(setup.create(&path)?);
                drop(setup.open(&path)?);
                let index = setup.open(&path)?;
                for batch in documents.chunks(40) {
                    index.insert(batch, Durability::Buffered)?;
                }
            }
            Self::Killed => {
                let open = directory.join("open");
                let index = setup.create(&open)?;
                index.insert(most, Durability::Buffered)?;
                index.merge()?;
                for batch in rest.chunks(20) {
                    index.insert(batch, Durability::Synced)?;
                }
                copy(&open, &path)?;
            }
            Self::Built => finish(setup, setup.build(&path)?, &documents)?,
        }
        Ok(())
    }

    /// Returns the documents of the base.
    pub(crate) fn model(self, seed: u64) -> Model {
        documents(self.setup(seed), seed).into_iter().collect()
    }
}

fn documents(setup: Setup, seed: u64) -> Vec<(Vec<u8>, u128)> {
    let rng = &mut Rng::with_seed(seed);
    let key = |at: u64| {
        if setup.rows {
            at.to_be_bytes().to_vec()
        } else {
            format!("document-{at:05}").into_bytes()
        }
    };
    (0..500).map(|at| (key(at), fingerprint(setup, rng))).collect()
}
