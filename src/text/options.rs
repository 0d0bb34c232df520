//! Pipeline options: presets, and setters that change single parts of them.

use super::form::clean::Clean;
use super::rarity::centre::{self, Centre};
use super::rarity::idf_table::IdfTable;
use super::rarity::weight_table::WeightTable;
use super::secret::Secret;
use super::tokens::dictionary::Dictionary;
use super::tokens::segment::{Cutter, Segment};
use super::tokens::stop_words::StopWords;
use crate::error::{Error, Result};
use crate::sketch::{SketchKind, Weights};

/// The normal form, which decides which spellings are the same text.
///
/// ```
/// use hamdex::text::NormalForm;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let forms = [NormalForm::LowerFold, NormalForm::Casefold];
/// let [lower, fold] = forms.map(|form| Pipeline::new(&PipelineOptions::new().normal(form)));
/// assert_eq!(lower?.cleaned("Straße"), "straße");
/// assert_eq!(fold?.cleaned("Straße"), "strasse");
/// # Ok::<(), hamdex::Error>(())
/// ```
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

/// The version of the reader for HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Html {
    None,
    /// The reader as named by descriptors from before versions: the linked library decides.
    Reader,
    /// The reader with the results that the tests of [`super::main_text`] pin.
    Reader1,
}

impl Html {
    const NAMES: [(&str, Self); 3] =
        [("none", Self::None), ("reader", Self::Reader), ("reader-1", Self::Reader1)];

    /// Returns its name in descriptors.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, html)| *html == self).map_or("none", |(name, _)| name)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, html)| html)
    }
}

