//! One error type that separates caller errors, environment failures and damage.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A result whose error is [`enum@Error`].
///
/// ```
/// fn parse(text: &str) -> hamdex::Result<u64> {
///     hamdex::Fingerprint::from_hex(text)
/// }
/// assert_eq!(parse("00000000000000ff")?, 0xff);
/// # Ok::<(), hamdex::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who has to act on an [`enum@Error`].
///
/// ```
/// use hamdex::{Fault, Fingerprint};
///
/// let error = u64::from_hex("zz").unwrap_err();
/// assert_eq!(error.fault(), Fault::Caller);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call is invalid; change the call.
    Caller,
    /// The disk, permissions or another process prevented it; try again later.
    Environment,
    /// Stored bytes are not the bytes that were written; restore or rebuild.
    Damage,
}

/// Why the storage engine failed, in [`Error::Store`].
///
/// ```
/// use hamdex::{Error, StoreErrorKind};
///
/// fn is_worth_repeating(error: &Error) -> bool {
///     matches!(error, Error::Store { kind: StoreErrorKind::Busy, .. })
/// }
/// let kind = StoreErrorKind::Busy;
/// assert!(is_worth_repeating(&Error::Store { kind, message: "in use".to_owned() }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// A file cannot be read or written.
    Io,
    /// The disk is full; free space and repeat the call.
    NoSpace,
    /// Another operation is in the way; repeat the call.
    Busy,
    /// Anything else.
    Other,
}

