//! Bytes: how keys, runs, packs and records are encoded.

pub(crate) mod codec;
pub(crate) mod delta_run;
pub(crate) mod keys;
pub(crate) mod pack;
pub(crate) mod run;
