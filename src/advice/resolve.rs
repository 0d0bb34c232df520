//! Resolution: chooses the settings that the caller did not pass from a sample of texts.

use super::kind::Kind;
use super::overrides::Overrides;
use super::profile::{Features, Profile};
use super::settings::{Choice, HABITS, Settings};
use super::warning::warnings;
use crate::error::{Error, Result};
use crate::sketch::SketchKind;
use crate::text::{Centre, Clean, Pipeline};
use crate::verify::Verification;

/// Number of texts whose features are counted.
const COUNTED: usize = 300;

/// Minimum share of texts with tags for which all texts are treated as HTML.
const PAGES: f64 = 0.5;

/// Minimum share of short texts with a habit for which texts are cleaned of it.
const HABIT: f64 = 0.03;

/// Fully resolved settings, as returned by [`resolve`].
///
/// ```
/// use hamdex::advice::{self, Resolved, Overrides};
///
/// let resolved: Resolved = advice::resolve(&["good morning", "good evening"], &Overrides::new())?;
/// let pipeline = resolved.pipeline.expect("texts have a pipeline");
/// println!("{}: {} bits, {}", pipeline.descriptor(), resolved.distance, resolved.verification);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The pipeline; `None` if documents have fingerprints already.
    pub pipeline: Option<Pipeline>,
    /// Maximum distance of near-duplicates, in bits.
    pub distance: u32,
    /// Check that pairs within the distance must pass.
    pub verification: Verification,
    /// The choices and their reasons; `None` if all settings were passed.
    pub advice: Option<Advice>,
}

/// The settings chosen from a sample, with the reasons and warnings.
///
/// ```
/// use hamdex::advice::{self, Advice, Overrides};
///
/// let resolved = advice::resolve(&["good morning", "good evening"], &Overrides::new())?;
/// let advice: Advice = resolved.advice.expect("no setting was passed");
/// assert_eq!((advice.profile.texts, advice.pipeline), (2, "text"));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// Distance and verification, and their kind of texts.
    pub settings: Settings,
    /// Name of the preset, or `of your own` for the caller's pipeline.
    pub pipeline: &'static str,
    /// The reason, as a clause with numbers.
    pub reason: String,
    /// Figures of the sample.
    pub profile: Profile,
    /// Number of features in its texts.
    pub features: Features,
    /// Weaknesses of the settings for these texts, one sentence each.
    pub warnings: Vec<String>,
}

/// Resolves pipeline, distance and verification from a sample of texts.
///
/// A few hundred texts are enough, [`SAMPLE`](super::SAMPLE) are plenty; they should be spread over
/// all documents. The texts do not affect these settings if kind, distance and verification are
/// passed, or if kind and distance are passed and there are no texts.
///
/// # Errors
///
/// Returns [`Error::InvalidOption`] if the pipeline cannot be created.
///
/// ```
/// use hamdex::advice::{self, Kind, Overrides};
///
/// let resolved = advice::resolve(&["今天是晴天", "good morning all", "早上好"], &Overrides::new())?;
/// assert_eq!((resolved.distance, resolved.verification.to_string()), (16, "edit:0.78,0.88,30".into()));
/// let advice = resolved.advice.expect("no setting was passed");
/// assert_eq!((advice.settings.kind, advice.pipeline), (Kind::Text, "text"));
/// assert!(advice.warnings[0].contains("only 3 texts"));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn resolve<T: AsRef<str> + Sync>(texts: &[T], overrides: &Overrides) -> Result<Resolved> {
    let pipeline = |choice: Choice| -> Result<Pipeline> {
        let mut options = choice.options()?;
        if let Some(sketch) = overrides.sketch {
            options = options.sketch(sketch);
        }
        Pipeline::new(&options)
    };
    if let (Some(kind), Some(_)) = (overrides.kind, overrides.distance)
        && (overrides.verification.is_some() || texts.is_empty())
    {
        let Settings { distance, verification, .. } = overrides.settings(kind);
        let mut pipeline = pipeline(Choice::of(kind))?;
        if kind == Kind::Text {
            pipeline = balanced(pipeline, texts, overrides)?;
        }
        return Ok(Resolved { pipeline: Some(pipeline), distance, verification, advice: None });
    }
    resolve_with(texts, overrides, false, pipeline)
}

/// Resolves settings as [`resolve`] does, with a pipeline from the caller.
///
/// `make` gets the choice made from the texts; if the kind is passed, this is its preset without
/// changes. Set `own` if `make` ignores the choice: then distance and verification are those of the
/// preset that the pipeline equals, if it equals one.
///
/// # Errors
///
/// Returns the errors of `make`.
///
/// ```
/// use hamdex::advice::{self, Overrides};
/// use hamdex::text::Pipeline;
/// use hamdex::{Error, PipelineOptions};
///
/// let make = |_| Pipeline::new(&PipelineOptions::preset("code")?);
/// let resolved = advice::resolve_with::<_, Error>(&["let a = b;"], &Overrides::new(), true, make)?;
/// assert_eq!((resolved.distance, resolved.verification.to_string()), (6, "jaccard:0.8".into()));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn resolve_with<T: AsRef<str> + Sync, E: From<Error>>(
    texts: &[T],
    overrides: &Overrides,
    own: bool,
    make: impl FnOnce(Choice) -> Result<Pipeline, E>,
) -> Result<Resolved, E> {
    let profile = Profile::of(texts);
    let choice = overrides.kind.map_or(
        Choice { kind: Kind::Text, html: profile.markup >= PAGES, short_clean: habit(&profile) },
        Choice::of,
    );
    let mut pipeline = make(choice)?;
    // A descriptor may be that of a preset.
    let of_descriptor = if own { Kind::of_pipeline(&pipeline)? } else { None };
    let kind = of_descriptor.unwrap_or(choice.kind);
    if !own && kind == Kind::Text {
        pipeline = balanced(pipeline, texts, overrides)?;
    }
    let settings = overrides.settings(kind);
    let mut reason = kind.reason(&profile);
    let counted = texts.split_at(texts.len().min(COUNTED)).0;
    let features = Features::of(&pipeline, counted);
    // Signatures of the longest sentences need only a few features.
    let sentences = matches!(overrides.sketch, Some(SketchKind::Longest(_)));
    let relevant = (!sentences).then_some(features);
    if own && of_descriptor.is_none() {
        reason.push_str("; distance and verification were not measured with this pipeline");
    }
    let advice = Advice {
        settings,
        pipeline: if own { "of your own" } else { kind.preset().unwrap_or("text") },
        reason,
        profile,
        features,
        warnings: warnings(&profile, relevant, &settings, overrides.bits),
    };
    Ok(Resolved {
        pipeline: Some(pipeline),
        distance: settings.distance,
        verification: settings.verification,
        advice: Some(advice),
    })
}