/// Every error of the library, each with the expected and the actual value.
///
/// [`code`](Self::code) is stable between versions; messages are not.
///
/// ```
/// use hamdex::{Error, Index};
///
/// let directory = tempfile::tempdir().unwrap();
/// match Index::<u64>::open(directory.path().join("none")) {
///     Err(Error::NotFound { path }) => println!("no index at {}", path.display()),
///     other => unreachable!("{other:?}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a hexadecimal fingerprint of the expected width.
    #[error("\"{input}\" is not a {bits}-bit fingerprint: {reason}")]
    InvalidFingerprint {
        /// The text.
        input: String,
        /// The expected width.
        bits: u32,
        /// What is wrong with the text.
        reason: &'static str,
    },
    /// The plan cannot be built as described.
    #[error("plan {plan} for {bits}-bit fingerprints: {reason}")]
    InvalidPlan {
        /// The name of the plan.
        plan: String,
        /// The fingerprint width that was requested.
        bits: u32,
        /// What is wrong with the plan.
        reason: String,
    },
    /// The plan has fixed radii and misses matches at the requested distance.
    #[error("plan {plan} is complete up to distance {complete}, but {wanted} was requested")]
    IncompletePlan {
        /// The name of the plan.
        plan: String,
        /// The largest distance at which the plan misses no match.
        complete: u32,
        /// The requested distance.
        wanted: u32,
    },
    /// The distance exceeds a quarter of the fingerprint width.
    #[error("distance {distance} exceeds {max}, the maximum for {bits}-bit fingerprints")]
    InvalidDistance {
        /// The requested distance.
        distance: u32,
        /// The fingerprint width.
        bits: u32,
        /// The largest distance allowed.
        max: u32,
    },
    /// The document key is empty or too long.
    #[error("document key has {len} bytes; 1 to {max} are allowed")]
    InvalidKey {
        /// Length of the key in bytes.
        len: usize,
        /// The longest key allowed, in bytes.
        max: usize,
    },
    /// An option has an invalid value.
    #[error("option {name}: {reason}")]
    InvalidOption {
        /// The option's name.
        name: &'static str,
        /// What is wrong and which values are allowed.
        reason: String,
    },
    /// A line of a user-supplied table cannot be parsed.
    #[error("{what}, line {line}: {reason}")]
    InvalidLine {
        /// The table: dictionary, stop words or weights.
        what: &'static str,
        /// Number of the line, starting at 1.
        line: u64,
        /// What is wrong with the line.
        reason: String,
    },
    /// The index holds fingerprints of another width.
    #[error("index holds {stored}-bit fingerprints, not {wanted}-bit ones")]
    WidthMismatch {
        /// Width in the index header.
        stored: u32,
        /// Width of the caller's type.
        wanted: u32,
    },
    /// The verification needs feature sets, which the index does not store.
    #[error("index keeps no feature sets; build it with keep_features (--keep-features)")]
    NoFeatureSets,
    /// The verification needs the features of a document that was inserted without them.
    #[error("document {key} is stored without features; insert it again with its features")]
    NoFeatureSet {
        /// The document's key; bytes outside ASCII are escaped.
        key: String,
    },
    /// The index was created with settings other than the requested ones.
    #[error("index was created with {what} \"{stored}\", but \"{wanted}\" was requested")]
    HeaderMismatch {
        /// The setting: plan, distance, pipeline, or inputs of an unfinished build.
        what: &'static str,
        /// The stored value.
        stored: String,
        /// The requested value.
        wanted: String,
    },
    /// The directory of a new index is not empty.
    #[error("{} already holds an index or other files", path.display())]
    AlreadyExists {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds no index.
    #[error("{} holds no hamdex index", path.display())]
    NotFound {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds no backup, or none with the requested number.
    #[error("{} holds no backup{}", path.display(), id.map_or(String::new(), |id| format!(" {id}")))]
    NoBackup {
        /// The directory.
        path: PathBuf,
        /// The requested backup; `None` means the newest one.
        id: Option<u32>,
    },
    /// A bulk build was interrupted; resume or abandon it.
    #[error("{} holds an unfinished bulk build; resume or abandon it", path.display())]
    BuildUnfinished {
        /// The directory.
        path: PathBuf,
    },
    /// A restore or a checkpoint into the directory was interrupted; repeat it.
    #[error("{} holds a partly restored index; restore it again", path.display())]
    RestoreUnfinished {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds no interrupted bulk build.
    #[error("{} holds no unfinished bulk build", path.display())]
    NothingToResume {
        /// The directory.
        path: PathBuf,
    },
    /// Two documents of a build have the same key, and repeats are not allowed.
    #[error("document key {key} occurs twice: in documents {first} and {again}")]
    RepeatedKey {
        /// The key; bytes outside ASCII are escaped.
        key: String,
        /// Origin of the first document, as passed to `push`.
        first: u64,
        /// Origin of the second document with the same key.
        again: u64,
    },
    /// The spill files of an unfinished build belong to another index.
    #[error(
        "{}: the temporary files there do not belong to {}; nothing was changed",
        path.display(),
        index.display()
    )]
    ForeignSpills {
        /// The spill directory that the build's manifest names.
        path: PathBuf,
        /// The index.
        index: PathBuf,
    },
    /// A write was requested from a read-only handle.
    #[error("{} was opened read-only", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// The host database was opened without a column family of the attached index.
    #[error("the database was opened without the column family {family}")]
    MissingFamily {
        /// The name of the column family in the host database.
        family: String,
    },
    /// The operation concerns the whole host database, so an attached index cannot do it.
    #[error("the index is attached to a host database; the host must {what}")]
    Attached {
        /// What the host has to do.
        what: &'static str,
    },
    /// The progress sink requested cancellation.
    #[error("cancelled by the caller")]
    Cancelled,
    /// Another process or handle has the index open for writing.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The storage engine failed although the stored data is intact.
    #[error("storage engine: {message}")]
    Store {
        /// What failed.
        kind: StoreErrorKind,
        /// The message of the storage engine.
        message: String,
    },
    /// The index has a format version that this library does not read.
    #[error("index has format version {stored}; this library reads versions up to {supported}")]
    FormatVersion {
        /// Version in the header.
        stored: u32,
        /// Latest version that this library reads and writes.
        supported: u32,
    },
    /// Stored bytes do not decode, or contradict each other.
    #[error("damaged index: {family}: {detail}")]
    Corrupt {
        /// The family or file that holds the damage.
        family: String,
        /// What is inconsistent.
        detail: String,
    },
}

impl Error {
    /// Returns who has to act: caller, environment or damage.
    ///
    /// ```
    /// use hamdex::{Fault, Index};
    ///
    /// let error = Index::<u64>::open("no/such/index").unwrap_err();
    /// assert_eq!(error.fault(), Fault::Caller);
    /// ```
    pub fn fault(&self) -> Fault {
        match self {
            Self::Locked { .. } | Self::Io { .. } | Self::Store { .. } => Fault::Environment,
            Self::FormatVersion { .. } | Self::Corrupt { .. } => Fault::Damage,
            Self::InvalidFingerprint { .. }
            | Self::InvalidPlan { .. }
            | Self::IncompletePlan { .. }
            | Self::InvalidDistance { .. }
            | Self::InvalidKey { .. }
            | Self::InvalidOption { .. }
            | Self::InvalidLine { .. }
            | Self::WidthMismatch { .. }
            | Self::NoFeatureSets
            | Self::NoFeatureSet { .. }
            | Self::HeaderMismatch { .. }
            | Self::AlreadyExists { .. }
            | Self::NotFound { .. }
            | Self::NoBackup { .. }
            | Self::BuildUnfinished { .. }
            | Self::RestoreUnfinished { .. }
            | Self::NothingToResume { .. }
            | Self::RepeatedKey { .. }
            | Self::ForeignSpills { .. }
            | Self::ReadOnly { .. }
            | Self::MissingFamily { .. }
            | Self::Attached { .. }
            | Self::Cancelled => Fault::Caller,
        }
    }

