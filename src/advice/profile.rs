//! Profile: measures the figures of a sample that decide the settings.

use rayon::prelude::*;

use super::looks;
use crate::text::{Pipeline, normalise};

/// Length in characters below which a text is short, in its normal form.
pub const SHORT_TEXT: usize = 200;

/// Number of features below which a single word can dominate a fingerprint.
pub(super) const FEW_FEATURES: usize = 10;

/// Figures of a sample of texts; shares are from 0 to 1.
///
/// ```
/// use hamdex::advice::Profile;
///
/// let profile = Profile::of(&["今天是晴天", "good morning all", "早上好"]);
/// assert_eq!((profile.texts, profile.median_length), (3, 5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// Number of texts in the sample.
    pub texts: usize,
    /// Share of texts with fewer than [`SHORT_TEXT`] characters.
    pub short: f64,
    /// Length of the median text in characters, in its normal form.
    pub median_length: usize,
    /// Mean share of Han characters among the letters.
    pub han: f64,
    /// Share of texts that are web pages with tags.
    pub markup: f64,
    /// Share of texts that look like source code.
    pub code: f64,
    /// Share of the short texts that mention a person or hold a shortened URL.
    pub posts: f64,
    /// Share of the short texts with forwards or emoticons of Weibo.
    pub weibo: f64,
}

/// The number of features in the texts of a sample.
///
/// ```
/// use hamdex::advice::Features;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("code")?)?;
/// let features = Features::of(&pipeline, &["a b c d", "a b c"]);
/// assert_eq!((features.median, features.few), (2, 1.0));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Features {
    /// Distinct features of the median text.
    pub median: usize,
    /// Share of texts with fewer than ten features, 0 to 1; a single word can dominate these.
    pub few: f64,
}

impl Profile {
    /// Measures every text of a sample; a few hundred are enough.
    pub fn of<T: AsRef<str> + Sync>(texts: &[T]) -> Self {
        let looks: Vec<Look> = texts.par_iter().map(|text| Look::at(text.as_ref())).collect();
        let share = |test: &dyn Fn(&Look) -> bool| {
            part(looks.iter().filter(|look| test(look)).count(), texts.len())
        };
        let shorts = looks.iter().filter(|look| look.length < SHORT_TEXT);
        let of_short = |test: &dyn Fn(&Look) -> bool| {
            part(shorts.clone().filter(|look| test(look)).count(), shorts.clone().count())
        };
        Self {
            texts: texts.len(),
            short: share(&|look| look.length < SHORT_TEXT),
            median_length: median(looks.iter().map(|look| look.length).collect()),
            han: looks.iter().map(|look| look.han).sum::<f64>() / texts.len().max(1) as f64,
            markup: share(&|look| look.markup),
            code: share(&|look| look.code && !look.markup),
            posts: of_short(&|look| look.habits.post),
            weibo: of_short(&|look| look.habits.weibo),
        }
    }
}

/// The figures of one text.
struct Look {
    length: usize,
    han: f64,
    markup: bool,
    code: bool,
    habits: Habits,
}

/// The habits of microblog posts in a short text.
struct Habits {
    post: bool,
    weibo: bool,
}

impl Look {
    fn at(text: &str) -> Self {
        let length = normalise(text).chars().count();
        Self {
            length,
            habits: Habits {
                post: length < SHORT_TEXT && looks::like_post(text),
                weibo: length < SHORT_TEXT && looks::like_weibo(text),
            },
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

/// Returns the median, the upper one of two; 0 if there are no values.
fn median(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::PipelineOptions;

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
    fn features_are_counted_by_the_pipeline() {
        let pipeline = Pipeline::new(&PipelineOptions::preset("code").unwrap()).unwrap();
        let features = Features::of(&pipeline, &["a b c d", "a", "a b c d e f g h i j k l m n"]);
        assert_eq!(features.median, 2);
        assert!((features.few - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(Features::of::<&str>(&pipeline, &[]), Features { median: 0, few: 0.0 });
    }
}
