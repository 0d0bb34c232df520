//! The program as its users see it: arguments and files in, lines and a status out.

// Helpers of tests may panic as tests do, and raw files are little-endian.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::little_endian_bytes)]

mod advice;
mod backups;
mod bad_rows;
mod builds;
mod crawls;
mod dedup;
mod first_contact;
mod guide;
mod inputs;
mod output;
mod page;
mod refusals;
mod signals;
mod snapshots;
mod state;
mod store;
mod support;
mod tables;
mod texts;
mod usage;
mod verify;
