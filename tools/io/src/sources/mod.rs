//! Sources: what a user names becomes files, streams and tables to read rows from.

mod dataset;
pub(crate) mod detect;
pub(crate) mod exported;
pub(crate) mod inputs;
pub(crate) mod kind;
pub(crate) mod look;
pub(crate) mod open;
pub(crate) mod sample;
pub(crate) mod source;
pub(crate) mod walk;
