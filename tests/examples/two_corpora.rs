//! Two corpora: finds questions of a benchmark that are in the training data.
//!
//! `cargo run --release --example two_corpora`

use std::error::Error;
use std::path::Path;

use hamdex::advice::Perturber;
use hamdex::{Durability, Index, IndexOptions, Pipeline, PipelineOptions};

/// Largest distance of a leaked question, in bits of 64.
const DISTANCE: u32 = 9;

const SUBJECTS: [&str; 8] = [
    "the lighthouse keeper",
    "a retired physicist",
    "the youngest beekeeper",
    "an honest smuggler",
    "the night-shift baker",
    "a travelling tailor",
    "the forgetful archivist",
    "a stubborn gardener",
];
const DEEDS: [&str; 8] = [
    "carried seven lanterns across the frozen marsh",
    "counted every tile of the cathedral roof",
    "sold half of the orchard to pay for a telescope",
    "taught three crows to fetch copper coins",
    "walked from the harbour to the quarry in nine hours",
    "repaired the broken organ with fish glue",
    "mixed blue paint from cornflowers and chalk",
    "wrote forty letters and posted only two",
];
const QUESTIONS: [&str; 4] = [
    "How many of them were left when the bells rang at midnight?",
    "Which road would have been the shorter one, and by how much?",
    "What did the others pay, if each of them paid the same?",
    "Who was told the truth, and who found it out alone?",
];

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    let benchmark = benchmark();
    // Every fourth question is on a page of the training data, slightly changed.
    let mut perturber = Perturber::new(11);
    let leaked = benchmark.iter().filter(|(id, _)| id.ends_with("/0"));
    let mut training: Vec<(String, String)> =
        leaked.map(|(id, text)| (format!("page of {id}"), perturber.perturb(text, 0.97))).collect();
    let leaks = training.len();
    training.extend((0..2000).map(|number| (format!("page {number}"), chatter(number))));

    let questions = store(&directory.path().join("questions"), &pipeline, &benchmark)?;
    let pages = store(&directory.path().join("pages"), &pipeline, &training)?;
    let mut found = Vec::new();
    questions.pairs_with(&pages, DISTANCE, &(), &mut |pair| {
        let (question, page) = (String::from_utf8_lossy(pair.a), String::from_utf8_lossy(pair.b));
        found.push((question.into_owned(), page.into_owned(), pair.distance));
        Ok(())
    })?;
    found.sort();
    for (question, page, distance) in found.iter().take(3) {
        println!("{question} is {distance} bits from {page}");
    }
    let own = found.iter().filter(|(question, page, _)| *page == format!("page of {question}"));
    let own = own.count();
    let others = found.len() - own;
    println!("{own} of {leaks} leaked questions found, {others} other pairs");
    assert!(own + 1 >= leaks && others <= 5, "{own} of {leaks}, {others} others");
    Ok(())
}

fn store(
    path: &Path,
    pipeline: &Pipeline,
    texts: &[(String, String)],
) -> Result<Index<u64>, hamdex::Error> {
    let index = Index::create(path, &IndexOptions::new().distance(DISTANCE).text(pipeline))?;
    let documents: Vec<(&[u8], u64)> = texts
        .iter()
        .filter_map(|(id, text)| {
            Some((id.as_bytes(), pipeline.fingerprint::<u64>(text)?.fingerprint))
        })
        .collect();
    index.insert_batch(&documents, Durability::Buffered)?;
    Ok(index)
}

/// Questions about who did what; the first of each four leaks.
fn benchmark() -> Vec<(String, String)> {
    let mut questions = Vec::new();
    for (s, (subject, deed)) in SUBJECTS.iter().zip(DEEDS).enumerate() {
        for (q, question) in QUESTIONS.iter().enumerate() {
            // Each question has two more people, so that no two questions are similar.
            let others = [1, 3].map(|step| {
                let other = (s + step * (q + 1)) % SUBJECTS.len();
                let act = (s * 3 + step + q * 5) % DEEDS.len();
                format!(
                    "{} {}",
                    SUBJECTS.get(other).unwrap_or(subject),
                    DEEDS.get(act).unwrap_or(&deed)
                )
            });
            let [second, third] = others;
            let text = format!("While {subject} {deed}, {second}, but {third}. {question}");
            questions.push((format!("{s}/{q}"), text));
        }
    }
    questions
}

/// A page of random words.
fn chatter(number: u64) -> String {
    let mut random = fastrand::Rng::with_seed(number);
    let word = |random: &mut fastrand::Rng| -> String {
        (0..random.usize(3..9)).map(|_| random.lowercase()).collect()
    };
    (0..30).map(|_| word(&mut random)).collect::<Vec<_>>().join(" ")
}
