//! Failures: whatever went wrong becomes one message, one remedy and one exit status.
//!
//! Status 2 is kept for calls that can never succeed, whatever the files hold.

use std::io;
use std::path::Path;

use hamdex::{Error, Fault};

use crate::input::Reason;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a verb ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Library(#[from] Error),
    #[error("{0}")]
    Usage(String),
    #[error("{place}: {reason}")]
    Row { place: String, reason: Reason },
    #[error("{count} of {rows} rows are bad ({reasons}), allowed are {allowed}")]
    TooManyBad { count: u64, rows: u64, allowed: String, reasons: String },
    #[error("none of {rows} rows can be used: {reasons}")]
    NoUsableRows { rows: u64, reasons: String },
    #[error("{path}: no field \"{text}\" in its first rows (fields: {fields})")]
    NoTextField { path: String, text: String, fields: String },
    #[error("{path}: {reason}")]
    Table { path: String, reason: String },
    #[error("no row has a value in the field \"{field}\" that {option} names")]
    NoField { field: String, option: &'static str },
    #[error("{path} exists")]
    WouldOverwrite { path: String },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    #[error("{problems} problems in {path}")]
    Damaged { path: String, problems: u64 },
    #[error("checks failed: {count}")]
    Unfit { count: usize },
    #[error("the reader of standard output has gone")]
    OutputClosed,
}

impl Failure {
    pub(crate) fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        if let Some(BadTable(reason)) = source.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Self::table(path, reason.clone());
        }
        Self::Io { path: path.as_ref().display().to_string(), source }
    }

    /// A write that failed; a reader that has gone away is no fault.
    pub(crate) fn of_write(path: impl AsRef<Path>, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::io(path, source)
    }

    /// A table that cannot be read as one.
    pub(crate) fn table(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::Table { path: path.as_ref().display().to_string(), reason: reason.into() }
    }

    pub(crate) fn file(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::File { path: path.as_ref().display().to_string(), reason: reason.into() }
    }

    /// The system's own words where the path is known already.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::Library(_)
            | Self::Usage(_)
            | Self::Row { .. }
            | Self::TooManyBad { .. }
            | Self::NoUsableRows { .. }
            | Self::NoTextField { .. }
            | Self::NoField { .. }
            | Self::Table { .. }
            | Self::WouldOverwrite { .. }
            | Self::File { .. }
            | Self::Damaged { .. }
            | Self::Unfit { .. }
            | Self::OutputClosed => self.to_string(),
        }
    }

    /// The process status: 0 when nobody reads on, 2 for a wrong call, else 1.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Usage(_)
            | Self::WouldOverwrite { .. }
            | Self::Library(
                Error::InvalidDistance { .. }
                | Error::InvalidPlan { .. }
                | Error::IncompletePlan { .. }
                | Error::InvalidOption { .. }
                | Error::InvalidFingerprint { .. },
            ) => 2,
            Self::Library(_)
            | Self::Row { .. }
            | Self::TooManyBad { .. }
            | Self::NoUsableRows { .. }
            | Self::NoTextField { .. }
            | Self::NoField { .. }
            | Self::Table { .. }
            | Self::Io { .. }
            | Self::File { .. }
            | Self::Damaged { .. }
            | Self::Unfit { .. } => 1,
        }
    }

    /// Who has to act on it.
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Library(error) => error.fault(),
            Self::Usage(_)
            | Self::Row { .. }
            | Self::TooManyBad { .. }
            | Self::NoUsableRows { .. }
            | Self::NoTextField { .. }
            | Self::NoField { .. }
            | Self::Table { .. }
            | Self::WouldOverwrite { .. }
            | Self::File { .. } => Fault::Caller,
            Self::Io { .. } | Self::Unfit { .. } | Self::OutputClosed => Fault::Environment,
            Self::Damaged { .. } => Fault::Damage,
        }
    }

    /// What the person at the keyboard can do about it.
    pub(crate) fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NoField { .. } => Some("check its spelling; a path has dots, as meta.date"),
            Self::NoTextField { .. } => Some(
                "--text-field NAME names the field with the text; --as-documents reads files whole",
            ),
            Self::NoUsableRows { .. } => {
                Some("nothing was written; --text-field names the field with the text")
            }
            Self::WouldOverwrite { .. } => Some("--overwrite replaces it; or name another output"),
            Self::Row { .. } => Some("mend the row, or leave out --strict to skip bad rows"),
            Self::TooManyBad { .. } => {
                Some("mend the rows (--rejects FILE lists them) or raise --max-bad")
            }
            Self::Io { source, .. } => Some(remedy_of_system(source)),
            Self::Damaged { .. } => {
                Some("restore the index from a copy, or build it again from its documents")
            }
            Self::Library(error) => library_remedy(error),
            Self::Unfit { .. } => Some("the lines above say what to do"),
            // These say it themselves.
            Self::Usage(_) | Self::File { .. } | Self::Table { .. } | Self::OutputClosed => None,
        }
    }
}

/// What is wrong with a table, carried through a reader.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadTable(pub(crate) String);

