//! Remedies: an error of the system or of the library becomes what the user can do about it.

use std::io::{self, ErrorKind};

use hamdex::Error;

/// Files that a process, and the whole system, may have open.
const TOO_MANY_FILES: [i32; 2] = [24, 23];

const BAD_BYTES: &str = "the file is damaged or is not what its name says: make it again";

/// What to do if the system refused something, or bytes are not what they should be.
pub(crate) fn of_system(error: &io::Error) -> &'static str {
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
        (ErrorKind::AlreadyExists, "choose a name that is free, or remove what has it"),
        (ErrorKind::OutOfMemory, "ask for less by --memory, or free some memory"),
        (ErrorKind::UnexpectedEof, "the file is cut off: fetch or make it again"),
        (ErrorKind::InvalidData, BAD_BYTES),
        (ErrorKind::InvalidInput, BAD_BYTES),
    ];
    let remedy =
        known.into_iter().find_map(|(kind, remedy)| (error.kind() == kind).then_some(remedy));
    remedy.unwrap_or("try it again; 'hamdex doctor' checks the machine")
}

/// What to do about an error of the library.
// Errors to come have no remedy yet.
#[allow(clippy::wildcard_enum_match_arm)]
pub(crate) fn of_library(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::InvalidFingerprint { .. } => {
            "give hexadecimal digits, as 'hamdex fingerprint' prints them, and the right --bits"
        }
        Error::InvalidKey { .. } => "give an id of 1 to 1024 bytes",
        Error::InvalidLine { .. } => "fix that line, or remove it",
        Error::InvalidOption { .. } => "'hamdex VERB --help' lists what is allowed",
        Error::ReadOnly { .. } => "stop the process that writes, and try again",
        Error::Cancelled => "call it again",
        Error::Io { source, .. } => of_system(source),
        Error::Store { .. } => {
            "check the disk and its permissions with 'hamdex doctor INDEX', then try again"
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
        Error::RestoreUnfinished { .. } => "run the same 'hamdex restore' again",
        Error::NothingToResume { .. } => {
            "leave --resume or --abandon out: there is nothing to go on with or to drop"
        }
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
        Error::HeaderMismatch { what: "inputs", .. } => {
            "give the inputs and fields that the build began with, in their order, or drop it by \
             'hamdex build INDEX --abandon'"
        }
        Error::ForeignSpills { .. } => {
            "resume the build where it began, or drop this one by 'hamdex build INDEX --abandon'"
        }
        Error::RepeatedKey { .. } => {
            "remove one of the two, or choose by --on-repeat first or last"
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
        Error::Corrupt { family, .. } if family == "build manifest" => {
            "drop the unfinished build by 'hamdex build INDEX --abandon', and build again"
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
    use crate::failure::Failure;

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
            Error::Store { message: text() },
            Error::FormatVersion { stored: 2, supported: 1 },
            Error::Corrupt { family: text(), detail: text() },
        ];
        for error in errors {
            let failure = Failure::from(error);
            assert!(failure.remedy().is_some_and(|remedy| remedy.len() > 5), "{failure}");
        }
        let full = Failure::io("out", io(ErrorKind::StorageFull));
        assert_eq!(full.remedy(), Some("make room on the disk"));
        let files = Failure::io("out", io::Error::from_raw_os_error(24));
        assert!(files.remedy().unwrap().contains("ulimit"));
    }
}
