//! Failures: whatever went wrong becomes one message, one remedy and one exit status.
//!
//! Status 2 is kept for calls that can never succeed, whatever the files hold.

use std::io;
use std::path::Path;

use hamdex::Error;

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
    #[error("{count} bad rows, --max-bad allows {allowed}")]
    TooManyBad { count: u64, allowed: u64 },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    #[error("{problems} problems in {path}")]
    Damaged { path: String, problems: u64 },
    #[error("the reader of standard output has gone")]
    OutputClosed,
}

impl Failure {
    pub(crate) fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { path: path.as_ref().display().to_string(), source }
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
            | Self::File { .. }
            | Self::Damaged { .. }
            | Self::OutputClosed => self.to_string(),
        }
    }

    /// The process status: 0 when nobody reads on, 2 for a wrong call, else 1.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Usage(_)
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
            | Self::Io { .. }
            | Self::File { .. }
            | Self::Damaged { .. } => 1,
        }
    }

    /// What the person at the keyboard can do about it.
    pub(crate) fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Row { .. } => Some("mend the row, or leave out --strict to skip bad rows"),
            Self::TooManyBad { .. } => {
                Some("mend the rows (--rejects FILE lists them) or raise --max-bad")
            }
            Self::Io { source, .. } | Self::Library(Error::Io { source, .. }) => [
                (io::ErrorKind::NotFound, "check the path"),
                (io::ErrorKind::PermissionDenied, "check the permissions"),
                (io::ErrorKind::StorageFull, "make room on the disk"),
            ]
            .into_iter()
            .find_map(|(kind, remedy)| (source.kind() == kind).then_some(remedy)),
            Self::Damaged { .. } => {
                Some("restore the index from a copy, or build it again from its documents")
            }
            Self::Library(error) => library_remedy(error),
            Self::Usage(_) | Self::File { .. } | Self::OutputClosed => None,
        }
    }
}

// Errors to come have no remedy yet, and those left out explain themselves.
#[allow(clippy::wildcard_enum_match_arm)]
fn library_remedy(error: &Error) -> Option<&'static str> {
    Some(match error {
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
        Error::Corrupt { .. } => {
            "'hamdex restore' a backup, 'hamdex repair' what can be read, or build it again"
        }
        _ => return None,
    })
}
