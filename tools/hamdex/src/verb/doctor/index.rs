//! Checks of an index: whether it opens, its lock, and the needs of its texts.

use std::fs::{File, TryLockError};
use std::path::Path;

use hamdex::inspect::{Header, SealState};
use hamdex_io::host::Host;

use super::{Finding, Grade, machine};
use crate::options::resources::SeedArg;
use crate::session::Session;
use crate::stored;

/// Locked for as long as a process writes to the index.
const LOCK_FILE: &str = "hamdex.lock";

/// Checks an index without changing it.
pub(super) fn look(path: &Path, seed: &SeedArg) -> Vec<Finding> {
    let header = match stored::require(path, None) {
        Ok(header) => header,
        Err(failure) => return vec![Finding::failed("index", &failure)],
    };
    let Header { format, bits, distance, ref plan, .. } = header;
    let found = format!("format {format}, {bits} bits, distance {distance}, plan {plan}");
    let mut findings = vec![Finding::good("index", found)];
    // Opening compares the files with the seal.
    let opened = stored::read_only(path).map(drop);
    findings.push(match opened {
        Ok(()) => seal(path),
        Err(failure) => Finding::failed("seal", &failure),
    });
    findings.extend(machine::of_index(path));
    findings.push(lock(path));
    findings.push(texts(&header, path, seed));
    findings
}

/// Checks the seal itself, which an index opens without.
fn seal(path: &Path) -> Finding {
    let anew = "check the files with 'hamdex index check INDEX --deep'; the next write to the \
                index makes a new seal";
    match SealState::read(path) {
        Ok(SealState::Whole) => Finding::good("seal", "valid: no synced data is missing"),
        Ok(SealState::Missing) => Finding::bad(
            "seal",
            "hamdex.seal is missing, so lost changes cannot be detected; it was removed, or not \
                copied with the index",
            anew,
        ),
        Ok(SealState::Damaged { detail }) => {
            Finding::bad("seal", format!("hamdex.seal is damaged: {detail}"), anew)
        }
        Ok(SealState::Stale { sealed, current }) => Finding::bad(
            "seal",
            format!(
                "hamdex.seal is of MANIFEST-{sealed:06}, but the index is at \
                    MANIFEST-{current:06}: it is from another index, or the last writing process \
                    was killed at its start"
            ),
            anew,
        ),
        Ok(_) => Finding::bad("seal", "hamdex.seal is in an unknown state", anew),
        Err(error) => Finding::failed("seal", &error.into()),
    }
}

/// Warns in one line of an unusable seal; for verbs that read an index.
pub(crate) fn warn_of_seal(path: &Path, session: &Session) {
    let finding = seal(path);
    if finding.grade != Grade::Good {
        session.console.say(&format!("warning: {}", finding.found));
    }
}

fn lock(path: &Path) -> Finding {
    let Ok(file) = File::open(path.join(LOCK_FILE)) else {
        return Finding::good("lock", "no process has written to it here");
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let remedy = "other processes can read it; to write, wait for this process";
            Finding::warning("lock", "a process has the index open for writing", remedy)
        }
        Ok(()) | Err(TryLockError::Error(_)) => Finding::good(
            "lock",
            "no process is writing to \
                                                                       it",
        ),
    }
}

/// Checks what the pipeline needs for texts.
fn texts(header: &Header, path: &Path, seed: &SeedArg) -> Finding {
    if header.pipeline.is_empty() {
        let remedy = "the index was made from fingerprints only; give fingerprints that were \
                      made the same way";
        return Finding::warning("texts", "the index has no pipeline for texts", remedy);
    }
    let secret = header.pipeline.contains(";secret=");
    let name = header.pipeline.split(';').next().unwrap_or_default();
    let read = seed.secret().and_then(|secret| Ok(Header::read_pipeline_with(path, secret)?));
    match read {
        Ok(_) if secret => Finding::good(
            "texts",
            format!(
                "pipeline {name}, the secret is the \
                                                           right one"
            ),
        ),
        Ok(_) => Finding::good("texts", format!("pipeline {name}, no secret")),
        Err(_) if secret && !seed.given() => Finding::warning(
            "texts",
            "the index was made with a secret",
            "pass --secret-file FILE to every verb that reads texts",
        ),
        Err(failure) => Finding::failed("texts", &failure),
    }
}
