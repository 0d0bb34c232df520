//! Lexicon: the word tables of a pipeline, loaded once and shared by its clones.

use jieba_rs::Jieba;

use super::options::PipelineOptions;
use super::rarity::idf::Rarities;
use super::rarity::idf_table::IdfTable;
use super::rarity::weight_table::LoadedWeights;
use super::tokens::dictionary;
use super::tokens::segment::Uncut;
use super::tokens::stop_words::WordSet;

/// The word tables of a pipeline.
pub(super) struct Lexicon {
    /// The dictionary with the caller's words; `None` for the shared one.
    jieba: Option<Box<Jieba>>,
    stop_words: WordSet,
    rarity: Rarity,
}

/// The source of the rarity or weight of a word.
enum Rarity {
    Alike,
    Jieba,
    Learnt(IdfTable),
    Given(LoadedWeights),
}

impl Lexicon {
    pub(super) fn load(options: &PipelineOptions) -> Self {
        let simplified = options.simplified;
        let rarity = match (&options.weight_table, &options.idf) {
            (Some(table), _) => Rarity::Given(table.load(simplified)),
            (None, Some(table)) => Rarity::Learnt(table.clone()),
            (None, None) if options.weights.needs_idf() => Rarity::Jieba,
            (None, None) => Rarity::Alike,
        };
        Self {
            jieba: options.dictionary.as_ref().map(|words| Box::new(words.load(simplified))),
            stop_words: options.stop_words.set(simplified),
            rarity,
        }
    }

    /// Returns the dictionary; the first call loads the shared one.
    pub(super) fn jieba(&self) -> &Jieba {
        self.jieba.as_deref().unwrap_or_else(|| dictionary::jieba())
    }

    /// Returns the caller's weights.
    pub(super) fn given(&self) -> Option<&LoadedWeights> {
        match &self.rarity {
            Rarity::Given(weights) => Some(weights),
            Rarity::Alike | Rarity::Jieba | Rarity::Learnt(_) => None,
        }
    }

    /// Returns true if [`Lexicon::rarity`] differs from word to word.
    pub(super) fn weighs(&self) -> bool {
        !matches!(self.rarity, Rarity::Alike)
    }

    /// Calls `emit` with each word of a cleaned text that is not a stop word.
    ///
    /// A text of stop words alone keeps them.
    #[inline]
    pub(super) fn for_each_word<'t>(&self, text: Uncut<'t>, emit: &mut impl FnMut(&'t str)) {
        let jieba = || self.jieba();
        if !self.stop_words.is_empty() {
            let mut any = false;
            text.for_each(&jieba, &mut |word| {
                if !self.stop_words.contains(word) {
                    any = true;
                    emit(word);
                }
            });
            if any {
                return;
            }
        }
        text.for_each(&jieba, emit);
    }

