//! Errors: what fails in a call, a panic too, becomes an object with a code, a fault and a message.

use std::any::Any;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hamdex::{Error, Fault};
use hamdex_io::failure::Failure as Unread;

/// The result of a call from C.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Runs a call; returns NULL on success.
///
/// A panic leaves an index usable: its locks still work, and its batches are atomic.
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> Option<Box<HamdexError>> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(Box::new(HamdexError::of(failure))),
        Err(panic) => Some(Box::new(HamdexError::of_panic(&*panic))),
    }
}

/// Runs an infallible call; returns `otherwise` after a panic.
pub(crate) fn guard_or<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Frees an object of the caller.
pub(crate) fn free<T>(object: Option<Box<T>>) {
    guard_or((), || drop(object));
}

/// Returns an error if the argument is NULL.
pub(crate) fn required<T>(argument: Option<T>, name: &'static str) -> Result<T> {
    argument.ok_or(Failure::Null(name))
}

/// Writes a result unless the pointer is NULL.
pub(crate) fn write_to<T>(out: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// Why a call failed, before it becomes an error object.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library.
    Library(Error),
    /// Files cannot be read as documents.
    Unread(Unread),
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

impl From<Unread> for Failure {
    fn from(failure: Unread) -> Self {
        if let Unread::Library(error) = failure {
            return Self::Library(error);
        }
        Self::Unread(failure)
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

impl From<Fault> for HamdexFault {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Caller => Self::Caller,
            Fault::Environment => Self::Environment,
            Fault::Damage => Self::Damage,
        }
    }
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
    /// A callback of the caller stopped the call.
    Stopped = 5,
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
    /// Files are not what they are read as: too many bad rows, no usable row, a broken table.
    BadInput = 50,
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
                Self::new(code_of(&error), error.fault().into(), &error.to_string())
            }
            Failure::Unread(failure) => {
                Self::new(code_of_unread(&failure), failure.fault().into(), &failure.to_string())
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
        Error::Cancelled => HamdexErrorCode::Stopped,
        _ => HamdexErrorCode::Other,
    }
}

#[allow(clippy::wildcard_enum_match_arm)] // as above
fn code_of_unread(failure: &Unread) -> HamdexErrorCode {
    match failure {
        failure if failure.is_of_data() => HamdexErrorCode::BadInput,
        Unread::Usage(_) | Unread::Refused { .. } => HamdexErrorCode::InvalidArgument,
        Unread::Io { .. } => HamdexErrorCode::Io,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        let error = guard(|| panic!("a drawer is stuck")).unwrap();
        assert_eq!((error.code, error.fault), (HamdexErrorCode::Panic, HamdexFault::Library));
        assert_eq!(error.message.to_str().unwrap(), "the library failed: a drawer is stuck");
        assert_eq!(guard_or(7, || panic!()), 7);
    }

    #[test]
    fn the_error_of_a_null_argument_names_it() {
        let error = guard(|| required(None::<&u8>, "index").map(drop)).unwrap();
        assert_eq!((error.code, error.fault), (HamdexErrorCode::NullArgument, HamdexFault::Caller));
        assert_eq!(error.message.to_str().unwrap(), "index is NULL");
        assert!(guard(|| Ok(())).is_none());
    }
}
