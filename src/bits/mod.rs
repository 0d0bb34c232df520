//! Bits: which bits lead a table, how far they are flipped, and which table owns a pair.
//!
//! Stored plans, resident tables, joins and keys of many machines cut fingerprints and divide
//! pairs by these rules.
#![expect(
    clippy::indexing_slicing,
    reason = "tables and needs are numbered here; a wrong index must panic, not lose matches"
)]

mod choices;
mod digits;
mod owner;
mod radii;
mod segment;

pub(crate) use choices::{ball, binomial, choices, share_within};
pub(crate) use digits::Digits;
pub(crate) use owner::{Bound, Owner};
pub(crate) use radii::cheapest;
pub use segment::Segment;
pub(crate) use segment::{low_ones, split, width};
