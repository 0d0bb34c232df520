//! Sorting outside memory: records of any length become one ascending stream.
//!
//! Bulk builds sort documents and postings with it, and a spanning forest the pairs of a join.

mod chunk;
mod merge;
mod sorter;
pub(crate) mod spill;

pub(crate) use merge::{Sorted, next_merge};
pub(crate) use sorter::RecordSorter;
