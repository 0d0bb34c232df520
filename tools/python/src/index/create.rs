//! Creating: converts the arguments of a call into index options.

use hamdex::IndexOptions;
use hamdex::advice::{Kind, Support, Wishes};
use hamdex::plan::Plan;

use crate::failure::Result;

/// Default distance of an index without a pipeline.
const DISTANCE: u32 = 3;

/// Resolves pipeline, distance and plan of a new index, without a sample of texts.
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
            Wishes::new().bits(bits).support(support).settings(kind).distance
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
