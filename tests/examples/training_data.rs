//! Training data: keeps one document of every group of near-duplicates.
//!
//! `cargo run --release --example training_data`

use std::collections::HashSet;
use std::error::Error;

use hamdex::advice::Perturber;
use hamdex::build::{BuildOptions, Builder};
use hamdex::join::Linkage;
use hamdex::verify::FeatureSet;
use hamdex::verify::{DuplicateRule, Verification};
use hamdex::{Index, IndexOptions, NewDocument, Pipeline, PipelineOptions};

/// Number of original documents, and of copies of every tenth one.
const ORIGINALS: usize = 2000;
const COPIES: usize = 3;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let corpus = corpus();
    let directory = tempfile::tempdir()?;
    let pipeline = Pipeline::new(&PipelineOptions::preset("page")?)?;
    // A wide distance finds candidates; the share of common features decides.
    let options = IndexOptions::new().distance(12).text(&pipeline).keep_features(true);
    let path = directory.path().join("corpus.idx");
    let mut builder = Builder::<u64>::create(&path, &options, &BuildOptions::new())?;
    for (origin, (key, text)) in (0..).zip(&corpus) {
        let Some(sketch) = pipeline.fingerprint::<u64>(text) else { continue };
        let features = FeatureSet::of_text(&pipeline, text).encode();
        let document = NewDocument::new(key.as_bytes(), sketch.fingerprint).features(&features);
        builder.push_document(&document, origin)?;
    }
    let report = builder.finish(&(), &mut |_, _| {})?;
    println!("{} documents, {} different fingerprints", report.documents, report.fingerprints);

    let index = Index::<u64>::open(&path)?;
    let rule =
        DuplicateRule::new(12).verify(Verification::Jaccard(0.7)).linkage(Linkage::Representative);
    let clusters = index.clusters(rule, &())?;
    let mut dropped = HashSet::new();
    for cluster in &clusters {
        dropped.extend(cluster.keys.iter().skip(1).cloned());
    }
    let kept = corpus.iter().filter(|(key, _)| !dropped.contains(key.as_bytes())).count();
    println!("{} groups, {} documents kept", clusters.len(), kept);
    assert_eq!(clusters.len(), ORIGINALS / 10);
    // Some copies share too few features with the first document of their group.
    assert!((ORIGINALS..ORIGINALS + 40).contains(&kept), "{kept}");
    Ok(())
}

/// Documents with their ids: originals, and perturbed copies of every tenth one.
fn corpus() -> Vec<(String, String)> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut perturber = Perturber::new(7);
    let mut corpus = Vec::new();
    for number in 0..ORIGINALS {
        let text = text(&mut random);
        let copies = if number % 10 == 0 { COPIES } else { 0 };
        for copy in 1..=copies {
            corpus.push((format!("{number:04}/copy-{copy}"), perturber.perturb(&text, 0.95)));
        }
        corpus.push((format!("{number:04}"), text));
    }
    corpus
}

/// Sentences of random words.
fn text(random: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    for _ in 0..12 {
        for word in 0..10 {
            text.push_str(if word == 0 { "" } else { " " });
            for _ in 0..random.usize(3..9) {
                text.push(random.lowercase());
            }
        }
        text.push_str(". ");
    }
    text
}
