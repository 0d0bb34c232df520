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

mod documents;
mod face;
mod formats;
#[cfg(any(test, feature = "coverage"))]
mod fuzzing;
pub mod job;
pub mod settings;
mod sources;

pub use documents::evidence::{Proofs, Wanted};
pub use documents::make::{json_string, row_label, row_text, says_html, takes_html};
pub use documents::read::{Ids, Reading, Repeat, Totals};
pub use documents::reject::{MaxBad, Place, Policy, Reason, Rejects};
pub use documents::sink::{Bad, Blank, Document, Sink};
pub use documents::tables::{learn, readable_twice};
pub use documents::{evidence, key, tables};
pub use face::{failure, host, output, size, temporary, visible};
pub use formats::chunk::{Body, Chunk, Line, Rows, Text, changed, for_each_chunk};
pub use formats::columnar;
pub use formats::fields::{Fields, ID_FIELD, Names, TEXT_FIELDS, default_among};
pub use formats::flow::for_each_made;
pub use formats::parts::text_parts;
pub use formats::warc::WarcId;
pub use sources::detect::Format;
pub use sources::exported::Export;
pub use sources::inputs::{Draw, Inputs, Origins, files_from};
pub use sources::kind::Kind;
pub use sources::look::Bring;
pub use sources::open::{Compression, without_compression};
pub use sources::source::{Options, Source};
pub use sources::walk::{Reading as Walking, is_index};

/// Feeds the reader of rows with the inputs of a fuzzer.
#[cfg(feature = "coverage")]
pub fn fuzz_rows(bytes: &[u8]) {
    fuzzing::rows(bytes);
}
