//! Remedies: what the user can do about errors of the system and the library.

use std::io::{self, ErrorKind};

use hamdex::{Error, StoreErrorKind};

/// Files that a process, and the whole system, may have open.
const TOO_MANY_FILES: [i32; 2] = [24, 23];

const BAD_BYTES: &str = "the file is damaged or has the wrong name; get it again";

/// Returns what to do if the system refused a call, or bytes are invalid.
pub(crate) fn of_system(error: &io::Error) -> &'static str {
    if error.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code)) {
        return "allow more open files, such as with 'ulimit -n 4096'";
    }
    let known = [
        (ErrorKind::NotFound, "check the path"),
        (ErrorKind::PermissionDenied, "check the permissions"),
        (ErrorKind::StorageFull, "free space on the disk"),
        (ErrorKind::QuotaExceeded, "free space within the quota, or write to another place"),
        (ErrorKind::ReadOnlyFilesystem, "write to another place: the file system is read-only"),
        (ErrorKind::IsADirectory, "give a file: this is a directory"),
        (ErrorKind::NotADirectory, "give a directory: the path is a file, or contains one"),
        (ErrorKind::AlreadyExists, "choose another name, or remove the existing file"),
        (ErrorKind::OutOfMemory, "lower --memory, or free some memory"),
        (ErrorKind::UnexpectedEof, "the file is truncated; get it again"),
        (ErrorKind::InvalidData, BAD_BYTES),
        (ErrorKind::InvalidInput, BAD_BYTES),
    ];
    let remedy =
        known.into_iter().find_map(|(kind, remedy)| (error.kind() == kind).then_some(remedy));
    remedy.unwrap_or("try again; 'hamdex doctor' checks the machine")
}

/// Returns what to do about an error of the library.
// New errors have no remedy yet.
#[allow(clippy::wildcard_enum_match_arm)]
pub(crate) fn of_library(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::InvalidFingerprint { .. } => {
            "give hexadecimal digits as 'hamdex fingerprint' prints them, and check --bits"
        }
        Error::InvalidKey { .. } => "give an id of 1 to 1024 bytes",
        Error::InvalidLine { .. } => "fix that line, or remove it",
        Error::InvalidOption { .. } => "'hamdex VERB --help' lists the allowed values",
        Error::ReadOnly { .. } => "stop the writing process, and try again",
        Error::Cancelled => "run the same command again",
        Error::Io { source, .. } => of_system(source),
        Error::Store { kind: StoreErrorKind::NoSpace, .. } => {
            of_system(&ErrorKind::StorageFull.into())
        }
        Error::Store { .. } => {
            "check the disk and its permissions with 'hamdex doctor INDEX', then try again"
        }
        Error::InvalidDistance { .. } => "use a smaller -k, or build with more --bits",
        Error::InvalidPlan { .. } | Error::IncompletePlan { .. } => {
            "'hamdex plan --count N' lists plans"
        }
        Error::NotFound { .. } => "check the path, or build an index with 'hamdex build'",
        Error::NoBackup { .. } => {
            "'hamdex index restore DIR --list' lists the backups of a directory"
        }
        Error::AlreadyExists { .. } => "choose an empty or absent directory",
        Error::BuildUnfinished { .. } => {
            "run the same 'hamdex build' again with --resume, or drop it with --abandon"
        }
        Error::RestoreUnfinished { .. } => "run the same 'hamdex index restore' again",
        Error::NothingToResume { .. } => "drop --resume or --abandon: there is no unfinished build",
        Error::Locked { .. } => "wait for the other process, or stop it",
        Error::WidthMismatch { .. } => "drop --bits, or build an index of that width",
        Error::NoFeatureSets => "build the index again with --keep-features, or drop --verify",
        Error::NoFeatureSet { .. } => "insert the document again with its text, or drop --verify",
        Error::HeaderMismatch { what: "secret", stored, .. } if stored == "none" => {
            "drop --secret-file: the index was made without a secret"
        }
        Error::HeaderMismatch { what: "secret", .. } => {
            "pass the secret that the index was made with: --secret-file FILE"
        }
        Error::HeaderMismatch { what: "inputs", .. } => {
            "give the inputs and fields of the unfinished build in the same order, or drop it \
                with 'hamdex build INDEX --abandon'"
        }
        Error::ForeignSpills { .. } => {
            "resume the build in the place where it began, or drop this one with 'hamdex build \
                INDEX --abandon'"
        }
        Error::RepeatedKey { .. } => {
            "remove one of the two, or choose one with --on-repeat first or last"
        }
        Error::HeaderMismatch { .. } => "drop the option, or build a new index with it",
        Error::FormatVersion { .. } => {
            "use the hamdex version that wrote it, or build the index again"
        }
        Error::Corrupt { family, .. } if family.starts_with("backup") => {
            "restore an earlier backup with --backup-id; 'hamdex index restore DIR --list' lists \
                them"
        }
        Error::Corrupt { family, .. } if family.starts_with("shard") => {
            "write the shards again; nothing was built from them"
        }
        Error::Corrupt { family, .. } if family == "build manifest" => {
            "drop the unfinished build with 'hamdex build INDEX --abandon', and build again"
        }
        Error::Corrupt { family, .. } if family.ends_with("hamdex.resident") => {
            "save the fingerprints again with 'hamdex index resident', or remove the file"
        }
        Error::Corrupt { .. } => {
            "restore a backup with 'hamdex index restore', save what is readable with 'hamdex \
                index repair', or build it again"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::face::failure::Failure;

    #[test]
    fn every_error_says_what_can_be_done() {
        let (path, text) = (PathBuf::from("idx"), || "x".to_owned());
        let io = |kind: ErrorKind| io::Error::from(kind);
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
            Error::RestoreUnfinished { path: path.clone() },
            Error::NothingToResume { path: path.clone() },
            Error::ReadOnly { path: path.clone() },
            Error::Cancelled,
            Error::Locked { path: path.clone() },
            Error::Io { path, source: io(ErrorKind::TimedOut) },
            Error::Store { kind: StoreErrorKind::Io, message: text() },
            Error::Store { kind: StoreErrorKind::NoSpace, message: text() },
            Error::FormatVersion { stored: 2, supported: 1 },
            Error::Corrupt { family: text(), detail: text() },
        ];
        for error in errors {
            let failure = Failure::from(error);
            assert!(failure.remedy().is_some_and(|remedy| remedy.len() > 5), "{failure}");
        }
        let full = Failure::io("out", io(ErrorKind::StorageFull));
        assert_eq!(full.remedy(), Some("free space on the disk"));
        let files = Failure::io("out", io::Error::from_raw_os_error(24));
        assert!(files.remedy().unwrap().contains("ulimit"));
    }
}
