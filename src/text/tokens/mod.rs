//! Tokens: cleaned text is cut into words, and some are left out.

pub(super) mod dictionary;
pub(super) mod scripts;
pub(super) mod segment;
pub(super) mod stop_words;
pub(super) mod terms;
pub(super) mod word_list;
pub(super) mod words;
