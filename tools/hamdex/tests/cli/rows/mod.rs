//! Rows: what is read of files and folders, and what becomes of every row.

pub(crate) mod bad_rows;
pub(crate) mod crawls;
mod first_contact;
mod inputs;
mod tables;
mod texts;
