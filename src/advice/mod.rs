//! Advice: a sample of texts becomes the settings under which near-duplicates are found best.
//!
//! Short posts, long pages and source code need other features, other distances and other
//! checks. What a kind needs was measured once, on labelled pairs; what kind the texts at hand
//! are is told from a sample of them.

mod kind;
mod looks;
mod perturb;
mod profile;
mod sampler;
mod settings;
mod settle;
mod warning;
mod wishes;

pub use kind::Kind;
pub use perturb::Perturber;
pub use profile::{Features, LONG_TEXT, Profile, SHORT_TEXT};
pub use sampler::{SAMPLE, Sampler};
pub use settings::{Settings, Support};
pub use settle::{Advice, Settled, settle, settle_with};
pub use warning::warnings;
pub use wishes::Wishes;
