//! Open indexes: what a call says of one, and what it does with texts.

use hamdex::IndexOptions;
use hamdex::advice::{Kind, Overrides, Support};
use hamdex::any::AnyIndex;
use hamdex::plan::Plan;

use crate::failure::{Failure, Result};
use crate::tables::Seed;

/// Distance of an index of fingerprints.
const DISTANCE: u32 = 3;

/// Resolves pipeline, distance and plan of an index that is made without a look at texts.
pub(super) fn options(
    pipeline: Option<&hamdex::Pipeline>,
    bits: u32,
    distance: Option<u32>,
    plan: Option<&str>,
    keep_features: bool,
) -> Result<IndexOptions> {
    let support = if keep_features { Support::Features } else { Support::Nothing };
    let advised = match pipeline {
        Some(pipeline) => {
            let kind = Kind::of_pipeline(pipeline)?.unwrap_or(Kind::Text);
            Overrides::new().bits(bits).support(support).settings(kind).distance
        }
        None => DISTANCE,
    };
    let distance = distance.unwrap_or(advised);
    let mut options = IndexOptions::new().distance(distance).keep_features(keep_features);
    if let Some(plan) = plan {
        options = options.plan(Plan::parse(plan, bits, distance, None)?);
    }
    if let Some(pipeline) = pipeline {
        options = options.text(pipeline);
    }
    Ok(options)
}

/// How an index processes texts.
#[derive(Debug, Clone)]
pub(crate) enum Texts {
    /// Computes their fingerprints.
    Read(hamdex::Pipeline),
    /// Needs a secret that was not passed; holds the descriptor.
    Secret(String),
    /// Has no pipeline, because its fingerprints were computed elsewhere.
    Refused,
}

impl Texts {
    /// For an index that was created with this pipeline.
    pub(super) fn with_pipeline(pipeline: Option<hamdex::Pipeline>) -> Self {
        pipeline.map_or(Self::Refused, Self::Read)
    }

    /// Of an open index.
    pub(super) fn of(open: &AnyIndex, seed: Option<&Seed>) -> Result<Self> {
        let descriptor = &open.header().pipeline;
        if seed.is_none() && is_secret(descriptor) {
            return Ok(Self::Secret(descriptor.clone()));
        }
        let secret = seed.map(|seed| seed.secret);
        Ok(Self::with_pipeline(open.pipeline_with(secret)?))
    }

    /// Returns the pipeline; `None` if the index has none.
    pub(crate) fn pipeline(&self) -> Result<Option<&hamdex::Pipeline>> {
        match self {
            Self::Read(pipeline) => Ok(Some(pipeline)),
            Self::Refused => Ok(None),
            Self::Secret(_) => Err(secret_missing()),
        }
    }

    pub(super) fn descriptor(&self) -> Option<&str> {
        match self {
            Self::Read(pipeline) => Some(pipeline.descriptor()),
            Self::Secret(descriptor) => Some(descriptor),
            Self::Refused => None,
        }
    }
}

/// Returns true if the descriptor names a secret.
pub(super) fn is_secret(descriptor: &str) -> bool {
    descriptor.contains(";secret=")
}

/// Returns the failure of a text for an index whose secret was not passed.
pub(super) fn secret_missing() -> Failure {
    Failure::usage(
        "the index was created with a secret and needs it for texts; pass the file as \
         seed_file (fingerprints need no secret)",
    )
}
