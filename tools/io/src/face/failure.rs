//! Failures: every error becomes one message, one code, one remedy and one exit status.
//!
//! [`Status::ALL`] is the one list of the statuses: the help prints it.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::path::Path;

use hamdex::{Error, Fault};
use serde_json::{Value, json};

use super::remedy;
use crate::documents::reject::Reason;

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Data = 3,
    Damage = 4,
    Locked = 5,
    Environment = 6,
    Interrupted = 130,
    Terminated = 143,
}

impl Status {
    /// Every status, with its meaning.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Done, "done"),
        (Self::Failed, "general failure; or 'index check' or 'doctor' found a problem"),
        (Self::Usage, "wrong call: no such option or value, or a result that exists"),
        (Self::Data, "data: bad rows, no usable row, an input that cannot be read"),
        (Self::Damage, "the index or the backup is damaged"),
        (Self::Locked, "another process has the index open for writing"),
        (Self::Environment, "missing file, permissions, full disk, other I/O errors"),
        (Self::Interrupted, "stopped by SIGINT (Ctrl-C)"),
        (Self::Terminated, "stopped by SIGTERM"),
    ];

    /// Returns the number that the process ends with.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the list of all statuses as the help shows it.
    pub fn help() -> String {
        Self::ALL.iter().fold("Exit status:".to_owned(), |mut text, (status, meaning)| {
            let _ = write!(text, "\n  {:>3}  {meaning}", status.number());
            text
        })
    }
}