    /// Returns the rarity of a word, or the weight that the caller gave it.
    ///
    /// 0 if rarities are not used, `None` if the caller's weight is 0. `hash` is its
    /// [`word_hash`](super::rarity::idf_table::word_hash).
    #[inline]
    pub(super) fn rarity(
        &self,
        word: &str,
        hash: impl FnOnce() -> u64,
        remembered: &mut Rarities,
    ) -> Option<u32> {
        match &self.rarity {
            Rarity::Alike => Some(0),
            Rarity::Jieba => Some(remembered.idf(word, hash())),
            Rarity::Learnt(table) => Some(table.step_of(hash())),
            Rarity::Given(weights) => Some(weights.word(word)).filter(|&weight| weight > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sketch::Weights;
    use crate::text::{
        Dictionary, IdfLearner, Pipeline, PipelineOptions, Segment, StopWords, WeightTable,
    };

    fn pipeline(options: &PipelineOptions) -> Pipeline {
        Pipeline::new(options).unwrap()
    }

    fn words(options: &PipelineOptions, text: &str) -> Vec<String> {
        let mut words: Vec<_> =
            pipeline(options).features(text).into_iter().map(|feature| feature.text).collect();
        words.sort_unstable();
        words
    }

    #[test]
    fn own_words_are_cut_whole_in_one_pipeline_and_not_in_another() {
        let own = PipelineOptions::new().dictionary(Dictionary::parse("雇员称").unwrap());
        assert!(words(&own, "美国雇员称").contains(&"雇员称".to_owned()));
        let plain = PipelineOptions::new().segment(Segment::Auto);
        assert!(!words(&plain, "美国雇员称").contains(&"雇员称".to_owned()));
    }

    #[test]
    fn stop_words_are_dropped_before_ngrams_unless_nothing_is_left() {
        let base = PipelineOptions::new()
            .segment(Segment::Words)
            .weights(Weights::Tf)
            .stop_words(StopWords::parse("the\nof").unwrap());
        assert_eq!(words(&base, "the end of the story"), ["end", "story"]);
        assert_eq!(words(&base.clone().ngram(2), "the end of the story"), ["end story"]);
        assert_eq!(words(&base, "of the"), ["of", "the"]);
        assert_eq!(words(&base, "..."), [""; 0]);
    }

    #[test]
    fn simplified_and_traditional_chinese_are_equal_only_on_request() {
        let sketch = |options: &PipelineOptions, text: &str| {
            pipeline(options).fingerprint::<u64>(text).unwrap()
        };
        let (traditional, simplified) = ("臺灣大學的圖書館很大", "台湾大学的图书馆很大");
        for name in PipelineOptions::PRESETS {
            let plain = PipelineOptions::preset(name).unwrap();
            let both = plain.clone().simplified(true);
            assert_eq!(sketch(&both, traditional), sketch(&both, simplified), "{name}");
            assert_ne!(sketch(&plain, traditional), sketch(&plain, simplified), "{name}");
        }
        let lists = PipelineOptions::new()
            .simplified(true)
            .stop_words(StopWords::parse("這個").unwrap())
            .dictionary(Dictionary::parse("圖書館很大").unwrap());
        assert_eq!(words(&lists, "這個图书馆很大"), ["图书馆很大"]);
    }

    #[test]
    fn learnt_rarity_replaces_the_builtin_table() {
        let base = PipelineOptions::new().weights(Weights::TfIdf);
        let cutter = pipeline(&base);
        let mut learner = IdfLearner::new();
        for n in 0..100 {
            learner
                .add(&cutter, &format!("飞碟 hurricane {}", if n % 10 == 0 { "的" } else { "" }));
        }
        let learnt = pipeline(&base.idf(learner.finish()));
        let weights: Vec<_> =
            learnt.features("飞碟的unheard").into_iter().map(|f| (f.text, f.weight)).collect();
        let expected = [("unheard", 31), ("的", 18), ("飞碟", 1)];
        assert_eq!(weights, expected.map(|(word, weight)| (word.to_owned(), weight)));
    }

    #[test]
    fn words_of_weight_zero_are_no_features() {
        let table = WeightTable::parse("the\t0\nsaucer\t7\nhill saucer\t9\nhill hill\t0").unwrap();
        let options = PipelineOptions::new().weight_table(table);
        let given = pipeline(&options);
        let text = "the saucer, the saucer, the hill";
        assert_eq!(words(&options, text), ["hill", "saucer"]);
        assert_eq!(given.features(text)[0].weight, 7);
        assert_eq!(given.distinct_hashes(text).len(), 2);
        assert_eq!(given.fingerprint::<u64>("the"), None);
        assert_eq!(given.distinct_hashes("the"), [0; 0]);
        let often = pipeline(&options.clone().weights(Weights::Tf));
        assert_eq!(often.features(text)[0].weight, 14);
        let pairs = pipeline(&options.ngram(2)).features("hill the saucer pilot pilot hill hill");
        let weights: Vec<_> = pairs.iter().map(|f| (f.text.as_str(), f.weight)).collect();
        assert_eq!(
            weights,
            [("hill saucer", 9), ("saucer pilot", 4), ("pilot hill", 1), ("pilot pilot", 1)]
        );
    }

    #[test]
    fn word_tables_select_a_segmentation_into_words() {
        let stop = || PipelineOptions::new().stop_words(StopWords::builtin());
        assert!(pipeline(&stop()).descriptor().contains(";segment=auto-2,"));
        let given = WeightTable::parse("").unwrap();
        assert!(
            pipeline(&PipelineOptions::new().weight_table(given))
                .descriptor()
                .contains(";segment=auto-2,")
        );
        let words = PipelineOptions::new().segment(Segment::Words).stop_words(StopWords::builtin());
        assert!(pipeline(&words).descriptor().contains(";segment=words-2,"));
        assert!(Pipeline::new(&stop().segment(Segment::Chars)).is_err());
    }
}
