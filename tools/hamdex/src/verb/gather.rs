//! Gathering: the documents of INPUT become fingerprints in memory, and keys and evidence that are
//! partly on disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hamdex::Fingerprint;
use hamdex::inspect::Header;
use hamdex::text::Pipeline;
use hamdex::verify::{Evidence, EvidenceFile, EvidenceWriter};

use crate::advise;
use crate::evidence::{Keeper, Kept};
use crate::failure::{Failure, Result};
use crate::input::{Document, Ids, Inputs, Reading, Rejects, Wanted};
use crate::options::{PipelineArgs, RowArgs, TmpArg, WidthArg};
use crate::session::Session;
use crate::settings;
use crate::stored;

/// Documents by position, without their texts.
#[derive(Debug)]
pub(super) struct Gathered<F> {
    pub(super) fingerprints: Vec<F>,
    keys: Keys,
    pub(super) evidence: Kept,
}

/// Part of the memory that evidence may take.
const EVIDENCE_PART: usize = 3;

/// Part of the memory that keys may take.
const KEYS_PART: usize = 8;

/// Keys one after another; those that do not fit into a part of the memory are on disk.
///
/// They are pushed, then finished, then read.
#[derive(Debug)]
pub(super) enum Keys {
    Pushed(Box<EvidenceWriter>),
    Finished(Box<EvidenceFile>),
}

impl Keys {
    pub(super) fn new(memory: usize, tmp: Option<&Path>) -> Result<Self> {
        let writer = EvidenceWriter::new(Evidence::Nothing, tmp)?;
        Ok(Self::Pushed(Box::new(writer.memory(memory / KEYS_PART))))
    }

    pub(super) fn push(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Self::Pushed(writer) => Ok(writer.push(key)?),
            Self::Finished(_) => unreachable!("keys are pushed before they are read"),
        }
    }

    pub(super) fn finish(self) -> Result<Self> {
        Ok(match self {
            Self::Pushed(writer) => Self::Finished(Box::new(writer.finish()?)),
            Self::Finished(keys) => Self::Finished(keys),
        })
    }

    /// Returns the key at a position, empty beyond the last.
    pub(super) fn get(&self, position: usize) -> hamdex::Result<Vec<u8>> {
        match self {
            Self::Finished(keys) => keys.read(position),
            Self::Pushed(_) => unreachable!("keys are finished before they are read"),
        }
    }
}

impl<F: Fingerprint> Gathered<F> {
    /// Reads all inputs; positions are 32-bit numbers in the joins.
    fn read(
        reading: &Reading<'_>,
        rejects: &mut Rejects,
        (tmp, memory): (&TmpArg, usize),
    ) -> Result<Self> {
        let tmp = tmp.directory();
        let (mut fingerprints, mut keys) = (Vec::new(), Keys::new(memory, tmp)?);
        let mut keeper = Keeper::new(reading.wanted, tmp, memory / EVIDENCE_PART)?;
        reading.run::<F>(rejects, &mut |document: Document<'_, F>| {
            fingerprints.push(document.fingerprint);
            keys.push(document.key)?;
            keeper.push(&document.proofs)
        })?;
        Ok(Self { fingerprints, keys: keys.finish()?, evidence: keeper.finish()? })
    }

    pub(super) fn key(&self, position: usize) -> hamdex::Result<Vec<u8>> {
        self.keys.get(position)
    }
}

/// The documents in which pairs and clusters are searched.
pub(super) enum Target {
    Index(PathBuf, Header),
    Documents,
}

impl Target {
    /// Returns an index if the one path is one; everything else is documents.
    pub(super) fn of(paths: &[PathBuf], width: &WidthArg, pipeline: &PipelineArgs) -> Result<Self> {
        let headers = paths.iter().filter(|path| path.is_dir()).map(|path| stored::header(path));
        let index = headers.collect::<Result<Vec<_>>>()?.into_iter().flatten().next();
        match (index, paths) {
            (None, _) => Ok(Self::Documents),
            (Some(header), [path]) => {
                settings::width(width.bits, Some(&header), None)?;
                if pipeline.given() {
                    pipeline.stored(&header, path)?;
                }
                Ok(Self::Index(path.clone(), header))
            }
            (Some(_), _) => Err(Failure::Usage(
                "an index cannot be combined with other inputs; give one index, or any number of \
                    inputs"
                    .to_owned(),
            )),
        }
    }
}

/// Opens the inputs, makes them readable twice and resolves their width.
pub(super) fn resolve(
    session: &Session,
    paths: &[PathBuf],
    rows: &RowArgs,
    width: &WidthArg,
    tmp: &TmpArg,
) -> Result<(Arc<Inputs>, u32)> {
    let mut inputs = rows.resolve(paths, rows.names(), &session.console)?;
    let bits = settings::width(width.bits, None, inputs.raw_width()?)?;
    inputs.spool(tmp.directory(), &session.console)?;
    Ok((Arc::new(inputs), bits))
}

/// Reads the inputs of a verb that keeps them in memory, and the evidence that is wanted on disk.
pub(super) fn gather<F: Fingerprint>(
    session: &Session,
    inputs: &Arc<Inputs>,
    rows: &RowArgs,
    (tmp, memory): (&TmpArg, usize),
    pipeline: Option<&Pipeline>,
    (wanted, ids): (Wanted, Ids),
) -> Result<Gathered<F>> {
    let reading = Reading {
        inputs,
        pipeline,
        console: &session.console,
        ids,
        keep_blank: false,
        after: None,
        wanted,
    };
    let mut rejects = rows.rejects(session)?;
    let gathered = Gathered::read(&reading, &mut rejects, (tmp, memory))?;
    rejects.finish()?;
    advise::say_unverified(&session.console, gathered.evidence.without);
    Ok(gathered)
}

/// Carries a failure of this program through a library call that it stops.
#[derive(Debug, Default)]
pub(super) struct Carrier(Mutex<Option<Failure>>);

impl Carrier {
    /// Gives the library something to stop with and keeps the failure itself.
    pub(super) fn stop(&self, result: Result<()>) -> hamdex::Result<()> {
        result.map_err(|failure| {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get_or_insert(failure);
            hamdex::Error::Cancelled
        })
    }

    /// Replaces the library's failure by the kept one.
    pub(super) fn resolve<T>(self, result: hamdex::Result<T>) -> Result<T> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok(result?),
        }
    }
}
