//! Form: from the bytes of a document to its cleaned text.

pub(super) mod casefold;
pub(super) mod clean;
pub(super) mod encoding;
pub(super) mod even;
pub(super) mod html;
pub(super) mod letter;
pub(super) mod normalise;
pub(super) mod simple;
pub(super) mod simplified;
pub(super) mod unicode;
