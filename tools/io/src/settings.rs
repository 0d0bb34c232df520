//! Settings: what a call leaves open is taken from its inputs, an export or an index.

use hamdex::Error;
use hamdex::advice::{self, Choice, Kind, Overrides, Resolved, SAMPLE, Settings, Support};
use hamdex::inspect::Header;
use hamdex::text::{Pipeline, Secret};
use hamdex::verify::{Evidence, Verification};

use crate::face::failure::{Failure, Result};
use crate::sources::exported::Export;
use crate::sources::inputs::Inputs;
use crate::sources::look::Bring;

/// Default distance.
pub const DISTANCE: u32 = 3;

/// Default width of fingerprints.
pub const WIDTH: u32 = 64;

/// What a call says about the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    Nothing,
    /// The name of a preset alone; [`Overrides::kind`] has its kind.
    Preset,
    /// Any other pipeline.
    Own,
}

/// What a call says about its settings.
pub struct Asked<'a> {
    pub overrides: Overrides,
    pub given: Given,
    /// Makes the pipeline; it follows the choice unless the call names another one.
    pub make: &'a dyn Fn(Choice) -> Result<Pipeline>,
}

impl std::fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { overrides, given, .. } = self;
        f.debug_struct("Asked").field("overrides", overrides).field("given", given).finish()
    }
}

/// Resolves pipeline, distance and verification for documents.
///
/// Inputs that can be read only once are not sampled; spool them first.
pub fn resolve(inputs: &Inputs, asked: &Asked<'_>) -> Result<Resolved> {
    let (bring, overrides) = (inputs.bring(), &asked.overrides);
    if bring == Bring::Fingerprints && asked.given == Given::Nothing {
        return fingerprints(overrides);
    }
    let centre = overrides.kind == Some(Kind::Text) && overrides.centre;
    let open = asked.given != Given::Preset
        || overrides.distance.is_none()
        || overrides.verification.is_none()
        || centre;
    if bring == Bring::Texts && open {
        let texts = inputs.sample(SAMPLE)?;
        return advice::resolve_with(&texts, overrides, asked.given == Given::Own, asked.make);
    }
    let pipeline = (asked.make)(Choice::of(Kind::Text))?;
    let kind = overrides.kind.unwrap_or(Kind::Text);
    let settings = if bring == Bring::Fingerprints {
        // The named pipeline has no text to apply to.
        overrides.support(Support::Nothing).settings(kind)
    } else {
        overrides.settings(kind)
    };
    let Settings { distance, verification, .. } = settings;
    Ok(Resolved { pipeline: Some(pipeline), distance, verification, advice: None })
}

/// Fingerprints have no text to sample and nothing to verify.
fn fingerprints(overrides: &Overrides) -> Result<Resolved> {
    let verification = overrides.verification.unwrap_or_default();
    if verification.needs() != Evidence::Nothing {
        return Err(Failure::Usage(format!(
            "--verify {verification} needs texts, but the inputs have only fingerprints; drop it"
        )));
    }
    let distance = overrides.distance.unwrap_or(DISTANCE);
    Ok(Resolved { pipeline: None, distance, verification, advice: None })
}

/// Resolves pipeline and distance of a new index: those of an export, else by the documents.
pub fn resolve_new(
    inputs: &Inputs,
    export: Option<&Export>,
    secret: Option<Secret>,
    asked: &Asked<'_>,
) -> Result<Resolved> {
    let Some(export) = export else { return resolve(inputs, asked) };
    let distance = asked.overrides.distance.unwrap_or(export.distance);
    if asked.given != Given::Nothing {
        let overrides = asked.overrides.distance(distance);
        return resolve(inputs, &Asked { overrides, ..*asked });
    }
    let (pipeline, verification) = (export.pipeline(secret)?, Verification::None);
    Ok(Resolved { pipeline, distance, verification, advice: None })
}

