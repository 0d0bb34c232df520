//! Families: which data is stored where, and under which name.

use std::fmt;

/// One key space of the index, a `RocksDB` column family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Header, state and the marker of an unfinished build.
    Meta,
    /// Document key to record.
    Docs,
    /// Fingerprint and document key to nothing.
    Postings,
    /// Permuted fingerprints of one table, as runs and delta entries.
    Table(usize),
}

impl Family {
    /// Returns the family's name in a generation. `Meta` belongs to all generations.
    pub(crate) fn name(self, generation: u32) -> String {
        match self {
            Self::Meta => "meta".to_owned(),
            Self::Docs => format!("docs.{generation}"),
            Self::Postings => format!("postings.{generation}"),
            Self::Table(table) => format!("table{table:03}.{generation}"),
        }
    }

    /// Returns every family that belongs to a generation.
    pub(crate) fn of_generation(tables: usize) -> impl Iterator<Item = Self> {
        [Self::Docs, Self::Postings].into_iter().chain((0..tables).map(Self::Table))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta => f.write_str("meta"),
            Self::Docs => f.write_str("docs"),
            Self::Postings => f.write_str("postings"),
            Self::Table(table) => write!(f, "table {table}"),
        }
    }
}
