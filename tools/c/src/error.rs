//! Errors: why a call failed, as a code, a fault and a message.

use std::any::Any;
use std::ffi::{CString, c_char};

use hamdex::{Error, Fault};

use crate::border::{free, guard_or};

/// Why a call failed, before it becomes an error object.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library.
    Library(Error),
    /// A required argument is NULL.
    Null(&'static str),
    /// An argument is invalid.
    Argument(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum HamdexFault {
    /// The call is invalid; change the call.
    Caller = 1,
    /// The disk, permissions or another process prevented it; try again later.
    Environment = 2,
    /// Stored bytes are not the bytes that were written; restore or rebuild.
    Damage = 3,
    /// An internal failure of the library; close its objects and report it.
    Library = 4,
}

/// The kind of an error. Numbers never change; later versions may add some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum HamdexErrorCode {
    /// There is no error object.
    None = 0,
    /// A required argument is NULL.
    NullArgument = 1,
    /// An argument is invalid, such as a text that is not UTF-8.
    InvalidArgument = 2,
    /// An internal failure of the library.
    Panic = 3,
    /// An error that has no number yet; see its fault and message.
    Other = 4,
    /// A fingerprint has more bits than the width.
    InvalidFingerprint = 10,
    /// A plan cannot be built as described.
    InvalidPlan = 11,
    /// A plan misses matches at the requested distance.
    IncompletePlan = 12,
    /// A distance exceeds a quarter of the width.
    InvalidDistance = 13,
    /// A key is empty or longer than 1024 bytes.
    InvalidKey = 14,
    /// An option has an invalid value.
    InvalidOption = 15,
    /// The index holds fingerprints of another width.
    WidthMismatch = 20,
    /// The index was created with other settings.
    HeaderMismatch = 21,
    /// The directory of a new index is not empty.
    AlreadyExists = 22,
    /// The directory holds no index.
    NotFound = 23,
    /// A bulk build was interrupted; resume or abandon it.
    BuildUnfinished = 24,
    /// A write was requested from a read-only handle.
    ReadOnly = 25,
    /// Another process or handle has the index open for writing.
    Locked = 30,
    /// A file operation failed.
    Io = 31,
    /// The storage engine failed although the stored data is intact.
    Store = 32,
    /// The index has a format version that this library does not read.
    FormatVersion = 40,
    /// Stored bytes do not decode, or contradict each other.
    Corrupt = 41,
}

/// Why a call failed. Owned by the caller; free with `hamdex_error_free`.
#[derive(Debug)]
pub struct HamdexError {
    pub(crate) code: HamdexErrorCode,
    pub(crate) fault: HamdexFault,
    pub(crate) message: CString,
}

impl HamdexError {
    pub(crate) fn of(failure: Failure) -> Self {
        match failure {
            Failure::Library(error) => {
                let fault = match error.fault() {
                    Fault::Caller => HamdexFault::Caller,
                    Fault::Environment => HamdexFault::Environment,
                    Fault::Damage => HamdexFault::Damage,
                };
                Self::new(code_of(&error), fault, &error.to_string())
            }
            Failure::Null(name) => {
                let message = format!("{name} is NULL");
                Self::new(HamdexErrorCode::NullArgument, HamdexFault::Caller, &message)
            }
            Failure::Argument(message) => {
                Self::new(HamdexErrorCode::InvalidArgument, HamdexFault::Caller, &message)
            }
        }
    }

    /// Converts the message of a panic.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let words = panic.downcast_ref::<&str>().copied();
        let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("the library failed: {}", words.unwrap_or("no message"));
        Self::new(HamdexErrorCode::Panic, HamdexFault::Library, &message)
    }

    fn new(code: HamdexErrorCode, fault: HamdexFault, message: &str) -> Self {
        // A path may contain a NUL, which would end the message early.
        let message = message.replace('\0', "\u{fffd}");
        Self { code, fault, message: CString::new(message).unwrap_or_default() }
    }
}

#[allow(clippy::wildcard_enum_match_arm)] // errors that this interface cannot cause, and later ones
fn code_of(error: &Error) -> HamdexErrorCode {
    match error {
        Error::InvalidFingerprint { .. } => HamdexErrorCode::InvalidFingerprint,
        Error::InvalidPlan { .. } => HamdexErrorCode::InvalidPlan,
        Error::IncompletePlan { .. } => HamdexErrorCode::IncompletePlan,
        Error::InvalidDistance { .. } => HamdexErrorCode::InvalidDistance,
        Error::InvalidKey { .. } => HamdexErrorCode::InvalidKey,
        Error::InvalidOption { .. } => HamdexErrorCode::InvalidOption,
        Error::WidthMismatch { .. } => HamdexErrorCode::WidthMismatch,
        Error::HeaderMismatch { .. } => HamdexErrorCode::HeaderMismatch,
        Error::AlreadyExists { .. } => HamdexErrorCode::AlreadyExists,
        Error::NotFound { .. } => HamdexErrorCode::NotFound,
        Error::BuildUnfinished { .. } => HamdexErrorCode::BuildUnfinished,
        Error::ReadOnly { .. } => HamdexErrorCode::ReadOnly,
        Error::Locked { .. } => HamdexErrorCode::Locked,
        Error::Io { .. } => HamdexErrorCode::Io,
        Error::Store { .. } => HamdexErrorCode::Store,
        Error::FormatVersion { .. } => HamdexErrorCode::FormatVersion,
        Error::Corrupt { .. } => HamdexErrorCode::Corrupt,
        _ => HamdexErrorCode::Other,
    }
}

/// Returns the kind of an error; `HAMDEX_ERROR_CODE_NONE` for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_code_of(error: Option<&HamdexError>) -> HamdexErrorCode {
    guard_or(HamdexErrorCode::Panic, || error.map_or(HamdexErrorCode::None, |error| error.code))
}

/// Returns who has to act; the caller for NULL, which is no error.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_fault(error: Option<&HamdexError>) -> HamdexFault {
    guard_or(HamdexFault::Library, || error.map_or(HamdexFault::Caller, |error| error.fault))
}

/// Returns the message as NUL-terminated UTF-8; "" for NULL.
///
/// Owned by the error object.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_message(error: Option<&HamdexError>) -> *const c_char {
    guard_or(c"".as_ptr(), || error.map_or(c"".as_ptr(), |error| error.message.as_ptr()))
}

/// Frees an error object; does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_free(error: Option<Box<HamdexError>>) {
    free(error);
}

/// Returns the version of the library, such as "0.1.0"; do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
