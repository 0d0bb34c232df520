//! Texts: any bytes, in any encoding, with or without markup, have equal fingerprints twice.

use std::cell::RefCell;
use std::collections::HashMap;

use hamdex::text::{Clean, Encoding, Segment, SketchKind, StopWords, Weights, decode};
use hamdex::verify::{FeatureSet, edit_similarity};
use hamdex::{Pipeline, PipelineOptions};

const ENCODINGS: [&str; 8] =
    ["auto", "utf-8", "gb18030", "big5", "shift_jis", "utf-16le", "utf-16be", "windows-1252"];

/// Fingerprints a text; three bytes choose the pipeline and the encoding, the rest is the text.
pub fn text(bytes: &[u8]) {
    let [first, second, third, text @ ..] = bytes else { return };
    let encoding: Encoding = ENCODINGS[usize::from(third % 8)].parse().expect("a known name");
    let decoded = encoding.decode(text).text;
    let _ = (decode(text), encoding.decode_text(text));
    let Some(pipeline) = pipeline(*first, *second, *third) else { return };
    let sketch = pipeline.fingerprint::<u64>(&decoded);
    assert_eq!(pipeline.fingerprint::<u64>(&decoded), sketch, "the second time");
    let (narrow, wide) =
        (pipeline.fingerprint::<u32>(&decoded), pipeline.fingerprint::<u128>(&decoded));
    assert_eq!((narrow.is_some(), wide.is_some()), (sketch.is_some(), sketch.is_some()));
    let features = FeatureSet::of_text(&pipeline, &decoded);
    assert_eq!(features.is_empty(), sketch.is_none(), "a fingerprint needs features");
    assert_eq!(pipeline.features(&decoded).is_empty(), sketch.is_none());
    assert_eq!(FeatureSet::decode(&features.encode()).ok().as_ref(), Some(&features));
    let cleaned = pipeline.cleaned(&decoded);
    let same = edit_similarity(&cleaned, &cleaned, 0.8);
    assert_eq!(same, Some(1.0), "a text is equal to itself");
}

thread_local! {
    /// Cache of pipelines, because creating one takes longer than a short text.
    static MADE: RefCell<HashMap<[u8; 3], Option<Pipeline>>> = RefCell::default();
}

/// Returns a pipeline; `None` if the options exclude each other.
fn pipeline(first: u8, second: u8, third: u8) -> Option<Pipeline> {
    MADE.with_borrow_mut(|made| {
        if made.len() > 4096 {
            made.clear();
        }
        // The low bits of the third byte choose the encoding.
        let choices = [first, second, third & 0xf8];
        let make = || Pipeline::new(&options(first, second, third)).ok();
        made.entry(choices).or_insert_with(make).clone()
    })
}

fn options(first: u8, second: u8, third: u8) -> PipelineOptions {
    let segments = [Segment::Auto, Segment::Jieba, Segment::Words, Segment::Chars];
    let segment = match first % 6 {
        4 => Segment::Grams,
        5 => Segment::Raw,
        at => segments[usize::from(at)],
    };
    let weights = [Weights::Uniform, Weights::Tf, Weights::TfIdf, Weights::Levels];
    let weights = weights[usize::from(first >> 4 & 3)];
    let sketch = match second % 4 {
        0 | 1 => SketchKind::SimHash,
        2 => SketchKind::MinHash,
        _ => SketchKind::Longest(2),
    };
    let options = PipelineOptions::new()
        .segment(segment)
        .weights(weights)
        .sketch(sketch)
        .ngram(u32::from(second >> 2 & 7).max(1))
        .html(second & 0x20 != 0)
        .simplified(second & 0x40 != 0)
        .clean(Clean { web: third & 0x10 != 0, weibo: third & 0x20 != 0, ..Clean::NONE })
        .short(if third & 0x40 == 0 { 0 } else { 200 });
    if second & 0x80 != 0 { options.stop_words(StopWords::builtin()) } else { options }
}
