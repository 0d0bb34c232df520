//! Rows: files, directories and standard input become documents in a fixed order.
//!
//! Rows of JSON Lines, CSV, Parquet, Arrow, WARC and text files are read by one set of rules: ids,
//! texts, stamps and fingerprints, and what is wrong with a bad row. The command line, the Python
//! package and the C interface call it, so all read the same. What is copied to a result is not
//! changed.
//!
//! Every row has an origin, its ordinal over all inputs. The same inputs give the same origins
//! again, which a second pass and a resumed build rely on.

#![deny(clippy::print_stdout, clippy::print_stderr)]
// A `Failure` names what failed and what to do, so that a list at each function would repeat it.
#![allow(clippy::missing_errors_doc)]

mod chunk;
pub mod columnar;
mod delimited;
mod detect;
pub mod evidence;
mod exported;
pub mod failure;
mod fields;
mod flow;
#[cfg(any(test, feature = "coverage"))]
mod fuzzing;
mod gate;
pub mod host;
mod inputs;
pub mod job;
mod json;
pub mod key;
mod kind;
mod lines;
mod look;
mod make;
mod open;
mod ordinals;
pub mod output;
mod read;
mod reject;
mod remedy;
mod row;
mod sample;
mod seen;
pub mod settings;
pub mod size;
mod source;
pub mod tables;
pub mod temporary;
pub mod visible;
mod walk;
mod warc;

pub use chunk::{Body, Chunk, Line, Rows, Text, changed, for_each_chunk};
pub use detect::Format;
pub use evidence::{Proofs, Wanted};
pub use exported::Export;
pub use fields::{Fields, Names, TEXT_FIELDS};
pub use flow::for_each_made;
pub use inputs::{Draw, Inputs, Origins, files_from};
pub use kind::Kind;
pub use look::Bring;
pub use make::{json_string, row_label, row_text, says_html, takes_html};
pub use open::{Compression, without_compression};
pub use read::{Bad, Blank, Document, Ids, Reading, Sink, Totals};
pub use reject::{MaxBad, Place, Policy, Reason, Rejects};
pub use row::text_parts;
pub use source::{Options, Source};
pub use tables::{learn, readable_twice};
pub use walk::{Reading as Walking, is_index};
pub use warc::WarcId;

/// Feeds the reader of rows with the inputs of a fuzzer.
#[cfg(feature = "coverage")]
pub fn fuzz_rows(bytes: &[u8]) {
    fuzzing::rows(bytes);
}
