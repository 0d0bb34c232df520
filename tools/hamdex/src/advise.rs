//! Advice: resolves the settings that the user did not pass, from a sample of the texts.

use std::sync::Arc;

use hamdex::advice::{self, Choice, Kind, SAMPLE, Support};
use hamdex::sketch::SketchKind;
use hamdex::text::Pipeline;
use hamdex::verify::Evidence;
use hamdex::verify::Verification;
use hamdex_io::host::Host;
use serde::Serialize;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Bring, Inputs};
use crate::options::{Base, DISTANCE, PipelineArgs};
use crate::size;

/// User-supplied overrides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overrides<'a> {
    pub(crate) pipeline: &'a PipelineArgs,
    pub(crate) distance: Option<u32>,
    pub(crate) verify: Option<Verification>,
    pub(crate) sketch: Option<SketchKind>,
    /// Evidence that a verification can use.
    pub(crate) support: Support,
    pub(crate) bits: u32,
}

impl<'a> Overrides<'a> {
    /// Collects the overrides for documents whose texts are available.
    pub(crate) fn over_texts(
        pipeline: &'a PipelineArgs,
        distance: Option<u32>,
        verify: Option<Verification>,
        bits: u32,
    ) -> Self {
        let sketch = pipeline.sketch;
        Self { pipeline, distance, verify, sketch, support: Support::Texts, bits }
    }

    fn asked(&self) -> advice::Overrides {
        let mut asked = advice::Overrides::new().bits(self.bits).support(self.support);
        asked.kind = self.pipeline.preset().and_then(Kind::of_preset);
        asked.distance = self.distance;
        asked.verification = self.verify;
        asked.sketch = self.sketch;
        asked.centre(self.pipeline.centre_open())
    }
}

/// Fully resolved settings.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// `None` if the inputs have only fingerprints.
    pub(crate) pipeline: Option<Pipeline>,
    pub(crate) distance: u32,
    pub(crate) verification: Verification,
    /// The sample and the choice; `None` if the user passed every setting.
    pub(crate) advice: Option<Advice>,
}

impl Resolved {
    /// Reports the chosen settings, if there was a choice.
    pub(crate) fn say(&self, console: &Console) {
        if let Some(advice) = &self.advice {
            advice.say(console);
        }
    }
}

/// The sample and what follows from it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Advice {
    /// Sort of texts.
    pub(crate) kind: String,
    /// Name of the preset, or `own` for a pipeline of the user's.
    pub(crate) pipeline: &'static str,
    pub(crate) distance: u32,
    pub(crate) verification: String,
    pub(crate) reason: String,
    pub(crate) texts: usize,
    pub(crate) short_share: f64,
    pub(crate) median_length: usize,
    pub(crate) han_share: f64,
    pub(crate) html_share: f64,
    pub(crate) code_share: f64,
    pub(crate) median_features: usize,
    pub(crate) few_features_share: f64,
    pub(crate) warnings: Vec<String>,
}

impl From<advice::Advice> for Advice {
    fn from(advice: advice::Advice) -> Self {
        let advice::Advice { settings, pipeline, reason, profile, features, warnings, .. } = advice;
        Self {
            kind: settings.kind.to_string(),
            pipeline,
            distance: settings.distance,
            verification: settings.verification.to_string(),
            reason,
            texts: profile.texts,
            short_share: profile.short,
            median_length: profile.median_length,
            han_share: profile.han,
            html_share: profile.markup,
            code_share: profile.code,
            median_features: features.median,
            few_features_share: features.few,
            warnings,
        }
    }
}

impl Advice {
    /// Prints the choice and its reason in one line, and a line for every warning.
    pub(crate) fn say(&self, console: &Console) {
        let Self { kind, pipeline, distance, verification, reason, .. } = self;
        console.say(&format!(
            "{kind}: {reason}; pipeline {pipeline}, distance {distance}, verification \
             {verification}"
        ));
        for warning in &self.warnings {
            console.warn(warning);
        }
    }
}

