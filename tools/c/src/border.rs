//! The border: whatever ends a call, an error or a panic, becomes an error object.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, HamdexError};

/// Results of calls from C.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Runs a call; NULL stands for its success.
///
/// What a panic leaves half done inside an index is bounded by its locks, which go on after a
/// panic, and by its batches, which are written whole or not at all.
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> Option<Box<HamdexError>> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(Box::new(HamdexError::of(failure))),
        Err(panic) => Some(Box::new(HamdexError::of_panic(&*panic))),
    }
}

/// Runs a call that cannot fail; a panic gives the other result.
pub(crate) fn guard_or<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Takes an object back from the caller and ends it.
pub(crate) fn end<T>(object: Option<Box<T>>) {
    guard_or((), || drop(object));
}

/// Refuses NULL.
pub(crate) fn required<T>(argument: Option<T>, name: &'static str) -> Result<T> {
    argument.ok_or(Failure::Null(name))
}

/// Writes a result where the caller wants it.
pub(crate) fn give<T>(out: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{HamdexErrorCode, HamdexFault};

    #[test]
    fn a_panic_becomes_an_error_that_tells_its_words() {
        let error = guard(|| panic!("a drawer is stuck")).unwrap();
        assert_eq!((error.code, error.fault), (HamdexErrorCode::Panic, HamdexFault::Library));
        assert_eq!(error.message.to_str().unwrap(), "the library failed: a drawer is stuck");
        assert_eq!(guard_or(7, || panic!()), 7);
    }

    #[test]
    fn null_is_named() {
        let error = guard(|| required(None::<&u8>, "index").map(drop)).unwrap();
        assert_eq!((error.code, error.fault), (HamdexErrorCode::NullArgument, HamdexFault::Caller));
        assert_eq!(error.message.to_str().unwrap(), "index is NULL");
        assert!(guard(|| Ok(())).is_none());
    }
}
