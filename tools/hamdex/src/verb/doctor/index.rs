//! An index: whether it can be opened, who is at it, and what its texts need.

use std::fs::{File, TryLockError};
use std::path::Path;

use hamdex::{Header, SealState};

use super::{Finding, Grade, machine};
use crate::resource_options::SeedArg;
use crate::session::Session;
use crate::stored;
use crate::width::for_width;

/// Locked for as long as a process writes to the index.
const LOCK_FILE: &str = "hamdex.lock";

/// Looks at an index without changing it.
pub(super) fn look(path: &Path, seed: &SeedArg) -> Vec<Finding> {
    let header = match stored::require(path, None) {
        Ok(header) => header,
        Err(failure) => return vec![Finding::failed("index", &failure)],
    };
    let Header { format, bits, distance, ref plan, .. } = header;
    let found = format!("format {format}, {bits} bits, distance {distance}, plan {plan}");
    let mut findings = vec![Finding::good("index", found)];
    // Opening holds the files against the seal.
    let opened = for_width!(bits, F => stored::read_only::<F>(path).map(drop));
    findings.push(match opened {
        Ok(()) => seal(path),
        Err(failure) => Finding::failed("seal", &failure),
    });
    findings.extend(machine::of_index(path));
    findings.push(lock(path));
    findings.push(texts(&header, path, seed));
    findings
}

/// Looks at the seal itself, which an index opens without.
fn seal(path: &Path) -> Finding {
    let anew = "'hamdex check INDEX --deep' reads what is there; the next verb that writes to the \
                index makes a new seal";
    match SealState::read(path) {
        Ok(SealState::Whole) => Finding::good("seal", "holds: nothing that was synced is missing"),
        Ok(SealState::Missing) => Finding::bad(
            "seal",
            "hamdex.seal is missing: every index is made with one, so it was removed, or left out \
             of a copy; changes that were lost would not show",
            anew,
        ),
        Ok(SealState::Damaged { detail }) => {
            Finding::bad("seal", format!("hamdex.seal is damaged: {detail}"), anew)
        }
        Ok(SealState::Stale { sealed, current }) => Finding::bad(
            "seal",
            format!(
                "hamdex.seal is of MANIFEST-{sealed:06} and the index is at MANIFEST-{current:06}: \
                 it is another index's, or the last process that wrote was killed as it began"
            ),
            anew,
        ),
        Ok(_) => Finding::bad("seal", "hamdex.seal is in an unknown state", anew),
        Err(error) => Finding::failed("seal", &error.into()),
    }
}

/// Says in one line that the seal is of no use; for verbs that read an index.
pub(crate) fn warn_of_seal(path: &Path, session: &Session) {
    let finding = seal(path);
    if finding.grade != Grade::Good {
        session.console.say(&format!("warning: {}", finding.found));
    }
}

fn lock(path: &Path) -> Finding {
    let Ok(file) = File::open(path.join(LOCK_FILE)) else {
        return Finding::good("lock", "nobody has written to it here");
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let remedy =
                "other processes can read it as it is; to write, wait for the one that does";
            Finding::warning("lock", "a process has it open for writing", remedy)
        }
        Ok(()) | Err(TryLockError::Error(_)) => Finding::good("lock", "nobody is writing to it"),
    }
}

/// What the pipeline asks of whoever brings texts.
fn texts(header: &Header, path: &Path, seed: &SeedArg) -> Finding {
    if header.pipeline.is_empty() {
        let remedy = "made from fingerprints only: bring fingerprints, made the same way";
        return Finding::warning("texts", "it is not known how to fingerprint a text", remedy);
    }
    let secret = header.pipeline.contains(";secret=");
    let name = header.pipeline.split(';').next().unwrap_or_default();
    let read = seed.secret().and_then(|secret| Ok(Header::read_pipeline_with(path, secret)?));
    match read {
        Ok(_) if secret => Finding::good("texts", format!("pipeline {name}, the secret fits")),
        Ok(_) => Finding::good("texts", format!("pipeline {name}, no secret")),
        Err(_) if secret && !seed.given() => Finding::warning(
            "texts",
            "the index was made with a secret",
            "give the same file to every verb that brings texts, by --seed-file FILE",
        ),
        Err(failure) => Finding::failed("texts", &failure),
    }
}