/// Why a verb ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Library(#[from] Error),
    /// A call that cannot succeed with any files.
    #[error("{0}")]
    Usage(String),
    #[error("{place}: {reason}")]
    Row { place: String, reason: Reason },
    #[error("{count} of {rows} rows are bad, --max-bad allows {allowed}: {reasons}")]
    TooManyBad { count: u64, rows: u64, allowed: String, reasons: String },
    #[error("none of {rows} rows can be used: {reasons}")]
    NoUsableRows {
        rows: u64,
        reasons: String,
        /// Whether a row was read at all.
        read: bool,
    },
    /// Unusable inputs; the others were used.
    #[error("{count} of {inputs} inputs skipped: {first}")]
    LeftOut { count: usize, inputs: usize, first: String },
    /// A target that the settings do not reach; the results are written.
    #[error("{left} rows are left, more than the {wanted} of --to: no other pair is near enough")]
    Unreached { left: u64, wanted: u64 },
    #[error("{path}: {lacks} \"{text}\" in its first rows (fields: {fields})")]
    NoTextField {
        path: String,
        /// What is not there: the field, or a text in it.
        lacks: &'static str,
        text: String,
        fields: String,
    },
    #[error("no row has a value in the field \"{field}\" of {option}")]
    NoField { field: String, option: &'static str },
    /// A table that cannot be read as one.
    #[error("{path}: {reason}")]
    Table { path: String, reason: String },
    #[error("{path}: already exists")]
    WouldOverwrite { path: String },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    /// An input with other contents than expected.
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    /// A request that does not fit what the path holds.
    #[error("{path}: {reason}")]
    Refused { path: String, reason: String },
    /// Problems that a check found.
    #[error("{count} problems in {place}")]
    Findings { place: String, count: u64 },
    #[error("checks failed: {count}")]
    Unfit { count: usize },
    #[error("the reader of standard output has closed it")]
    OutputClosed,
    /// A signal that stopped the work, and what was stored before.
    #[error("interrupted by {signal}{stored}")]
    Interrupted { signal: &'static str, status: Status, stored: String },
}

impl Failure {
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        if let Some(BadTable(reason)) = source.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Self::table(path, reason.clone());
        }
        Self::Io { path: path.as_ref().display().to_string(), source }
    }

    /// Returns the failure of a write; a reader that closed its end is no fault.
    pub fn of_write(path: impl AsRef<Path>, source: io::Error) -> Self {
        if source.kind() == ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::io(path, source)
    }

    /// Returns the failure of an unreadable table.
    pub fn table(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::Table { path: path.as_ref().display().to_string(), reason: reason.into() }
    }

    /// Returns the failure of an input with other contents than expected.
    pub fn file(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::File { path: path.as_ref().display().to_string(), reason: reason.into() }
    }

    /// Returns the failure of a request that does not match the path.
    pub fn refused(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::Refused { path: path.as_ref().display().to_string(), reason: reason.into() }
    }

    /// Returns the system's message alone, for callers that name the path themselves.
    pub fn cause(&self) -> String {
        if let Self::Io { source, .. } = self { source.to_string() } else { self.to_string() }
    }

    /// Returns the exit status of the process.
    pub fn status(&self) -> u8 {
        self.report().0.number()
    }

    /// Returns true if the data are at fault, so that other data may do.
    pub fn is_of_data(&self) -> bool {
        self.report().0 == Status::Data
    }

    /// Returns a short code of the failure, which does not change between versions.
    pub fn code(&self) -> &'static str {
        self.report().1
    }

    /// Returns the party that has to act on the failure.
    pub fn fault(&self) -> Fault {
        self.report().2
    }

    /// Returns what the user can do about the failure.
    pub fn remedy(&self) -> Option<&'static str> {
        self.report().3
    }

    /// Returns status, code and fault, and the remedy unless the message has it.
    fn report(&self) -> (Status, &'static str, Fault, Option<&'static str>) {
        use Fault::{Caller, Damage, Environment};
        use Status::{Data, Done, Failed, Usage};
        match self {
            Self::Library(error) => {
                (status_of(error), error.code(), error.fault(), remedy::of_library(error))
            }
            Self::Usage(_) => (Usage, "usage", Caller, None),
            Self::Row { .. } => {
                (Data, "row", Caller, Some("fix the row, or drop --strict to skip bad rows"))
            }
            Self::TooManyBad { .. } => {
                let remedy = "fix the rows (--rejects FILE lists them) or raise --max-bad";
                (Data, "too-many-bad", Caller, Some(remedy))
            }
            Self::NoUsableRows { read, .. } => {
                let remedy = if *read {
                    "nothing was written; pass --text-field if the text has another field"
                } else {
                    "nothing was written; name the format with --input-format if it is another one"
                };
                (Data, "no-usable-rows", Caller, Some(remedy))
            }
            Self::LeftOut { .. } => {
                let remedy = "the others are done; fix these inputs and run the same command again";
                (Data, "bad-input", Caller, Some(remedy))
            }
            Self::Unreached { .. } => {
                let remedy = "all results are written; a wider -k or a lower --verify removes more";
                (Data, "target-unreached", Caller, Some(remedy))
            }
            Self::NoTextField { .. } => {
                let remedy = "name the field with --text-field NAME, several with commas between, \
                              or read whole files with --as-documents";
                (Data, "no-text-field", Caller, Some(remedy))
            }
            Self::NoField { .. } => {
                let remedy = "check the spelling; a path has dots, such as meta.date";
                (Data, "no-field", Caller, Some(remedy))
            }
            Self::Table { .. } => (Data, "bad-table", Caller, None),
            Self::WouldOverwrite { .. } => {
                let remedy = "choose another name, or pass --overwrite";
                (Usage, "would-overwrite", Caller, Some(remedy))
            }
            Self::Io { source, .. } if is_bad_data(source) => {
                (Data, "bad-input", Environment, Some(remedy::of_system(source)))
            }
            Self::Io { source, .. } => {
                let (path, kind) = (std::path::PathBuf::new(), source.kind().into());
                let code = Error::Io { path, source: kind }.code();
                (Status::Environment, code, Environment, Some(remedy::of_system(source)))
            }
            Self::File { .. } => (Data, "bad-input", Caller, None),
            Self::Refused { .. } => (Failed, "refused", Caller, None),
            Self::Findings { .. } => {
                let remedy =
                    "restore the index from a backup, or build it again from its documents";
                (Failed, "findings", Damage, Some(remedy))
            }
            Self::Unfit { .. } => (Failed, "findings", Environment, Some("see the remedies above")),
            Self::OutputClosed => (Done, "output-closed", Environment, None),
            Self::Interrupted { status, .. } => {
                let remedy = "temporary files were removed; run the same command again";
                (*status, "interrupted", Environment, Some(remedy))
            }
        }
    }

    /// Returns the failure as the object that `--json` writes to standard error.
    pub fn object(&self) -> Value {
        let (status, code, _, remedy) = self.report();
        object(code, status, &self.to_string(), remedy)
    }

    /// Returns the findings, even if printing them failed.
    ///
    /// A parent process then still sees the status.
    pub fn over(self, printed: Result<()>) -> Result<()> {
        drop(printed);
        Err(self)
    }
}

/// Returns the object that `--json` writes to standard error for a failure.
pub fn object(code: &str, status: Status, message: &str, remedy: Option<&str>) -> Value {
    json!({"error": {
        "code": code, "status": status.number(), "message": message, "remedy": remedy,
    }})
}

/// The fault of a table, carried through a reader.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadTable(pub String);

