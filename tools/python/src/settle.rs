//! Settling: what a caller leaves open is chosen by a look at a sample of the column.

use arrow_array::{Array, ArrayRef};
use hamdex::advice::{self, Advice, Kind, SAMPLE, Sampler, Settled, Support, Wishes};
use hamdex::{Header, Verification};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::column::Texts;
use crate::failure::{Failure, Result};
use crate::pipeline::Asked;

/// Takes a sample from all over a column.
pub(crate) fn sample(pieces: &[ArrayRef], column: &str) -> Result<Vec<String>> {
    let mut sampler = Sampler::new(SAMPLE);
    for piece in pieces {
        let texts = Texts::of(piece.as_ref(), column)?;
        for row in 0..piece.len() {
            sampler.row(|| texts.get(row).map(str::to_owned));
        }
    }
    Ok(sampler.finish())
}

/// Settles what the caller leaves open.
pub(crate) fn settle(
    asked: &Asked,
    mut wishes: Wishes,
    sample: impl FnOnce() -> Result<Vec<String>>,
) -> Result<Settled> {
    match asked {
        Asked::Own(pipeline) => {
            let make = |_, _| Ok(pipeline.clone());
            advice::settle_with(&sample()?, &wishes, true, make)
        }
        Asked::Preset(kind) => {
            wishes.kind = Some(*kind);
            // What is all given needs no look.
            let sample = if wishes.distance.is_some() { Vec::new() } else { sample()? };
            Ok(advice::settle(&sample, &wishes)?)
        }
        Asked::Open => Ok(advice::settle(&sample()?, &wishes)?),
    }
}

/// Settles by an index, which has its own settings.
pub(crate) fn settle_by_index(
    header: &Header,
    pipeline: Option<hamdex::Pipeline>,
    asked: &Asked,
    distance: Option<u32>,
    verify: Option<Verification>,
) -> Result<Settled> {
    let pipeline = by_index(header, pipeline, asked)?;
    let verification = match verify {
        Some(verification) => {
            require_stored(verification, header.keeps_features)?;
            verification
        }
        None if distance.is_none() && header.keeps_features => {
            let kind = Kind::of_pipeline(&pipeline)?.unwrap_or(Kind::Mixed);
            advice::Settings::of(kind, header.bits, Support::Features).verification
        }
        None => Verification::None,
    };
    let distance = distance.unwrap_or(header.distance);
    Ok(Settled { pipeline: Some(pipeline), distance, verification, advice: None })
}

/// Returns the pipeline of an index; another one that is asked for is refused.
pub(crate) fn by_index(
    header: &Header,
    pipeline: Option<hamdex::Pipeline>,
    asked: &Asked,
) -> Result<hamdex::Pipeline> {
    let wanted = match asked {
        Asked::Open => None,
        Asked::Preset(_) | Asked::Own(_) => Some(asked.pipeline()?),
    };
    if let Some(wanted) = wanted
        && wanted.descriptor() != header.pipeline
    {
        let (stored, wanted) = (header.pipeline.clone(), wanted.descriptor().to_owned());
        return Err(hamdex::Error::HeaderMismatch { what: "pipeline", stored, wanted }.into());
    }
    pipeline.ok_or_else(|| {
        Failure::usage(
            "the index was made from fingerprints only, so it is not known how to fingerprint \
             text for it; give fingerprints",
        )
    })
}

/// Refuses a check that the documents of an index cannot be put to.
pub(crate) fn require_stored(verification: Verification, keeps_features: bool) -> Result<()> {
    match verification {
        Verification::None => Ok(()),
        Verification::Jaccard(_) | Verification::Zhou { .. } if keeps_features => Ok(()),
        Verification::Jaccard(_) | Verification::Zhou { .. } => {
            Err(hamdex::Error::NoFeatureSets.into())
        }
        Verification::Edit(_) => Err(Failure::usage(
            "edit:T compares texts, which an index does not keep: ask for jaccard:T or zhou:K,T",
        )),
    }
}

/// Returns what was seen and chosen, as the command line reports it.
pub(crate) fn to_dict<'py>(py: Python<'py>, advice: &Advice) -> PyResult<Bound<'py, PyDict>> {
    let Advice { settings, pipeline, reason, profile, features, warnings } = advice;
    let dict = PyDict::new(py);
    dict.set_item("kind", settings.kind.to_string())?;
    dict.set_item("pipeline", pipeline)?;
    dict.set_item("distance", settings.distance)?;
    dict.set_item("verification", settings.verification.to_string())?;
    dict.set_item("reason", reason)?;
    dict.set_item("texts", profile.texts)?;
    dict.set_item("short_share", profile.short)?;
    dict.set_item("median_length", profile.median_length)?;
    dict.set_item("han_share", profile.han)?;
    dict.set_item("html_share", profile.markup)?;
    dict.set_item("code_share", profile.code)?;
    dict.set_item("median_features", features.median)?;
    dict.set_item("few_features_share", features.few)?;
    dict.set_item("warnings", warnings)?;
    Ok(dict)
}
