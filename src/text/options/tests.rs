//! Tests of pipeline options: names, presets, and refused combinations.

use super::*;

#[test]
fn names_parse_back_and_others_are_refused() {
    for (name, segment) in Segment::NAMES {
        assert_eq!(segment.to_string(), name);
        assert_eq!(name.parse::<Segment>().unwrap(), segment);
    }
    for name in ["none", "web", "weibo", "web,weibo", "web,weibo,links", "links"] {
        assert_eq!(name.parse::<Clean>().unwrap().to_string(), name);
    }
    assert!(matches!("word".parse::<Segment>(), Err(Error::InvalidOption { name: "segment", .. })));
    for bad in ["", "web,", "none,web", "Weibo"] {
        assert!(
            matches!(bad.parse::<Clean>(), Err(Error::InvalidOption { name: "clean", .. })),
            "{bad}"
        );
    }
}

#[test]
fn every_preset_is_valid_and_they_differ() {
    let presets = PipelineOptions::PRESETS.map(|name| PipelineOptions::preset(name).unwrap());
    for (n, preset) in presets.iter().enumerate() {
        preset.validate().unwrap();
        assert!(!presets[..n].contains(preset), "{preset:?}");
    }
    assert_eq!(PipelineOptions::preset("auto").unwrap(), PipelineOptions::default());
    assert!(matches!(
        PipelineOptions::preset("tweet"),
        Err(Error::InvalidOption { name: "pipeline", .. })
    ));
}

#[test]
fn rarity_weights_select_words_and_refuse_characters() {
    let words = PipelineOptions::new().weights(Weights::TfIdf);
    assert_eq!((words.segment, words.ngram), (Segment::Auto, 1));
    words.validate().unwrap();
    let refused = words.segment(Segment::Grams).validate();
    assert!(matches!(refused, Err(Error::InvalidOption { name: "weights", .. })));
}

#[test]
fn ngrams_of_no_tokens_or_too_many_are_refused() {
    for tokens in [0, PipelineOptions::MAX_NGRAM + 1] {
        let refused = PipelineOptions::new().ngram(tokens).validate();
        assert!(matches!(refused, Err(Error::InvalidOption { name: "ngram", .. })), "{tokens}");
    }
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let base = PipelineOptions::new;
    let table = WeightTable::parse("").unwrap();
    let learnt = crate::text::IdfLearner::new().finish();
    for (options, wanted) in [
        (base().dictionary(Dictionary::parse("").unwrap()).segment(Segment::Words), "dictionary"),
        (base().stop_words(StopWords::builtin()).segment(Segment::Chars), "stop-words"),
        (base().idf(learnt.clone()).weights(Weights::Tf), "idf"),
        (base().idf(learnt).weight_table(table.clone()), "idf"),
        (base().weight_table(table.clone()).weights(Weights::Levels), "weights"),
        (base().weight_table(table.clone()).segment(Segment::Grams), "weights"),
        (base().simplified(true).segment(Segment::Raw), "simplified"),
        (base().centre(Centre::of_halves()).sketch(SketchKind::MinHash), "centre"),
        (base().normal(NormalForm::Casefold).segment(Segment::Raw), "normal"),
        (base().normal(NormalForm::Casefold).stop_words(StopWords::builtin()), "normal"),
    ] {
        let Err(Error::InvalidOption { name, .. }) = options.validate() else {
            panic!("accepted {options:?}");
        };
        assert_eq!(name, wanted);
    }
    base().weight_table(table).weights(Weights::Tf).validate().unwrap();
}
