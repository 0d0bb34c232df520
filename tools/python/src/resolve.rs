//! Settings: resolves the settings that a call leaves open from a sample of the column.

use hamdex::advice::{self, Advice, Choice, Kind, Overrides, Resolved, Support};
use hamdex::inspect::Header;
use hamdex::text::IdfTable;
use hamdex::verify::Verification;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{Failure, Result};
use crate::pipeline::{self, Asked, Learn};

/// Chooses the settings that the caller did not pass.
pub(crate) fn resolve(
    asked: &Asked,
    mut overrides: Overrides,
    learn: Learn<'_>,
    sample: impl FnOnce() -> Result<Vec<String>>,
) -> Result<Resolved> {
    let seed = match asked {
        Asked::Own(own) => {
            return advice::resolve_with(&sample()?, &overrides, true, |_| Ok(own.clone()));
        }
        Asked::Learning(options) => {
            let make = |_| pipeline::learnt(options, learn);
            return advice::resolve_with(&sample()?, &overrides, true, make);
        }
        Asked::Open(seed) => seed,
        Asked::Preset(kind, seed) => {
            overrides.kind = Some(*kind);
            seed
        }
    };
    let named = overrides.kind;
    if let (Some(kind), Some(_)) = (named, overrides.distance)
        && kind != Kind::Text
    {
        // All settings were passed, so no sample is needed.
        let advice::Settings { distance, verification, .. } = overrides.settings(kind);
        let pipeline = Some(pipeline::preset(Choice::of(kind), seed.as_ref())?);
        return Ok(Resolved { pipeline, distance, verification, advice: None });
    }
    let make = |choice| pipeline::preset(choice, seed.as_ref());
    advice::resolve_with(&sample()?, &overrides, false, make)
}

/// Returns the recommended verification for texts of a pipeline.
pub(crate) fn advised(pipeline: &hamdex::Pipeline, bits: u32) -> Result<Verification> {
    let kind = Kind::of_pipeline(pipeline)?.unwrap_or(Kind::Text);
    Ok(advice::Settings::of(kind, bits, Support::Texts).verification)
}

/// Returns the default verification of an index; none if it stores no feature sets.
pub(crate) fn default_check(header: &Header) -> Result<Verification> {
    if !header.keeps_features || header.pipeline.is_empty() {
        return Ok(Verification::None);
    }
    let kind = Kind::of_descriptor(&header.pipeline)?.unwrap_or(Kind::Text);
    Ok(advice::Settings::of(kind, header.bits, Support::Features).verification)
}

/// Resolves the settings of a call that uses an index.
pub(crate) fn resolve_by_index(
    header: &Header,
    pipeline: Option<hamdex::Pipeline>,
    asked: &Asked,
    distance: Option<u32>,
    verify: Option<Verification>,
) -> Result<Resolved> {
    let pipeline = by_index(header, pipeline, asked)?;
    let verification = match verify {
        Some(verification) => verification,
        None => default_check(header)?,
    };
    require_stored(verification, header.keeps_features)?;
    let distance = distance.unwrap_or(header.distance);
    Ok(Resolved { pipeline: Some(pipeline), distance, verification, advice: None })
}

/// Returns the pipeline of an index, or an error if the call requests a different one.
pub(crate) fn by_index(
    header: &Header,
    stored: Option<hamdex::Pipeline>,
    asked: &Asked,
) -> Result<hamdex::Pipeline> {
    // A table that was learned for the index is reused.
    let known = |fresh: &hamdex::Pipeline| match stored.as_ref().and_then(table_of) {
        Some(table) => Ok(table),
        None => pipeline::no_texts(fresh),
    };
    let wanted = match asked {
        Asked::Open(_) => None,
        Asked::Preset(..) | Asked::Own(_) | Asked::Learning(_) => {
            // An index keeps the step versions that it was created with.
            Some(asked.pipeline(&known)?.with_versions_of(&header.pipeline)?)
        }
    };
    if let Some(wanted) = wanted
        && wanted.descriptor() != header.pipeline
    {
        let (stored, wanted) = (header.pipeline.clone(), wanted.descriptor().to_owned());
        return Err(hamdex::Error::HeaderMismatch { what: "pipeline", stored, wanted }.into());
    }
    stored.ok_or_else(no_pipeline)
}

/// Returns the failure of a text for an index without a pipeline.
pub(crate) fn no_pipeline() -> Failure {
    Failure::usage(
        "the index was built from fingerprints only, so it has no pipeline for texts; give \
         fingerprints",
    )
}

/// Returns the IDF table of a pipeline.
fn table_of(pipeline: &hamdex::Pipeline) -> Option<IdfTable> {
    let (_, bytes) = pipeline.resources().parts().find(|(name, _)| *name == "idf")?;
    IdfTable::from_bytes(&bytes).ok()
}

/// Returns an error if the index does not store what the verification compares.
pub(crate) fn require_stored(verification: Verification, keeps_features: bool) -> Result<()> {
    match verification {
        Verification::None => Ok(()),
        Verification::Jaccard(_) | Verification::Zhou { .. } if keeps_features => Ok(()),
        Verification::Jaccard(_) | Verification::Zhou { .. } => {
            Err(hamdex::Error::NoFeatureSets.into())
        }
        Verification::Edit(_) | Verification::EditByLength { .. } => Err(Failure::usage(
            "edit:T compares texts, which an index does not store; use jaccard:T or zhou:K,T",
        )),
        Verification::Contains(_) | _ => Err(Failure::usage(
            "contains:T compares all words, which an index does not store; use jaccard:T or \
             zhou:K,T",
        )),
    }
}

/// Returns the advice as the command line reports it.
pub(crate) fn to_dict<'py>(py: Python<'py>, advice: &Advice) -> PyResult<Bound<'py, PyDict>> {
    let Advice { settings, pipeline, reason, profile, features, warnings, .. } = advice;
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
