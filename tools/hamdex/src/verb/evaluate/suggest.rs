//! Suggesting: settings are tried on pairs that are labelled, or made, and the best are named.

use std::sync::Arc;

use hamdex::advice::{Choice, Kind, Perturber, Profile, Support};
use hamdex::sketch::{SketchKind, feature_hash};
use hamdex::text::{Centre, Pipeline, PipelineOptions, Segment, Weights};
use hamdex::verify::Verification;
use hamdex::verify::edit_similarity;
use hamdex::{Fingerprint, advice, join};
use hamdex_io::host::Host;
use rayon::prelude::*;

use super::EvaluateArgs;
use super::figure::{self, Figure};
use super::measure;
use crate::draw::table::Table;
use crate::evidence::{Keeper, Kept};
use crate::failure::{Failure, Result};
use crate::input::{Document, Ids, Inputs, Proofs, Reading, Repeat, Wanted};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::verb::labels::{Judged, Labels};

/// Documents that settings are tried on at most, labelled ones apart.
const TRIED: usize = 20_000;

/// Texts to perturb if no pairs are labelled.
const PERTURBED: usize = 1000;

/// Bytes of texts that are perturbed, since comparing long texts takes its time.
const PERTURBED_BYTES: usize = 4 << 20;

/// Seed of the perturbations: the same inputs give the same suggestion.
const SEED: u64 = 0x6861_6d64;

/// An F1 that is so much lower is as good, where it comes with a smaller distance.
const AS_GOOD: f64 = 0.002;

/// Texts with the pairs among them that are near.
struct Trial {
    texts: Vec<String>,
    judged: Judged,
    /// Source of the pairs.
    source: String,
}

/// The words for the preset that gets a centre.
const BALANCED: &str = "--pipeline text";

/// A pipeline to try, as options and as the words that ask for it.
struct Candidate {
    words: &'static str,
    options: PipelineOptions,
}

fn candidates() -> Result<Vec<Candidate>> {
    let preset = |name| PipelineOptions::preset(name);
    let (post, page, auto) = (preset("post")?, preset("page")?, preset("auto")?);
    let minhash = |options: &PipelineOptions| options.clone().sketch(SketchKind::MinHash);
    let words = |weights| auto.clone().segment(Segment::Auto).ngram(1).weights(weights);
    let all = [
        (BALANCED, preset("text")?),
        ("--pipeline post", post.clone()),
        ("--pipeline page", page.clone()),
        ("--pipeline auto", auto.clone()),
        ("--pipeline code", preset("code")?),
        ("--pipeline post --ngram 2", post.clone().ngram(2)),
        ("--pipeline post --ngram 4", post.clone().ngram(4)),
        ("--pipeline page --ngram 5", page.clone().ngram(5)),
        ("--pipeline page --weights tf", page.clone().weights(Weights::Tf)),
        ("--pipeline auto --segment auto --ngram 1 --weights tf", words(Weights::Tf)),
        ("--pipeline auto --segment auto --ngram 1 --weights tfidf", words(Weights::TfIdf)),
        ("--pipeline post --sketch minhash", minhash(&post)),
        ("--pipeline page --sketch minhash", minhash(&page)),
    ];
    Ok(all.map(|(words, options)| Candidate { words, options }).into())
}

