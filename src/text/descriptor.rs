//! Descriptor: a pipeline becomes one line that names all its fingerprints depend on.
//!
//! Equal descriptors mean equal fingerprints for equal texts. Whatever changes a fingerprint
//! changes the descriptor: a field of its own, a digest, or the version at its head.

use std::str::FromStr;

use super::options::PipelineOptions;
use super::{dictionary, idf};

/// Head of every descriptor; the number rises when a step changes that no field names.
pub(super) const HEAD: &str = "hamdex-text/1";

/// A field that does not matter with the other options.
const UNUSED: &str = "-";

/// Writes the descriptor, loading the tables that it has to name.
pub(super) fn describe(options: &PipelineOptions) -> String {
    let needs_idf = options.weights.needs_idf() && options.segment.is_words();
    let digest = |used: bool, digest: fn() -> u32| {
        if used { format!("{:08x}", digest()) } else { UNUSED.to_owned() }
    };
    // The words of the table are told apart by the dictionary, so it counts with either.
    let jieba = digest(options.segment.needs_dictionary() || needs_idf, dictionary::digest);
    format!(
        "{HEAD};html={html};normal=nfkc-lower-fold;unicode={unicode};clean={clean};short={short};\
         segment={segment};jieba={jieba};ngram={ngram};weights={weights};idf={idf};\
         sketch={sketch};hash=xxh3;seed={seed:016x}",
        html = if options.html { "reader" } else { "none" },
        unicode = unicode(),
        clean = options.clean,
        short = options.short,
        segment = options.segment,
        ngram = options.ngram,
        weights = options.weights,
        idf = digest(needs_idf, idf::digest),
        sketch = options.sketch,
        seed = options.seed,
    )
}

/// Reads the options back; `None` unless every option is there and within its words.
pub(super) fn options(descriptor: &str) -> Option<PipelineOptions> {
    let fields = descriptor.strip_prefix(HEAD)?.strip_prefix(';')?;
    let field = |name: &str| {
        fields.split(';').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    Some(
        PipelineOptions::new()
            .html(match field("html")? {
                "none" => false,
                "reader" => true,
                _ => return None,
            })
            .clean(parse(field("clean")?)?)
            .short(parse(field("short")?)?)
            .segment(parse(field("segment")?)?)
            .ngram(parse(field("ngram")?)?)
            .weights(parse(field("weights")?)?)
            .sketch(parse(field("sketch")?)?)
            .seed(u64::from_str_radix(field("seed")?, 16).ok()?),
    )
}

fn parse<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Versions of the Unicode tables for normal form, words and lower case.
fn unicode() -> String {
    let normal = unicode_normalization::UNICODE_VERSION;
    let words = unicode_segmentation::UNICODE_VERSION;
    let case = char::UNICODE_VERSION;
    format!(
        "{}.{}.{},{}.{}.{},{}.{}.{}",
        normal.0, normal.1, normal.2, words.0, words.1, words.2, case.0, case.1, case.2
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{SketchKind, Weights};
    use crate::text::{Clean, Segment};

    #[test]
    fn options_come_back_from_their_descriptor() {
        let presets = PipelineOptions::PRESETS.map(|name| PipelineOptions::preset(name).unwrap());
        let other = PipelineOptions::new()
            .segment(Segment::Chars)
            .ngram(3)
            .weights(Weights::Levels)
            .sketch(SketchKind::Longest(3))
            .clean(Clean { web: true, weibo: true })
            .short(0)
            .html(true)
            .seed(u64::MAX);
        for preset in presets.into_iter().chain([other]) {
            let descriptor = describe(&preset);
            assert_eq!(options(&descriptor), Some(preset), "{descriptor}");
        }
    }

    #[test]
    fn every_option_changes_the_descriptor() {
        let base = PipelineOptions::new();
        let changed = [
            base.clone(),
            base.clone().segment(Segment::Jieba),
            base.clone().ngram(2),
            base.clone().weights(Weights::Tf),
            base.clone().sketch(SketchKind::MinHash),
            base.clone().clean(Clean { web: true, weibo: false }),
            base.clone().short(0),
            base.clone().html(true),
            base.seed(1),
        ];
        let descriptors: std::collections::BTreeSet<String> =
            changed.iter().map(describe).collect();
        assert_eq!(descriptors.len(), changed.len());
    }

    #[test]
    fn tables_are_named_only_where_they_matter() {
        let words = PipelineOptions::new().segment(Segment::Words).weights(Weights::Tf);
        assert!(describe(&words).contains(";jieba=-;"));
        assert!(describe(&words).contains(";idf=-;"));
        assert!(!describe(&words.weights(Weights::Levels)).contains("=-;"));
    }
}
