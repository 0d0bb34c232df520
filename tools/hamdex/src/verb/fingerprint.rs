//! `fingerprint`: texts become fingerprints on standard output, nothing is stored.

use std::path::PathBuf;

use clap::Args;
use hamdex::Fingerprint;
use serde::Serialize;

use crate::failure::Result;
use crate::input::{Document, Reading, Wanted};
use crate::key::Name;
use crate::options::{PipelineArgs, RowArgs, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::width::{self, for_width};

/// Print the fingerprint of every document
///
/// Writes JSON Lines {"id","fingerprint","features"}, which 'hamdex build' takes as input.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  hamdex fingerprint posts.jsonl.gz --pipeline post > prints.jsonl"
)]
pub(crate) struct FingerprintArgs {
    /// Documents: .jsonl, .txt, .html, directories, - for standard input
    #[arg(required = true, value_name = "INPUT")]
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
}

#[derive(Serialize)]
struct Line<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
    features: Option<usize>,
}

impl FingerprintArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let inputs = self.rows.inputs(&self.inputs)?;
        let bits = width::settle(self.width.bits, None, inputs.raw_width()?)?;
        let pipeline = self.pipeline.fresh(&inputs)?;
        let reading = Reading {
            inputs: &inputs,
            pipeline: pipeline.as_ref(),
            console: &session.console,
            unique: false,
            after: None,
            wanted: Wanted::NOTHING,
        };
        let output = Output::open(self.output.as_deref(), &session.console)?;
        for_width!(bits, F => self.print::<F>(&reading, output, session))
    }

    fn print<F: Fingerprint>(
        &self,
        reading: &Reading<'_>,
        mut output: Output,
        session: &Session,
    ) -> Result<()> {
        let mut rejects = self.rows.rejects(&session.console)?;
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