/// What can be done where the system refused something, or bytes are not what they should be.
fn remedy_of_system(error: &io::Error) -> &'static str {
    use io::ErrorKind;
    /// Files that a process, and the whole system, may have open.
    const TOO_MANY_FILES: [i32; 2] = [24, 23];
    if error.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code)) {
        return "allow more open files, as by 'ulimit -n 4096'";
    }
    let known = [
        (ErrorKind::NotFound, "check the path"),
        (ErrorKind::PermissionDenied, "check the permissions"),
        (ErrorKind::StorageFull, "make room on the disk"),
        (ErrorKind::QuotaExceeded, "make room within the quota, or write elsewhere"),
        (ErrorKind::ReadOnlyFilesystem, "write elsewhere: the file system is mounted read-only"),
        (ErrorKind::IsADirectory, "name a file: this is a directory"),
        (
            ErrorKind::NotADirectory,
            "name a directory: this is a file, or the path goes through one",
        ),
        (ErrorKind::AlreadyExists, "name something that is not there, or remove what is"),
        (ErrorKind::OutOfMemory, "ask for less by --memory, or free some memory"),
        (ErrorKind::UnexpectedEof, "the file is cut off: fetch or make it again"),
        (ErrorKind::InvalidData, "the file is damaged or is not what its name says: make it again"),
        (
            ErrorKind::InvalidInput,
            "the file is damaged or is not what its name says: make it again",
        ),
    ];
    let remedy = known.into_iter().find_map(|(kind, told)| (error.kind() == kind).then_some(told));
    remedy.unwrap_or("try it again; 'hamdex doctor' looks at the machine")
}

// Errors to come have no remedy yet.
#[allow(clippy::wildcard_enum_match_arm)]
fn library_remedy(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::InvalidFingerprint { .. } => {
            "give hexadecimal digits, as 'hamdex fingerprint' prints them, and the right --bits"
        }
        Error::InvalidKey { .. } => "give an id of 1 to 1024 bytes",
        Error::InvalidLine { .. } => "mend that line, or leave it out",
        Error::InvalidOption { .. } => "'hamdex VERB --help' tells what is allowed",
        Error::ReadOnly { .. } => "stop the process that writes, and try again",
        Error::Cancelled => "call it again",
        Error::Io { source, .. } => remedy_of_system(source),
        Error::Store { .. } => {
            "look at the disk and its rights with 'hamdex doctor INDEX', then try again"
        }
        Error::InvalidDistance { .. } => "ask for a smaller -k, or build with more --bits",
        Error::InvalidPlan { .. } | Error::IncompletePlan { .. } => {
            "'hamdex plan --count N' lists plans"
        }
        Error::NotFound { .. } => "check the path, or make an index with 'hamdex build'",
        Error::NoBackup { .. } => "'hamdex restore DIR --list' lists the backups of a directory",
        Error::AlreadyExists { .. } => "choose an empty or absent directory",
        Error::BuildUnfinished { .. } => {
            "run the same 'hamdex build' again with --resume, or drop it with --abandon"
        }
        Error::NothingToResume { .. } => "the index is complete as it is",
        Error::Locked { .. } => "wait for the other process or stop it",
        Error::WidthMismatch { .. } => "leave out --bits, or build an index of that width",
        Error::NoFeatureSets => "build the index again with --keep-features, or leave out --verify",
        Error::NoFeatureSet { .. } => {
            "insert the document again from its text, or leave out --verify"
        }
        Error::HeaderMismatch { what: "secret", stored, .. } if stored == "none" => {
            "leave --seed-file out: the index was made without a secret"
        }
        Error::HeaderMismatch { what: "secret", .. } => {
            "give the file that the index was made with, by --seed-file FILE"
        }
        Error::HeaderMismatch { .. } => "leave the option out, or build a new index with it",
        Error::FormatVersion { .. } => {
            "use the hamdex version that wrote it, or build the index again"
        }
        Error::Corrupt { family, .. } if family.starts_with("backup") => {
            "restore an earlier backup by --backup-id; 'hamdex restore DIR --list' lists them"
        }
        Error::Corrupt { family, .. } if family.starts_with("shard") => {
            "write the shards again: nothing was made of them"
        }
        Error::Corrupt { .. } => {
            "'hamdex restore' a backup, 'hamdex repair' what can be read, or build it again"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_error_tells_what_can_be_done() {
        let (path, text) = (PathBuf::from("idx"), || "x".to_owned());
        let io = |kind: io::ErrorKind| io::Error::from(kind);
        let errors = [
            Error::InvalidFingerprint { input: text(), bits: 64, reason: "x" },
            Error::InvalidPlan { plan: text(), bits: 64, reason: text() },
            Error::IncompletePlan { plan: text(), complete: 3, wanted: 4 },
            Error::InvalidDistance { distance: 17, bits: 64, max: 16 },
            Error::InvalidKey { len: 0, max: 1024 },
            Error::InvalidOption { name: "ngram", reason: text() },
            Error::InvalidLine { what: "weights", line: 1, reason: text() },
            Error::WidthMismatch { stored: 64, wanted: 32 },
            Error::NoFeatureSets,
            Error::NoFeatureSet { key: text() },
            Error::HeaderMismatch { what: "plan", stored: text(), wanted: text() },
            Error::AlreadyExists { path: path.clone() },
            Error::NotFound { path: path.clone() },
            Error::NoBackup { path: path.clone(), id: None },
            Error::BuildUnfinished { path: path.clone() },
            Error::NothingToResume { path: path.clone() },
            Error::ReadOnly { path: path.clone() },
            Error::Cancelled,
            Error::Locked { path: path.clone() },
            Error::Io { path, source: io(io::ErrorKind::TimedOut) },
            Error::Store { message: text() },
            Error::FormatVersion { stored: 2, supported: 1 },
            Error::Corrupt { family: text(), detail: text() },
        ];
        for error in errors {
            let failure = Failure::from(error);
            assert!(failure.remedy().is_some_and(|remedy| remedy.len() > 5), "{failure}");
        }
        let full = Failure::io("out", io(io::ErrorKind::StorageFull));
        assert_eq!(full.remedy(), Some("make room on the disk"));
        let files = Failure::io("out", io::Error::from_raw_os_error(24));
        assert!(files.remedy().unwrap().contains("ulimit"));
        assert_eq!(Failure::Unfit { count: 1 }.to_string(), "checks failed: 1");
    }
}
