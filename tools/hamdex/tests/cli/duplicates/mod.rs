//! Duplicates: what is removed and kept, by which settings, and how it is shown.

mod advice;
mod dedup;
mod page;
mod state;
