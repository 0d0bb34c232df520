//! Errors: what ended a call, as a code, whose fault it is and a message.

use std::any::Any;
use std::ffi::{CString, c_char};

use hamdex::{Error, Fault};

use crate::border::{end, guard_or};

/// Why a call failed, before it becomes an error object.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's own error.
    Library(Error),
    /// An argument is NULL that must not be.
    Null(&'static str),
    /// An argument has no meaning.
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
    /// The call asked for something that cannot be; change the call.
    Caller = 1,
    /// Disk, permissions or another process stood in the way; try again later.
    Environment = 2,
    /// Stored bytes are not what was written; restore or rebuild.
    Damage = 3,
    /// The library failed within; close its objects and report it.
    Library = 4,
}

/// What went wrong. Numbers stay as they are; later versions may add some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum HamdexErrorCode {
    /// There was no error object.
    None = 0,
    /// An argument is NULL that must not be.
    NullArgument = 1,
    /// An argument has no meaning, such as a text that is not UTF-8.
    InvalidArgument = 2,
    /// The library failed within.
    Panic = 3,
    /// An error without a number of its own yet; see its fault and message.
    Other = 4,
    /// A fingerprint has more bits than the width.
    InvalidFingerprint = 10,
    /// A plan cannot be built as described.
    InvalidPlan = 11,
    /// A plan misses matches within the distance.
    IncompletePlan = 12,
    /// A distance is above a quarter of the width.
    InvalidDistance = 13,
    /// A key is empty or longer than 1024 bytes.
    InvalidKey = 14,
    /// An option has a value outside its range.
    InvalidOption = 15,
    /// The index holds fingerprints of another width.
    WidthMismatch = 20,
    /// The index was made with other settings.
    HeaderMismatch = 21,
    /// There is already something where an index was to be made.
    AlreadyExists = 22,
    /// There is no index in the directory.
    NotFound = 23,
    /// A bulk build was interrupted and has to be resumed or abandoned.
    BuildUnfinished = 24,
    /// A write was asked of a handle opened for reading only.
    ReadOnly = 25,
    /// Another process or handle has the index open for writing.
    Locked = 30,
    /// The operating system refused a file operation.
    Io = 31,
    /// The storage engine failed for a reason outside the stored data.
    Store = 32,
    /// The index was written in another version of the format.
    FormatVersion = 40,
    /// Stored bytes do not decode or contradict each other.
    Corrupt = 41,
}

/// Why a call failed. Owned by the caller, who ends it with `hamdex_error_free`.
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

    /// Tells what a panic said.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let words = panic.downcast_ref::<&str>().copied();
        let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("the library failed: {}", words.unwrap_or("without a word"));
        Self::new(HamdexErrorCode::Panic, HamdexFault::Library, &message)
    }

    fn new(code: HamdexErrorCode, fault: HamdexFault, message: &str) -> Self {
        // A path may hold what ends a string in C; the rest of the message is worth more.
        let message = message.replace('\0', "\u{fffd}");
        Self { code, fault, message: CString::new(message).unwrap_or_default() }
    }
}

#[allow(clippy::wildcard_enum_match_arm)] // what this interface never asks for, and errors to come
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

/// Returns what went wrong; `HAMDEX_ERROR_CODE_NONE` for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_code_of(error: Option<&HamdexError>) -> HamdexErrorCode {
    guard_or(HamdexErrorCode::Panic, || error.map_or(HamdexErrorCode::None, |error| error.code))
}

/// Returns who has to act; the caller for NULL, which is no error.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_fault(error: Option<&HamdexError>) -> HamdexFault {
    guard_or(HamdexFault::Library, || error.map_or(HamdexFault::Caller, |error| error.fault))
}

/// Returns the message, in UTF-8 with a NUL behind it; "" for NULL.
///
/// It belongs to the error object and ends with it.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_message(error: Option<&HamdexError>) -> *const c_char {
    guard_or(c"".as_ptr(), || error.map_or(c"".as_ptr(), |error| error.message.as_ptr()))
}

/// Ends an error object; nothing happens for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_error_free(error: Option<Box<HamdexError>>) {
    end(error);
}

/// Returns the library's version, such as "0.1.0"; it is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
