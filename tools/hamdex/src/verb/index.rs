//! `index`: groups the verbs that look after an index; `merge` and `compact` are here.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hamdex::Progress;
use hamdex::any::AnyIndex;
use serde::Serialize;

use crate::draw::table::Table;
use crate::failure::Result;
use crate::session::Session;
use crate::size;
use crate::verb::{backup, check, explain, resident, stats};

/// Look after an index: its statistics, checks, repairs and backups
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_long_help = "Example:\n  hamdex index stats pages.idx\n  hamdex index check pages.idx --deep\n  \
                       hamdex index backup pages.idx /backups/pages --keep 7"
)]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    verb: IndexVerb,
}

/// Lists the verbs that look after an index.
#[derive(Debug, Subcommand)]
pub(crate) enum IndexVerb {
    Stats(stats::StatsArgs),
    Explain(explain::ExplainArgs),
    Check(check::CheckArgs),
    Repair(check::RepairArgs),
    #[command(alias = "fold")]
    Merge(MergeArgs),
    Compact(CompactArgs),
    Resident(resident::ResidentArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
}

impl IndexArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        match &self.verb {
            IndexVerb::Stats(args) => args.run(session),
            IndexVerb::Explain(args) => args.run(session),
            IndexVerb::Check(args) => args.run(session),
            IndexVerb::Repair(args) => args.run(session),
            IndexVerb::Merge(args) => args.run(session),
            IndexVerb::Compact(args) => args.run(session),
            IndexVerb::Resident(args) => args.run(session),
            IndexVerb::Backup(args) => args.run(session),
            IndexVerb::Restore(args) => args.run(session),
        }
    }
}

/// Merge the delta entries of an index into runs
///
/// Inserts write one delta entry for each fingerprint, which is in memory while the index is open.
/// Merged into the runs of all tables, they need no memory.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex index merge pages.idx")]
pub(crate) struct MergeArgs {
    /// Directory of the index
    index: PathBuf,
}

#[derive(Serialize)]
struct Merged {
    folded: u64,
    bytes_before: u64,
    bytes_after: u64,
}

impl MergeArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let report = AnyIndex::open(&self.index)?.merge(&session.console)?;
        let mut table = Table::list();
        table
            .pair("entries merged", size::thousands(report.merged))
            .pair("bytes before", size::bytes(report.bytes_before as f64))
            .pair("bytes after", size::bytes(report.bytes_after as f64));
        let summary = Merged {
            folded: report.merged,
            bytes_before: report.bytes_before,
            bytes_after: report.bytes_after,
        };
        session.report(&summary, &table)
    }
}

/// Compact the files of an index
///
/// Rewrites the files, so that removed data frees its space.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex index compact pages.idx")]
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
        let index = AnyIndex::open(&self.index)?;
        session.console.begin("compacting", None);
        let report = index.compact()?;
        let mut table = Table::list();
        table
            .pair("bytes before", size::bytes(report.bytes_before as f64))
            .pair("bytes after", size::bytes(report.bytes_after as f64));
        let summary =
            Compacted { bytes_before: report.bytes_before, bytes_after: report.bytes_after };
        session.report(&summary, &table)
    }
}
