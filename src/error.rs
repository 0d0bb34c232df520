//! One error type: the caller's fault, the environment and damage told apart.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Shorthand for results whose error is [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Tells who has to act on an [`enum@Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call asked for something that cannot be; change the call.
    Caller,
    /// Disk, permissions or another process stood in the way; try again later.
    Environment,
    /// Stored bytes are not what was written; restore or rebuild.
    Damage,
}

/// Everything that can go wrong, each kind with both sides named.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A fingerprint did not parse as hexadecimal of the width asked for.
    #[error("\"{input}\" is not a {bits}-bit fingerprint: {reason}")]
    InvalidFingerprint {
        /// The text as it was given.
        input: String,
        /// The width that was expected.
        bits: u32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A plan cannot be built as described.
    #[error("plan {plan} for {bits}-bit fingerprints: {reason}")]
    InvalidPlan {
        /// The plan's own words.
        plan: String,
        /// The fingerprint width it was asked for.
        bits: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// A plan with fixed radii does not find every match within the distance.
    #[error("plan {plan} is complete up to {complete} bits, asked for {wanted}")]
    IncompletePlan {
        /// The plan's own words.
        plan: String,
        /// The largest distance at which no match is missed.
        complete: u32,
        /// The distance asked for.
        wanted: u32,
    },
    /// A distance is larger than the fingerprint width allows.
    #[error("distance {distance} is above {max}, the most for {bits}-bit fingerprints")]
    InvalidDistance {
        /// The distance asked for.
        distance: u32,
        /// The fingerprint width.
        bits: u32,
        /// The largest distance allowed.
        max: u32,
    },
    /// A document key is empty or longer than the limit.
    #[error("document key has {len} bytes, allowed are 1 to {max}")]
    InvalidKey {
        /// Length of the key that was given.
        len: usize,
        /// The longest key allowed.
        max: usize,
    },
    /// An option has a value outside its range.
    #[error("option {name}: {reason}")]
    InvalidOption {
        /// The option's name.
        name: &'static str,
        /// What is wrong and what is allowed.
        reason: String,
    },
    /// A table of the caller's has a line that cannot be read.
    #[error("{what}, line {line}: {reason}")]
    InvalidLine {
        /// The table: dictionary, stop words or weights.
        what: &'static str,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The index holds fingerprints of another width.
    #[error("index holds {stored}-bit fingerprints, asked with {wanted}")]
    WidthMismatch {
        /// Width in the index header.
        stored: u32,
        /// Width of the caller's type.
        wanted: u32,
    },
    /// A check was asked for that an index without feature sets cannot make.
    #[error("index keeps no feature sets; build it with keep_features (--keep-features)")]
    NoFeatureSets,
    /// A document stands in the way of a check because it came without features.
    #[error("document {key} is stored without features; insert it again with them to verify it")]
    NoFeatureSet {
        /// The document's key, escaped where it is not ASCII.
        key: String,
    },
    /// The index was made with other settings than those that were expected.
    #[error("index was made with {what} \"{stored}\", asked with \"{wanted}\"")]
    HeaderMismatch {
        /// The setting: plan, distance, pipeline, or inputs of an unfinished build.
        what: &'static str,
        /// The value in the index header.
        stored: String,
        /// The value the caller expected.
        wanted: String,
    },
    /// There is already something where an index was to be created.
    #[error("{} already holds an index or other files", path.display())]
    AlreadyExists {
        /// The directory.
        path: PathBuf,
    },
    /// There is no index at the path.
    #[error("{} holds no hamdex index", path.display())]
    NotFound {
        /// The directory.
        path: PathBuf,
    },
    /// There is no backup, or none of that number, in a directory.
    #[error("{} holds no backup{}", path.display(), id.map_or(String::new(), |id| format!(" {id}")))]
    NoBackup {
        /// The directory.
        path: PathBuf,
        /// The backup that was asked for; none when the newest was.
        id: Option<u32>,
    },
    /// A bulk build was interrupted and has to be finished or abandoned.
    #[error("{} holds an unfinished bulk build; resume or abandon it", path.display())]
    BuildUnfinished {
        /// The directory.
        path: PathBuf,
    },
    /// A restore or a checkpoint into a directory was interrupted and has to be made again.
    #[error("{} holds part of a restored index; restore it again", path.display())]
    RestoreUnfinished {
        /// The directory.
        path: PathBuf,
    },
    /// There is no interrupted bulk build that could be resumed.
    #[error("{} holds no unfinished bulk build", path.display())]
    NothingToResume {
        /// The directory.
        path: PathBuf,
    },
    /// Two documents of a build have the same key, and repeats are refused.
    #[error("document key {key} comes twice: as document {first} and again as {again}")]
    RepeatedKey {
        /// The key, escaped where it is not ASCII.
        key: String,
        /// Origin of the first document, as it was pushed.
        first: u64,
        /// Origin of the next one with the same key.
        again: u64,
    },
    /// The spill files of an unfinished build are in a directory that another index owns.
    #[error(
        "{}: the temporary files there are not those of {}; nothing there was changed",
        path.display(),
        index.display()
    )]
    ForeignSpills {
        /// The directory that the build's manifest names.
        path: PathBuf,
        /// The index.
        index: PathBuf,
    },
    /// A write was asked of a handle opened read-only.
    #[error("{} was opened read-only", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// A host's database was opened without a family of the index attached to it.
    #[error("the database was opened without the column family {family}")]
    MissingFamily {
        /// The family's name in the host's database.
        family: String,
    },
    /// Something was asked of an attached index that concerns the host's database as a whole.
    #[error("the index is attached to a host's database; the host has to {what} itself")]
    Attached {
        /// What the host has to do.
        what: &'static str,
    },
    /// The caller's progress sink asked to stop.
    #[error("cancelled by the caller")]
    Cancelled,
    /// Another process or handle has the index open for writing.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The operating system refused a file operation.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// The storage engine failed for a reason outside the stored data.
    #[error("storage engine: {message}")]
    Store {
        /// The storage engine's own words.
        message: String,
    },
    /// The index was written by another version of the format.
    #[error("index has format version {stored}, this library reads version {supported}")]
    FormatVersion {
        /// Version in the header.
        stored: u32,
        /// Version this library reads and writes.
        supported: u32,
    },
    /// Stored bytes do not decode or contradict each other.
    #[error("damaged index: {family}: {detail}")]
    Corrupt {
        /// The family or file that holds the damage.
        family: String,
        /// What does not fit.
        detail: String,
    },
}

impl Error {
    /// Tells whose fault it is: caller, environment or damage.
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

    /// Returns a short name of the kind of error that stays the same between versions.
    ///
    /// Names are words joined by hyphens. The words of a message may change; a name may not. New
    /// kinds of error bring new names, so treat an unknown one as a general failure.
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

/// Names what the operating system refused.
// Most kinds need no name: what to do about them is the same.
#[allow(clippy::wildcard_enum_match_arm)]
fn code_of_system(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "no-such-file",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "permission",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "no-space",
        _ => "io",
    }
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
