//! Advice: what the user leaves open is settled by a look at the texts.
//!
//! What is given is never overridden: a distance alone means Hamming distance only, a check
//! alone brings the distance that was measured with it.

use std::sync::Arc;

use hamdex::Verification;
use hamdex::advice::{self, Features, Kind, Profile, Support};
use hamdex::sketch::SketchKind;
use hamdex::text::Pipeline;
use hamdex::verify::Evidence;
use serde::Serialize;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Bring, Inputs};
use crate::options::{Base, DISTANCE, PipelineArgs};
use crate::size;

/// Texts that are looked at.
const SAMPLE: usize = 1000;

/// Texts whose features are counted.
const COUNTED: usize = 300;

/// Share of texts with tags from which every text is taken for HTML.
const PAGES: f64 = 0.5;

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

impl Advice {
    /// Says in one line what is done and why, and a line for every warning.
    pub(crate) fn say(&self, console: &Console) {
        let Self { kind, pipeline, distance, verification, reason, .. } = self;
        console.say(&format!(
            "{kind}: {reason}; pipeline {pipeline}, distance {distance}, verification \
             {verification}"
        ));
        for warning in &self.warnings {
            console.say(&format!("warning: {warning}"));
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
    let bring = inputs.bring()?;
    if bring == Bring::Fingerprints && !wishes.pipeline.given() {
        return fingerprints(wishes);
    }
    let preset = wishes.pipeline.preset();
    if bring == Bring::Texts && (preset.is_none() || wishes.distance.is_none()) {
        return advised(console, inputs, wishes);
    }
    let base = Base { sketch: wishes.sketch, ..Base::default() };
    let pipeline = wishes.pipeline.over(base, inputs, console)?;
    let kind = preset.and_then(Kind::of_preset).unwrap_or(Kind::Mixed);
    let settings = settings(kind, wishes);
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
    let profile = Profile::of(&texts);
    let preset = wishes.pipeline.preset();
    let seen = profile.kind();
    let kind = preset.and_then(Kind::of_preset).unwrap_or(seen);
    let base = Base { kind, html: profile.markup >= PAGES, sketch: wishes.sketch };
    let pipeline = wishes.pipeline.over(base, inputs, console)?;
    // A descriptor may be that of a preset.
    let own = wishes.pipeline.given() && preset.is_none();
    let of_descriptor = if own { Kind::of_pipeline(&pipeline)? } else { None };
    let kind = of_descriptor.unwrap_or(kind);
    let settings = settings(kind, wishes);
    let counted = texts.get(..texts.len().min(COUNTED)).unwrap_or_default();
    let features = Features::of(&pipeline, counted);
    // A few long sentences are all that their signature needs.
    let sentences = matches!(wishes.sketch, Some(SketchKind::Longest(_)));
    let told = (!sentences).then_some(features);
    let mut reason = seen.reason(&profile);
    if own && of_descriptor.is_none() {
        reason.push_str("; distance and verification were not measured with this pipeline");
    }
    let advice = Advice {
        kind: kind.to_string(),
        pipeline: if own { "of your own" } else { kind.preset().unwrap_or("auto") },
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
        warnings: advice::warnings(&profile, told, &settings, wishes.bits),
    };
    Ok(Settled {
        pipeline: Some(pipeline),
        distance: settings.distance,
        verification: settings.verification,
        advice: Some(advice),
    })
}

/// Puts what the user gives in the place of what was measured.
fn settings(kind: Kind, wishes: &Wishes<'_>) -> advice::Settings {
    let mut measured = advice::Settings::of(kind, wishes.bits, wishes.support);
    if let Some(SketchKind::Longest(_)) = wishes.sketch {
        // The signature of the longest sentences is equal or it says nothing.
        measured = advice::Settings { distance: 0, verification: Verification::None, kind };
        if wishes.distance.is_none() {
            let verification = wishes.verify.unwrap_or(Verification::None);
            return advice::Settings { verification, ..measured };
        }
    }
    match (wishes.distance, wishes.verify) {
        (None, None) => measured,
        (None, Some(verification)) => measured.verified_by(verification, wishes.bits),
        (Some(distance), verify) => advice::Settings {
            distance,
            verification: verify.unwrap_or(Verification::None),
            ..measured
        },
    }
}

/// Names a number of documents that cannot be verified, if there are any.
pub(crate) fn say_unverified(console: &Console, documents: u64) {
    if documents > 0 {
        console.say(&format!(
            "warning: {} documents brought fingerprints without texts; nothing can be verified of \
             them, so only equal fingerprints count as near",
            size::thousands(documents)
        ));
    }
}
