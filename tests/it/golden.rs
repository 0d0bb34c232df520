//! Golden fingerprints: every pipeline at every width computes what it computed when released.
//!
//! Stored indexes contain these numbers. If a dictionary, a Unicode table or a library changes one
//! of them, the descriptor must change too; otherwise old indexes silently return wrong results. So
//! never fix a difference by rewriting the file: give the step a new name in the descriptor, then
//! write the file with `cargo nextest run --run-ignored only golden`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use hamdex::fingerprint::Hex;
use hamdex::sketch::SketchKind;
use hamdex::text::{Clean, Dictionary, NormalForm, Segment, StopWords, WeightTable, Weights};
use hamdex::verify::FeatureSet;
use hamdex::{Fingerprint, Pipeline, PipelineOptions, Result};

use crate::architecture::root;
use crate::pipelines::learnt;

const TEXTS: [&str; 5] = [
    "美国\"51区\"雇员称内部有9架飞碟,曾看见灰色外星人. The saucer's 9 pilots, SEEN at http://t.cn/x @bob",
    "海量指紋的去重演算法和快速查找辦法 [哈哈]//@someone: 轉發 版权所有 © 2026",
    "It will rain tomorrow. It rained yesterday! Will it rain for ever? ﬃ Ⅷ ½ café cafe\u{301}",
    "こんにちは世界、서울의 봄, Привет мир, مرحبا بالعالم สวัสดีชาวโลก 𠮷野家 foo_bar v1.2",
    "<html><head><title>T</title></head><body><nav>home</nav><p>One page &amp; its menu.</p></body>",
];

/// Texts in scripts that word lists segment, for the pipelines that have these lists.
const LISTED: [&str; 4] = [
    "น้ำดื่ม 2 ขวดในตู้เย็น กรุงเทพมหานคร ພາສາລາວ ນ້ຳ",
    "ភាសាខ្មែរ ទឹកស្អាត។ မြန်မာစာသည် လွယ်ကူသည်။",
    "吾輩は猫である。名前はまだ無い!东京在日本。データベース管理サーバー",
    "东京都知事在东京发表讲话,鲜の每日",
];

/// Every kind of pipeline, by name.
fn pipelines() -> Result<Vec<(String, PipelineOptions)>> {
    let mut all = Vec::new();
    for name in PipelineOptions::PRESETS {
        let preset = PipelineOptions::preset(name)?;
        for sketch in [SketchKind::SimHash, SketchKind::MinHash, SketchKind::Longest(2)] {
            all.push((format!("{name} {sketch}"), preset.clone().sketch(sketch)));
        }
        all.push((format!("{name} html"), preset.clone().html(true)));
    }
    let new = PipelineOptions::new;
    let segments = [Segment::Auto, Segment::Jieba, Segment::Words, Segment::Chars];
    for segment in segments.into_iter().chain([Segment::Grams, Segment::Raw]) {
        for weights in [Weights::Uniform, Weights::Tf, Weights::TfIdf, Weights::Levels] {
            let options = new().segment(segment).weights(weights);
            all.push((format!("{segment} {weights}"), options));
        }
        all.push((format!("{segment} pairs"), new().segment(segment).ngram(2)));
    }
    let both = Clean { web: true, ..Clean::WEIBO };
    let dictionary = Dictionary::parse("海量指紋 10 n\n外星人 0\n")?;
    let own = new().dictionary(dictionary).stop_words(StopWords::parse("the\n的\n")?);
    all.extend([
        ("simplified".to_owned(), new().simplified(true)),
        ("cleaned".to_owned(), new().clean(both).short(0)),
        ("seeded".to_owned(), new().seed(7)),
        ("stop words".to_owned(), new().stop_words(StopWords::builtin())),
        ("own words".to_owned(), own.clone()),
        ("learnt".to_owned(), learnt(&own.weights(Weights::TfIdf), TEXTS)?),
        ("given".to_owned(), new().weight_table(WeightTable::parse("飞碟\t9\n*\t2\n")?)),
    ]);
    let mut listed = Vec::new();
    for segment in [Segment::Auto, Segment::Words] {
        for weights in [Weights::Uniform, Weights::Tf, Weights::TfIdf, Weights::Levels] {
            listed
                .push((format!("{segment}-2 {weights}"), new().segment(segment).weights(weights)));
        }
        let folded = new().segment(segment).ngram(2).normal(NormalForm::Casefold);
        listed.push((format!("{segment}-2 pairs"), folded));
    }
    Ok(all.into_iter().chain(listed).collect())
}

/// The texts of a pipeline.
fn texts(name: &str) -> impl Iterator<Item = &'static str> {
    TEXTS.into_iter().chain(LISTED.into_iter().filter(|_| name.contains("-2 ")))
}

fn hex<F: Fingerprint>(pipeline: &Pipeline, text: &str) -> String {
    let sketch = pipeline.fingerprint::<F>(text);
    sketch.map_or_else(|| "none".to_owned(), |sketch| Hex(sketch.fingerprint).to_string())
}

/// One line per pipeline and text: three widths, and a digest of the feature set.
///
/// A released pipeline uses the step versions that it was released with.
fn lines(released: &str) -> Result<String> {
    let released: HashMap<&str, &str> =
        released.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut lines = String::new();
    for (name, options) in pipelines()? {
        let released = released.get(name.as_str()).copied().unwrap_or_default();
        let pipeline = Pipeline::new(&options)?.with_versions_of(released)?;
        // The compiler's lower-case tables have only a version to identify them.
        let case = char::UNICODE_VERSION;
        let case = format!(",{}.{}.{};", case.0, case.1, case.2);
        writeln!(lines, "{name}\t{}", pipeline.descriptor().replace(&case, ",*;")).unwrap();
        for text in texts(&name) {
            let features = FeatureSet::of_text(&pipeline, text).encode();
            let digest = xxhash_rust::xxh3::xxh3_64(&features);
            let (narrow, usual) = (hex::<u32>(&pipeline, text), hex::<u64>(&pipeline, text));
            let wide = hex::<u128>(&pipeline, text);
            writeln!(lines, "\t{narrow}\t{usual}\t{wide}\t{digest:016x}").unwrap();
        }
    }
    Ok(lines)
}

fn file() -> PathBuf {
    root().join("tests/fixtures/fingerprints.tsv")
}

#[test]
fn every_pipeline_gives_the_fingerprints_it_was_released_with() -> Result<()> {
    let golden = std::fs::read_to_string(file()).unwrap();
    let now = lines(&golden)?;
    let mut pipeline = "";
    for (then, now) in golden.lines().zip(now.lines()) {
        if !then.starts_with('\t') {
            pipeline = then;
        }
        assert_eq!(now, then, "of the pipeline {pipeline}");
    }
    assert_eq!(now.lines().count(), golden.lines().count(), "the number of pipelines");
    Ok(())
}

#[test]
#[ignore = "writes the file that the other test reads; see the module"]
fn golden_fingerprints_are_written() -> Result<()> {
    let released = std::fs::read_to_string(file()).unwrap();
    std::fs::write(file(), lines(&released)?).unwrap();
    Ok(())
}
