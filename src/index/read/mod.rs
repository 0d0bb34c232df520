//! Reading: searches of one state of an index, one by one and in batches.

pub(super) mod batch;
pub(super) mod check_features;
pub(super) mod deltas;
pub(super) mod documents;
pub(super) mod entries;
pub(super) mod heavy;
pub(super) mod parts;
pub(super) mod postings;
pub(super) mod probing;
pub(super) mod query;
pub(super) mod query_tables;
pub(super) mod ranges;
pub(super) mod reader;
pub(super) mod search;
pub(super) mod sorted_sweep;
