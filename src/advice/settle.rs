//! Settling: a look at a sample of texts decides what the caller left open.

use super::choice::{Choice, HABITS};
use super::kind::Kind;
use super::profile::{Features, Profile};
use super::settings::Settings;
use super::warning::warnings;
use super::wishes::Wishes;
use crate::error::{Error, Result};
use crate::sketch::SketchKind;
use crate::text::{Centre, Clean, Pipeline};
use crate::verify::Verification;

/// Texts whose features are counted.
const COUNTED: usize = 300;

/// Share of texts with tags from which every text is taken for HTML.
const PAGES: f64 = 0.5;

/// Share of the short texts that a habit shows in from which it is heeded.
const HABIT: f64 = 0.03;

/// Settings with nothing left open.
#[derive(Debug, Clone)]
pub struct Settled {
    /// `None` where documents bring their fingerprints.
    pub pipeline: Option<Pipeline>,
    /// Bits that near-duplicates may differ in.
    pub distance: u32,
    /// Check that pairs within the distance have to pass.
    pub verification: Verification,
    /// What was seen and chosen; `None` where nothing was left open.
    pub advice: Option<Advice>,
}

/// What was seen in a sample and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Distance and verification, and the kind of texts that they are for.
    pub settings: Settings,
    /// Name of the preset, or `of your own` for a pipeline of the caller's.
    pub pipeline: &'static str,
    /// Why, in half a sentence with numbers.
    pub reason: String,
    /// What the sample looks like.
    pub profile: Profile,
    /// How many features its texts have.
    pub features: Features,
    /// Reasons not to trust the settings too far, a sentence each.
    pub warnings: Vec<String>,
}

/// Settles pipeline, distance and verification by a look at a sample of texts.
///
/// Some hundred texts are enough, [`SAMPLE`](super::SAMPLE) are plenty; they should come from all over the
/// documents. Texts are ignored if kind, distance and verification are given, or if kind and
/// distance are given and there is no text.
///
/// # Errors
///
/// [`Error::InvalidOption`] if the preset cannot be made here.
///
/// ```
/// use hamdex::advice::{self, Kind, Wishes};
///
/// let settled = advice::settle(&["今天是晴天", "good morning all", "早上好"], &Wishes::new())?;
/// assert_eq!((settled.distance, settled.verification.to_string()), (16, "edit:0.78,0.88,30".into()));
/// let advice = settled.advice.expect("all was left open");
/// assert_eq!((advice.settings.kind, advice.pipeline), (Kind::Text, "text"));
/// assert!(advice.warnings[0].contains("3 of them only"));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn settle<T: AsRef<str> + Sync>(texts: &[T], wishes: &Wishes) -> Result<Settled> {
    let pipeline = |choice: Choice| -> Result<Pipeline> {
        let mut options = choice.options()?;
        if let Some(sketch) = wishes.sketch {
            options = options.sketch(sketch);
        }
        Pipeline::new(&options)
    };
    if let (Some(kind), Some(_)) = (wishes.kind, wishes.distance)
        && (wishes.verification.is_some() || texts.is_empty())
    {
        let Settings { distance, verification, .. } = wishes.settings(kind);
        let mut pipeline = pipeline(Choice::of(kind))?;
        if kind == Kind::Text {
            pipeline = balanced(pipeline, texts, wishes)?;
        }
        return Ok(Settled { pipeline: Some(pipeline), distance, verification, advice: None });
    }
    settle_with(texts, wishes, false, pipeline)
}

/// Settles as [`settle`] does, with a pipeline that the caller makes.
///
/// `make` gets what the look at the texts says of the pipeline; a preset that is named is taken as
/// it is. `own` tells that `make` heeds nothing of it, having settings of its own; distance and
/// verification are then those of the kind whose preset its pipeline is, if it is one.
///
/// # Errors
///
/// What `make` fails with.
pub fn settle_with<T: AsRef<str> + Sync, E: From<Error>>(
    texts: &[T],
    wishes: &Wishes,
    own: bool,
    make: impl FnOnce(Choice) -> Result<Pipeline, E>,
) -> Result<Settled, E> {
    let profile = Profile::of(texts);
    let choice = wishes.kind.map_or(
        Choice { kind: Kind::Text, html: profile.markup >= PAGES, short_clean: habit(&profile) },
        Choice::of,
    );
    let mut pipeline = make(choice)?;
    // A descriptor may be that of a preset.
    let of_descriptor = if own { Kind::of_pipeline(&pipeline)? } else { None };
    let kind = of_descriptor.unwrap_or(choice.kind);
    if !own && kind == Kind::Text {
        pipeline = balanced(pipeline, texts, wishes)?;
    }
    let settings = wishes.settings(kind);
    let mut reason = kind.reason(&profile);
    let counted = texts.split_at(texts.len().min(COUNTED)).0;
    let features = Features::of(&pipeline, counted);
    // A few long sentences are all that their signature needs.
    let sentences = matches!(wishes.sketch, Some(SketchKind::Longest(_)));
    let told = (!sentences).then_some(features);
    if own && of_descriptor.is_none() {
        reason.push_str("; distance and verification were not measured with this pipeline");
    }
    let advice = Advice {
        settings,
        pipeline: if own { "of your own" } else { kind.preset().unwrap_or("text") },
        reason,
        profile,
        features,
        warnings: warnings(&profile, told, &settings, wishes.bits),
    };
    Ok(Settled {
        pipeline: Some(pipeline),
        distance: settings.distance,
        verification: settings.verification,
        advice: Some(advice),
    })
}

