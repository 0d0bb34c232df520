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

mod descriptor;
mod features;
mod form;
mod lexicon;
mod options;
mod pipeline;
mod rarity;
mod resources;
mod secret;
mod tokens;

pub(crate) use descriptor::{renewed, require as require_resources, without_keys};
pub use form::casefold::casefold;
pub use form::clean::{Clean, clean_page, clean_post};
pub use form::encoding::{Decoded, Encoding, decode, looks_binary};
pub use form::html::main_text;
pub(crate) use form::letter::{is_dense, letters};
pub use form::normalise::normalise;
pub use options::{NormalForm, PipelineOptions};
pub use pipeline::{Feature, Pipeline, Sketch};
pub use rarity::centre::Centre;
pub use rarity::idf_learner::IdfLearner;
pub use rarity::idf_table::IdfTable;
pub use rarity::weight_table::WeightTable;
pub use resources::Resources;
pub use secret::Secret;
pub use tokens::dictionary::Dictionary;
pub use tokens::segment::{Segment, tokens};
pub use tokens::stop_words::StopWords;
pub(crate) use tokens::terms::{TermKind, for_each_term};

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
