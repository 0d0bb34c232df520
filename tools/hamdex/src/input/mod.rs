//! Inputs: files, directories and standard input become documents in a fixed order.
//!
//! Every row has an origin, its ordinal over all inputs. The same inputs give the same origins
//! again, which a second pass and a resumed build rely on.

mod chunk;
pub(crate) mod columnar;
mod delimited;
mod detect;
mod exported;
mod fields;
mod flow;
#[cfg(any(test, feature = "coverage"))]
pub(crate) mod fuzzing;
mod inputs;
mod json;
mod learn;
mod look;
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

pub(crate) use chunk::{Body, Chunk, Line, Rows, Text, changed, for_each_chunk};
pub(crate) use detect::Format;
pub(crate) use exported::Export;
pub(crate) use fields::{Fields, Names};
pub(crate) use flow::for_each_made;
pub(crate) use inputs::{Draw, Inputs, Origins};
pub(crate) use learn::{learn, readable_twice};
pub(crate) use look::Bring;
pub(crate) use make::{json_string, row_label, row_text, says_html, takes_html};
pub(crate) use open::{Compression, without_compression};
pub(crate) use proof::{Proofs, Wanted};
pub(crate) use read::{Blank, Document, Ids, Reading, Sink, Totals};
pub(crate) use reject::{MaxBad, Policy, Reason, Rejects};
pub(crate) use row::text_parts;
pub(crate) use source::{Kind, Options, Source};
pub(crate) use walk::{Reading as Walking, is_index};
pub(crate) use warc::WarcId;
