//! Advice: chooses the settings that suit a sample of texts.
//!
//! One rule, measured on labelled pairs, covers posts, pages and source code in any language: the
//! preset `text` with a centre learnt from the sample, a large distance, and a verification whose
//! threshold rises with the length of the texts. Older presets keep the settings measured for them.

mod kind;
mod looks;
mod overrides;
mod perturb;
mod profile;
mod resolve;
mod sampler;
mod settings;
mod warning;

pub use kind::Kind;
pub use overrides::Overrides;
pub use perturb::Perturber;
pub use profile::{Features, Profile, SHORT_TEXT};
pub use resolve::{Advice, Resolved, resolve, resolve_with};
pub use sampler::{SAMPLE, Sampler};
pub use settings::{Choice, Settings, Support};
pub use warning::warnings;
