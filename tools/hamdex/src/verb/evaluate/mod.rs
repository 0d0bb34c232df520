//! `evaluate`: documents and labelled pairs become precision and recall for each setting.
//!
//! It measures the whole curve over the distance, the effect of a verification, and the best
//! thresholds; one more line has the settings that the other verbs choose.

mod figure;
mod suggest;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use hamdex::evaluate::Tally;
use hamdex::sketch::SketchKind;
use hamdex::verify::Verification;
use hamdex::{Fingerprint, for_width};
use hamdex_io::host::Host;

use self::figure::Figure;
use super::gather::{self, Gathered};
use super::labels::{Judged, Labels};
use crate::advise::{self, Overrides, Resolved};
use crate::draw::chart::Chart;
use crate::draw::plot::PlotFile;
use crate::evidence::Kept;
use crate::failure::{Failure, Result};
use crate::input::{Ids, Inputs, Repeat, Wanted};
use crate::options::verification::VerifyArg;
use crate::options::{PipelineArgs, RowArgs, TmpArg, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::size;

/// Sketches that `--all-sketches` measures.
const SKETCHES: [SketchKind; 3] =
    [SketchKind::SimHash, SketchKind::MinHash, SketchKind::Longest(3)];

/// Measure precision, recall and F1 against labelled pairs
///
/// A label is a line of two ids and, optionally, a similarity, separated by tabs; a line of column
/// names may precede them. Pairs that are not listed are treated as different. The table has a line
/// for each distance, with and without verification, then the best setting of each kind, then the
/// settings that dedup, pairs and clusters choose for these texts. -k without --verify measures the
/// distance alone.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex evaluate posts.jsonl.gz --pairs posts_pairs.tsv --min-similarity 0.9 --ignore-above 0.8\n  hamdex evaluate posts.jsonl.gz --pairs posts_pairs.tsv --plot curves.svg\n  hamdex evaluate posts.jsonl.gz --suggest"
)]
pub(crate) struct EvaluateArgs {
    /// Documents: .jsonl, .parquet, .csv, .tsv, .warc, .txt, .html, directories, raw .u64, - for
    /// stdin
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// File of labelled pairs
    #[arg(long, value_name = "TSV", required_unless_present = "suggest")]
    pairs: Option<PathBuf>,
    /// Try settings on the labelled pairs, else on a perturbed sample, and print the best
    #[arg(long, conflicts_with_all = ["all_sketches", "sketch"])]
    suggest: bool,
    /// Column of the similarity, by name or number from 1 [default: the third, if there is one]
    #[arg(long, value_name = "COLUMN")]
    similarity: Option<String>,
    /// Minimum similarity of a near-duplicate [default: every listed pair is one]
    #[arg(long, value_name = "S")]
    min_similarity: Option<f64>,
    /// Ignore pairs from this similarity up to the minimum
    #[arg(long, value_name = "S", requires = "min_similarity")]
    ignore_above: Option<f64>,
    /// Plot precision, recall and F1 over the distance, as .svg, .png or .html
    #[arg(long, value_name = "FILE", conflicts_with = "suggest")]
    plot: Option<PlotFile>,
    /// Largest distance of the table [default: a quarter of the width]; without --verify, only the
    /// distance is measured
    #[arg(short = 'k', long, value_name = "N")]
    distance: Option<u32>,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    pipeline: PipelineArgs,
    #[command(flatten)]
    verify: VerifyArg,
    /// Measure every kind of signature, not only the chosen one
    #[arg(long, conflicts_with = "sketch", help_heading = "Fingerprints")]
    all_sketches: bool,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    tmp: TmpArg,
}

