//! `fingerprint`: texts become fingerprints on standard output, nothing is stored.

use std::path::{Path, PathBuf};

use clap::Args;
use hamdex::text::Pipeline;
use hamdex::{Fingerprint, for_width};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::input::{Document, Ids, Reading, Wanted};
use crate::key::Name;
use crate::options::{PipelineArgs, RowArgs, WidthArg};
use crate::output::{Output, Overwrite};
use crate::session::Session;
use crate::settings;

/// Print the fingerprint of every document
///
/// Writes JSON Lines {"id","fingerprint","features"}, which 'hamdex build' reads.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex fingerprint posts.jsonl.gz --pipeline post > prints.jsonl"
)]
pub(crate) struct FingerprintArgs {
    /// Documents: .jsonl, .parquet, .csv, .tsv, .warc, .txt, .html, directories, - for stdin
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    pipeline: PipelineArgs,
    #[command(flatten)]
    rows: RowArgs,
    /// Save the rarity of words that --idf learn found, for a later --idf FILE
    #[arg(long, value_name = "FILE", requires = "idf", help_heading = "Fingerprints")]
    save_idf: Option<PathBuf>,
    /// Save the centre that --centre learn found, for a later --centre FILE
    #[arg(long, value_name = "FILE", requires = "centre", help_heading = "Fingerprints")]
    save_centre: Option<PathBuf>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
    features: Option<usize>,
}

impl FingerprintArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let inputs = self.rows.inputs(&self.inputs, &session.console)?;
        let bits = settings::width(self.width.bits, None, inputs.raw_width()?)?;
        let pipeline = self.pipeline.fresh(&inputs, &session.console)?;
        for (name, path) in [("idf", &self.save_idf), ("centre", &self.save_centre)] {
            if let (Some(path), Some(pipeline)) = (path, &pipeline) {
                save(name, pipeline, path, session.overwrite)?;
            }
        }
        let reading = Reading {
            inputs: &inputs,
            pipeline: pipeline.as_ref(),
            console: &session.console,
            ids: Ids::Labels,
            keep_blank: false,
            after: None,
            wanted: Wanted::NOTHING,
        };
        let output = Output::open(self.output.as_deref(), &session.console, session.overwrite)?;
        for_width!(bits, F => self.print::<F>(&reading, output, session))
    }

    fn print<F: Fingerprint>(
        &self,
        reading: &Reading<'_>,
        mut output: Output,
        session: &Session,
    ) -> Result<()> {
        let mut rejects = self.rows.rejects(session)?;
        reading.run::<F>(&mut rejects, &mut |document: Document<'_, F>| {
            output.json(&Line {
                id: Name::of(document.key),
                fingerprint: &document.fingerprint.hex().to_string(),
                features: document.features,
            })
        })?;
        output.finish()?;
        rejects.finish().map(drop)
    }
}

/// Writes a table that was learnt for the pipeline.
fn save(name: &str, pipeline: &Pipeline, path: &Path, overwrite: Overwrite) -> Result<()> {
    let Some((_, bytes)) = pipeline.resources().parts().find(|(part, _)| *part == name) else {
        return Err(Failure::Usage(format!(
            "--save-{name} saves the result of --{name} learn, but nothing was learnt; add \
                --{name} learn"
        )));
    };
    let mut file = Output::file(path, overwrite)?;
    file.with(|out| out.write_all(&bytes))?;
    file.finish()
}
