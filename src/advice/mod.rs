//! Advice: a sample of texts becomes the settings under which near-duplicates are found best.
//!
//! Posts, pages and source code in any language are under one rule, measured on labelled pairs:
//! the preset `text` with a centre learnt from a sample, a wide distance, and a check whose
//! threshold rises with the length of the texts. Older presets keep the settings measured for them.

mod choice;
mod kind;
mod looks;
mod perturb;
mod profile;
mod sampler;
mod settings;
mod settle;
mod warning;
mod wishes;

pub use choice::Choice;
pub use kind::Kind;
pub use perturb::Perturber;
pub use profile::{Features, Profile, SHORT_TEXT};
pub use sampler::{SAMPLE, Sampler};
pub use settings::{Settings, Support};
pub use settle::{Advice, Settled, settle, settle_with};
pub use warning::warnings;
pub use wishes::Wishes;
