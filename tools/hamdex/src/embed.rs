//! Embedding: a verb runs within another program and returns its result or failure as a value.
//!
//! It is the verb of the command line with the same arguments, so both stay equal.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::usage::Refused;
use crate::verb::dedup::{self, DedupArgs};

/// The result of a verb for the program around it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// The contents of report.json.
    pub report: String,
    /// Warnings that the command line would have written.
    pub warnings: Vec<String>,
}

#[derive(Debug, Parser)]
#[command(name = "dedup", no_binary_name = true)]
struct Dedup {
    #[command(flatten)]
    dedup: DedupArgs,
    #[arg(long)]
    overwrite: bool,
}

/// Runs `hamdex dedup` and returns its report and its warnings.
///
/// The arguments are those that follow the verb. Nothing is printed. Soon after `cancelled` has
/// become true the work ends; files that were there before are as they were.
///
/// # Errors
///
/// Every failure of the command line, or that the work was cancelled.
pub fn dedup(
    arguments: impl IntoIterator<Item = OsString>,
    cancelled: Arc<AtomicBool>,
) -> Result<Done> {
    // The hints are for people at a keyboard.
    let parsed = Dedup::try_parse_from(arguments)
        .map_err(|error| Failure::Usage(Refused::new(&error).message));
    let Dedup { dedup, overwrite } = parsed?;
    let console = Console::embedded(cancelled);
    let session = Session { console, json: true, overwrite: overwrite.into() };
    let report = dedup.summary(&session)?;
    Ok(Done { report, warnings: session.console.warnings() })
}

/// Writes the page of `hamdex dedup --report` from counts that another engine made, as JSON.
///
/// # Errors
///
/// A file that cannot be written or is no page by its name, or a summary that lacks something.
pub fn page(summary: &str, file: &str) -> Result<()> {
    dedup::page_of(summary, file)
}

#[cfg(test)]
mod tests {
    use hamdex::Fault;

    use super::*;

    fn run(arguments: &[&str], cancelled: bool) -> Result<Done> {
        dedup(arguments.iter().map(OsString::from), Arc::new(AtomicBool::new(cancelled)))
    }

    #[test]
    fn a_report_is_returned_and_a_failure_has_fault_code_and_status() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (rows, out) = (path("a.jsonl"), path("b.jsonl"));
        std::fs::write(&rows, "{\"text\":\"sunny days\"}\n{\"text\":\"sunny days\"}\n").unwrap();
        let Done { report, warnings } = run(&[&rows, "-o", &out], false).unwrap();
        assert!(warnings.iter().any(|warning| warning.contains("texts")), "{warnings:?}");
        assert!(report.starts_with("{\"rows\":2,\"documents\":2,\"kept\":1,"), "{report}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "{\"text\":\"sunny days\"}\n");

        let stopped = run(&[&rows, "-o", &path("c.jsonl")], true).unwrap_err();
        assert_eq!(stopped.to_string(), hamdex::Error::Cancelled.to_string());
        assert!(!directory.path().join("c.jsonl").exists());
        let stopped = run(&[&rows, "-o", &out, "--verify", "cosine:1"], false).unwrap_err();
        assert_eq!(
            (stopped.fault(), stopped.code(), stopped.status()),
            (Fault::Caller, "usage", 2)
        );
        let message = stopped.to_string();
        assert!(
            message.starts_with("invalid value 'cosine:1'") && !message.contains('\n'),
            "{message}"
        );
        let stopped = run(&[&path("none.jsonl"), "-o", &out], false).unwrap_err();
        assert_eq!((stopped.fault(), stopped.code()), (Fault::Environment, "no-such-file"));
    }
}
