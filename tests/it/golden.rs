//! Golden fingerprints: every pipeline at every width computes what it computed when released.
//!
//! Stored indexes contain these numbers. If a dictionary, a Unicode table or a library changes one
//! of them, the descriptor must change too; otherwise old indexes silently return wrong results. So
//! never fix a difference by rewriting the file: give the step a new name in the descriptor, then
//! write the file with `cargo nextest run --run-ignored only golden`.
//!
//! And the feature hash over real words: its bits are fair and independent.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use hamdex::fingerprint::Hex;
use hamdex::sketch::{SketchKind, feature_hash};
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

/// Words of two common Chinese characters in the segmentation dictionary.
fn words() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        // The first level of GB 2312: the 3,755 characters of daily use.
        let rows = (0xb0..=0xd7_u8).flat_map(|row| (0xa1..=0xfe).map(move |cell| [row, cell]));
        let common: HashSet<char> = rows
            .filter_map(|bytes| {
                let (text, failed) = encoding_rs::GBK.decode_without_bom_handling(&bytes);
                text.chars().next().filter(|_| !failed)
            })
            .collect();
        let table = include_bytes!("../../src/text/tables/jieba.zst");
        let table = String::from_utf8(zstd::decode_all(&table[..]).unwrap()).unwrap();
        let words = table.lines().filter_map(|line| line.split_once(' ')).map(|(word, _)| word);
        let pairs = words.filter(|word| word.chars().count() == 2);
        pairs.filter(|word| word.chars().all(|c| common.contains(&c))).map(str::to_owned).collect()
    })
}

#[test]
fn every_bit_is_set_for_half_of_the_words_within_one_percent() {
    let words = words();
    assert!(words.len() > 50_000, "{}", words.len());
    let mut ones = [0_u32; 192];
    for word in words {
        let narrow = feature_hash::<u64>(word.as_bytes(), 0);
        let wide = feature_hash::<u128>(word.as_bytes(), 0);
        for (bit, count) in ones.iter_mut().enumerate() {
            let set = if bit < 64 { narrow >> bit & 1 == 1 } else { wide >> (bit - 64) & 1 == 1 };
            *count += u32::from(set);
        }
    }
    for (bit, count) in ones.into_iter().enumerate() {
        let share = f64::from(count) / words.len() as f64;
        assert!((share - 0.5).abs() < 0.01, "bit {bit} is set for {share:.4} of the words");
    }
}

#[test]
fn no_two_bits_agree_more_often_than_by_chance() {
    let words = words();
    let hashes: Vec<u64> =
        words.iter().map(|word| feature_hash::<u64>(word.as_bytes(), 0)).collect();
    // Five standard deviations of a fair coin.
    let allowed = 5.0 * 0.5 / (words.len() as f64).sqrt();
    for a in 0..64 {
        for b in 0..a {
            let agree = hashes.iter().filter(|&&hash| (hash >> a ^ hash >> b) & 1 == 0).count();
            let share = agree as f64 / words.len() as f64;
            assert!((share - 0.5).abs() < allowed, "bits {a} and {b} agree in {share:.4}");
        }
    }
}