impl EvaluateArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        if let Some(Verification::Contains(_)) = self.verify.verify {
            return Err(Failure::Usage(
                "evaluate cannot measure contains:T; use jaccard, zhou or edit".to_owned(),
            ));
        }
        let plot = self.plot.as_ref().map(|plot| plot.open(session.overwrite)).transpose()?;
        let labels = match &self.pairs {
            Some(pairs) => Some(Labels::read(pairs, self.similarity.as_deref())?),
            None => None,
        };
        let (inputs, bits) =
            gather::resolve(session, &self.inputs, &self.rows, &self.width, &self.tmp)?;
        if self.suggest {
            let labels = labels.as_ref();
            return for_width!(bits, F => suggest::suggest::<F>(self, session, &inputs, labels));
        }
        let Some(labels) = labels else { return Ok(()) };
        let sketches = if self.all_sketches {
            SKETCHES.map(Some).to_vec()
        } else {
            vec![self.pipeline.sketch]
        };
        let mut charts = Vec::new();
        for sketch in sketches {
            let overrides = Overrides::over_texts(&self.pipeline, None, self.verify.verify, bits);
            let overrides = Overrides { sketch, ..overrides };
            let resolved = advise::resolve(&session.console, &inputs, &overrides)?;
            for warning in resolved.advice.iter().flat_map(|advice| &advice.warnings) {
                session.console.warn(warning);
            }
            charts.extend(for_width!(bits, F => {
                self.measure::<F>(session, &inputs, &resolved, &labels, sketch)
            })?);
        }
        plot.map_or(Ok(()), |plot| {
            plot.write(figure::TITLE, figure::ABOUT, &charts, figure::COLUMNS)
        })
    }

    fn measure<F: Fingerprint>(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        resolved: &Resolved,
        labels: &Labels,
        sketch: Option<SketchKind>,
    ) -> Result<Vec<Chart>> {
        let largest = self.distance.unwrap_or(F::MAX_DISTANCE);
        if largest > F::MAX_DISTANCE {
            let (bits, max) = (F::BITS, F::MAX_DISTANCE);
            return Err(hamdex::Error::InvalidDistance { distance: largest, bits, max }.into());
        }
        let pipeline = resolved.pipeline.as_ref();
        let alone = self.distance.is_some() && self.verify.verify.is_none();
        let verified = pipeline.is_some() && !alone;
        let wanted = match resolved.verification.boilerplate() {
            _ if !verified => Wanted::NOTHING,
            None => Wanted::ALL,
            boilerplate => Wanted { boilerplate, ..Wanted::ALL },
        };
        // Labels name documents by their ids.
        let ids = Ids::Keys(Repeat::Reject);
        let gathered: Gathered<F> = gather::gather(
            session,
            inputs,
            &self.rows,
            (&self.tmp, usize::MAX),
            pipeline,
            (wanted, ids),
        )?;
        let Gathered { fingerprints, evidence, .. } = &gathered;
        let keys = (0..fingerprints.len()).map(|position| gathered.key(position));
        let keys = keys.collect::<hamdex::Result<Vec<_>>>()?;
        let judged =
            labels.judge(keys.iter().map(Vec::as_slice), self.min_similarity, self.ignore_above);
        if judged.unknown > 0 {
            let unknown = size::thousands(judged.unknown);
            session
                .console
                .say(&format!("{unknown} labelled pairs name ids that are not in the inputs"));
        }
        let tally = measure(session, fingerprints, evidence, &judged, largest)?;
        let name = sketch.unwrap_or_default().to_string();
        let measured = Measured { name: &name, tally: &tally, resolved, largest, verified };
        session.console.say(&format!(
            "{} documents, {} labelled near-duplicates",
            size::thousands(fingerprints.len() as u64),
            size::thousands(tally.positives())
        ));
        let lines = measured.show(session)?;
        Ok(if self.plot.is_some() {
            figure::charts(&name, &tally, largest, &lines)
        } else {
            Vec::new()
        })
    }
}

/// The measurements of one signature.
struct Measured<'a> {
    name: &'a str,
    tally: &'a Tally,
    resolved: &'a Resolved,
    largest: u32,
    /// Whether similarities were measured beside distances.
    verified: bool,
}

impl Measured<'_> {
    /// Prints the figures, and returns the verifications among them.
    fn show(&self, session: &Session) -> Result<Vec<Verification>> {
        let Self { name, tally, resolved, largest, verified } = *self;
        let plain = figure::curve("curve", name, tally, largest, Verification::None);
        let verification = resolved.verification;
        let checked = if verified && verification != Verification::None {
            figure::curve("verified", name, tally, largest, verification)
        } else {
            Vec::new()
        };
        let best = if verified { figure::best(name, tally, largest) } else { Vec::new() };
        let default = self.default();
        let mut tried: Vec<Verification> = vec![Verification::None];
        tried.extend((!checked.is_empty()).then_some(verification));
        for Figure { verification, .. } in &best {
            let verification = verification.parse().unwrap_or_default();
            if !tried.contains(&verification) {
                tried.push(verification);
            }
        }
        let mut output = Output::stdout(&session.console);
        if session.json {
            let lines = plain.iter().chain(&checked).chain(&best).chain(&default);
            lines.into_iter().try_for_each(|figure| output.json(figure))?;
            output.finish()?;
            return Ok(tried);
        }
        output.with(|out| {
            figure::table(&plain, &checked).write(out)?;
            for best in &best {
                let Figure { sketch, distance, verification, .. } = best;
                writeln!(
                    out,
                    "best {sketch}, distance {distance}, verification {verification}: {}",
                    best.words()
                )?;
            }
            if let (Some(figure), Some(advice)) = (&default, &resolved.advice) {
                writeln!(
                    out,
                    "default settings (pipeline {}, distance {}, verification {}): {}",
                    advice.pipeline,
                    figure.distance,
                    figure.verification,
                    figure.words()
                )?;
            }
            Ok(())
        })?;
        output.finish()?;
        Ok(tried)
    }

    /// Returns the line of the settings that other verbs would choose.
    fn default(&self) -> Option<Figure> {
        let Resolved { distance, verification, .. } = *self.resolved;
        let settings = (distance, verification);
        if !self.verified || distance > self.largest {
            return None;
        }
        let count = self.tally.at(distance, verification)?;
        Some(Figure::new("default", self.name, settings, count, self.tally.positives()))
    }
}

/// Counts all pairs within the largest distance, and of the labelled ones those found.
fn measure<F: Fingerprint>(
    session: &Session,
    fingerprints: &[F],
    evidence: &Kept,
    judged: &Judged,
    largest: u32,
) -> Result<Tally> {
    let Kept { features, texts, .. } = evidence;
    let labels = &judged.labels;
    let (features, texts) = (features.as_ref(), texts.as_ref());
    let tally = Tally::measure(fingerprints, features, texts, labels, largest, &session.console)?;
    session.console.end_phase();
    Ok(tally)
}
