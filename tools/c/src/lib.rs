//! The C interface: one header, a shared and a static library.
//!
//! Functions take types that have the layout of C's pointers and describe what they point to
//! (`Option<&T>`, `Option<Box<T>>`, `HamdexBytes`). So NULL is an ordinary error, and only
//! [`slices`] has to trust a pointer and a length. `hamdex.h` is generated from these sources and
//! their documentation; a test compares it.

#![allow(unsafe_code)] // for exported names; a test confines everything else to `slices`

pub mod dedup;
pub mod error;
pub mod files;
pub mod index;
pub mod pipeline;
pub mod search;
pub mod slices;
pub mod stop;
pub mod upkeep;
pub mod write;
