//! Documents: a row becomes a key, a fingerprint and evidence, or is rejected by a reason.

pub mod evidence;
pub mod key;
pub(crate) mod make;
pub(crate) mod ordinals;
pub(crate) mod read;
pub(crate) mod reject;
pub(crate) mod seen;
pub(crate) mod sink;
pub mod tables;