/// Returns what short texts are cleaned of, as the sample shows it.
///
/// What is a mention or an emoticon in posts is a decorator, an address that counts or the
/// subject of a message elsewhere.
fn habit(profile: &Profile) -> Clean {
    let [none, links, all] = HABITS;
    if profile.weibo >= HABIT {
        all
    } else if profile.posts >= HABIT {
        links
    } else {
        none
    }
}

/// Compares every bit with its usual share in the sample, where that is wished and can be learnt.
///
/// Of a few texts, or of one template, nothing is usual: such fingerprints stay as they are.
fn balanced<T: AsRef<str> + Sync>(
    pipeline: Pipeline,
    texts: &[T],
    wishes: &Wishes,
) -> Result<Pipeline> {
    let simhash = matches!(wishes.sketch, None | Some(SketchKind::SimHash));
    if !wishes.centre || !simhash || pipeline.has_centre() {
        return Ok(pipeline);
    }
    match Centre::learn(&pipeline, texts)? {
        Some(centre) => pipeline.with_centre(centre),
        None => Ok(pipeline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::PipelineOptions;

    fn posts() -> Vec<String> {
        (0..40).map(|n| format!("post number {n} of the morning")).collect()
    }

    #[test]
    fn what_is_given_needs_no_look() {
        let wishes = Wishes::new().kind(Kind::Code).distance(5);
        let settled = settle(&posts(), &wishes.verify(Verification::None)).unwrap();
        assert_eq!((settled.distance, settled.verification), (5, Verification::None));
        assert_eq!(settled.advice, None);
        let settled = settle::<&str>(&[], &wishes).unwrap();
        assert_eq!((settled.distance, settled.verification), (5, Verification::Jaccard(0.8)));
        assert_eq!(settled.advice, None);
        let pipeline = settled.pipeline.unwrap();
        assert_eq!(Kind::of_pipeline(&pipeline).unwrap(), Some(Kind::Code));
    }

    #[test]
    fn a_named_kind_goes_before_the_one_that_is_seen() {
        let settled = settle(&posts(), &Wishes::new().kind(Kind::Page)).unwrap();
        let advice = settled.advice.unwrap();
        assert_eq!((advice.settings.kind, advice.pipeline), (Kind::Page, "page"));
        assert_eq!((settled.distance, settled.verification), (12, Verification::Edit(0.88)));
    }

    #[test]
    fn texts_of_a_corpus_get_its_centre_and_are_cleaned_by_its_habits() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut text = |_| {
            let words: Vec<String> = (0..40).map(|_| format!("{:x}", random.u32(..))).collect();
            words.join(" ")
        };
        let mut texts: Vec<String> = (0..100).map(&mut text).collect();
        let descriptor = |texts: &[String], wishes: Wishes| {
            settle(texts, &wishes).unwrap().pipeline.unwrap().descriptor().to_owned()
        };
        let open = descriptor(&texts, Wishes::new());
        assert!(open.contains(";centre=") && open.contains(";short=200,none;"), "{open}");
        let all = Wishes::new().kind(Kind::Text).distance(9).verify(Verification::None);
        assert!(descriptor(&texts, all).contains(";centre="));
        assert!(!descriptor(&texts, Wishes::new().centre(false)).contains(";centre="));
        assert!(!descriptor(&texts[..60], Wishes::new()).contains(";centre="));
        let minhash = Wishes { sketch: Some(SketchKind::MinHash), ..Wishes::new() };
        assert!(!descriptor(&texts, minhash).contains(";centre="));
        assert!(!descriptor(&texts, Wishes::new().kind(Kind::Page)).contains(";centre="));
        texts.extend(posts().into_iter().map(|post| format!("@bob {post}")));
        assert!(descriptor(&texts, Wishes::new()).contains(";short=200,links;"));
        texts.extend(posts().into_iter().map(|post| format!("{post}//@张三:哈哈")));
        assert!(descriptor(&texts, Wishes::new()).contains(";short=200,weibo,links;"));
    }

    #[test]
    fn pages_with_tags_are_read_as_pages() {
        let pages = vec!["<!doctype html><html><p>a</p></html>".repeat(20); 30];
        let html = |wishes: &Wishes| {
            let pipeline = settle(&pages, wishes).unwrap().pipeline.unwrap();
            pipeline.descriptor().contains("html=reader")
        };
        assert!(html(&Wishes::new()) && !html(&Wishes::new().kind(Kind::Page)));
    }

    #[test]
    fn a_pipeline_of_ones_own_is_measured_with_or_not() {
        let advice = |options: &PipelineOptions| {
            let make = |_| Pipeline::new(options);
            settle_with(&posts(), &Wishes::new(), true, make).unwrap().advice.unwrap()
        };
        let preset = advice(&PipelineOptions::preset("code").unwrap());
        assert_eq!((preset.settings.kind, preset.pipeline), (Kind::Code, "of your own"));
        assert!(!preset.reason.contains("not measured"), "{}", preset.reason);
        let own = advice(&PipelineOptions::new().seed(1));
        assert!(own.reason.contains("not measured"), "{}", own.reason);
        assert_eq!(own.settings.kind, Kind::Text);
    }
}
