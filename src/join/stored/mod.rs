//! Stored: near pairs and groups of the documents of an index, or of two.
//!
//! Fingerprints are joined as sets; documents are read from the postings, beforehand if they fit
//! the memory, and for many pairs together otherwise.

mod across;
mod checked;
mod documents;
mod first_table;
mod forest;
mod held;
mod pairing;
mod pending;
mod postings;

pub use self::documents::{Cluster, DocumentPair};
