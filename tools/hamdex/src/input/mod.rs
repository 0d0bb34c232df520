//! Inputs: files, directories and standard input become documents in a fixed order.
//!
//! Every row has an origin, its ordinal over all inputs; the same inputs give the same origins
//! again, which is what a second pass and a resumed build stand on.

mod chunk;
mod columnar;
mod delimited;
mod device;
#[cfg(any(test, feature = "coverage"))]
pub(crate) mod fuzzing;
mod learn;
mod make;
mod open;
mod proof;
mod read;
mod reject;
mod row;
mod sample;
mod seen;
mod source;
mod walk;
mod warc;

pub(crate) use chunk::{Body, Chunk, Rows, Text, for_each_chunk};
pub(crate) use columnar::Columnar;
pub(crate) use learn::learn;
pub(crate) use make::{row_key, row_text, says_html, takes_html};
pub(crate) use proof::{Proofs, Wanted};
pub(crate) use read::{Document, Passed, Reading, Sink, Totals};
pub(crate) use reject::{At, Place, Policy, Reason, Rejects};
pub(crate) use row::{Fields, Stamp};
pub(crate) use source::{Bring, Inputs, Kind};
pub(crate) use warc::WarcId;
