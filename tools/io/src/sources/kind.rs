//! Kinds of sources: what a row is, by the format of the file.

use std::path::Path;

use super::detect::Format;
use super::walk::Listing;
use crate::face::failure::Result;
use crate::formats::columnar::Columnar;

/// The kind of rows in a source.
#[derive(Debug)]
pub enum Kind {
    /// JSON Lines.
    Lines,
    /// JSON documents with one row or many.
    Json,
    /// Parquet or Arrow.
    Columnar(Columnar),
    /// CSV, with that byte between cells as a rule.
    Delimited(u8),
    /// Little-endian fingerprints of that many bits.
    Raw(u32),
    /// One document.
    Text,
    /// Records of a web crawl, compressed or not.
    Warc,
    /// One document per text file.
    Directory(Listing),
}

impl Kind {
    /// Returns the kind of a file of this format; opens one whose columns say more.
    pub(crate) fn of(path: &Path, format: Format) -> Result<Self> {
        Ok(match format {
            Format::Jsonl => Self::Lines,
            Format::Json => Self::Json,
            Format::Csv => Self::Delimited(b','),
            Format::Tsv => Self::Delimited(b'\t'),
            Format::Parquet => Self::Columnar(Columnar::parquet(path)?),
            Format::Arrow => Self::Columnar(Columnar::arrow(path)?),
            Format::Warc => Self::Warc,
            Format::Text => Self::Text,
            Format::U32 => Self::Raw(32),
            Format::U64 => Self::Raw(64),
            Format::U128 => Self::Raw(128),
        })
    }
}
