//! Warnings: settings that are weak for the texts at hand become sentences with their numbers.

use super::kind::Kind;
use super::profile::{FEW_FEATURES, Features, Profile};
use super::settings::Settings;
use crate::verify::{Evidence, Verification};

/// Share of texts with few features from which it is told.
const MANY_FEW: f64 = 0.05;

/// Texts below which a sample says little.
const SMALL_SAMPLE: usize = 20;

/// Part of the near-duplicates among posts that are within each distance from 0, at 64 bits.
///
/// Measured on 12,000 English posts, the median of 75 characters, edit similarity 0.8 and above, copies
/// included, with the preset `text` and a centre.
const POSTS_FOUND: [f64; 17] = [
    0.53, 0.54, 0.55, 0.56, 0.63, 0.67, 0.71, 0.77, 0.81, 0.85, 0.88, 0.90, 0.95, 0.95, 0.96, 0.96,
    0.98,
];

/// Returns a sentence for each reason not to trust the settings too far.
///
/// `settings` are those that will be used, whoever chose them, at a width of `bits`.
///
/// ```
/// use hamdex::advice::{Features, Kind, Profile, Settings, Support, warnings};
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let texts = vec!["good morning"; 50];
/// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
/// let features = Features::of(&pipeline, &texts);
/// let settings = Settings::of(Kind::Post, 64, Support::Nothing);
/// let told = warnings(&Profile::of(&texts), Some(features), &settings, 64);
/// assert!(told.iter().any(|line| line.contains("SimHash alone")));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn warnings(
    profile: &Profile,
    features: Option<Features>,
    settings: &Settings,
    bits: u32,
) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut told = Vec::new();
    let verified = settings.verification.needs() != Evidence::Nothing;
    if profile.texts > 0 && profile.texts < SMALL_SAMPLE {
        told.push(format!(
            "the kind of texts is a guess: it is told from {} of them only",
            profile.texts
        ));
    }
    if let Some(Features { few, .. }) = features
        && few >= MANY_FEW
    {
        let check = if verified { ", which only the verification makes up for" } else { "" };
        told.push(format!(
            "{} of the texts have fewer than {FEW_FEATURES} features: a single word decides \
             there{check}",
            percent(few)
        ));
    }
    let shorts =
        matches!(settings.kind, Kind::Text | Kind::Post | Kind::Mixed) && profile.short >= 0.5;
    let at_64 = usize::try_from(u64::from(settings.distance) * 64 / u64::from(bits.max(1)))
        .unwrap_or(usize::MAX);
    let found = POSTS_FOUND.get(at_64).copied().unwrap_or(1.0);
    if shorts && !verified {
        told.push(format!(
            "the median text has {} characters: at that length SimHash alone finds about {} of the \
             near-duplicates at distance {} and brings wrong ones with them; verify them \
             (--verify edit:0.8)",
            profile.median_length,
            percent(found),
            settings.distance
        ));
    } else if shorts && found < 0.9 {
        told.push(format!(
            "distance {} lets about {} of the near-duplicates of short texts come to the \
             verification; {} is a better one",
            settings.distance,
            percent(found),
            Settings::of(settings.kind, bits, super::Support::Texts).distance
        ));
    }
    if let Verification::Zhou { k, threshold } = settings.verification
        && threshold < 0.5 * (1.0 + k)
    {
        told.push(format!(
            "the threshold {threshold} of zhou is low: with weight {k}, {:.1} did better on \
             posts, where 1 + 0.2 weight lets most wrong pairs pass",
            0.8 * k
        ));
    }
    if settings.kind == Kind::Mixed && profile.texts >= SMALL_SAMPLE {
        told.push(format!(
            "{} of the texts are short and the others long: one setting for both is a \
             compromise; separate runs (--pipeline post, --pipeline page) need none",
            percent(profile.short)
        ));
    }
    told
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
    fn weak_choices_are_told_with_their_numbers() {
        let told = |profile, features, settings: Settings| {
            warnings(&profile, features, &settings, 64).join("\n")
        };
        let post = Settings::of(Kind::Post, 64, Support::Texts);
        let few = Some(Features { median: 12, few: 0.37 });
        assert!(
            told(profile(1000, 1.0), few, post).contains("37 % of the texts have fewer than 10")
        );
        let alone = Settings { distance: 3, ..Settings::of(Kind::Post, 64, Support::Nothing) };
        let line = told(profile(1000, 1.0), None, alone);
        assert!(line.contains("45 characters") && line.contains("56 %"), "{line}");
        let narrow = Settings { distance: 3, ..post };
        assert!(told(profile(1000, 1.0), None, narrow).contains("14 is a better one"));
        assert!(told(profile(3, 1.0), None, post).contains("3 of them only"));
        let mixed = Settings::of(Kind::Mixed, 64, Support::Texts);
        assert!(told(profile(100, 0.6), None, mixed).contains("60 % of the texts are short"));
        let low = Settings { verification: Verification::Zhou { k: 3.0, threshold: 1.6 }, ..post };
        assert!(told(profile(1000, 1.0), None, low).contains("1.6"));
    }
}
