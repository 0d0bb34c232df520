//! Words of texts: which of them a text repeats, and which are boilerplate.

mod boilerplate;
mod counts;
mod cutter;
mod repetitions;

pub(super) use boilerplate::{OwnWordsCache, WordCounter};
pub use counts::BOILERPLATE_DOCUMENTS;
pub(super) use cutter::{TermCutter, TextTerms};
