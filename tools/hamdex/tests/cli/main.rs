//! The program as its users see it: arguments and files in, lines and a status out.

// Helpers of tests may panic as tests do, and raw files are little-endian.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::little_endian_bytes)]

mod duplicates;
mod guide;
mod output;
mod rows;
mod signals;
mod snapshots;
mod stored;
mod support;
mod usage;
