//! Slices: the only place that converts a pointer and a length into a Rust slice.

use std::fmt::Display;
use std::str::FromStr;

use crate::error::{Failure, Result};
use crate::pipeline::HamdexFingerprint;

/// Borrowed bytes: a key, a text or a path.
///
/// As an argument they must not change until the call returns. As a result they are owned by the
/// object that returned them. `data` may be NULL if `len` is 0.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexBytes {
    data: *const u8,
    len: usize,
}

/// A document to store: a key of 1 to 1024 bytes and a fingerprint.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexDocument {
    /// The key; a document replaces the stored one with the same key.
    pub key: HamdexBytes,
    /// The fingerprint; it must fit the width of the index.
    pub fingerprint: HamdexFingerprint,
}

/// An array of documents; it and its keys must not change until the call returns.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexDocuments {
    data: *const HamdexDocument,
    len: usize,
}

/// An array of fingerprints; it must not change until the call returns.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexFingerprints {
    data: *const HamdexFingerprint,
    len: usize,
}

/// An array of paths; it and its paths must not change until the call returns.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexPaths {
    data: *const HamdexBytes,
    len: usize,
}

impl HamdexBytes {
    /// Empty bytes.
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    /// Borrows bytes for the caller.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }

    pub(crate) fn get(&self, name: &'static str) -> Result<&[u8]> {
        check(self.data, self.len, name)?;
        // SAFETY: checked above. The header requires that `len` bytes are valid and unchanged
        // during the call, and `self` lives as long as the call.
        Ok(unsafe { slice(self.data, self.len) })
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<&str> {
        std::str::from_utf8(self.get(name)?)
            .map_err(|error| Failure::Argument(format!("{name} is not UTF-8: {error}")))
    }

    /// Parses a word; `None` if it is empty.
    pub(crate) fn word<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>> {
        let text = self.text(name)?;
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = |error| Failure::Argument(format!("{name} is \"{text}\": {error}"));
        text.parse().map(Some).map_err(wrong)
    }
}

impl HamdexPaths {
    /// No paths.
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    pub(crate) fn get(&self) -> Result<&[HamdexBytes]> {
        check(self.data, self.len, "paths")?;
        // SAFETY: as for bytes; any bits are a valid pointer and length, which are checked when
        // they are read.
        Ok(unsafe { slice(self.data, self.len) })
    }
}

impl HamdexDocuments {
    pub(crate) fn get(&self) -> Result<&[HamdexDocument]> {
        check(self.data, self.len, "documents")?;
        // SAFETY: as for bytes; any bits are a valid document, whose key is checked when it is
        // read.
        Ok(unsafe { slice(self.data, self.len) })
    }
}

impl HamdexFingerprints {
    pub(crate) fn get(&self) -> Result<&[HamdexFingerprint]> {
        check(self.data, self.len, "fingerprints")?;
        // SAFETY: as for bytes; any bits are a valid fingerprint.
        Ok(unsafe { slice(self.data, self.len) })
    }
}

/// Returns an error if the pointer and the length cannot be an array.
fn check<T>(data: *const T, len: usize, name: &'static str) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    if data.is_null() {
        return Err(Failure::Null(name));
    }
    if !data.is_aligned() {
        return Err(Failure::Argument(format!("{name} is not aligned")));
    }
    if len > isize::MAX.unsigned_abs() / size_of::<T>() {
        return Err(Failure::Argument(format!("{name} has {len} elements, too many for memory")));
    }
    Ok(())
}

/// Converts a pointer and a length into a slice; empty if `len` is 0.
///
/// # Safety
///
/// [`check`] passed, and `len` elements are valid and unchanged for `'a`.
unsafe fn slice<'a, T>(data: *const T, len: usize) -> &'a [T] {
    if len == 0 {
        return &[];
    }
    // SAFETY: not NULL, aligned, and not too large; the caller guarantees the rest.
    unsafe { std::slice::from_raw_parts(data, len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::HamdexError;

    fn refused(bytes: HamdexBytes) -> String {
        let error = HamdexError::of(bytes.get("key").unwrap_err());
        error.message.into_string().unwrap()
    }

    #[test]
    fn invalid_arrays_are_rejected_before_they_are_read() {
        assert_eq!(refused(HamdexBytes { data: std::ptr::null(), len: 1 }), "key is NULL");
        let endless = HamdexBytes { data: b"a".as_ptr(), len: usize::MAX };
        assert!(refused(endless).ends_with("too many for memory"));
        let odd = [0_u64; 4].as_ptr().cast::<u8>().wrapping_add(1).cast();
        let odd = HamdexFingerprints { data: odd, len: 1 };
        let error = HamdexError::of(odd.get().unwrap_err());
        assert_eq!(error.message.to_str().unwrap(), "fingerprints is not aligned");
        assert!(HamdexBytes::NONE.get("key").unwrap().is_empty());
        assert_eq!(HamdexBytes::of(b"ab").get("key").unwrap(), b"ab");
    }
}
