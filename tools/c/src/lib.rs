//! The C interface: hamdex behind one header, a shared and a static library.
//!
//! Arguments are taken in types that have the layout of C's pointers and name what is behind
//! them (`Option<&T>`, `Option<Box<T>>`, `HamdexBytes`), so that NULL is an error like any other
//! and only [`slices`] has to trust a pointer and a length. `hamdex.h` is generated from these
//! sources, documentation and all; a test compares it.

#![allow(unsafe_code)] // exporting a name is; a test keeps everything else within `slices`

pub mod border;
pub mod bulk;
pub mod error;
pub mod fingerprint;
pub mod index;
pub mod pipeline;
pub mod search;
pub mod slices;
pub mod upkeep;
pub mod write;
