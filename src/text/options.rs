//! Options of a pipeline: presets, and each part set on its own over them.

use std::fmt;
use std::str::FromStr;

use super::centre::{self, Centre};
use super::clean::Clean;
use super::dictionary::Dictionary;
use super::idf_table::IdfTable;
use super::secret::Secret;
use super::segment::Cutter;
use super::stop_words::StopWords;
use super::weight_table::WeightTable;
use crate::error::{Error, Result};
use crate::sketch::{SketchKind, Weights};

/// How text is cut into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Segment {
    /// Words of every script: Chinese by jieba, others by word lists or by Unicode words.
    ///
    /// Word lists cut Thai, Lao, Khmer and Burmese, and the ideographs and hiragana of Japanese. A
    /// sentence with kana is Japanese, one without is Chinese. Descriptors name `auto-2` and the
    /// digest of the lists. `auto` has none: it is read as before, all ideographs by jieba.
    #[default]
    Auto,
    /// The whole text by jieba, which keeps `v1.2` and `foo_bar` whole.
    Jieba,
    /// Unicode words (UAX #29), Thai, Lao, Khmer and Burmese by word lists.
    ///
    /// Each ideograph and each hiragana is a word. Descriptors name `words-2` and the digest of the
    /// lists. `words` has none: each letter of the four scripts is a word. The preset `code`
    /// takes it.
    Words,
    /// Single letters and digits, for character n-grams.
    Chars,
    /// Character n-grams fitted to the script, words apart by one space.
    ///
    /// N letters of an alphabet; half as many, rounded up, of Chinese characters, kana and
    /// Hangul, each of which says as much as two letters, and up to N = 3 single ones as well.
    Grams,
    /// Character n-grams of two lengths, fitted to the script; the shorter ones count double.
    ///
    /// N letters of an alphabet and N - 1; of Chinese characters, kana and Hangul half as many of
    /// each, rounded up. A changed letter leaves more of the shorter ones as they are, which short
    /// texts need; in long texts the longer ones decide, because most of them are different.
    Mixed,
    /// Character n-grams of the text exactly as it is.
    ///
    /// Nothing is normalised or cleaned: every character counts, white space too.
    Raw,
}

impl Segment {
    const NAMES: [(&str, Self); 7] = [
        ("auto", Self::Auto),
        ("jieba", Self::Jieba),
        ("words", Self::Words),
        ("chars", Self::Chars),
        ("grams", Self::Grams),
        ("mixed", Self::Mixed),
        ("raw", Self::Raw),
    ];

    pub(super) fn needs_dictionary(self) -> bool {
        matches!(self, Self::Auto | Self::Jieba)
    }

    /// Returns true if there is a version that cuts by word lists.
    pub(super) fn has_lists(self) -> bool {
        matches!(self, Self::Auto | Self::Words)
    }

    /// Tells whether tokens are words, so that a dictionary may know them.
    pub(super) fn is_words(self) -> bool {
        matches!(self, Self::Auto | Self::Jieba | Self::Words)
    }

    /// The n-gram length when none is asked for: single words, three characters.
    fn usual_ngram(self) -> u32 {
        if self.is_words() { 1 } else { 3 }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, segment)| segment == self).map(|(name, _)| *name);
        f.write_str(name.expect("every segmenter has a name"))
    }
}

impl FromStr for Segment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|&(_, segment)| segment).ok_or_else(
            || Error::InvalidOption {
                name: "segment",
                reason: format!(
                    "\"{text}\" is none of auto, jieba, words, chars, grams, mixed, raw"
                ),
            },
        )
    }
}

/// Which spellings count as the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum NormalForm {
    /// NFKC and lower case, by the tables of the crates and the compiler; see
    /// [`super::normalise`].
    #[default]
    LowerFold,
    /// `NFKC_Casefold` and more, by a table of this library; see [`super::casefold`].
    Casefold,
}

/// Which reader takes the text out of HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Html {
    None,
    /// The reader of the library that is linked, as descriptors named it before it had versions.
    Reader,
    /// What [`super::main_text`] gives, as its tests have it.
    Reader1,
}

