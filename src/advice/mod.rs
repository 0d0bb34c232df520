//! Advice: chooses the settings that suit a sample of texts.
//!
//! One rule, measured on labelled pairs, covers posts, pages and source code in any language: the
//! preset `text` with a centre learnt from the sample, a large distance, and a verification whose
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
