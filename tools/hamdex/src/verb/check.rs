//! `check` and `repair`: lists the damage of an index, and saves what is readable.

use std::path::PathBuf;

use clap::Args;
use hamdex::Error;
use hamdex::build::{BuildOptions, repair_any};
use hamdex::inspect::CheckReport;
use hamdex_io::host::Host;
use serde::Serialize;

use crate::console;
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::options::MemoryArg;
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::verb::doctor::warn_of_seal;

/// Check an index: compare every table and posting with the documents
///
/// Prints one problem a line; the status is 1 if there is any. The index does not change.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex index check pages.idx --deep")]
pub(crate) struct CheckArgs {
    /// Directory of the index
    index: PathBuf,
    /// Also read every file again and compare its checksums
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
        stored::require(&self.index, None)?;
        if !self.deep {
            // The deep check counts it as a problem.
            warn_of_seal(&self.index, session);
        }
        let index = stored::read_only(&self.index)?;
        let report = if self.deep {
            index.check_deep(&session.console)?
        } else {
            index.check(&session.console)?
        };
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

/// Make a new index from the readable part of a damaged one
///
/// Postings and tables are rebuilt from the documents. The damaged index does not change. If its
/// list of files is unusable (CURRENT, MANIFEST, a missing .sst), the data files are read one by
/// one, through temporary links beside the new index.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex index repair pages.idx repaired.idx")]
pub(crate) struct RepairArgs {
    /// Directory of the damaged index
    index: PathBuf,
    /// Directory of the new index
    target: PathBuf,
    #[command(flatten)]
    memory: MemoryArg,
}

#[derive(Serialize)]
struct Summary {
    documents: u64,
    counted: u64,
    from_postings: u64,
    from_files: bool,
    problem_count: u64,
    problems: Vec<String>,
}

impl RepairArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let build = BuildOptions::new().memory(self.memory.memory.0);
        let report = repair_any(&self.index, &self.target, &build, &session.console);
        session.console.end_phase();
        let report = report.map_err(|error| self.only_backup(error))?;
        let mut table = Table::list();
        table
            .pair("documents", size::thousands(report.documents))
            .pair("documents according to the damaged index", size::thousands(report.counted))
            .pair("saved from their postings alone", size::thousands(report.from_postings))
            .pair("damaged places among the documents", size::thousands(report.problem_count));
        if report.from_files {
            table.pair("list of files", "unreadable; the data files were read one by one");
        }
        for problem in &report.problems {
            table.pair("damage", problem.clone());
        }
        let summary = Summary {
            documents: report.documents,
            counted: report.counted,
            from_postings: report.from_postings,
            from_files: report.from_files,
            problem_count: report.problem_count,
            problems: report.problems,
        };
        session.report(&summary, &table)
    }

    /// Returns a failure that does not suggest the repair that just failed.
    fn only_backup(&self, error: Error) -> Failure {
        if let Error::Corrupt { .. } = error {
            return Failure::file(
                &self.index,
                format!(
                    "{error}: repair is impossible without it; restore a backup with 'hamdex \
                        index restore', or build the index again from its documents"
                ),
            );
        }
        error.into()
    }
}