impl Html {
    const NAMES: [(&str, Self); 3] =
        [("none", Self::None), ("reader", Self::Reader), ("reader-1", Self::Reader1)];

    /// The name that descriptors have for it.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, html)| *html == self).map_or("none", |(name, _)| name)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, html)| html)
    }
}

/// What a [`super::Pipeline`] does with a text, part by part.
///
/// ```
/// use hamdex::PipelineOptions;
/// use hamdex::text::{Pipeline, Weights};
///
/// let options = PipelineOptions::preset("post")?.weights(Weights::Uniform).seed(7);
/// let pipeline = Pipeline::new(&options)?;
/// assert!(pipeline.descriptor().contains("weights=uniform"));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineOptions {
    pub(super) segment: Segment,
    /// Whether word lists cut scripts without blanks; only of segmentations that have them.
    pub(super) lists: bool,
    pub(super) normal: NormalForm,
    pub(super) ngram: u32,
    pub(super) weights: Weights,
    pub(super) clean: Clean,
    pub(super) short: u32,
    pub(super) short_clean: Clean,
    pub(super) html: Html,
    /// Whether the descriptor names a version of Unicode that nothing depends on, as some do.
    pub(super) idle_unicode: bool,
    pub(super) sketch: SketchKind,
    pub(super) seed: u64,
    pub(super) simplified: bool,
    pub(super) dictionary: Option<Dictionary>,
    pub(super) stop_words: StopWords,
    pub(super) idf: Option<IdfTable>,
    pub(super) weight_table: Option<WeightTable>,
    pub(super) secret: Option<Secret>,
    pub(super) centre: Option<Centre>,
}

impl PipelineOptions {
    /// The longest n-gram allowed, in tokens.
    pub const MAX_NGRAM: u32 = 64;

    /// The names that [`PipelineOptions::preset`] knows.
    pub const PRESETS: [&str; 5] = ["text", "auto", "page", "post", "code"];

    /// Starts with the preset `auto`.
    pub fn new() -> Self {
        Self {
            segment: Segment::Grams,
            lists: false,
            normal: NormalForm::LowerFold,
            ngram: 3,
            weights: Weights::Uniform,
            clean: Clean::default(),
            short: 200,
            short_clean: Clean::WEIBO,
            html: Html::None,
            idle_unicode: false,
            sketch: SketchKind::SimHash,
            seed: 0,
            simplified: false,
            dictionary: None,
            stop_words: StopWords::none(),
            idf: None,
            weight_table: None,
            secret: None,
            centre: None,
        }
    }

    /// Returns the options of a named preset.
    ///
    /// `text` is for texts of all kinds and lengths, and what new indexes take: n-grams of two
    /// lengths ([`Segment::Mixed`]), and the normal form [`NormalForm::Casefold`]. It is made for
    /// a centre besides ([`PipelineOptions::centre`]).
    ///
    /// The others are older. All but `code` take n-grams of one length ([`Segment::Grams`]).
    /// `auto` is for texts of all lengths side by side, short ones cleaned as posts. `page` is for articles
    /// and pages of some hundred words and more, cleaned as pages: every distinct n-gram of four
    /// counts once. `post` is for microblog posts: n-grams of three, as often as they occur.
    /// `code` is for source code: words in threes, so that their order counts.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a name that is not one of [`PipelineOptions::PRESETS`].
    pub fn preset(name: &str) -> Result<Self> {
        let base = Self::new();
        match name {
            "text" => Ok(base
                .segment(Segment::Mixed)
                .normal(NormalForm::Casefold)
                .short_clean(Clean::NONE)),
            "auto" => Ok(base),
            "page" => Ok(base.ngram(4).clean(Clean::WEB).short(0)),
            "post" => Ok(base.weights(Weights::Tf).clean(Clean::WEIBO).short(0)),
            "code" => {
                let words = base.segment(Segment::Words).ngram(3).weights(Weights::Tf).short(0);
                Ok(Self { lists: false, ..words })
            }
            other => Err(Error::InvalidOption {
                name: "pipeline",
                reason: format!("\"{other}\" is none of {}", Self::PRESETS.join(", ")),
            }),
        }
    }

