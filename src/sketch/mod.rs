//! Sketches: weighted features become one fingerprint.
//!
//! Everything here is integer arithmetic over a fixed hash, so equal features with equal weights
//! give equal fingerprints on every machine, in whatever order they arrive.

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
