//! Words of texts: which of them a text repeats, and which are boilerplate.

mod boilerplate;
mod cutter;
mod repetitions;

pub use boilerplate::BOILERPLATE_DOCUMENTS;
pub(super) use boilerplate::{OwnWordsCache, WordCounter};
pub(super) use cutter::{TermCutter, TextTerms};
