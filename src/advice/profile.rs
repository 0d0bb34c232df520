//! Profile: a sample of texts becomes the figures that settings are chosen by.

use rayon::prelude::*;

use super::kind::Kind;
use super::looks;
use crate::text::{Pipeline, normalise};

/// Characters below which a text is short, in its normal form.
pub const SHORT_TEXT: usize = 200;

/// Characters above which a text is long, in its normal form.
pub const LONG_TEXT: usize = 1 << 15;

/// Features below which a single word decides over a fingerprint.
pub(super) const FEW_FEATURES: usize = 10;

/// Part of short texts from which a set is one of posts.
const POSTS_FROM: f64 = 0.9;

/// Part of short texts up to which a set is one of pages.
const PAGES_TO: f64 = 0.1;

/// Part of the characters in long texts from which edit distances take too long.
const LONG_FROM: f64 = 0.5;

/// Part of texts that look like source code from which a set is one of code.
const CODE_FROM: f64 = 0.6;

/// What a sample says about texts; shares are parts of the sample, 0 to 1.
///
/// ```
/// use hamdex::advice::{Kind, Profile};
///
/// let profile = Profile::of(&["今天是晴天", "good morning all", "早上好"]);
/// assert_eq!(profile.texts, 3);
/// assert_eq!(profile.kind(), Kind::Post);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Number of texts in the sample.
    pub texts: usize,
    /// Share of texts of fewer than [`SHORT_TEXT`] characters.
    pub short: f64,
    /// Characters of the median text, in its normal form.
    pub median_length: usize,
    /// Mean share of Han characters among the letters.
    pub han: f64,
    /// Share of texts that are web pages with their tags.
    pub markup: f64,
    /// Share of texts that look like source code.
    pub code: f64,
    /// Share of the characters that are in texts of more than [`LONG_TEXT`] characters.
    pub long: f64,
}

/// How many features a pipeline finds in the texts of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// Distinct features of the median text.
    pub median: usize,
    /// Share of texts with fewer than ten, 0 to 1: a single word decides there.
    pub few: f64,
}

impl Profile {
    /// Looks at every text of a sample; some hundred are enough.
    pub fn of<T: AsRef<str> + Sync>(texts: &[T]) -> Self {
        let looks: Vec<Look> = texts.par_iter().map(|text| Look::at(text.as_ref())).collect();
        let share = |test: &dyn Fn(&Look) -> bool| {
            part(looks.iter().filter(|look| test(look)).count(), texts.len())
        };
        let characters = |test: &dyn Fn(&Look) -> bool| {
            looks.iter().filter(|look| test(look)).map(|look| look.length).sum()
        };
        Self {
            texts: texts.len(),
            short: share(&|look| look.length < SHORT_TEXT),
            median_length: median(looks.iter().map(|look| look.length).collect()),
            han: looks.iter().map(|look| look.han).sum::<f64>() / texts.len().max(1) as f64,
            markup: share(&|look| look.markup),
            code: share(&|look| look.code && !look.markup),
            long: part(characters(&|look| look.length > LONG_TEXT), characters(&|_| true)),
        }
    }

    /// Returns true if edit distances of these texts would take too long.
    ///
    /// That is so if half of the characters or more are in texts longer than [`LONG_TEXT`]: the
    /// time of an edit distance grows with the square of the length, up to 65,536 characters.
    pub fn is_long(&self) -> bool {
        self.long >= LONG_FROM
    }

    /// Tells what kind of texts these are; [`Kind::Mixed`] for an empty sample.
    pub fn kind(&self) -> Kind {
        if self.texts == 0 {
            Kind::Mixed
        } else if self.code >= CODE_FROM {
            Kind::Code
        } else if self.short >= POSTS_FROM {
            Kind::Post
        } else if self.short <= PAGES_TO {
            Kind::Page
        } else {
            Kind::Mixed
        }
    }
}

/// What there is to see of one text.
struct Look {
    length: usize,
    han: f64,
    markup: bool,
    code: bool,
}

impl Look {
    fn at(text: &str) -> Self {
        Self {
            length: normalise(text).chars().count(),
            han: looks::han_share(text),
            markup: looks::like_page(text),
            code: looks::like_code(text),
        }
    }
}

impl Features {
    /// Counts the distinct features of every text of a sample.
    pub fn of<T: AsRef<str> + Sync>(pipeline: &Pipeline, texts: &[T]) -> Self {
        let counts: Vec<usize> =
            texts.par_iter().map(|text| pipeline.distinct_hashes(text.as_ref()).len()).collect();
        let few = counts.iter().filter(|&&count| count < FEW_FEATURES).count();
        Self { few: part(few, counts.len()), median: median(counts) }
    }
}

fn part(count: usize, whole: usize) -> f64 {
    count as f64 / whole.max(1) as f64
}

/// Returns the middle value, the upper one of two; 0 of none.
fn median(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::PipelineOptions;

    #[test]
    fn kinds_follow_from_the_share_of_short_texts() {
        let (short, long) = ("good morning".to_owned(), "all is well here. ".repeat(40));
        let kind = |shorts: usize, longs: usize| {
            let mut texts = vec![short.clone(); shorts];
            texts.extend(vec![long.clone(); longs]);
            Profile::of(&texts).kind()
        };
        assert_eq!(kind(9, 1), Kind::Post);
        assert_eq!(kind(8, 2), Kind::Mixed);
        assert_eq!(kind(2, 8), Kind::Mixed);
        assert_eq!(kind(1, 9), Kind::Page);
        assert_eq!(Profile::of::<&str>(&[]).kind(), Kind::Mixed);
        let code = include_str!("profile.rs");
        assert_eq!(Profile::of(&[code, code, &long]).kind(), Kind::Code);
        assert_eq!(Profile::of(&[code, &long, &long]).kind(), Kind::Page);
    }

    #[test]
    fn figures_are_those_of_the_sample() {
        let page = "<!doctype html><p>a</p>".to_owned() + &"word ".repeat(100);
        let profile = Profile::of(&["中文中文中", "abc", &page]);
        assert_eq!((profile.texts, profile.median_length), (3, 5));
        let third = |share: f64| (share - 1.0 / 3.0).abs() < 1e-9;
        assert!(third(profile.han) && third(profile.markup) && third(1.0 - profile.short));
        assert!(profile.code < 1e-9);
    }

    #[test]
    fn texts_are_long_if_most_characters_are_in_long_ones() {
        let (short, long) = ("good morning".to_owned(), "all is well. ".repeat(3000));
        let is_long = |texts: &[&String]| Profile::of(texts).is_long();
        assert!(is_long(&[&long]) && is_long(&[&long, &short, &short]));
        let limit = "a".repeat(LONG_TEXT);
        assert!(!is_long(&[&limit]) && !is_long(&[&long, &limit, &limit]) && !is_long(&[]));
    }

    #[test]
    fn features_are_counted_by_the_pipeline() {
        let pipeline = Pipeline::new(&PipelineOptions::preset("code").unwrap()).unwrap();
        let features = Features::of(&pipeline, &["a b c d", "a", "a b c d e f g h i j k l m n"]);
        assert_eq!(features.median, 2);
        assert!((features.few - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(Features::of::<&str>(&pipeline, &[]), Features { median: 0, few: 0.0 });
    }
}