/// Resolves the settings of documents that are compared with those of an index, which has them.
pub fn resolve_against(
    header: &Header,
    pipeline: Option<Pipeline>,
    distance: Option<u32>,
    verification: Option<Verification>,
) -> Result<Resolved> {
    require_stored(verification.unwrap_or_default(), header.keeps_features)?;
    let verification = match (&pipeline, verification) {
        (_, Some(verification)) => verification,
        (Some(pipeline), None) if header.keeps_features => {
            let kind = Kind::of_pipeline(pipeline)?.unwrap_or(Kind::Text);
            Settings::of(kind, header.bits, Support::Features).verification
        }
        (_, None) => Verification::None,
    };
    let distance = distance.unwrap_or(header.distance);
    Ok(Resolved { pipeline, distance, verification, advice: None })
}

/// Refuses a check that the documents of an index cannot be put to.
pub fn require_stored(verification: Verification, keeps_features: bool) -> Result<()> {
    let not_kept = |what: &str| {
        Err(Failure::Usage(format!(
            "--verify {what}, which an index does not keep; use jaccard:T or zhou:K,T, or give \
                 the documents instead of an index, such as 'hamdex dedup OLD NEW'"
        )))
    };
    match verification.needs() {
        Evidence::Features if !keeps_features => Err(Error::NoFeatureSets.into()),
        Evidence::Nothing | Evidence::Features => Ok(()),
        Evidence::Text => not_kept("edit:T needs texts"),
        Evidence::Phrases | _ => not_kept("contains:T needs all words"),
    }
}

/// Returns a pipeline with the versions of an index, if the index was made with it.
pub fn require_pipeline(wanted: &Pipeline, header: &Header) -> Result<Pipeline> {
    // Data of an earlier version of a step keep that version.
    let wanted = wanted.with_versions_of(&header.pipeline)?;
    if wanted.descriptor() == header.pipeline {
        return Ok(wanted);
    }
    let (stored, wanted) = (header.pipeline.as_str(), wanted.descriptor());
    let secrets = (secret_of(stored), secret_of(wanted));
    let (what, (stored, wanted)) =
        if secrets.0 == secrets.1 { ("pipeline", (stored, wanted)) } else { ("secret", secrets) };
    let (stored, wanted) = (stored.to_owned(), wanted.to_owned());
    Err(Error::HeaderMismatch { what, stored, wanted }.into())
}

/// Returns the part of a descriptor about the secret.
fn secret_of(descriptor: &str) -> &str {
    let (_, secret) = descriptor.split_once(";secret=").unwrap_or((descriptor, "none"));
    secret.split(';').next().unwrap_or(secret)
}

/// Resolves the width from the call, the index and the raw files; any two must agree.
pub fn width(asked: Option<u32>, stored: Option<&Header>, raw: Option<(u32, &str)>) -> Result<u32> {
    let stored = stored.map(|header| header.bits);
    if let (Some(wanted), Some(stored)) = (asked, stored)
        && wanted != stored
    {
        return Err(Error::WidthMismatch { stored, wanted }.into());
    }
    let bits = stored.or(asked);
    if let (Some(bits), Some((width, file))) = (bits, raw)
        && width != bits
    {
        let whose = if stored.is_some() { "the index has" } else { "--bits asks for" };
        return Err(Failure::refused(
            file,
            format!(
                "has {width}-bit fingerprints, but {whose} {bits}-bit ones; give a .u{bits} file"
            ),
        ));
    }
    Ok(bits.or(raw.map(|(width, _)| width)).unwrap_or(WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_must_agree() {
        assert_eq!(width(None, None, None).unwrap(), 64);
        assert_eq!(width(Some(32), None, None).unwrap(), 32);
        assert_eq!(width(None, None, Some((128, "a.u128"))).unwrap(), 128);
        let error = width(Some(64), None, Some((32, "a.u32"))).unwrap_err().to_string();
        assert!(
            error.contains("a.u32") && error.contains("32-bit") && error.contains("64-bit"),
            "{error}"
        );
    }
}
