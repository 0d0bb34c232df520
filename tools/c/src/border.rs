//! The border: converts errors and panics of a call into error objects.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, HamdexError};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{HamdexErrorCode, HamdexFault};

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
