//! `fold` and `compact`: rewrites the entries and the files of an index.

use std::path::PathBuf;

use clap::Args;
use hamdex::{Index, Progress};
use serde::Serialize;

use crate::failure::Result;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::table::Table;
use crate::width::for_width;

/// Rewrite single entries into runs
///
/// Inserts write one entry for each fingerprint and table; folded into runs they take a fraction
/// of the space and searches read less.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex fold pages.idx")]
pub(crate) struct FoldArgs {
    /// Directory of the index
    index: PathBuf,
}

#[derive(Serialize)]
struct Merged {
    folded: u64,
    bytes_before: u64,
    bytes_after: u64,
}

impl FoldArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, None)?;
        let report =
            for_width!(header.bits, F => Index::<F>::open(&self.index)?.fold(&session.console)?);
        let mut table = Table::list();
        table
            .pair("entries folded", size::thousands(report.folded))
            .pair("bytes before", size::bytes(report.bytes_before as f64))
            .pair("bytes after", size::bytes(report.bytes_after as f64));
        let summary = Merged {
            folded: report.folded,
            bytes_before: report.bytes_before,
            bytes_after: report.bytes_after,
        };
        session.report(&summary, &table)
    }
}

/// Compact the files of an index
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex compact pages.idx")]
pub(crate) struct CompactArgs {
    /// Directory of the index
    index: PathBuf,
}

#[derive(Serialize)]
struct Compacted {
    bytes_before: u64,
    bytes_after: u64,
}

impl CompactArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, None)?;
        let report = for_width!(header.bits, F => {
            let index = Index::<F>::open(&self.index)?;
            session.console.begin("compacting", None);
            index.compact()?
        });
        let mut table = Table::list();
        table
            .pair("bytes before", size::bytes(report.bytes_before as f64))
            .pair("bytes after", size::bytes(report.bytes_after as f64));
        let summary =
            Compacted { bytes_before: report.bytes_before, bytes_after: report.bytes_after };
        session.report(&summary, &table)
    }
}
