//! `check`: an index becomes a list of what is wrong with it, best an empty one.

use std::path::PathBuf;

use clap::Args;
use hamdex::CheckReport;
use serde::Serialize;

use crate::console;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::verb::doctor::warn_of_seal;
use crate::width::for_width;

/// Check an index: every table and posting against the documents
///
/// Prints each problem on a line; the status is 1 if there is any. The index is not changed.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex check pages.idx --deep")]
pub(crate) struct CheckArgs {
    /// Directory of the index
    index: PathBuf,
    /// Read every file anew as well, and compare its checksums
    #[arg(long)]
    deep: bool,
}

#[derive(Serialize)]
struct Account<'a> {
    documents: u64,
    fingerprints: u64,
    problem_count: u64,
    problems: &'a [String],
}

impl CheckArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, None)?;
        if !self.deep {
            // The deep check counts it as a problem.
            warn_of_seal(&self.index, session);
        }
        let report = for_width!(header.bits, F => {
            let index = stored::read_only::<F>(&self.index)?;
            if self.deep {
                index.check_deep(&session.console)?
            } else {
                index.check(&session.console)?
            }
        });
        session.console.end_phase();
        let printed = Self::print(session, &report);
        match report.problem_count {
            0 => printed,
            count => {
                let place = self.index.display().to_string();
                Failure::Findings { place, count }.over(printed)
            }
        }
    }

    fn print(session: &Session, report: &CheckReport) -> Result<()> {
        let mut output = Output::stdout(&session.console);
        if session.json {
            output.json(&Account {
                documents: report.documents,
                fingerprints: report.fingerprints,
                problem_count: report.problem_count,
                problems: &report.problems,
            })?;
        } else {
            output.with(|out| {
                report
                    .problems
                    .iter()
                    .try_for_each(|problem| writeln!(out, "{}", console::visible(problem)))?;
                writeln!(
                    out,
                    "{} documents, {} fingerprints, {} problems",
                    size::thousands(report.documents),
                    size::thousands(report.fingerprints),
                    size::thousands(report.problem_count)
                )
            })?;
        }
        output.finish()
    }
}