/// Returns whether a decoder complains of the bytes, and not the system of the disk.
fn is_bad_data(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::InvalidData,
        ErrorKind::InvalidInput,
        ErrorKind::UnexpectedEof,
        ErrorKind::Other,
    ];
    error.raw_os_error().is_none() && kinds.contains(&error.kind())
}

// New errors are general failures until they are listed here.
#[allow(clippy::wildcard_enum_match_arm)]
fn status_of(error: &Error) -> Status {
    match error {
        Error::InvalidFingerprint { .. }
        | Error::InvalidPlan { .. }
        | Error::IncompletePlan { .. }
        | Error::InvalidDistance { .. }
        | Error::InvalidOption { .. } => Status::Usage,
        Error::InvalidLine { .. } => Status::Data,
        Error::FormatVersion { .. } | Error::Corrupt { .. } => Status::Damage,
        Error::Locked { .. } => Status::Locked,
        Error::NotFound { .. }
        | Error::NoBackup { .. }
        | Error::Io { .. }
        | Error::Store { .. } => Status::Environment,
        _ => Status::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn errors_of_the_library_have_a_status_by_cause() {
        let (path, text) = (PathBuf::from("idx"), || "x".to_owned());
        let io = |kind: ErrorKind| Error::Io { path: PathBuf::from("idx"), source: kind.into() };
        for (error, status, code) in [
            (Error::NoFeatureSets, Status::Failed, "no-feature-sets"),
            (Error::WidthMismatch { stored: 64, wanted: 32 }, Status::Failed, "width-mismatch"),
            (
                Error::InvalidDistance { distance: 17, bits: 64, max: 16 },
                Status::Usage,
                "invalid-distance",
            ),
            (
                Error::InvalidLine { what: "weights", line: 1, reason: text() },
                Status::Data,
                "invalid-line",
            ),
            (Error::Corrupt { family: text(), detail: text() }, Status::Damage, "damaged"),
            (Error::Locked { path: path.clone() }, Status::Locked, "locked"),
            (Error::NotFound { path }, Status::Environment, "not-found"),
            (io(ErrorKind::StorageFull), Status::Environment, "no-space"),
            (io(ErrorKind::NotFound), Status::Environment, "no-such-file"),
        ] {
            let failure = Failure::from(error);
            assert_eq!((failure.report().0, failure.code()), (status, code), "{failure}");
        }
    }

    #[test]
    fn failures_of_the_program_have_a_status_by_cause() {
        let (text, eof) = (|| "x".to_owned(), ErrorKind::UnexpectedEof);
        for (failure, status, code) in [
            (Failure::Usage(text()), 2, "usage"),
            (Failure::WouldOverwrite { path: text() }, 2, "would-overwrite"),
            (Failure::Row { place: text(), reason: Reason::EmptyText }, 3, "row"),
            (
                Failure::TooManyBad { count: 2, rows: 9, allowed: text(), reasons: text() },
                3,
                "too-many-bad",
            ),
            (Failure::NoUsableRows { rows: 2, reasons: text(), read: true }, 3, "no-usable-rows"),
            (Failure::LeftOut { count: 1, inputs: 2, first: text() }, 3, "bad-input"),
            (Failure::Unreached { left: 9, wanted: 5 }, 3, "target-unreached"),
            (Failure::table("a.csv", "x"), 3, "bad-table"),
            (Failure::file("a", "b"), 3, "bad-input"),
            (Failure::io("a.gz", eof.into()), 3, "bad-input"),
            (Failure::io("a", ErrorKind::PermissionDenied.into()), 6, "permission"),
            (Failure::refused("a", "b"), 1, "refused"),
            (Failure::Findings { place: text(), count: 1 }, 1, "findings"),
            (Failure::Unfit { count: 1 }, 1, "findings"),
            (Failure::OutputClosed, 0, "output-closed"),
        ] {
            assert_eq!((failure.status(), failure.code()), (status, code), "{failure}");
        }
    }

    #[test]
    fn an_object_holds_code_status_message_and_remedy() {
        let (allowed, reasons) = ("10 %".to_owned(), "3 broken JSON".to_owned());
        let failure = Failure::TooManyBad { count: 3, rows: 20, allowed, reasons };
        let object = failure.object();
        assert_eq!(object["error"]["code"], "too-many-bad");
        assert_eq!(object["error"]["status"], 3);
        let message = "3 of 20 rows are bad, --max-bad allows 10 %: 3 broken JSON";
        assert_eq!(object["error"]["message"], message);
        assert!(object["error"]["remedy"].is_string());
        assert!(Failure::Usage("x".to_owned()).object()["error"]["remedy"].is_null());
    }
}