/// Resolves pipeline, distance and verification for documents.
///
/// Inputs that can be read only once are not sampled; spool them first.
pub(crate) fn resolve(
    console: &Console,
    inputs: &Arc<Inputs>,
    overrides: &Overrides<'_>,
) -> Result<Resolved> {
    let bring = inputs.bring();
    if bring == Bring::Fingerprints && !overrides.pipeline.given() {
        return fingerprints(overrides);
    }
    let preset = overrides.pipeline.preset();
    let centre = preset == Kind::Text.preset() && overrides.pipeline.centre_open();
    let open =
        preset.is_none() || overrides.distance.is_none() || overrides.verify.is_none() || centre;
    if bring == Bring::Texts && open {
        return advised(console, inputs, overrides);
    }
    let base = Base { sketch: overrides.sketch, ..Base::default() };
    let pipeline = overrides.pipeline.over(base, inputs, console)?;
    let kind = preset.and_then(Kind::of_preset).unwrap_or(Kind::Text);
    let mut asked = overrides.asked();
    if bring == Bring::Fingerprints {
        // The named pipeline has no text to apply to.
        asked = asked.support(Support::Nothing);
    }
    let settings = asked.settings(kind);
    Ok(Resolved {
        pipeline: Some(pipeline),
        distance: settings.distance,
        verification: settings.verification,
        advice: None,
    })
}

/// Resolves pipeline and distance of a new index, and reports the choice.
pub(crate) fn resolve_index(
    console: &Console,
    inputs: &Arc<Inputs>,
    overrides: &Overrides<'_>,
) -> Result<Resolved> {
    let resolved = resolve(console, inputs, overrides)?;
    if let Some(advice) = &resolved.advice {
        let Advice { kind, pipeline, distance, reason, .. } = advice;
        let verification = resolved.verification;
        let check = if verification.needs() == Evidence::Nothing {
            String::new()
        } else {
            format!("; searches use --verify {verification}")
        };
        console.say(&format!("{kind}: {reason}; pipeline {pipeline}, distance {distance}{check}"));
    }
    Ok(resolved)
}

/// Fingerprints have no text to sample and nothing to verify.
fn fingerprints(overrides: &Overrides<'_>) -> Result<Resolved> {
    overrides.pipeline.refuse_centre()?;
    let verification = overrides.verify.unwrap_or_default();
    if verification.needs() != Evidence::Nothing {
        return Err(Failure::Usage(format!(
            "--verify {verification} needs texts, but the inputs have only fingerprints; drop it"
        )));
    }
    let distance = overrides.distance.unwrap_or(DISTANCE);
    Ok(Resolved { pipeline: None, distance, verification, advice: None })
}

/// Samples texts and resolves the settings that the user did not pass.
fn advised(console: &Console, inputs: &Arc<Inputs>, overrides: &Overrides<'_>) -> Result<Resolved> {
    let texts = inputs.sample(SAMPLE)?;
    let own = overrides.pipeline.given() && overrides.pipeline.preset().is_none();
    let make = |choice: Choice| {
        let base = Base { choice, sketch: overrides.sketch };
        overrides.pipeline.over(base, inputs, console)
    };
    let resolved = advice::resolve_with(&texts, &overrides.asked(), own, make)?;
    let advice::Resolved { pipeline, distance, verification, advice } = resolved;
    Ok(Resolved { pipeline, distance, verification, advice: advice.map(Advice::from) })
}

/// Names a number of documents that cannot be verified, if there are any.
pub(crate) fn say_unverified(console: &Console, documents: u64) {
    if documents > 0 {
        console.warn(&format!(
            "{} documents have fingerprints but no texts, so they cannot be verified; of these \
                only equal fingerprints are near",
            size::thousands(documents)
        ));
    }
}
