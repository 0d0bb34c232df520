//! Stored indexes: a path becomes an open index, or the reason why it is none.

use std::path::Path;

use hamdex::any::AnyIndex;
use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::text::Pipeline;
use hamdex::{Error, Fingerprint, Index, IndexOptions};

use crate::costs;
use crate::failure::{Failure, Result};
use crate::input::{Bring, Export, Inputs};
use crate::options::resources::SeedArg;
use crate::options::{MemoryArg, PipelineArgs, PlanArg, stored_pipeline};
use crate::settings;
use crate::size;

/// Refuses a file as the index, which comes before the inputs.
pub(crate) fn before_inputs(index: &Path) -> Result<()> {
    if index.is_file() {
        let reason = "is a file; the index comes first, a directory, and then the inputs";
        return Err(Failure::refused(index, reason));
    }
    Ok(())
}

/// Reads the header of an index; `None` if there is none yet.
pub(crate) fn header(path: &Path) -> Result<Option<Header>> {
    match Header::read(path) {
        Ok(header) => Ok(Some(header)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads the header of an index that must exist.
pub(crate) fn require(path: &Path, bits: Option<u32>) -> Result<Header> {
    let header = Header::read(path)?;
    match bits {
        Some(wanted) if wanted != header.bits => {
            Err(Error::WidthMismatch { stored: header.bits, wanted }.into())
        }
        _ => Ok(header),
    }
}

/// Opens an index for reading; other processes may continue to write.
pub(crate) fn read_only(path: &Path) -> Result<AnyIndex> {
    Ok(AnyIndex::open_with(path, &reading()?)?)
}

/// Opens an index of a known width for reading.
pub(crate) fn read_only_of<F: Fingerprint>(path: &Path) -> Result<Index<F>> {
    Ok(Index::open_with(path, &reading()?)?)
}

fn reading() -> Result<IndexOptions> {
    Ok(IndexOptions::new().read_only(true).costs(costs::kept()?))
}

/// Reads an index into memory; failing is better than a search that is slow without saying so.
pub(crate) fn load<F: Fingerprint>(
    index: &Index<F>,
    path: &Path,
    memory: &MemoryArg,
) -> Result<()> {
    if index.load_resident(memory.memory.0)? { Ok(()) } else { Err(does_not_fit(path, memory)) }
}

/// Refuses to hold an index in memory that has no room for it.
pub(crate) fn does_not_fit(path: &Path, memory: &MemoryArg) -> Failure {
    let held = size::bytes(memory.memory.0 as f64);
    Failure::refused(path, format!("does not fit into {held} of memory; raise --memory"))
}

/// Returns the requested settings of a new index.
pub(crate) fn index_options<F: Fingerprint>(
    plan: &PlanArg,
    distance: Option<u32>,
    stored: Option<&Header>,
    count: u64,
) -> Result<IndexOptions> {
    let mut options = IndexOptions::new();
    if let Some(k) = distance {
        options = options.distance(k);
    }
    let k = distance.or(stored.map(|header| header.distance)).unwrap_or(settings::DISTANCE);
    match plan.plan.as_deref() {
        // The plan of a stored index was chosen when it was made.
        Some("auto") if stored.is_some() => Ok(options),
        Some(name) => Ok(options.plan(Plan::parse(name, F::BITS, k, Some(count))?)),
        None => Ok(options),
    }
}

/// Returns the plan that an existing index must have to match the option.
pub(crate) fn wanted_plan(plan: &PlanArg, header: &Header) -> Result<Option<Plan>> {
    match plan.plan.as_deref() {
        None | Some("auto") => Ok(None),
        Some(name) => Ok(Some(Plan::parse(name, header.bits, header.distance, None)?)),
    }
}

/// Returns the pipeline for documents of an index; another option is refused.
pub(crate) fn pipeline_for(
    asked: &PipelineArgs,
    header: &Header,
    index: &Path,
    inputs: &Inputs,
) -> Result<Option<Pipeline>> {
    if asked.given() {
        asked.stored(header, index)
    } else {
        asked.require_centre(header)?;
        pipeline_of(header, index, inputs, asked.seed())
    }
}

/// Returns the pipeline of the index; `None` if both sides have only fingerprints.
pub(crate) fn pipeline_of(
    header: &Header,
    index: &Path,
    inputs: &Inputs,
    seed: &SeedArg,
) -> Result<Option<Pipeline>> {
    let pipeline = match stored_pipeline(header, index, seed) {
        // Fingerprints need no pipeline, and so no secret.
        Err(Failure::Library(Error::HeaderMismatch { what: "secret", .. }))
            if !seed.given() && inputs.bring() != Bring::Texts =>
        {
            return Ok(None);
        }
        pipeline => pipeline?,
    };
    if pipeline.is_none() && inputs.bring() == Bring::Texts {
        return Err(no_pipeline(index));
    }
    Ok(pipeline)
}

/// Refuses fingerprints of an exported index that were made otherwise than those of this one.
pub(crate) fn require_export(header: &Header, export: Option<&Export>) -> Result<()> {
    let Some(export) = export else { return Ok(()) };
    // If either side has no pipeline, the user may know.
    let said = !header.pipeline.is_empty() && !export.pipeline.is_empty();
    if said && header.pipeline != export.pipeline {
        let (stored, wanted) = (header.pipeline.clone(), export.pipeline.clone());
        return Err(Error::HeaderMismatch { what: "pipeline", stored, wanted }.into());
    }
    Ok(())
}

pub(crate) fn no_pipeline(index: &Path) -> Failure {
    Failure::refused(
        index,
        "was built from fingerprints only, so it has no pipeline for texts; give fingerprints",
    )
}

/// Returns the warning about documents that cannot be verified.
pub(crate) fn without_features(count: u64) -> String {
    format!(
        "{} documents have a fingerprint but no text; they are stored without features and \
            cannot be verified",
        size::thousands(count)
    )
}