/// Tries every candidate and names the best.
pub(super) fn suggest<F: Fingerprint>(
    args: &EvaluateArgs,
    session: &Session,
    inputs: &Arc<Inputs>,
    labels: Option<&Labels>,
) -> Result<()> {
    let sample = inputs.sample(PERTURBED)?;
    let profile = Profile::of(&sample);
    let html = profile.markup >= 0.5;
    let trial = match labels {
        Some(labels) => labelled(args, session, inputs, labels)?,
        None => perturbed::<F>(args, sample, html)?,
    };
    session.console.say(&format!(
        "{} texts, {} near pairs {}",
        size::thousands(trial.texts.len() as u64),
        size::thousands(trial.judged.labels.near.len() as u64),
        trial.source
    ));
    if trial.judged.labels.near.is_empty() {
        return Err(Failure::Usage(
            "there are no pairs to try settings on; give more texts, or --pairs with labelled \
                pairs of these documents"
                .to_owned(),
        ));
    }
    let candidates = candidates()?;
    hamdex::Progress::begin(&session.console, "trying", Some(candidates.len() as u64));
    let mut tried: Vec<(&'static str, Figure)> = Vec::new();
    for Candidate { words, options } in candidates {
        let mut options = options.html(html);
        if words == BALANCED
            && let Some(centre) = Centre::learn(&Pipeline::new(&options)?, &trial.texts)?
        {
            options = options.centre(centre);
        }
        let pipeline = Pipeline::new(&options)?;
        let (fingerprints, evidence) = prepare::<F>(args, &pipeline, &trial.texts)?;
        let largest = args.distance.unwrap_or(F::MAX_DISTANCE);
        let tally = measure(session, &fingerprints, &evidence, &trial.judged, largest)?;
        let kinds = figure::best(words, &tally, largest);
        // A requested verification is the only candidate.
        let kinds: Vec<Figure> = match args.verify.verify {
            None => kinds,
            Some(check) => figure::curve("best", words, &tally, largest, check),
        };
        let best = kinds.iter().filter_map(|figure| figure.f1).fold(0.0, f64::max);
        let chosen = kinds.into_iter().flat_map(|kind| {
            let check: Verification = kind.verification.parse().unwrap_or_default();
            figure::curve("best", words, &tally, largest, check)
        });
        let good = chosen.filter(|figure| figure.f1.unwrap_or(0.0) >= best - AS_GOOD);
        tried.extend(good.min_by_key(|figure| figure.distance).map(|figure| (words, figure)));
    }
    session.console.end_phase();
    tried.sort_by(|a, b| b.1.f1.unwrap_or(0.0).total_cmp(&a.1.f1.unwrap_or(0.0)));
    show(args, session, &tried, html)
}

/// Prints the tried settings, the best first, and a command with the best.
fn show(
    args: &EvaluateArgs,
    session: &Session,
    tried: &[(&'static str, Figure)],
    html: bool,
) -> Result<()> {
    let mut output = Output::stdout(&session.console);
    if session.json {
        tried.iter().try_for_each(|(_, figure)| output.json(figure))?;
        return output.finish();
    }
    let heading = ["settings", "distance", "verification", "precision", "recall", "F1"];
    let mut table = Table::with_heading(&heading);
    for (words, figure) in tried {
        let share = |share: Option<f64>| share.map_or("-".to_owned(), |s| format!("{s:.4}"));
        let shares = [figure.precision, figure.recall, figure.f1].map(share);
        let check = figure.verification.clone();
        table.row(
            [(*words).to_owned(), figure.distance.to_string(), check].into_iter().chain(shares),
        );
    }
    let inputs: Vec<String> = args.inputs.iter().map(|path| path.display().to_string()).collect();
    output.with(|out| {
        table.write(out)?;
        if let Some((words, Figure { distance, verification, .. })) = tried.first() {
            let html = if html { " --html" } else { "" };
            writeln!(
                out,
                "\nhamdex dedup {} -o out {words}{html} -k {distance} --verify {verification}",
                inputs.join(" ")
            )?;
        }
        Ok(())
    })?;
    output.finish()
}

/// Fingerprints texts in memory; one without features is like no other.
fn prepare<F: Fingerprint>(
    args: &EvaluateArgs,
    pipeline: &Pipeline,
    texts: &[String],
) -> Result<(Vec<F>, Kept)> {
    let make = |(position, text): (usize, &String)| match Proofs::with_sketch::<F>(
        Wanted::ALL,
        pipeline,
        text,
    ) {
        Some((sketch, proofs)) => (sketch.fingerprint, proofs),
        None => (feature_hash(&position.to_be_bytes(), SEED), Proofs::default()),
    };
    let made: Vec<(F, Proofs)> = texts.par_iter().enumerate().map(|(n, t)| make((n, t))).collect();
    let mut keeper = Keeper::new(Wanted::ALL, args.tmp.directory(), usize::MAX)?;
    let mut fingerprints = Vec::with_capacity(made.len());
    for (fingerprint, proofs) in made {
        fingerprints.push(fingerprint);
        keeper.push(&proofs)?;
    }
    Ok((fingerprints, keeper.finish()?))
}

/// Takes the labelled documents, and of many others an even part.
fn labelled(
    args: &EvaluateArgs,
    session: &Session,
    inputs: &Arc<Inputs>,
    labels: &Labels,
) -> Result<Trial> {
    let names = labels.names();
    let pipeline = Pipeline::new(&PipelineOptions::new())?;
    let reading = Reading {
        inputs,
        pipeline: Some(&pipeline),
        console: &session.console,
        ids: Ids::Keys(Repeat::Reject),
        keep_blank: false,
        after: None,
        wanted: Wanted::SOURCE,
    };
    let mut kept: Vec<(Vec<u8>, String, bool)> = Vec::new();
    let (mut others, mut stride, mut ordinal) = (0, 1_usize, 0_usize);
    let mut rejects = args.rows.rejects(session)?;
    reading.run::<u64>(&mut rejects, &mut |document: Document<'_, u64>| {
        let text = document.proofs.text;
        if text.is_empty() {
            return Ok(());
        }
        let named = names.contains(crate::key::Name::of(document.key).to_string().as_str());
        ordinal += usize::from(!named);
        if named || ordinal.is_multiple_of(stride) {
            others += usize::from(!named);
            kept.push((document.key.to_vec(), text, named));
        }
        if others > TRIED {
            let mut odd = false;
            kept.retain(|&(.., named)| {
                odd ^= !named;
                named || odd
            });
            others = others.div_ceil(2);
            stride *= 2;
        }
        Ok(())
    })?;
    rejects.finish()?;
    let keys = kept.iter().map(|(key, ..)| key.as_slice());
    let judged = labels.judge(keys, args.min_similarity, args.ignore_above);
    let texts = kept.into_iter().map(|(_, text, _)| text).collect();
    Ok(Trial { texts, judged, source: "of the labels".to_owned() })
}

/// Makes near pairs from a sample of unrelated texts.
fn perturbed<F: Fingerprint>(
    args: &EvaluateArgs,
    sample: Vec<String>,
    html: bool,
) -> Result<Trial> {
    let choice = Choice { html, ..Choice::of(Kind::Text) };
    let pipeline = Pipeline::new(&choice.options()?)?;
    let measured = advice::Settings::of(choice.kind, F::BITS, Support::Texts).verification;
    let usual = match measured {
        Verification::Edit(threshold) => threshold,
        Verification::EditByLength { long, .. } => long,
        Verification::None
        | Verification::Jaccard(_)
        | Verification::Zhou { .. }
        | Verification::Contains(_)
        | _ => 0.9,
    };
    let near_from = args.min_similarity.unwrap_or(usual);
    let ignored_from = args.ignore_above.unwrap_or(near_from - 0.1);
    let mut bytes = 0;
    let originals: Vec<String> = sample
        .into_iter()
        .filter(|text| pipeline.fingerprint::<F>(text).is_some())
        .take_while(|text| {
            bytes += text.len();
            bytes <= PERTURBED_BYTES
        })
        .take(PERTURBED)
        .collect();
    // Naturally similar texts would be counted as wrong.
    let (fingerprints, evidence) = prepare::<F>(args, &pipeline, &originals)?;
    let alike = Verification::Edit(0.6);
    let digests: Vec<u64> = (0..fingerprints.len() as u64).collect();
    let check = |a: u32, b: u32, distance| match &evidence.texts {
        Some(texts) => texts.check(alike, distance, a as usize, b as usize),
        None => Ok(None),
    };
    let chain = join::Linkage::Chain;
    let groups =
        join::verified_clusters(&fingerprints, &digests, F::MAX_DISTANCE, chain, &(), &check)?;
    let mut perturber = Perturber::new(SEED);
    let mut trial = Trial { texts: Vec::new(), judged: Judged::default(), source: String::new() };
    for ((text, &group), n) in originals.iter().zip(&groups).zip(0_u32..) {
        if group != n {
            continue;
        }
        // Similarities from 0.7 to 1, all over the range.
        let changed = perturber.perturb(text, 0.7 + 0.3 * f64::from(n % 31) / 30.0);
        let (ours, theirs) = (pipeline.cleaned(text), pipeline.cleaned(&changed));
        let similarity = edit_similarity(&ours, &theirs, 0.0).unwrap_or(0.0);
        let at = u32::try_from(trial.texts.len()).unwrap_or(u32::MAX);
        trial.texts.extend([text.clone(), changed]);
        if similarity >= near_from {
            trial.judged.labels.near.push((at, at + 1));
        } else if similarity >= ignored_from {
            trial.judged.labels.ignored.push((at, at + 1));
        }
    }
    trial.source = format!(
        "made by perturbing a sample, near from an edit similarity of {near_from}; this favours \
            --verify edit, so pass --pairs to measure with your labels"
    );
    Ok(trial)
}