/// The settings of a [`Pipeline`](super::Pipeline), one for each step.
///
/// ```
/// use hamdex::PipelineOptions;
/// use hamdex::text::{Clean, NormalForm, Pipeline, Segment, SketchKind, Weights};
///
/// let options = PipelineOptions::preset("post")?.weights(Weights::Uniform).seed(7);
/// let pipeline = Pipeline::new(&options)?;
/// assert!(pipeline.descriptor().contains("weights=uniform"));
///
/// let words = PipelineOptions::new().segment(Segment::Words).ngram(2);
/// let folded = words.normal(NormalForm::Casefold).clean(Clean::WEB).short(0);
/// let pipeline = Pipeline::new(&folded.sketch(SketchKind::MinHash))?;
/// assert_eq!(pipeline.features("Three small words")[0].text, "small words");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineOptions {
    pub(super) segment: Segment,
    /// Whether word lists cut scripts without spaces, if the segmentation has lists.
    pub(super) lists: bool,
    pub(super) normal: NormalForm,
    pub(super) ngram: u32,
    pub(super) weights: Weights,
    pub(super) clean: Clean,
    pub(super) short: u32,
    pub(super) short_clean: Clean,
    pub(super) html: Html,
    /// Whether the descriptor names a version of Unicode that has no effect, as older ones do.
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
    /// Maximum length of an n-gram, in tokens.
    pub const MAX_NGRAM: u32 = 64;

    /// Names of the presets for [`PipelineOptions::preset`].
    pub const PRESETS: [&str; 5] = ["text", "auto", "page", "post", "code"];

    /// Returns the options of the preset `auto`.
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
    /// `text` is for texts of all kinds and lengths, and the default for new indexes: n-grams of
    /// two lengths ([`Segment::Mixed`]) in the normal form [`NormalForm::Casefold`]. It works best
    /// with a centre ([`PipelineOptions::centre`]).
    ///
    /// The others are older:
    ///
    /// - `auto`: texts of mixed lengths; distinct n-grams of three, short texts cleaned as posts.
    /// - `page`: articles and pages of a hundred words and more; distinct n-grams of four, cleaned
    ///   as pages.
    /// - `post`: microblog posts; n-grams of three, each as often as it occurs.
    /// - `code`: source code; three words in a row, so that their order counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if the name is not in [`PipelineOptions::PRESETS`].
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
                reason: format!("unknown preset \"{other}\"; use {}", Self::PRESETS.join(", ")),
            }),
        }
    }

    /// Sets the segmentation and its default n-gram length. Default: [`Segment::Grams`].
    ///
    /// The default length is 1 for words and 3 for characters.
    #[must_use]
    pub fn segment(mut self, segment: Segment) -> Self {
        self.segment = segment;
        self.lists = segment.has_lists();
        self.ngram = segment.default_ngram();
        self
    }

    /// Sets the normal form of texts. Default: [`NormalForm::LowerFold`].
    ///
    /// Dictionaries, stop words and weight tables are in the default form and cannot be combined
    /// with another one.
    #[must_use]
    pub fn normal(mut self, form: NormalForm) -> Self {
        self.normal = form;
        self
    }

    /// Sets the number of consecutive tokens in a feature. Default: 3.
    ///
    /// From 1 to [`PipelineOptions::MAX_NGRAM`]. A text with fewer tokens is one feature as a
    /// whole.
    #[must_use]
    pub fn ngram(mut self, tokens: u32) -> Self {
        self.ngram = tokens;
        self
    }

    /// Sets the weights of features. Default: [`Weights::Uniform`].
    ///
    /// [`Weights::TfIdf`] and [`Weights::Levels`] weight words: if the segmentation is into
    /// characters, they change it to [`Segment::Auto`].
    #[must_use]
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        if weights.needs_idf() && !self.segment.is_words() {
            return self.segment(Segment::Auto);
        }
        self
    }

    /// Sets the noise that is removed from all texts. Default: none.
    #[must_use]
    pub fn clean(mut self, clean: Clean) -> Self {
        self.clean = clean;
        self
    }

    /// Sets the length in characters below which a text is short. Default: 200.
    ///
    /// Counted in the normal form, before cleaning. With 0, no text is short.
    #[must_use]
    pub fn short(mut self, characters: u32) -> Self {
        self.short = characters;
        self
    }

    /// Sets the noise that is also removed from short texts. Default: [`Clean::WEIBO`].
    ///
    /// With any other value, Chinese characters, kana and Hangul count as two towards the length.
    #[must_use]
    pub fn short_clean(mut self, clean: Clean) -> Self {
        self.short_clean = clean;
        self
    }

    /// Treats texts as HTML and extracts their main content. Default: false.
    ///
    /// ```
    /// use hamdex::text::Clean;
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let options = PipelineOptions::preset("text")?.html(true).short_clean(Clean::WEIBO);
    /// let pipeline = Pipeline::new(&options)?;
    /// assert_eq!(pipeline.cleaned("<p>Rain &amp; snow http://t.cn/a"), "rain & snow");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn html(mut self, html: bool) -> Self {
        self.html = if html { Html::Reader1 } else { Html::None };
        self
    }

    /// Sets the method of the signature. Default: [`SketchKind::SimHash`].
    ///
    /// With [`SketchKind::Longest`], features are whole sentences with every segmentation.
    #[must_use]
    pub fn sketch(mut self, kind: SketchKind) -> Self {
        self.sketch = kind;
        self
    }

    /// Keys the hash of every feature with a secret. Default: none.
    ///
    /// Without the secret, nobody can construct a text for a chosen fingerprint. It has no effect
    /// on fingerprints that do not come from this pipeline.
    ///
    /// ```
    /// use hamdex::text::Secret;
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let secret = Secret::from_bytes(b"000102030405060708090a0b0c0d0e0f")?;
    /// let keyed = Pipeline::new(&PipelineOptions::new().secret(secret))?;
    /// let plain = Pipeline::new(&PipelineOptions::new())?;
    /// assert_ne!(keyed.fingerprint::<u64>("some text"), plain.fingerprint("some text"));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Compares each bit with its usual share in a corpus. Default: with a half.
    ///
    /// Requires [`SketchKind::SimHash`]; see [`Centre`].
    ///
    /// ```
    /// use hamdex::text::Centre;
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let options = PipelineOptions::preset("text")?;
    /// let word = |n: u64| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    /// let text = |n| format!("the {} of {}", word(n), word(n + 100));
    /// let sample: Vec<String> = (1..100).map(text).collect();
    /// let centre = Centre::learn(&Pipeline::new(&options)?, &sample)?.expect("enough texts");
    /// let pipeline = Pipeline::new(&options.centre(centre))?;
    /// assert!(pipeline.descriptor().contains("centre"));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn centre(mut self, centre: Centre) -> Self {
        self.centre = Some(centre);
        self
    }

    /// Sets the seed of the feature hash, which is not secret. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Converts traditional Chinese to simplified. Default: false.
    #[must_use]
    pub fn simplified(mut self, simplified: bool) -> Self {
        self.simplified = simplified;
        self
    }

    /// Adds words to the dictionary for Chinese. Default: none.
    ///
    /// Requires [`Segment::Auto`] or [`Segment::Jieba`]; changes [`Segment::Grams`], the default,
    /// to [`Segment::Auto`].
    ///
    /// ```
    /// use hamdex::text::{Dictionary, Segment, StopWords};
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let words = Dictionary::parse("汉明距离\n")?;
    /// let options = PipelineOptions::new().segment(Segment::Auto).simplified(true).dictionary(words);
    /// let pipeline = Pipeline::new(&options.stop_words(StopWords::builtin()))?;
    /// assert_eq!(pipeline.features("漢明距離")[0].text, "汉明距离");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn dictionary(mut self, words: Dictionary) -> Self {
        self.dictionary = Some(words);
        self.in_words()
    }

    /// Sets the words that are not features. Default: none.
    ///
    /// Requires [`Segment::Auto`], [`Segment::Jieba`] or [`Segment::Words`]; changes
    /// [`Segment::Grams`], the default, to [`Segment::Auto`].
    #[must_use]
    pub fn stop_words(mut self, words: StopWords) -> Self {
        self.stop_words = words;
        if self.stop_words.is_none() { self } else { self.in_words() }
    }

    /// Sets the table of inverse document frequencies. Default: jieba's.
    ///
    /// Requires [`Weights::TfIdf`] or [`Weights::Levels`].
    ///
    /// ```
    /// use hamdex::text::{IdfLearner, Pipeline, Weights};
    /// use hamdex::PipelineOptions;
    ///
    /// let options = PipelineOptions::new().weights(Weights::TfIdf);
    /// let mut learner = IdfLearner::new();
    /// learner.add(&Pipeline::new(&options)?, "rain and snow");
    /// let pipeline = Pipeline::new(&options.idf(learner.finish()))?;
    /// assert!(pipeline.descriptor().contains("idf"));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn idf(mut self, table: IdfTable) -> Self {
        self.idf = Some(table);
        self
    }

    /// Sets a table of weights for words, and [`Weights::Uniform`].
    ///
    /// A feature gets its weight in the table; [`Weights::Tf`], set afterwards, multiplies it by
    /// the number of occurrences. Requires a segmentation into words; changes [`Segment::Grams`],
    /// the default, to [`Segment::Auto`].
    ///
    /// ```
    /// use hamdex::text::{Pipeline, Segment, WeightTable};
    /// use hamdex::PipelineOptions;
    ///
    /// let options = PipelineOptions::new().segment(Segment::Words);
    /// let pipeline = Pipeline::new(&options.weight_table(WeightTable::parse("rain\t5\n")?))?;
    /// assert_eq!(pipeline.features("rain")[0].weight, 5);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn weight_table(mut self, table: WeightTable) -> Self {
        self.weight_table = Some(table);
        self.weights = Weights::Uniform;
        self.in_words()
    }

    /// Changes the default segmentation to words.
    fn in_words(self) -> Self {
        if self.segment == Segment::Grams { self.segment(Segment::Auto) } else { self }
    }

    /// Returns the version of the segmentation.
    pub(super) fn cutter(&self) -> Cutter {
        Cutter::of(self.segment, self.lists)
    }

    /// Returns an error if a value is out of range or has no effect with the other options.
    pub(super) fn validate(&self) -> Result<()> {
        let refused = |name, reason| Err(Error::InvalidOption { name, reason });
        if !(1..=Self::MAX_NGRAM).contains(&self.ngram) {
            let reason = format!("{} is not within 1 to {}", self.ngram, Self::MAX_NGRAM);
            return refused("ngram", reason);
        }
        let segment = self.segment;
        if segment == Segment::Mixed && self.ngram < 2 {
            return refused("ngram", "segment mixed needs n-grams of at least 2".to_owned());
        }
        let (weights, words) = (self.weights, "use auto, jieba or words");
        if weights.needs_idf() && !segment.is_words() {
            let reason =
                format!("{weights} weights words, but segment {segment} has none; {words}");
            return refused("weights", reason);
        }
        if self.centre.is_some() {
            centre::of_simhash(self.sketch)?;
        }
        let tables =
            self.dictionary.is_some() || self.weight_table.is_some() || !self.stop_words.is_none();
        if self.normal != NormalForm::LowerFold && tables {
            return refused("normal", "word tables need the form nfkc-lower-fold".to_owned());
        }
        if self.normal != NormalForm::LowerFold && segment == Segment::Raw {
            return refused("normal", "segment raw does not change the text".to_owned());
        }
        if self.simplified && segment == Segment::Raw {
            return refused("simplified", "segment raw does not change the text".to_owned());
        }
        if self.dictionary.is_some() && !segment.needs_dictionary() {
            return refused(
                "dictionary",
                format!("segment {segment} uses no dictionary; use auto or jieba"),
            );
        }
        if !segment.is_words() && !self.stop_words.is_none() {
            return refused("stop-words", format!("segment {segment} has no words; {words}"));
        }
        if !segment.is_words() && self.weight_table.is_some() {
            return refused("weights", format!("segment {segment} has no words; {words}"));
        }
        if self.idf.is_some() && !weights.needs_idf() {
            return refused("idf", format!("weights {weights} ignore it; use tfidf or levels"));
        }
        if self.weight_table.is_some() && weights.needs_idf() {
            let reason = format!("weights {weights} cannot be combined with a weight table");
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
