//! Formats: the bytes of a source become rows, in batches and in order.

pub(crate) mod chunk;
pub mod columnar;
pub(crate) mod delimited;
pub(crate) mod fields;
pub(crate) mod flow;
pub(crate) mod gate;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod parts;
pub(crate) mod row;
mod values;
pub(crate) mod warc;