/// Returns the noise to remove from short texts, by the habits in the sample.
///
/// In other texts, the same syntax is a decorator, an address or the subject of a message.
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

/// Adds a centre learnt from the sample, if the caller allows one.
///
/// A few texts, or texts of one template, have no centre; then the pipeline is unchanged.
fn balanced<T: AsRef<str> + Sync>(
    pipeline: Pipeline,
    texts: &[T],
    overrides: &Overrides,
) -> Result<Pipeline> {
    let simhash = matches!(overrides.sketch, None | Some(SketchKind::SimHash));
    if !overrides.centre || !simhash || pipeline.has_centre() {
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
    fn passed_settings_need_no_advice() {
        let overrides = Overrides::new().kind(Kind::Code).distance(5);
        let resolved = resolve(&posts(), &overrides.verify(Verification::None)).unwrap();
        assert_eq!((resolved.distance, resolved.verification), (5, Verification::None));
        assert_eq!(resolved.advice, None);
        let resolved = resolve::<&str>(&[], &overrides).unwrap();
        assert_eq!((resolved.distance, resolved.verification), (5, Verification::Jaccard(0.8)));
        assert_eq!(resolved.advice, None);
        let pipeline = resolved.pipeline.unwrap();
        assert_eq!(Kind::of_pipeline(&pipeline).unwrap(), Some(Kind::Code));
    }

    #[test]
    fn a_passed_kind_takes_precedence() {
        let resolved = resolve(&posts(), &Overrides::new().kind(Kind::Page)).unwrap();
        let advice = resolved.advice.unwrap();
        assert_eq!((advice.settings.kind, advice.pipeline), (Kind::Page, "page"));
        assert_eq!((resolved.distance, resolved.verification), (12, Verification::Edit(0.88)));
    }

    #[test]
    fn a_corpus_gets_its_centre_and_is_cleaned_by_its_habits() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut text = |_| {
            let words: Vec<String> = (0..40).map(|_| format!("{:x}", random.u32(..))).collect();
            words.join(" ")
        };
        let mut texts: Vec<String> = (0..100).map(&mut text).collect();
        let descriptor = |texts: &[String], overrides: Overrides| {
            resolve(texts, &overrides).unwrap().pipeline.unwrap().descriptor().to_owned()
        };
        let open = descriptor(&texts, Overrides::new());
        assert!(open.contains(";centre=") && open.contains(";short=200,none;"), "{open}");
        let all = Overrides::new().kind(Kind::Text).distance(9).verify(Verification::None);
        assert!(descriptor(&texts, all).contains(";centre="));
        assert!(!descriptor(&texts, Overrides::new().centre(false)).contains(";centre="));
        assert!(!descriptor(&texts[..60], Overrides::new()).contains(";centre="));
        let minhash = Overrides { sketch: Some(SketchKind::MinHash), ..Overrides::new() };
        assert!(!descriptor(&texts, minhash).contains(";centre="));
        assert!(!descriptor(&texts, Overrides::new().kind(Kind::Page)).contains(";centre="));
        texts.extend(posts().into_iter().map(|post| format!("@bob {post}")));
        assert!(descriptor(&texts, Overrides::new()).contains(";short=200,links;"));
        texts.extend(posts().into_iter().map(|post| format!("{post}//@张三:哈哈")));
        assert!(descriptor(&texts, Overrides::new()).contains(";short=200,weibo,links;"));
    }

    #[test]
    fn pages_with_tags_are_read_as_pages() {
        let pages = vec!["<!doctype html><html><p>a</p></html>".repeat(20); 30];
        let html = |overrides: &Overrides| {
            let pipeline = resolve(&pages, overrides).unwrap().pipeline.unwrap();
            pipeline.descriptor().contains("html=reader")
        };
        assert!(html(&Overrides::new()) && !html(&Overrides::new().kind(Kind::Page)));
    }

    #[test]
    fn a_pipeline_of_the_caller_gets_the_settings_of_an_equal_preset() {
        let advice = |options: &PipelineOptions| {
            let make = |_| Pipeline::new(options);
            resolve_with(&posts(), &Overrides::new(), true, make).unwrap().advice.unwrap()
        };
        let preset = advice(&PipelineOptions::preset("code").unwrap());
        assert_eq!((preset.settings.kind, preset.pipeline), (Kind::Code, "of your own"));
        assert!(!preset.reason.contains("not measured"), "{}", preset.reason);
        let own = advice(&PipelineOptions::new().seed(1));
        assert!(own.reason.contains("not measured"), "{}", own.reason);
        assert_eq!(own.settings.kind, Kind::Text);
    }
}
