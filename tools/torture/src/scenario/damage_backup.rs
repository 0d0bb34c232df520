//! Damaged backups: a restore gives the right index or reports damage.

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hamdex::backup::{Backup, BackupOptions};
use hamdex::{Error, Fault};

use super::damage::{change, cut};
use crate::oracle::{self, Model, copy};
use crate::report::{Finding, Verdict};
use crate::setup::Setup;

/// Directory of the sound backups.
const SOUND: &str = "base-backups";

/// Backs up a base twice, so that the backups share files.
pub(crate) fn make(directory: &Path, setup: Setup, base: &str) -> Verdict {
    let index = setup.open(&directory.join(base))?;
    let index = index.own()?;
    index.backup_with(directory.join(SOUND), &BackupOptions::new())?;
    index.backup_with(directory.join(SOUND), &BackupOptions::new())?;
    Ok(())
}

/// Copies the backups and changes one file of the newer one; returns a description.
pub(crate) fn damage(directory: &Path, copied: &Path, rng: &mut Rng) -> Verdict<String> {
    copy(&directory.join(SOUND), copied)?;
    let mut files = Vec::new();
    for place in ["meta", "private/2", "shared_checksum"] {
        collect(&copied.join(place), &mut files)?;
    }
    files.retain(|file| !file.ends_with("meta/1"));
    files.sort();
    let Some(file) = rng.choice(&files).cloned() else {
        return Err(Finding::wrong("the backups have no files"));
    };
    let name = file.strip_prefix(copied).unwrap_or(&file).display().to_string();
    let mut bytes = fs::read(&file)?;
    let at = rng.usize(0..bytes.len());
    let what = match rng.u32(0..10) {
        // Not a record: a missing record is a removed backup.
        0 if !name.starts_with("meta") => {
            fs::remove_file(&file)?;
            return Ok(format!("{name} is missing"));
        }
        1 => cut(&name, &mut bytes, at),
        2 => {
            bytes.extend_from_slice(b"\0more");
            format!("{name} is longer")
        }
        _ => change(&name, &mut bytes, at, rng),
    };
    fs::write(&file, bytes)?;
    Ok(what)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if fs::metadata(&path)?.len() > 0 {
            files.push(path);
        }
    }
    Ok(())
}

/// Lists, verifies and restores; returns true if the damage was reported.
pub(crate) fn judge(
    setup: Setup,
    backups: &Path,
    target: &Path,
    model: &Model,
    rng: &mut Rng,
) -> Verdict<bool> {
    let backup = Backup::open(backups)?;
    let listed = backup.list()?;
    if listed.len() != 2 {
        return Err(Finding::lost(format!("{} of 2 backups are listed", listed.len())));
    }
    let verified = backup.verify(None, &());
    match backup.restore(target) {
        Ok(report) => {
            if report.id != 2 {
                return Err(Finding::wrong("an older backup was restored silently"));
            }
            if let Err(error) = verified {
                return Err(Finding::wrong(format!("restored although verify failed: {error}")));
            }
            oracle::verify(&setup.open(target)?, model, rng)?;
            Ok(false)
        }
        Err(error) => {
            if error.fault() != Fault::Damage || matches!(error, Error::FormatVersion { .. }) {
                return Err(Finding::wrong(format!("not reported as damage: {error}")));
            }
            if target.exists() {
                return Err(Finding::wrong("a refused restore left files"));
            }
            // Verification cannot check the times and numbers of a record, only the files.
            if verified.is_ok() && !error.to_string().contains("were copied") {
                return Err(Finding::wrong(format!("verify did not find: {error}")));
            }
            Ok(true)
        }
    }
}
