//! `backup` and `restore`: copies an index to a directory of backups, and back.

use std::path::{Path, PathBuf};
use std::time::{Instant, UNIX_EPOCH};

use clap::Args;
use hamdex::any::AnyIndex;
use hamdex::backup::{Backup, BackupInfo, BackupOptions, BackupReport, RestoreOptions};
use hamdex::{Error, IndexOptions, Progress};
use hamdex_io::host::Host;
use serde::Serialize;

use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;

/// Add a backup of an index to a directory
///
/// Copies only what no earlier backup in the directory has. Another process may continue to write
/// to the index; the backup then holds whole batches, and all that were acknowledged before it
/// began.
///
/// What `dedup --state` remembers in an index is copied too, also while a run is under way.
///
/// A kill leaves every earlier backup and the index intact. The same command makes the backup, and
/// removes what the killed one left.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex index backup pages.idx /backups/pages --keep 7\n  \
                        hamdex index backup pages.idx /backups/pages --list"
)]
pub(crate) struct BackupArgs {
    /// Directory of the index; not needed with --list
    index: PathBuf,
    /// Directory of the backups; made if absent
    #[arg(required_unless_present = "list")]
    dir: Option<PathBuf>,
    /// Keep only the N newest backups [default: all]
    #[arg(long, value_name = "N")]
    keep: Option<u32>,
    /// Read the whole new backup and compare checksums
    ///
    /// This includes the files that it shares with earlier backups. 'hamdex index restore DIR
    /// --verify' checks a backup without making one.
    #[arg(long)]
    verify: bool,
    /// List the backups of DIR, and make none
    #[arg(long, conflicts_with_all = ["keep", "verify"])]
    list: bool,
}

#[derive(Serialize)]
struct Summary {
    id: u32,
    files: u64,
    bytes: u64,
    copied_files: u64,
    copied_bytes: u64,
    removed: Vec<u32>,
    verified: bool,
    seconds: f64,
}

impl BackupArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        // With --list a single directory is that of the backups.
        let dir = self.dir.as_ref().unwrap_or(&self.index);
        if self.list {
            return list(&Backup::open(dir)?.list()?, session);
        }
        stored::require(&self.index, None)?;
        let begun = Instant::now();
        session.console.begin("copying", None);
        let report = self.make(dir)?;
        let verified = if self.verify {
            Some(Backup::open(dir)?.verify(Some(report.id), &session.console)?)
        } else {
            None
        };
        let seconds = begun.elapsed().as_secs_f64();
        let removed: Vec<_> = report.removed.iter().map(ToString::to_string).collect();
        let mut table = Table::list();
        table
            .pair("backup", report.id)
            .pair("files", size::thousands(report.files))
            .pair("bytes", size::bytes(report.bytes as f64))
            .pair("files copied", size::thousands(report.copied_files))
            .pair("bytes copied", size::bytes(report.copied_bytes as f64))
            .pair(
                "backups removed",
                if removed.is_empty() { "none".into() } else { removed.join(" ") },
            )
            .pair("verified", verified.as_ref().map_or_else(|| "no".to_owned(), verified_words))
            .pair("seconds", format!("{seconds:.1}"));
        let summary = Summary {
            id: report.id,
            files: report.files,
            bytes: report.bytes,
            copied_files: report.copied_files,
            copied_bytes: report.copied_bytes,
            removed: report.removed,
            verified: self.verify,
            seconds,
        };
        session.report(&summary, &table)
    }

    fn make(&self, dir: &Path) -> Result<BackupReport> {
        let index = match AnyIndex::open(&self.index) {
            // The owning process continues; files are linked and copied from its index.
            Err(Error::Locked { .. }) => {
                AnyIndex::open_with(&self.index, &IndexOptions::new().read_only(true))?
            }
            opened => opened?,
        };
        let mut options = BackupOptions::new();
        if let Some(keep) = self.keep {
            options = options.keep(keep);
        }
        Ok(index.backup_with(dir, &options)?)
    }
}

/// Returns the files and bytes that were read back and are intact.
fn verified_words(info: &BackupInfo) -> String {
    format!("{} files, {}", size::thousands(info.files), size::bytes(info.bytes as f64))
}

#[derive(Serialize)]
struct Row<'a> {
    id: u32,
    /// Seconds since 1970.
    created: u64,
    files: u64,
    bytes: u64,
    damage: Option<&'a str>,
}

/// Prints one line for each backup.
fn list(backups: &[BackupInfo], session: &Session) -> Result<()> {
    session.console.end_phase();
    let mut out = Output::stdout(&session.console);
    let mut table =
        Table::with_heading(&["backup", "age", "files", "bytes", "damage"]).words_last();
    for backup in backups {
        let age = backup.created.elapsed().map_or(0, |age| age.as_secs());
        let created = backup.created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if session.json {
            let damage = backup.damage.as_deref();
            let (files, bytes) = (backup.files, backup.bytes);
            out.json(&Row { id: backup.id, created, files, bytes, damage })?;
            continue;
        }
        table.row([
            backup.id.to_string(),
            if created == 0 { "?".to_owned() } else { age_of(age) },
            size::thousands(backup.files),
            size::bytes(backup.bytes as f64),
            backup.damage.clone().unwrap_or_else(|| "none seen".to_owned()),
        ]);
    }
    if !session.json {
        out.with(|out| table.write(out))?;
    }
    out.finish()
}

fn age_of(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Restore an index from a backup
///
/// A damaged backup is refused and changes nothing.
///
/// A kill leaves the backups intact, and INDEX as it was or absent. The same command restores it,
/// and removes what the killed one left.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex index restore /backups/pages pages.idx\n  \
                        hamdex index restore /backups/pages --verify")]
pub(crate) struct RestoreArgs {
    /// Directory of the backups
    dir: PathBuf,
    /// Directory of the index; absent or empty unless --replace is given
    #[arg(required_unless_present_any = ["list", "verify"])]
    index: Option<PathBuf>,
    /// Number of the backup [default: the newest]
    #[arg(long, value_name = "N")]
    backup_id: Option<u32>,
    /// Replace the index in INDEX, once the backup is copied
    #[arg(long)]
    replace: bool,
    /// Compare checksums: alone without INDEX, else before restoring
    #[arg(long)]
    verify: bool,
    /// List the backups of DIR, and restore none
    #[arg(long, conflicts_with_all = ["index", "verify", "backup_id", "replace"])]
    list: bool,
}

#[derive(Serialize)]
struct Restored {
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
                        let reason = "already contains an index or other files; choose an empty \
                                      or absent directory, or replace an index with --replace";
                        return Err(Failure::refused(index, reason));
                    }
                    report => report?,
                };
                (report.id, Some(report.documents), report.files, report.bytes)
            }
            (None, Some(info)) => (info.id, None, info.files, info.bytes),
            (None, None) => {
                return Err(Failure::Usage(
                    "restore needs an INDEX, or --list or --verify".to_owned(),
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
        let summary = Restored { id, documents, files, bytes, verified: self.verify, seconds };
        session.report(&summary, &table)
    }
}
