//! Warnings: sentences, with numbers, about settings that are weak for the texts.

use super::kind::Kind;
use super::profile::{FEW_FEATURES, Features, Profile};
use super::settings::Settings;
use crate::verify::{Evidence, Verification};

/// Minimum share of texts with few features that triggers the warning.
const MANY_FEW: f64 = 0.05;

/// Number of texts below which a sample triggers the warning.
const SMALL_SAMPLE: usize = 20;

/// Share of the near-duplicates among posts within each distance from 0, at 64 bits.
///
/// Measured on 12,000 English posts with a median of 75 characters; near-duplicates have edit
/// similarity 0.8 and above, copies included. Preset `text` with a centre.
const POSTS_FOUND: [f64; 17] = [
    0.53, 0.54, 0.55, 0.56, 0.63, 0.67, 0.71, 0.77, 0.81, 0.85, 0.88, 0.90, 0.95, 0.95, 0.96, 0.96,
    0.98,
];

/// Returns a sentence for each weakness of the settings.
///
/// `settings` are the resolved settings, at a width of `bits`.
///
/// ```
/// use hamdex::advice::{Features, Kind, Profile, Settings, Support, warnings};
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let texts = vec!["good morning"; 50];
/// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
/// let features = Features::of(&pipeline, &texts);
/// let settings = Settings::of(Kind::Post, 64, Support::Nothing);
/// let warnings = warnings(&Profile::of(&texts), Some(features), &settings, 64);
/// assert!(warnings.iter().any(|line| line.contains("SimHash alone")));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn warnings(
    profile: &Profile,
    features: Option<Features>,
    settings: &Settings,
    bits: u32,
) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut warnings = Vec::new();
    let verified = settings.verification.needs() != Evidence::Nothing;
    if profile.texts > 0 && profile.texts < SMALL_SAMPLE {
        let texts = if profile.texts == 1 { "text" } else { "texts" };
        warnings.push(format!(
            "settings were chosen from only {} {texts}; pass --pipeline to choose them yourself",
            profile.texts
        ));
    }
    if let Some(Features { few, .. }) = features
        && few >= MANY_FEW
    {
        let check = if verified { "; only the verification corrects this" } else { "" };
        warnings.push(format!(
            "{} of the texts have fewer than {FEW_FEATURES} features, so a single word can decide \
             their fingerprint{check}",
            percent(few)
        ));
    }
    let shorts =
        matches!(settings.kind, Kind::Text | Kind::Post | Kind::Mixed) && profile.short >= 0.5;
    let at_64 = usize::try_from(u64::from(settings.distance) * 64 / u64::from(bits.max(1)))
        .unwrap_or(usize::MAX);
    let found = POSTS_FOUND.get(at_64).copied().unwrap_or(1.0);
    if shorts && !verified {
        warnings.push(format!(
            "the median text has {} characters: at that length SimHash alone finds about {} of the \
             near-duplicates at distance {}, and wrong pairs too; verify them (--verify edit:0.8)",
            profile.median_length,
            percent(found),
            settings.distance
        ));
    } else if shorts && found < 0.9 {
        warnings.push(format!(
            "distance {} finds about {} of the near-duplicates of short texts; use distance {}",
            settings.distance,
            percent(found),
            Settings::of(settings.kind, bits, super::Support::Texts).distance
        ));
    }
    if let Verification::Zhou { k, threshold } = settings.verification
        && threshold < 0.5 * (1.0 + k)
    {
        warnings.push(format!(
            "the zhou threshold {threshold} is low: with weight {k}, {:.1} is better for posts; \
             at 1 + 0.2 weight most wrong pairs pass",
            0.8 * k
        ));
    }
    if settings.kind == Kind::Mixed && profile.texts >= SMALL_SAMPLE {
        warnings.push(format!(
            "{} of the texts are short and the others long: one setting for both is a compromise; \
             run them separately (--pipeline post, --pipeline page)",
            percent(profile.short)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::Support;

    fn profile(texts: usize, short: f64) -> Profile {
        Profile {
            texts,
            short,
            median_length: 45,
            han: 0.0,
            markup: 0.0,
            code: 0.0,
            posts: 0.0,
            weibo: 0.0,
        }
    }

    #[test]
    fn good_settings_for_clear_kinds_need_no_warning() {
        let features = Some(Features { median: 60, few: 0.01 });
        let post = Settings::of(Kind::Post, 64, Support::Texts);
        assert!(warnings(&profile(1000, 0.99), features, &post, 64).is_empty());
        let page = Settings::of(Kind::Page, 64, Support::Nothing);
        assert!(warnings(&profile(1000, 0.01), features, &page, 64).is_empty());
    }

    #[test]
    fn weak_settings_give_warnings_with_numbers() {
        let joined = |profile, features, settings: Settings| {
            warnings(&profile, features, &settings, 64).join("\n")
        };
        let post = Settings::of(Kind::Post, 64, Support::Texts);
        let few = Some(Features { median: 12, few: 0.37 });
        assert!(
            joined(profile(1000, 1.0), few, post).contains("37 % of the texts have fewer than 10")
        );
        let alone = Settings { distance: 3, ..Settings::of(Kind::Post, 64, Support::Nothing) };
        let line = joined(profile(1000, 1.0), None, alone);
        assert!(line.contains("45 characters") && line.contains("56 %"), "{line}");
        let narrow = Settings { distance: 3, ..post };
        assert!(joined(profile(1000, 1.0), None, narrow).contains("use distance 14"));
        assert!(joined(profile(3, 1.0), None, post).contains("only 3 texts"));
        let mixed = Settings::of(Kind::Mixed, 64, Support::Texts);
        assert!(joined(profile(100, 0.6), None, mixed).contains("60 % of the texts are short"));
        let low = Settings { verification: Verification::Zhou { k: 3.0, threshold: 1.6 }, ..post };
        assert!(joined(profile(1000, 1.0), None, low).contains("1.6"));
    }
}
