//! `restore`: a backup becomes an index again.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use hamdex::{Backup, Error, Progress, RestoreOptions};
use serde::Serialize;

use super::backup::{list, verified_words};
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::size;
use crate::table::Table;

/// Make an index of a backup
///
/// A damaged backup is refused and changes nothing.
///
/// A kill leaves the backups whole, and INDEX either as it was or no index at all: the same command
/// again restores it, and clears what the killed one left.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex restore /backups/pages pages.idx\n  \
                        hamdex restore /backups/pages --verify")]
pub(crate) struct RestoreArgs {
    /// Directory of the backups
    dir: PathBuf,
    /// Directory of the index; absent or empty unless --replace is given
    #[arg(required_unless_present_any = ["list", "verify"])]
    index: Option<PathBuf>,
    /// Number of the backup [default: the newest]
    #[arg(long, value_name = "N")]
    backup_id: Option<u32>,
    /// Give up the index that is in INDEX, once the backup is copied
    #[arg(long)]
    replace: bool,
    /// Only read the backup and compare checksums, when no INDEX is given; else do so first
    #[arg(long)]
    verify: bool,
    /// List the backups of DIR and restore none
    #[arg(long, conflicts_with_all = ["index", "verify", "backup_id", "replace"])]
    list: bool,
}

#[derive(Serialize)]
struct Summary {
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<u64>,
    files: u64,
    bytes: u64,
    verified: bool,
    seconds: f64,
}

impl RestoreArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let backup = Backup::open(&self.dir)?;
        if self.list {
            return list(&backup.list()?, session);
        }
        let begun = Instant::now();
        let verified =
            self.verify.then(|| backup.verify(self.backup_id, &session.console)).transpose()?;
        let words = verified.as_ref().map_or_else(|| "no".to_owned(), verified_words);
        let (id, documents, files, bytes) = match (&self.index, verified) {
            (Some(index), _) => {
                let mut options = RestoreOptions::new().replace(self.replace);
                if let Some(id) = self.backup_id {
                    options = options.id(id);
                }
                session.console.begin("copying", None);
                let report = match backup.restore_with(index, &options) {
                    Err(Error::AlreadyExists { .. }) if !self.replace => {
                        let reason = "already holds an index or other files; choose an empty or \
                                      absent directory, or give up an index by --replace";
                        return Err(Failure::refused(index, reason));
                    }
                    report => report?,
                };
                (report.id, Some(report.documents), report.files, report.bytes)
            }
            (None, Some(info)) => (info.id, None, info.files, info.bytes),
            (None, None) => {
                return Err(Failure::Usage(
                    "restore needs an INDEX to make, or --list or --verify".to_owned(),
                ));
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        let mut table = Table::list();
        table.pair("backup", id);
        if let Some(documents) = documents {
            table.pair("documents", size::thousands(documents));
        }
        table
            .pair("files", size::thousands(files))
            .pair("bytes", size::bytes(bytes as f64))
            .pair("verified", words)
            .pair("seconds", format!("{seconds:.1}"));
        let summary = Summary { id, documents, files, bytes, verified: self.verify, seconds };
        session.report(&summary, &table)
    }
}
