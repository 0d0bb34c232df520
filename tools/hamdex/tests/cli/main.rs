//! The program as its users see it: arguments and files in, lines and a status out.

mod bad_rows;
mod dedup;
mod inputs;
mod joins;
mod output;
mod refusals;
mod store;
mod support;
mod usage;
