//! `repair`: what can be read of a damaged index becomes a new one.

use std::path::PathBuf;

use clap::Args;
use hamdex::{BuildOptions, repair};
use serde::Serialize;

use crate::failure::Result;
use crate::options::MemoryArg;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::table::Table;
use crate::width::for_width;

/// Make a new index from what can be read of a damaged one
///
/// Postings and tables are made anew from the documents. The damaged index stays as it is.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex repair pages.idx repaired.idx")]
pub(crate) struct RepairArgs {
    /// Directory of the damaged index
    index: PathBuf,
    /// Directory of the new one
    target: PathBuf,
    #[command(flatten)]
    memory: MemoryArg,
}

#[derive(Serialize)]
struct Summary {
    documents: u64,
    counted: u64,
    from_postings: u64,
    problem_count: u64,
    problems: Vec<String>,
}

impl RepairArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, None)?;
        let build = BuildOptions::new().memory(self.memory.memory.0);
        let report = for_width!(header.bits, F => {
            repair::<F>(&self.index, &self.target, &build, &session.console)?
        });
        session.console.end_phase();
        let mut table = Table::list();
        table
            .pair("documents", size::thousands(report.documents))
            .pair("documents that the damaged index counted", size::thousands(report.counted))
            .pair("known from their postings alone", size::thousands(report.from_postings))
            .pair("damages among the documents", size::thousands(report.problem_count));
        for problem in &report.problems {
            table.pair("damage", problem.clone());
        }
        let summary = Summary {
            documents: report.documents,
            counted: report.counted,
            from_postings: report.from_postings,
            problem_count: report.problem_count,
            problems: report.problems,
        };
        session.report(&summary, &table)
    }
}
