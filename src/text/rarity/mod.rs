//! Rarity: what a corpus or the caller says about the weight of words and bits.

pub(super) mod centre;
pub(super) mod idf;
pub(super) mod idf_learner;
pub(super) mod idf_table;
pub(super) mod weight_table;
