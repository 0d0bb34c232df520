//! Fingerprinting on one thread: megabytes of text per second for every kind of feature.
//!
//! Rows of a corpus with a field `lang` are measured language by language.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use hamdex::text::{Clean, Pipeline, PipelineOptions, Segment, SketchKind, Weights};

use crate::{Args, report};

/// Passes through all texts; the best time of each text is used.
const REPEATS: u32 = 7;

/// Bytes of text for Python packages, which are slow.
const PYTHON_BYTES: usize = 500_000;

/// The script that measures Python packages.
const PYTHON_PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/fingerprint_peers.py");

pub(crate) fn run(corpus: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let file = corpus.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for (lang, texts) in read(corpus)? {
        let name = if lang.is_empty() { file.clone() } else { format!("{file}, {lang}") };
        measure_all(&name, &texts, args)?;
    }
    Ok(())
}

fn measure_all(name: &str, texts: &[String], args: &Args) -> Result<(), Box<dyn Error>> {
    let bytes: usize = texts.iter().map(String::len).sum();
    let measure = |what: &str, work: &dyn Fn(&str)| {
        let mut best = vec![f64::INFINITY; texts.len()];
        for _ in 0..REPEATS {
            for (text, best) in texts.iter().zip(&mut best) {
                let start = Instant::now();
                work(text);
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
        let best: f64 = best.iter().sum();
        report::row(&format!("{name}: {what}"), &format!("{:.0} MB/s", bytes as f64 / best / 1e6));
    };
    for preset in PipelineOptions::PRESETS {
        let pipeline = Pipeline::new(&PipelineOptions::preset(preset)?)?;
        measure(&format!("preset {preset}"), &|text| {
            black_box(pipeline.fingerprint::<u64>(text));
        });
    }
    if args.presets {
        return Ok(());
    }
    for (what, options) in pipelines() {
        let pipeline = Pipeline::new(&options)?;
        measure(what, &|text| {
            black_box(pipeline.fingerprint::<u64>(text));
        });
    }
    #[cfg(feature = "peers")]
    peers(&measure);
    if args.python {
        python(name, texts)?;
    }
    Ok(())
}

/// Measures the Python packages on the first texts; the script reports missing packages.
fn python(name: &str, texts: &[String]) -> Result<(), Box<dyn Error>> {
    let mut bytes = 0;
    let mut lines = String::new();
    for text in texts {
        if bytes >= PYTHON_BYTES {
            break;
        }
        bytes += text.len();
        lines.push_str(&serde_json::to_string(text)?);
        lines.push('\n');
    }
    let script = Command::new("python3")
        .arg(PYTHON_PEERS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut script = match script {
        Ok(script) => script,
        Err(error) => {
            report::row(&format!("{name}: Python packages"), &format!("python3: {error}"));
            return Ok(());
        }
    };
    if let Some(mut input) = script.stdin.take() {
        input.write_all(lines.as_bytes())?;
    }
    let output = script.wait_with_output()?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some((what, rate)) = line.split_once('\t') {
            report::row(&format!("{name}: Python {what}"), rate);
        }
    }
    if !output.status.success() {
        report::row(&format!("{name}: Python packages"), &format!("{}", output.status));
    }
    Ok(())
}

fn pipelines() -> Vec<(&'static str, PipelineOptions)> {
    let bare = |segment: Segment, weights: Weights| {
        PipelineOptions::new().weights(weights).segment(segment).clean(Clean::default()).short(0)
    };
    vec![
        ("character n-grams of 3, every occurrence", bare(Segment::Grams, Weights::Tf)),
        ("character n-grams of 3, distinct", bare(Segment::Grams, Weights::Uniform)),
        ("character n-grams of 4, distinct", bare(Segment::Grams, Weights::Uniform).ngram(4)),
        ("character n-grams of 3, raw text", bare(Segment::Raw, Weights::Tf)),
        ("character n-grams of 4, MinHash", {
            bare(Segment::Grams, Weights::Tf).ngram(4).sketch(SketchKind::MinHash)
        }),
        ("words, every occurrence", bare(Segment::Words, Weights::Tf)),
        ("words, distinct", bare(Segment::Words, Weights::Uniform)),
        ("word n-grams of 3, every occurrence", bare(Segment::Words, Weights::Tf).ngram(3)),
        ("word n-grams of 3, distinct", bare(Segment::Words, Weights::Uniform).ngram(3)),
        ("jieba and words, every occurrence", bare(Segment::Auto, Weights::Tf)),
        ("jieba and words, distinct", bare(Segment::Auto, Weights::Uniform)),
        ("jieba and words, TF-IDF", bare(Segment::Auto, Weights::TfIdf)),
        ("jieba and words, levels", bare(Segment::Auto, Weights::Levels)),
        ("longest three sentences", {
            bare(Segment::Grams, Weights::Tf).sketch(SketchKind::Longest(3))
        }),
    ]
}

/// Reads the texts of each language; the name of a missing language is empty.
fn read(corpus: &Path) -> Result<BTreeMap<String, Vec<String>>, Box<dyn Error>> {
    let file = File::open(corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
    let reader: Box<dyn Read> = if corpus.extension().is_some_and(|e| e == "gz") {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (line, number) in BufReader::new(reader).lines().zip(1..) {
        let row: serde_json::Value = serde_json::from_str(&line?)?;
        let field = |name| row.get(name).and_then(|value| value.as_str());
        let missing = || format!("{} line {number}: no text", corpus.display());
        let text = field("text").ok_or_else(missing)?.to_owned();
        texts.entry(field("lang").unwrap_or_default().to_owned()).or_default().push(text);
    }
    Ok(texts)
}

/// Measures a named piece of work on all texts.
#[cfg(feature = "peers")]
type Measure<'a> = dyn Fn(&str, &dyn Fn(&str)) + 'a;

#[cfg(feature = "peers")]
fn peers(measure: &Measure<'_>) {
    use gaoya::simhash::{SimHash, SimSipHasher64};
    use gaoya::text::whitespace_split;
    use web_simhash::{SimHash64, WebFeatureExtractor};

    let jieba = jieba_rs::Jieba::new();
    measure("bare jieba segmentation", &|text| drop(black_box(jieba.cut(text, true))));
    let gaoya = SimHash::<SimSipHasher64, u64, 64>::new(SimSipHasher64::new(1, 2));
    measure("gaoya, words by white space", &|text| {
        black_box(gaoya.create_signature(whitespace_split(text)));
    });
    let extractor = WebFeatureExtractor::default();
    measure("web-simhash, as it comes", &|text| {
        black_box(SimHash64::from_text(text, &extractor));
    });
}