    /// Sets how text is cut, and the n-gram length that is usual for it.
    ///
    /// Default: [`Segment::Grams`]. Usual are single words, and n-grams of three characters.
    #[must_use]
    pub fn segment(mut self, segment: Segment) -> Self {
        self.segment = segment;
        self.lists = segment.has_lists();
        self.ngram = segment.usual_ngram();
        self
    }

    /// Sets which spellings count as the same text. Default: [`NormalForm::LowerFold`].
    ///
    /// Dictionaries, stop words and tables of weights hold words of the default form, and are
    /// refused beside another one.
    #[must_use]
    pub fn normal(mut self, form: NormalForm) -> Self {
        self.normal = form;
        self
    }

    /// Sets how many neighbouring tokens make one feature. Default: 3.
    ///
    /// At least 1, at most [`PipelineOptions::MAX_NGRAM`]. A text with fewer tokens is one
    /// feature as a whole.
    #[must_use]
    pub fn ngram(mut self, tokens: u32) -> Self {
        self.ngram = tokens;
        self
    }

    /// Sets how much a feature counts. Default: [`Weights::Uniform`].
    ///
    /// [`Weights::TfIdf`] and [`Weights::Levels`] weigh words: where text is cut into characters
    /// so far, they set [`Segment::Auto`].
    #[must_use]
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        if weights.needs_idf() && !self.segment.is_words() {
            return self.segment(Segment::Auto);
        }
        self
    }

    /// Sets which noise is taken out first. Default: none.
    #[must_use]
    pub fn clean(mut self, clean: Clean) -> Self {
        self.clean = clean;
        self
    }

    /// Sets the length in characters below which a text is short. Default: 200.
    ///
    /// Counted in the normal form, before any cleaning; 0 leaves it to [`PipelineOptions::clean`].
    #[must_use]
    pub fn short(mut self, characters: u32) -> Self {
        self.short = characters;
        self
    }

    /// Sets which noise is taken out of short texts besides. Default: [`Clean::WEIBO`].
    ///
    /// With any other, Chinese characters, kana and Hangul count double towards the length.
    #[must_use]
    pub fn short_clean(mut self, clean: Clean) -> Self {
        self.short_clean = clean;
        self
    }

    /// Sets whether texts are HTML, of which only the main content counts. Default: false.
    #[must_use]
    pub fn html(mut self, html: bool) -> Self {
        self.html = if html { Html::Reader1 } else { Html::None };
        self
    }

    /// Sets how features become a signature. Default: [`SketchKind::SimHash`].
    ///
    /// [`SketchKind::Longest`] takes whole sentences for features, whatever the segmentation.
    #[must_use]
    pub fn sketch(mut self, kind: SketchKind) -> Self {
        self.sketch = kind;
        self
    }

    /// Puts the hash of every feature under a secret key. Default: none.
    ///
    /// Then nobody without the secret can aim a text at a fingerprint. It has no effect on
    /// fingerprints that do not come from this pipeline.
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Compares every bit with its usual share in a corpus. Default: with a half.
    ///
    /// Only with [`SketchKind::SimHash`]; see [`Centre`].
    #[must_use]
    pub fn centre(mut self, centre: Centre) -> Self {
        self.centre = Some(centre);
        self
    }

    /// Sets the seed of the feature hash, which everyone may know. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets whether traditional Chinese counts as simplified. Default: false.
    #[must_use]
    pub fn simplified(mut self, simplified: bool) -> Self {
        self.simplified = simplified;
        self
    }

    /// Adds words to the dictionary that cuts Chinese. Default: none.
    ///
    /// Only with [`Segment::Auto`] and [`Segment::Jieba`]; [`Segment::Grams`], the default,
    /// becomes [`Segment::Auto`].
    #[must_use]
    pub fn dictionary(mut self, words: Dictionary) -> Self {
        self.dictionary = Some(words);
        self.in_words()
    }

    /// Sets the words that are no features. Default: none.
    ///
    /// Only with [`Segment::Auto`], [`Segment::Jieba`] and [`Segment::Words`];
    /// [`Segment::Grams`], the default, becomes [`Segment::Auto`].
    #[must_use]
    pub fn stop_words(mut self, words: StopWords) -> Self {
        self.stop_words = words;
        if self.stop_words.is_none() { self } else { self.in_words() }
    }

    /// Sets the table of inverse document frequencies. Default: jieba's.
    ///
    /// Only with [`Weights::TfIdf`] and [`Weights::Levels`].
    #[must_use]
    pub fn idf(mut self, table: IdfTable) -> Self {
        self.idf = Some(table);
        self
    }

    /// Sets weights of the caller's own, and [`Weights::Uniform`] with them.
    ///
    /// A feature then weighs what the table says. With [`Weights::Tf`] set afterwards that is
    /// multiplied by how often it occurs. Only with segmentations into words;
    /// [`Segment::Grams`], the default, becomes [`Segment::Auto`].
    #[must_use]
    pub fn weight_table(mut self, table: WeightTable) -> Self {
        self.weight_table = Some(table);
        self.weights = Weights::Uniform;
        self.in_words()
    }

    /// Takes words where n-grams were not asked for in particular.
    fn in_words(self) -> Self {
        if self.segment == Segment::Grams { self.segment(Segment::Auto) } else { self }
    }

    /// Returns what cuts a text.
    pub(super) fn cutter(&self) -> Cutter {
        Cutter::of(self.segment, self.lists)
    }

    /// Refuses what is out of range, and what would do nothing beside the other options.
    pub(super) fn validate(&self) -> Result<()> {
        let refused = |name, reason| Err(Error::InvalidOption { name, reason });
        if !(1..=Self::MAX_NGRAM).contains(&self.ngram) {
            let reason = format!("{} is not within 1 to {}", self.ngram, Self::MAX_NGRAM);
            return refused("ngram", reason);
        }
        let segment = self.segment;
        if segment == Segment::Mixed && self.ngram < 2 {
            return refused("ngram", "segment mixed takes n-grams of 2 at least".to_owned());
        }
        let (weights, words) = (self.weights, "take auto, jieba or words");
        if weights.needs_idf() && !segment.is_words() {
            let reason =
                format!("{weights} weighs words, and segment {segment} makes none: {words}");
            return refused("weights", reason);
        }
        if self.centre.is_some() {
            centre::of_simhash(self.sketch)?;
        }
        let tables =
            self.dictionary.is_some() || self.weight_table.is_some() || !self.stop_words.is_none();
        if self.normal != NormalForm::LowerFold && tables {
            return refused("normal", "tables of words are in the form nfkc-lower-fold".to_owned());
        }
        if self.normal != NormalForm::LowerFold && segment == Segment::Raw {
            return refused("normal", "segment raw takes text exactly as it is".to_owned());
        }
        if self.simplified && segment == Segment::Raw {
            return refused("simplified", "segment raw takes text exactly as it is".to_owned());
        }
        if self.dictionary.is_some() && !segment.needs_dictionary() {
            return refused(
                "dictionary",
                format!("segment {segment} looks no words up: take auto or jieba"),
            );
        }
        if !segment.is_words() && !self.stop_words.is_none() {
            return refused("stop-words", format!("segment {segment} makes no words: {words}"));
        }
        if !segment.is_words() && self.weight_table.is_some() {
            return refused("weights", format!("segment {segment} makes no words: {words}"));
        }
        if self.idf.is_some() && !weights.needs_idf() {
            return refused(
                "idf",
                format!("weights {weights} take no account of rarity: take tfidf or levels"),
            );
        }
        if self.weight_table.is_some() && weights.needs_idf() {
            let reason = format!("weights {weights} do not go with a table of weights");
            return refused("weights", reason);
        }
        Ok(())
    }
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
