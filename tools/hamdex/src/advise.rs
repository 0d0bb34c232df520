//! Advice: resolves the settings that the user did not pass, from a sample of the texts.

use std::sync::Arc;

use hamdex::advice::{self, Kind, Support};
use hamdex::sketch::SketchKind;
use hamdex::text::Pipeline;
use hamdex::verify::Evidence;
use hamdex::verify::Verification;
use hamdex_io::host::Host;
use hamdex_io::settings::{self, Asked, Given};
use serde::Serialize;

use crate::console::Console;
use crate::failure::Result;
use crate::input::{Bring, Export, Inputs};
use crate::options::{Base, PipelineArgs};
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

    /// Calls a resolution with what the user says.
    fn with(
        &self,
        console: &Console,
        inputs: &Arc<Inputs>,
        resolve: impl FnOnce(&Asked<'_>) -> Result<advice::Resolved>,
    ) -> Result<Resolved> {
        let given = match (self.pipeline.given(), self.pipeline.preset()) {
            (false, _) => Given::Nothing,
            (true, Some(_)) => Given::Preset,
            (true, None) => Given::Own,
        };
        if given == Given::Nothing && inputs.bring() == Bring::Fingerprints {
            self.pipeline.refuse_centre()?;
        }
        let make = |choice| {
            let base = Base { choice, sketch: self.sketch };
            self.pipeline.over(base, inputs, console)
        };
        let resolved = resolve(&Asked { overrides: self.asked(), given, make: &make })?;
        Ok(Resolved::from(resolved))
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

impl From<advice::Resolved> for Resolved {
    fn from(resolved: advice::Resolved) -> Self {
        let advice::Resolved { pipeline, distance, verification, advice } = resolved;
        Self { pipeline, distance, verification, advice: advice.map(Advice::from) }
    }
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
    overrides.with(console, inputs, |asked| settings::resolve(inputs, asked))
}

/// Resolves pipeline and distance of a new index, and reports the choice.
pub(crate) fn resolve_index(
    console: &Console,
    inputs: &Arc<Inputs>,
    export: Option<&Export>,
    overrides: &Overrides<'_>,
) -> Result<Resolved> {
    let secret = export.map(|_| overrides.pipeline.seed().secret()).transpose()?.flatten();
    let resolved = overrides
        .with(console, inputs, |asked| settings::resolve_new(inputs, export, secret, asked))?;
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
