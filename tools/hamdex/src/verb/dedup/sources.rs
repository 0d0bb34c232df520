//! Sources: what the library counts by file or value becomes rows of report.json and of the page.

use hamdex::Fingerprint;
use hamdex::dedup::{self, SourceCounts};
use serde::{Deserialize, Serialize};

use super::row::Label;
use super::write::Members;
use crate::failure::Result;

/// The loss of one source, with the ids of its documents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SourceRow<'a> {
    pub(super) name: String,
    pub(super) documents: u64,
    pub(super) kept: u64,
    pub(super) removed: u64,
    pub(super) removed_share: f64,
    pub(super) largest_group: Option<LargestGroup>,
    #[serde(bound(deserialize = "Label<'a>: Deserialize<'de>"))]
    pub(super) farthest: Option<FarthestPair<'a>>,
}

/// A group by what it holds of one source.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct LargestGroup {
    pub(super) cluster: u32,
    pub(super) documents: u64,
}

/// A removed document and the one that was kept for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FarthestPair<'a> {
    #[serde(bound(deserialize = "Label<'a>: Deserialize<'de>"))]
    pub(super) id: Label<'a>,
    #[serde(bound(deserialize = "Label<'a>: Deserialize<'de>"))]
    pub(super) kept_id: Label<'a>,
    pub(super) distance: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) similarity: Option<f64>,
}

/// The loss of every source, and warnings about it.
#[derive(Debug, Default)]
pub(super) struct Account<'a> {
    pub(super) rows: Vec<SourceRow<'a>>,
    /// Names the sources that lost nearly all documents.
    pub(super) gone: Option<String>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Account<'a> {
    /// Counts all sources, those first that lost the largest share.
    pub(super) fn of<F: Fingerprint>(members: &Members<'a, F>) -> Result<Self> {
        let source = |position| members.source(position);
        let counts = members.kept.sources.counts(&members.choice.decisions, source);
        let row = |counts: &SourceCounts| {
            let farthest = counts.farthest.map(|pair| {
                Ok::<_, hamdex::Error>(FarthestPair {
                    id: members.name(pair.removed)?,
                    kept_id: members.name(pair.kept)?,
                    distance: pair.distance,
                    similarity: pair.similarity,
                })
            });
            Ok(SourceRow {
                name: counts.name.clone(),
                documents: counts.documents(),
                kept: counts.kept,
                removed: counts.removed,
                removed_share: counts.removed_share(),
                largest_group: counts.largest_group.map(|group| LargestGroup {
                    cluster: group.cluster,
                    documents: group.documents,
                }),
                farthest: farthest.transpose()?,
            })
        };
        Ok(Self::told(counts.iter().map(row).collect::<Result<_>>()?, &counts))
    }

    /// Takes rows that another engine has counted.
    pub(super) fn of_rows(rows: Vec<SourceRow<'a>>) -> Self {
        let counts = |row: &SourceRow<'_>| SourceCounts::new(&row.name, row.kept, row.removed);
        let counts: Vec<SourceCounts> = rows.iter().map(counts).collect();
        Self::told(rows, &counts)
    }

    fn told(rows: Vec<SourceRow<'a>>, counts: &[SourceCounts]) -> Self {
        Self { rows, gone: dedup::gone_sources(counts), warnings: dedup::source_warnings(counts) }
    }
}
