//! Advice: what the user leaves open is settled by the library, by a look at the texts.

use std::sync::Arc;

use hamdex::Verification;
use hamdex::advice::{self, Choice, Kind, SAMPLE, Support};
use hamdex::sketch::SketchKind;
use hamdex::text::Pipeline;
use hamdex::verify::Evidence;
use serde::Serialize;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Bring, Inputs};
use crate::options::{Base, DISTANCE, PipelineArgs};
use crate::size;

/// What the user says about the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wishes<'a> {
    pub(crate) pipeline: &'a PipelineArgs,
    pub(crate) distance: Option<u32>,
    pub(crate) verify: Option<Verification>,
    pub(crate) sketch: Option<SketchKind>,
    /// What a verification will be able to stand on.
    pub(crate) support: Support,
    pub(crate) bits: u32,
}

impl<'a> Wishes<'a> {
    /// What is wished for documents whose texts are at hand.
    pub(crate) fn over_texts(
        pipeline: &'a PipelineArgs,
        distance: Option<u32>,
        verify: Option<Verification>,
        bits: u32,
    ) -> Self {
        let sketch = pipeline.sketch;
        Self { pipeline, distance, verify, sketch, support: Support::Texts, bits }
    }

    fn asked(&self) -> advice::Wishes {
        advice::Wishes {
            kind: self.pipeline.preset().and_then(Kind::of_preset),
            distance: self.distance,
            verification: self.verify,
            sketch: self.sketch,
            support: self.support,
            bits: self.bits,
            centre: self.pipeline.centre_open(),
        }
    }
}

/// Settings with nothing left open.
#[derive(Debug)]
pub(crate) struct Settled {
    /// `None` where the inputs bring fingerprints.
    pub(crate) pipeline: Option<Pipeline>,
    pub(crate) distance: u32,
    pub(crate) verification: Verification,
    /// What was seen and chosen; `None` where nothing was left open.
    pub(crate) advice: Option<Advice>,
}

impl Settled {
    /// Says what was chosen, if anything was left open.
    pub(crate) fn say(&self, console: &Console) {
        if let Some(advice) = &self.advice {
            advice.say(console);
        }
    }
}

/// What was seen in the sample and what follows from it.
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
        let advice::Advice { settings, pipeline, reason, profile, features, warnings } = advice;
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
    /// Says in one line what is done and why, and a line for every warning.
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

/// Settles pipeline, distance and verification for documents.
///
/// Inputs that can be read only once are not looked at; spool them first.
pub(crate) fn settle(
    console: &Console,
    inputs: &Arc<Inputs>,
    wishes: &Wishes<'_>,
) -> Result<Settled> {
    let bring = inputs.bring();
    if bring == Bring::Fingerprints && !wishes.pipeline.given() {
        return fingerprints(wishes);
    }
    let preset = wishes.pipeline.preset();
    let centre = preset == Kind::Text.preset() && wishes.pipeline.centre_open();
    let open = preset.is_none() || wishes.distance.is_none() || wishes.verify.is_none() || centre;
    if bring == Bring::Texts && open {
        return advised(console, inputs, wishes);
    }
    let base = Base { sketch: wishes.sketch, ..Base::default() };
    let pipeline = wishes.pipeline.over(base, inputs, console)?;
    let kind = preset.and_then(Kind::of_preset).unwrap_or(Kind::Text);
    let mut asked = wishes.asked();
    if bring == Bring::Fingerprints {
        // A pipeline was named, but there is no text that it could be applied to.
        asked = asked.support(Support::Nothing);
    }
    let settings = asked.settings(kind);
    Ok(Settled {
        pipeline: Some(pipeline),
        distance: settings.distance,
        verification: settings.verification,
        advice: None,
    })
}

/// Settles pipeline and distance of an index that is to be made, and says what was chosen.
pub(crate) fn settle_index(
    console: &Console,
    inputs: &Arc<Inputs>,
    wishes: &Wishes<'_>,
) -> Result<Settled> {
    let settled = settle(console, inputs, wishes)?;
    if let Some(advice) = &settled.advice {
        let Advice { kind, pipeline, distance, reason, .. } = advice;
        let verification = settled.verification;
        let check = if verification.needs() == Evidence::Nothing {
            String::new()
        } else {
            format!(", to be searched with --verify {verification}")
        };
        console.say(&format!("{kind}: {reason}; pipeline {pipeline}, distance {distance}{check}"));
    }
    Ok(settled)
}

/// Fingerprints have no text to look at and nothing to verify.
fn fingerprints(wishes: &Wishes<'_>) -> Result<Settled> {
    wishes.pipeline.refuse_centre()?;
    let verification = wishes.verify.unwrap_or_default();
    if verification.needs() != Evidence::Nothing {
        return Err(Failure::Usage(format!(
            "--verify {verification} needs texts, but the inputs bring fingerprints only; leave it \
             out"
        )));
    }
    let distance = wishes.distance.unwrap_or(DISTANCE);
    Ok(Settled { pipeline: None, distance, verification, advice: None })
}

/// Looks at texts and settles what is left open.
fn advised(console: &Console, inputs: &Arc<Inputs>, wishes: &Wishes<'_>) -> Result<Settled> {
    let texts = inputs.sample(SAMPLE)?;
    let own = wishes.pipeline.given() && wishes.pipeline.preset().is_none();
    let make = |choice: Choice| {
        let base = Base { choice, sketch: wishes.sketch };
        wishes.pipeline.over(base, inputs, console)
    };
    let settled = advice::settle_with(&texts, &wishes.asked(), own, make)?;
    let advice::Settled { pipeline, distance, verification, advice } = settled;
    Ok(Settled { pipeline, distance, verification, advice: advice.map(Advice::from) })
}

/// Names a number of documents that cannot be verified, if there are any.
pub(crate) fn say_unverified(console: &Console, documents: u64) {
    if documents > 0 {
        console.warn(&format!(
            "{} documents brought fingerprints without texts; nothing can be verified of \
             them, so only equal fingerprints count as near",
            size::thousands(documents)
        ));
    }
}
