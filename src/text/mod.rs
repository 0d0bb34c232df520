//! Text pipelines: from the bytes of a document to its weighted features and fingerprint.
//!
//! Every step is a pure function of the text and of what [`Pipeline::descriptor`] names. If a
//! stored descriptor equals that of a pipeline, their fingerprints can be compared.
//!
//! The steps: decoding ([`decode`]), main content of a page ([`main_text`]), normal form
//! ([`normalise`]), simplified characters (optional), cleaning ([`clean_post`], [`clean_page`]),
//! tokens ([`tokens`]) without stop words ([`StopWords`]), n-grams, weights ([`Weights`],
//! [`IdfTable`], [`WeightTable`]), fingerprint.
#![doc = include_str!("PIPELINES.md")]

mod alphabet;
mod batch;
mod casefold;
mod centre;
mod clean;
mod descriptor;
mod dictionary;
mod encoding;
mod features;
mod grams;
mod html;
mod idf;
mod idf_learner;
mod idf_table;
mod letter;
mod lexicon;
mod ngrams;
mod normalise;
mod numbered;
mod options;
mod pipeline;
mod resources;
mod scripts;
mod secret;
mod seen;
mod segment;
mod sift;
mod simple;
mod simplified;
mod stop_words;
mod unicode;
mod weight_table;
mod word_list;
mod words;

pub use casefold::casefold;
pub use centre::Centre;
pub use clean::{Clean, clean_page, clean_post};
pub(crate) use descriptor::{renewed, require as require_resources, without_keys};
pub use dictionary::Dictionary;
pub use encoding::{Decoded, Encoding, decode, looks_binary};
pub use html::main_text;
pub use idf_learner::IdfLearner;
pub use idf_table::IdfTable;
pub(crate) use letter::{is_dense, letters};
pub use normalise::normalise;
pub use options::{NormalForm, PipelineOptions};
pub use pipeline::{Feature, Pipeline, Sketch};
pub use resources::Resources;
pub use secret::Secret;
pub use segment::{Segment, tokens};
pub use stop_words::StopWords;
pub use weight_table::WeightTable;

pub use crate::sketch::{SketchKind, Weights};

/// Test support: checks that parsers of word tables name the faulty line.
#[cfg(test)]
mod refused {
    use crate::error::{Error, Result};

    /// Checks that each text is refused, with the line and the words in the error.
    pub(super) fn check<T>(
        table: &str,
        parse: impl Fn(&str) -> Result<T>,
        cases: &[(&str, u64, &str)],
    ) {
        for &(text, at, words) in cases {
            let Err(Error::InvalidLine { what, line, reason }) = parse(text) else {
                panic!("accepted {text}");
            };
            assert_eq!((what, line), (table, at), "{text}");
            assert!(reason.contains(words), "{text}: {reason}");
        }
    }
}
