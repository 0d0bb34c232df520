//! Text: documents become tokens, tokens become the features that a sketch is made of.
//!
//! Every step is a pure function of the text and of what [`Pipeline::descriptor`] names, so a
//! descriptor stored beside fingerprints tells whether a new text can be compared with them.
//!
//! The way of a text: main content of a page ([`main_text`]), normal form ([`normalise`]),
//! cleaning ([`clean_post`], [`clean_page`]), tokens ([`tokens`]), n-grams, weights, fingerprint.

mod clean;
mod descriptor;
mod dictionary;
mod features;
mod grams;
mod html;
mod idf;
mod letter;
mod ngrams;
mod normalise;
mod options;
mod pipeline;
mod seen;
mod segment;
mod words;

pub use clean::{clean_page, clean_post};
pub use html::main_text;
pub use normalise::normalise;
pub use options::{Clean, PipelineOptions, Segment};
pub use pipeline::{Feature, Pipeline, Sketch};
pub use segment::tokens;

pub use crate::sketch::{SketchKind, Weights};
