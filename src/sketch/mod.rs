//! Sketches: compute one fingerprint from weighted features.
//!
//! All arithmetic is on integers over a fixed hash. Equal features with equal weights give equal
//! fingerprints on every machine and in any order.

mod hash;
mod longest;
mod minhash;
mod signature;
mod simhash;
mod weights;

pub use hash::feature_hash;
pub use longest::Longest;
pub use minhash::MinHash;
pub use signature::{Signature, SketchKind};
pub use simhash::{BitSums, simhash};
pub use weights::{IDF_SCALE, Weights};
