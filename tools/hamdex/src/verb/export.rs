//! `export`: an index becomes JSON Lines that `build` turns into an equal index.

use std::path::PathBuf;

use clap::Args;
use hamdex::{Fingerprint, Progress};
use serde::Serialize;

use crate::failure::Result;
use crate::key::Name;
use crate::output::Output;
use crate::session::Session;
use crate::stored;
use crate::width::for_width;

/// Documents between two reports of progress.
const STEP: u64 = 1 << 14;

/// Write every document and fingerprint of an index
///
/// Prints JSON Lines {"id","fingerprint"} in the order of the keys. 'hamdex build' takes them;
/// give it the --bits, -k, --plan and --pipeline that 'hamdex stats --json' shows to get an equal
/// index.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex export pages.idx | zstd > pages.jsonl.zst")]
pub(crate) struct ExportArgs {
    /// Directory of the index
    index: PathBuf,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
}

impl ExportArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, None)?;
        for_width!(header.bits, F => {
            let index = stored::read_only::<F>(&self.index)?;
            let mut output = Output::open(self.output.as_deref(), &session.console, session.overwrite)?;
            session.console.begin("exporting", Some(index.len()?));
            for (document, count) in index.documents()?.zip(1..) {
                let (key, fingerprint) = document?;
                output.json(&Line { id: Name::of(&key), fingerprint: &fingerprint.hex().to_string() })?;
                if count % STEP == 0 {
                    session.console.advance(STEP);
                }
            }
            session.console.end_phase();
            output.finish()
        })
    }
}
