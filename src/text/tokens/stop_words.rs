//! Stop words: common words that are not features.
//!
//! Segmentations into words drop them before n-grams are formed. A text of stop words alone keeps
//! them, because otherwise it would have no features.

use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::text::form::normalise::normalise;
use crate::text::form::simplified::simplify;

/// Languages of the built-in list.
const LANGUAGES: [&str; 2] = ["zh", "en"];

static BUILTIN: OnceLock<Arc<str>> = OnceLock::new();

/// A set of words.
pub(in crate::text) type WordSet = HashSet<Box<str>, BuildHasherDefault<Xxh3>>;

/// Words that are not features: none, the built-in list, or the caller's.
///
/// ```
/// use hamdex::text::{Pipeline, StopWords};
/// use hamdex::PipelineOptions;
///
/// let options = PipelineOptions::new().stop_words(StopWords::builtin());
/// let pipeline = Pipeline::new(&options)?;
/// let features = pipeline.features("the saucer is above the hill");
/// let words: Vec<_> = features.iter().map(|feature| feature.text.as_str()).collect();
/// assert_eq!(words, ["hill", "saucer"]);
/// assert_eq!(pipeline.features("the").len(), 1, "better than nothing");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StopWords(pub(in crate::text) Kind);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::text) enum Kind {
    #[default]
    None,
    Builtin,
    /// The caller's distinct words in normal form, sorted, one a line.
    Own(Arc<str>),
}

impl StopWords {
    /// Returns the empty list, which makes every word a feature. The default.
    pub fn none() -> Self {
        Self(Kind::None)
    }

    /// Returns the Chinese and English words of the `stopwords-iso` collection.
    pub fn builtin() -> Self {
        Self(Kind::Builtin)
    }

    /// Parses a list of one word a line.
    ///
    /// Skips blank lines and lines that begin with `#`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidLine`] if a line has several words.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = BTreeSet::new();
        for (line, number) in text.lines().zip(1..) {
            if line.starts_with('#') {
                continue;
            }
            let word = normalise(line);
            if word.contains(char::is_whitespace) {
                return Err(Error::InvalidLine {
                    what: "stop words",
                    line: number,
                    reason: format!("\"{word}\" is not one word; write one word on each line"),
                });
            }
            words.insert(word);
        }
        Ok(Self(Kind::Own(joined(&words))))
    }

    /// Returns the caller's words in normal form, one sorted line for each.
    ///
    /// `None` if there are no stop words or the built-in ones.
    ///
    /// ```
    /// use hamdex::text::StopWords;
    ///
    /// assert_eq!(StopWords::parse("The\nof\n")?.own(), Some("of\nthe\n"));
    /// assert_eq!(StopWords::builtin().own(), None);
    /// assert!(StopWords::none().is_none());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn own(&self) -> Option<&str> {
        match &self.0 {
            Kind::Own(words) => Some(words),
            Kind::None | Kind::Builtin => None,
        }
    }

    /// Returns true if no word is a stop word.
    pub fn is_none(&self) -> bool {
        self.0 == Kind::None
    }

    /// Restores a list from the text that [`StopWords::own`] returned.
    pub(in crate::text) fn stored(text: &str) -> Self {
        Self(Kind::Own(text.into()))
    }

    /// Returns the words in normal form, one a line.
    pub(super) fn lines(&self) -> &str {
        match &self.0 {
            Kind::None => "",
            Kind::Builtin => BUILTIN.get_or_init(builtin),
            Kind::Own(words) => words,
        }
    }

    /// Returns a digest of the words.
    pub(in crate::text) fn digest(&self) -> u32 {
        crc32fast::hash(self.lines().as_bytes())
    }

    /// Returns the words in the form that texts have.
    pub(in crate::text) fn set(&self, simplified: bool) -> WordSet {
        let word = |word: &str| if simplified { simplify(word) } else { word.to_owned() };
        self.lines().lines().map(|line| word(line).into_boxed_str()).collect()
    }
}

fn builtin() -> Arc<str> {
    let lists = LANGUAGES.iter().filter_map(stop_words::lookup);
    joined(&lists.flatten().map(|word| normalise(word)).collect())
}

/// Joins the words into lines, without those that cannot be tokens.
///
/// A token has a letter or a digit.
fn joined(words: &BTreeSet<String>) -> Arc<str> {
    let mut out = String::new();
    for word in words.iter().filter(|word| word.contains(char::is_alphanumeric)) {
        out.push_str(word);
        out.push('\n');
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::refused;

    #[test]
    fn both_languages_are_built_in() {
        let words = StopWords::builtin().set(false);
        for word in ["的", "不过", "the", "don't"] {
            assert!(words.contains(word), "{word}");
        }
        for word in ["飞碟", "saucer", "、", ""] {
            assert!(!words.contains(word), "{word}");
        }
        assert!(words.len() > 2000, "{}", words.len());
        assert!(StopWords::none().set(false).is_empty());
    }

    #[test]
    fn golden_digest_holds_until_the_built_in_words_change() {
        assert_eq!(StopWords::builtin().digest(), 0x0fcb_acc8);
    }

    #[test]
    fn lists_are_brought_into_normal_form() {
        let own = StopWords::parse("# comment\nＴｈｅ\n\n的\nthe\n...\nc#\n").unwrap();
        assert_eq!(own.own(), Some("c#\nthe\n的\n"));
        assert!(StopWords::parse("這個").unwrap().set(true).contains("这个"));
    }

    #[test]
    fn a_line_of_two_words_is_named() {
        refused::check("stop words", StopWords::parse, &[("a\nb c", 2, "\"b c\"")]);
    }
}
