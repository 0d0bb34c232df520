//! The report of a deduplication, for report.json and for the console.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use hamdex_io::host::Host;

use super::crowds::Crowd;
use super::dry::Sampled;
use super::parts::Parts;
use super::row::Label;
use super::sources::SourceRow;
use crate::advise::Advice;
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::output::{Output, is_stdout};
use crate::session::Session;
use crate::size;

/// Number of dense groups to warn of; the report has all.
const WARNED: usize = 3;

/// Counts, settings and the largest groups.
///
/// Rows are documents and rejects; documents are kept or removed.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    pub(super) rows: u64,
    pub(super) documents: u64,
    pub(super) kept: u64,
    pub(super) removed: u64,
    /// Of the removed ones, those near a stored document.
    pub(super) removed_against_index: u64,
    /// Of the removed ones, those that share a value with a kept row.
    pub(super) removed_unique_by: u64,
    /// Of the removed ones, those that are nearly all boilerplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) removed_boilerplate: Option<u64>,
    /// Those with nothing to compare, by the reason; kept unless they share a value.
    pub(super) not_compared: BTreeMap<&'a str, u64>,
    pub(super) clusters: u64,
    pub(super) rejects: u64,
    pub(super) skipped_binary: u64,
    /// Responses of crawls whose status is not 200.
    pub(super) skipped_status: u64,
    /// Responses of crawls that are no text.
    pub(super) skipped_type: u64,
    pub(super) seconds: f64,
    /// The sample, if the rows are one, and what all rows need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sample: Option<Sampled>,
    /// Boilerplate, if it is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<&'a Parts>,
    pub(super) settings: Settings<'a>,
    /// The chosen settings and the reason; `None` if the user passed all.
    pub(super) advice: Option<&'a Advice>,
    pub(super) largest: Vec<Group<'a>>,
    /// Groups so large that they may be a template.
    pub(super) crowds: Vec<Crowd>,
    /// The loss of every source, the largest share first.
    pub(super) sources: Vec<SourceRow<'a>>,
    /// Names the sources that lost nearly all documents.
    #[serde(skip)]
    pub(super) gone: Option<String>,
    pub(super) warnings: Vec<String>,
}

/// The settings that the result depends on.
#[derive(Debug, Serialize)]
pub(super) struct Settings<'a> {
    pub(super) inputs: Vec<&'a str>,
    pub(super) bits: u32,
    pub(super) distance: u32,
    pub(super) verification: String,
    /// Whether every removed document passed the verification with the kept one.
    pub(super) verified_with_kept: bool,
    /// Empty if the inputs have only fingerprints.
    pub(super) pipeline: &'a str,
    pub(super) keep: String,
    /// Rows to leave, if there is such a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<u64>,
    pub(super) unique_by: Option<&'a str>,
    pub(super) against: Option<String>,
    /// The state that decides beside the inputs, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<String>,
}

/// One of the largest groups.
#[derive(Debug, Serialize)]
pub(super) struct Group<'a> {
    pub(super) cluster: u32,
    pub(super) size: usize,
    pub(super) kept_id: Label<'a>,
}

impl Report<'_> {
    /// Writes report.json, complete but without its name yet.
    pub(super) fn write(&self, file: &mut Output) -> Result<()> {
        file.with(|out| {
            serde_json::to_writer_pretty(&mut *out, self)?;
            writeln!(out)
        })
    }

    /// Returns the contents of report.json, on one line.
    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Failure::io("report.json", e.into()))
    }

    /// Sums up on standard output, or on standard error if the rows go there.
    pub(super) fn show(&self, session: &Session, output: &Path) -> Result<()> {
        let mut table = Table::list();
        let share = 100.0 * self.removed as f64 / self.documents.max(1) as f64;
        table
            .pair("documents", size::thousands(self.documents))
            .pair("kept", size::thousands(self.kept))
            .pair("removed", format!("{} ({share:.1} %)", size::thousands(self.removed)));
        for (name, count) in [
            ("  near the index", self.removed_against_index),
            ("  of equal value", self.removed_unique_by),
            ("  nearly all boilerplate", self.removed_boilerplate.unwrap_or_default()),
        ] {
            if count > 0 {
                table.pair(name, size::thousands(count));
            }
        }
        for (kind, count) in &self.not_compared {
            table.pair(&format!("kept, {kind}"), size::thousands(*count));
        }
        for (name, count) in [
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
        if let Some(parts) = self.parts {
            parts.show(&mut table);
        }
        if let Some(gone) = &self.gone {
            table.pair("sources nearly empty", gone);
        }
        table.pair("seconds", format!("{:.2}", self.seconds));
        if let Some(sample) = &self.sample {
            sample.show(&mut table);
        }
        if is_stdout(output) {
            let mut text = Vec::new();
            table.write(&mut text).map_err(|e| Failure::io("summary", e))?;
            String::from_utf8_lossy(&text).lines().for_each(|line| session.console.say(line));
            return Ok(());
        }
        table.pair("written to", output.display());
        session.report(self, &table)
    }

    /// Warns of groups that may be a template.
    pub(super) fn crowd_warnings(&self) -> Vec<String> {
        let mut alarms = Vec::new();
        for crowd in self.crowds.iter().take(WARNED) {
            let template = &crowd.template;
            let have = match crowd.groups {
                1 => "one group has".to_owned(),
                count => format!("{count} groups have"),
            };
            let like = if template.is_empty() {
                String::new()
            } else {
                format!(", which share \"{template}\"")
            };
            alarms.push(format!(
                "{have} {} of the documents, {:.0} %{like}; if they are different documents, use \
                 a stricter --verify or a smaller -k",
                size::thousands(crowd.size as u64),
                100.0 * crowd.share
            ));
        }
        alarms
    }
}
