//! Summaries: the counts of another engine become the same page.
//!
//! A cluster of machines counts next to its rows and collects the counts; only the texts of the
//! shown groups are copied.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::prints::{Prefix, Prints};
use super::seen::{Caught, Notes, Seen};
use super::{Group, PageFile};
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::Overwrite;
use crate::verb::dedup::report::{self, Report};
use crate::verb::dedup::sources::{Account, SourceRow};

/// Counts of a deduplication, and the texts of its largest groups.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Summary {
    documents: u64,
    kept: u64,
    clusters: u64,
    /// Rows that are no documents.
    rejects: u64,
    /// Documents removed because another one has an equal value.
    removed_unique_by: u64,
    /// Documents that had nothing to compare, by the reason.
    not_compared: BTreeMap<String, u64>,
    seconds: f64,
    inputs: Vec<String>,
    bits: u32,
    distance: u32,
    verification: String,
    verified_with_kept: bool,
    pipeline: String,
    keep: String,
    /// Numbers of groups by size.
    sizes: Vec<(usize, u64)>,
    /// Numbers of removed documents by distance.
    distances: Vec<(u32, u64)>,
    /// Numbers of removed documents by similarity.
    similarities: Vec<(f64, u64)>,
    /// Numbers of kept and of removed documents by length; lengths of a bin may be one.
    lengths: Vec<(usize, u64, u64)>,
    /// Documents with a one, for each bit from the most significant.
    ones: Vec<u64>,
    /// Prefixes in hexadecimal, with documents and distinct fingerprints, the most skewed first.
    prefixes: Vec<(String, u64, u64)>,
    /// The largest groups, the largest first.
    groups: Vec<Shown>,
    /// The loss of every source, the largest share first.
    #[serde(default)]
    sources: Vec<SourceRow<'static>>,
}

/// A group with the texts that are shown of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    size: u64,
    /// Distance of the two.
    distance: u32,
    kept: Member,
    far: Member,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    id: String,
    text: Option<String>,
}

impl Summary {
    /// Reads the counts of the other engine.
    pub(in super::super) fn read(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| Failure::io("summary", error.into()))
    }

    /// Writes the page.
    pub(in super::super) fn write(self, file: &PageFile) -> Result<()> {
        let mut page = file.open(Overwrite::Allowed)?;
        page.notes = Notes::of(&self.distances, &self.similarities);
        page.prints = Prints {
            documents: self.documents.saturating_sub(self.not_compared.values().sum()),
            ones: self.ones,
            digits: self.prefixes.first().map_or(1, |(name, ..)| name.len()),
            skewed: self.prefixes.into_iter().map(prefix).collect(),
        };
        let html = input::says_html(&self.pipeline);
        let mut caught = Vec::new();
        for (number, shown) in (1..).zip(self.groups) {
            let Shown { size, distance, kept, far } = shown;
            let mut catch = |member| {
                let position = u32::try_from(caught.len()).unwrap_or(u32::MAX);
                caught.push((position, caught_of(member, html)));
                position
            };
            let (kept, far) = (catch(kept), catch(far));
            page.groups.push(Group { cluster: number, size, kept, far, distance });
        }
        page.seen = Seen::of(&self.lengths, caught);
        let Account { rows: sources, gone, warnings } = Account::of_rows(self.sources);
        let report = Report {
            rows: self.documents + self.rejects,
            documents: self.documents,
            kept: self.kept,
            removed: self.documents.saturating_sub(self.kept),
            removed_against_index: 0,
            removed_unique_by: self.removed_unique_by,
            removed_boilerplate: None,
            sample: None,
            parts: None,
            not_compared: self
                .not_compared
                .iter()
                .map(|(kind, &count)| (kind.as_str(), count))
                .collect(),
            clusters: self.clusters,
            rejects: self.rejects,
            skipped_binary: 0,
            skipped_status: 0,
            skipped_type: 0,
            seconds: self.seconds,
            settings: report::Settings {
                inputs: self.inputs.iter().map(String::as_str).collect(),
                bits: self.bits,
                distance: self.distance,
                verification: self.verification,
                verified_with_kept: self.verified_with_kept,
                pipeline: &self.pipeline,
                keep: self.keep,
                to: None,
                unique_by: None,
                against: None,
                state: None,
            },
            advice: None,
            largest: Vec::new(),
            crowds: Vec::new(),
            sources,
            gone,
            warnings,
        };
        page.write(&report, &self.sizes.into_iter().collect())?.finish()
    }
}

fn prefix((name, documents, fingerprints): (String, u64, u64)) -> Prefix {
    Prefix { name, documents, fingerprints }
}

fn caught_of(Member { id, text }: Member, html: bool) -> Caught {
    let main = |text: String| if html { hamdex::text::main_text(&text) } else { text };
    Caught::of(id, text.map(|text| Cow::Owned(main(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = r#"{"documents":6,"kept":4,"clusters":1,"rejects":1,"removed_unique_by":0,"not_compared":{"empty text":1},"seconds":2.5,
        "inputs":["a.parquet"],"bits":64,"distance":3,"verification":"none",
        "verified_with_kept":false,"pipeline":"","keep":"first","sizes":[[3,1]],
        "distances":[[0,1],[2,1]],"similarities":[],"lengths":[[12,3,0],[40,0,2]],
        "ones":[5,2,1],"prefixes":[["a",3,2],["0",2,2]],
        "groups":[{"size":3,"distance":2,"kept":{"id":"d1","text":"sunny 公园 days"},
                   "far":{"id":"d<2>","text":"sunny 公园 nights"}}],
        "sources":[{"name":"b.org","documents":25,"kept":0,"removed":25,"removed_share":1.0,
                    "largest_group":{"cluster":1,"documents":2},
                    "farthest":{"id":7,"kept_id":"d1","distance":2,"similarity":null}},
                   {"name":"a.org","documents":2,"kept":2,"removed":0,"removed_share":0.0,
                    "largest_group":null,"farthest":null}]}"#;

    #[test]
    fn counts_of_another_engine_fill_the_page() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.html");
        let file: PageFile = path.to_str().unwrap().parse().unwrap();
        Summary::read(TOLD).unwrap().write(&file).unwrap();
        let page = std::fs::read_to_string(&path).unwrap();
        for part in [
            "<b>6</b><span>documents</span>",
            "kept, 66.7 %",
            "<b>1</b><span>kept, empty text</span>",
            "1 groups of near-duplicates, the largest of 3 documents.",
            "50 % of the removed documents have the fingerprint of the kept one.",
            "Lengths of texts",
            "The most skewed of 16 prefixes",
            "The least balanced bit is 0: it is set in 100.0 %",
            "Group 1: 3 documents",
            "d&lt;2&gt;",
            "<mark>nights</mark>",
            "Warning: 25 of the 25 documents of b.org were removed, next to all",
            "Nearly all documents were removed from: b.org.",
            "2 in group 1",
            "7 for d1: 2 bits",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn a_summary_that_is_none_is_refused() {
        for bad in ["", "{}", &TOLD.replace("\"kept\":4", "\"left\":3")] {
            assert!(Summary::read(bad).is_err(), "{bad}");
        }
    }
}
