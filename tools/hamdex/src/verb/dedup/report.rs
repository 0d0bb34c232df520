//! The report: what a deduplication did, for report.json and for the console.

use std::path::Path;

use serde::Serialize;

use crate::advise::Advice;
use crate::failure::{Failure, Result};
use crate::key::Name;
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::table::Table;

/// Counts, settings and the largest groups.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    pub(super) documents: u64,
    pub(super) kept: u64,
    pub(super) removed: u64,
    /// Of the removed ones, those near a stored document.
    pub(super) removed_against_index: u64,
    pub(super) clusters: u64,
    pub(super) rejects: u64,
    pub(super) skipped_binary: u64,
    /// Responses of crawls whose status is not 200.
    pub(super) skipped_status: u64,
    /// Responses of crawls that are no text.
    pub(super) skipped_type: u64,
    pub(super) seconds: f64,
    pub(super) settings: Settings<'a>,
    /// What was chosen and why; `None` where nothing was left open.
    pub(super) advice: Option<&'a Advice>,
    pub(super) largest: Vec<Group<'a>>,
}

/// What the result depends on.
#[derive(Debug, Serialize)]
pub(super) struct Settings<'a> {
    pub(super) inputs: Vec<&'a str>,
    pub(super) bits: u32,
    pub(super) distance: u32,
    pub(super) verification: String,
    /// Whether every removed document passed the verification with the kept one.
    pub(super) verified_with_kept: bool,
    /// Empty where the inputs brought fingerprints.
    pub(super) pipeline: &'a str,
    pub(super) keep: String,
    pub(super) against: Option<String>,
}

/// One of the largest groups.
#[derive(Debug, Serialize)]
pub(super) struct Group<'a> {
    pub(super) cluster: u32,
    pub(super) size: usize,
    pub(super) kept_id: Name<'a>,
}

impl Report<'_> {
    /// Writes report.json, complete but without its name yet.
    pub(super) fn file(&self, path: &Path) -> Result<Output> {
        let mut file = Output::file(path)?;
        file.with(|out| {
            serde_json::to_writer_pretty(&mut *out, self)?;
            writeln!(out)
        })?;
        Ok(file)
    }

    /// Returns what report.json holds, on one line.
    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Failure::io("report.json", e.into()))
    }

    /// Sums up on standard output.
    pub(super) fn show(&self, session: &Session, output: &Path) -> Result<()> {
        let mut table = Table::list();
        let share = 100.0 * self.removed as f64 / self.documents.max(1) as f64;
        table
            .pair("documents", size::thousands(self.documents))
            .pair("kept", size::thousands(self.kept))
            .pair("removed", format!("{} ({share:.1} %)", size::thousands(self.removed)));
        for (name, count) in [
            ("  near the index", self.removed_against_index),
            ("bad rows skipped", self.rejects),
            ("binary files skipped", self.skipped_binary),
            ("other statuses skipped", self.skipped_status),
            ("other types skipped", self.skipped_type),
        ] {
            if count > 0 {
                table.pair(name, size::thousands(count));
            }
        }
        table.pair("clusters", size::thousands(self.clusters));
        table.pair("seconds", format!("{:.2}", self.seconds));
        table.pair("written to", output.display());
        session.report(self, &table)
    }
}