    /// Returns the stable, machine-readable name of the error.
    ///
    /// A name is words joined by hyphens and never changes; messages may. Later versions may add
    /// names, so treat an unknown one as a general failure.
    ///
    /// ```
    /// use hamdex::Index;
    ///
    /// let error = Index::<u64>::open("no/such/index").unwrap_err();
    /// assert_eq!(error.code(), "not-found");
    /// ```
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidFingerprint { .. } => "invalid-fingerprint",
            Self::InvalidPlan { .. } => "invalid-plan",
            Self::IncompletePlan { .. } => "incomplete-plan",
            Self::InvalidDistance { .. } => "invalid-distance",
            Self::InvalidKey { .. } => "invalid-key",
            Self::InvalidOption { .. } => "invalid-option",
            Self::InvalidLine { .. } => "invalid-line",
            Self::WidthMismatch { .. } => "width-mismatch",
            Self::NoFeatureSets => "no-feature-sets",
            Self::NoFeatureSet { .. } => "no-feature-set",
            Self::HeaderMismatch { .. } => "header-mismatch",
            Self::AlreadyExists { .. } => "already-exists",
            Self::NotFound { .. } => "not-found",
            Self::NoBackup { .. } => "no-backup",
            Self::BuildUnfinished { .. } => "build-unfinished",
            Self::RestoreUnfinished { .. } => "restore-unfinished",
            Self::NothingToResume { .. } => "nothing-to-resume",
            Self::RepeatedKey { .. } => "repeated-key",
            Self::ForeignSpills { .. } => "foreign-spills",
            Self::ReadOnly { .. } => "read-only",
            Self::MissingFamily { .. } => "missing-family",
            Self::Attached { .. } => "attached",
            Self::Cancelled => "cancelled",
            Self::Locked { .. } => "locked",
            Self::Io { source, .. } => code_of_system(source.kind()),
            Self::Store { .. } => "store",
            Self::FormatVersion { .. } => "format-version",
            Self::Corrupt { .. } => "damaged",
        }
    }

    pub(crate) fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }

    pub(crate) fn corrupt(family: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Corrupt { family: family.into(), detail: detail.into() }
    }
}

/// Returns the code of an operating system error.
// Only the kinds that need separate advice have a code.
#[allow(clippy::wildcard_enum_match_arm)]
fn code_of_system(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "no-such-file",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "permission",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "no-space",
        _ => "io",
    }
}

/// Maximum number of messages in a list.
const MAX_MESSAGES: usize = 1000;

/// Counts a problem and keeps its message while there are fewer than [`MAX_MESSAGES`].
pub(crate) fn add_problem(problem: String, messages: &mut Vec<String>, count: &mut u64) {
    *count += 1;
    if messages.len() < MAX_MESSAGES {
        messages.push(problem);
    }
}

/// Records damage as a problem; returns any other error to the caller.
pub(crate) fn note_problem(
    error: Error,
    messages: &mut Vec<String>,
    count: &mut u64,
) -> Result<()> {
    if error.fault() != Fault::Damage {
        return Err(error);
    }
    add_problem(error.to_string(), messages, count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_system_name_what_can_be_acted_on() {
        for (kind, code) in [
            (ErrorKind::NotFound, "no-such-file"),
            (ErrorKind::PermissionDenied, "permission"),
            (ErrorKind::ReadOnlyFilesystem, "permission"),
            (ErrorKind::StorageFull, "no-space"),
            (ErrorKind::QuotaExceeded, "no-space"),
            (ErrorKind::TimedOut, "io"),
        ] {
            assert_eq!(Error::io("idx", kind.into()).code(), code);
        }
    }
}
