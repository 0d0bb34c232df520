//! The job of a deduplication: rows are collected, values made unique, and every row decided.
//!
//! The command line, the Python package and the C interface run this one job, so all keep the same
//! rows. It holds what the decision needs of every document, and no text.

use std::collections::{HashMap, HashSet};

use hamdex::dedup::{
    Decided, Decision, Decisions, Dedup, DedupOptions, Sources, Stamp, State, Trail,
};
use hamdex::verify::EvidencePreparer;
use hamdex::{Fingerprint, Index, Progress};

use crate::documents::evidence::Proofs;
use crate::documents::ordinals::Ordinals;
use crate::documents::sink::{Blank, Document, Sink};
use crate::face::failure::{Failure, Result};
use crate::face::size::Count;

/// Which document of a group is kept; among equals the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    First,
    Longest,
    /// The one with the largest value of this field.
    Largest(Field),
}

/// A field whose largest value is kept, by the word that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub word: &'static str,
    pub name: String,
}

const KEEPS: &str = "expected first, longest, newest:FIELD or best:FIELD";

impl std::str::FromStr for Keep {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "first" => Ok(Self::First),
            None if text == "longest" => Ok(Self::Longest),
            Some((word, name)) if !name.is_empty() => {
                let word = ["newest", "best"].into_iter().find(|known| *known == word);
                let field = |word| Self::Largest(Field { word, name: name.to_owned() });
                word.map(field).ok_or(KEEPS)
            }
            _ => Err(KEEPS),
        }
    }
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Longest => f.write_str("longest"),
            Self::Largest(Field { word, name }) => write!(f, "{word}:{name}"),
        }
    }
}

/// The rows to leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum To {
    Rows(u64),
    /// A share of all rows.
    Share(f64),
}

impl std::str::FromStr for To {
    type Err = String;

    /// Parses a count, a share with a point, or a percentage.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            || format!("\"{text}\" is not a count of rows or a share, such as 5000, 0.8 or 80%");
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
            None if text.contains('.') => text.parse().ok(),
            None => {
                let Count(rows) = text.parse().map_err(|_| wrong())?;
                return Some(rows).filter(|&rows| rows > 0).map(Self::Rows).ok_or_else(wrong);
            }
        };
        let share = share.filter(|share| (0.0..=1.0).contains(share) && *share > 0.0);
        share.map(Self::Share).ok_or_else(wrong)
    }
}

impl To {
    /// Returns the number of rows; a share of one row is rounded up.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a count
    pub fn rows(self, all: u64) -> u64 {
        match self {
            Self::Rows(rows) => rows,
            // The small term undoes what the product adds.
            Self::Share(share) => (all as f64 * share - 1e-6).ceil() as u64,
        }
    }
}

/// Documents in the order of the inputs.
#[derive(Debug)]
pub struct Documents<F> {
    ranked: Ranked<F>,
    /// Ordinal of each document's row over all inputs.
    origins: Ordinals,
    /// The same of rows with nothing to compare.
    blanks: Ordinals,
    /// Whether a row has a value that decides which one is kept.
    stamped: bool,
    /// Where rows come from; `None` if that is their file.
    named: Option<Named>,
    /// Values that rows must not share; `None` if they may.
    unique: Option<Unique>,
    /// Hashes of the documents' ids as keys of an index; `None` without an index.
    keys: Option<Vec<Option<u128>>>,
    /// Bytes that verifications compare.
    evidence: u64,
}

/// Documents by what decides between those of a group.
#[derive(Debug)]
enum Ranked<F> {
    Order(Dedup<F>),
    Length(Dedup<F, u64>),
    Largest(Dedup<F, Stamp>),
}

/// Rows by a value that only one of them may keep.
#[derive(Debug, Default)]
struct Unique {
    rows: Vec<UniqueRow>,
}

#[derive(Debug)]
struct UniqueRow {
    value: u128,
    origin: u64,
    /// Position among the documents; `None` of a row with nothing to compare.
    position: Option<u32>,
    rank: Rank,
}

/// What decides between rows with equal values; one kind per run.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Order,
    Length(u64),
    Largest(Stamp),
}

/// What the documents are compared with besides each other.
#[derive(Debug, Clone, Copy)]
pub enum Against<'a, F: Fingerprint> {
    Nothing,
    Index(&'a Index<F>),
    State(&'a State<F>),
}

/// The purpose of the collection.
#[derive(Debug)]
pub struct Purpose<'a> {
    pub keep: &'a Keep,
    pub near: &'a DedupOptions,
    pub unique: bool,
    pub against: bool,
    pub sourced: bool,
}

impl<F: Fingerprint> Documents<F> {
    /// Creates an empty collection.
    pub fn new(purpose: &Purpose<'_>) -> Result<Self> {
        let settings = purpose.near;
        let ranked = match purpose.keep {
            Keep::First => Ranked::Order(Dedup::new(settings)?),
            Keep::Longest => Ranked::Length(Dedup::new(settings)?),
            Keep::Largest(_) => Ranked::Largest(Dedup::new(settings)?),
        };
        Ok(Self {
            ranked,
            origins: Ordinals::default(),
            blanks: Ordinals::default(),
            stamped: false,
            named: purpose.sourced.then(Named::default),
            unique: purpose.unique.then(Unique::default),
            keys: purpose.against.then(Vec::new),
            evidence: 0,
        })
    }

    /// Returns the number of rows: documents, and rows with nothing to compare.
    pub fn rows(&self) -> u64 {
        (self.origins.count() + self.blanks.count()) as u64
    }

    /// Returns the bytes that verifications compare.
    pub fn evidence(&self) -> u64 {
        self.evidence
    }

    /// Returns true if a row has a value that decides which one is kept.
    pub fn stamped(&self) -> bool {
        self.stamped
    }

    /// Returns true if a row names its source.
    fn sourced(&self) -> bool {
        self.named.as_ref().is_some_and(|named| named.sources.has_values())
    }

    /// Refuses fields that no row has.
    pub fn require_fields(&self, keep: &Keep, source: Option<&str>) -> Result<()> {
        if self.rows() == 0 {
            return Ok(());
        }
        let (largest, option) = match keep {
            Keep::Largest(Field { word: "best", name }) => (Some(&**name), "--prefer best"),
            Keep::Largest(Field { name, .. }) => (Some(&**name), "--prefer newest"),
            Keep::First | Keep::Longest => (None, ""),
        };
        for (field, option, found) in
            [(largest, option, self.stamped), (source, "--source-field", self.sourced())]
        {
            if let Some(field) = field.filter(|_| !found) {
                return Err(Failure::NoField { field: field.to_owned(), option });
            }
        }
        Ok(())
    }

    /// Returns the number of documents without text, if texts are compared.
    pub fn without(&self) -> u64 {
        match &self.ranked {
            Ranked::Order(dedup) => dedup.unverifiable(),
            Ranked::Length(dedup) => dedup.unverifiable(),
            Ranked::Largest(dedup) => dedup.unverifiable(),
        }
    }

    fn rank(&self, length: u64, stamp: &Stamp) -> Rank {
        match self.ranked {
            Ranked::Order(_) => Rank::Order,
            Ranked::Length(_) => Rank::Length(length),
            Ranked::Largest(_) => Rank::Largest(stamp.clone()),
        }
    }

    fn note(&mut self, value: Option<u128>, origin: u64, position: Option<u32>, rank: Rank) {
        if let (Some(unique), Some(value)) = (&mut self.unique, value) {
            unique.rows.push(UniqueRow { value, origin, position, rank });
        }
    }

    /// Decides which rows to keep and to remove.
    ///
    /// `leave` is the number of rows that near-duplicates are removed down to.
    pub fn decide(
        self,
        against: Against<'_, F>,
        leave: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<Choice<F>> {
        let (repeats, excluded) = self.unique.map_or_else(Default::default, Unique::repeats);
        // Rows with nothing to compare are left in any case.
        let blanks = self.blanks.count() - (repeats.len() - excluded.len());
        let leave = leave.map(|rows| rows.saturating_sub(blanks as u64));
        let leave = leave.map(|documents| u32::try_from(documents).unwrap_or(u32::MAX));
        let excluded = (&*excluded, leave);
        let keys = self.keys.as_deref();
        let (decisions, trail) = match self.ranked {
            Ranked::Order(dedup) => finish(dedup, excluded, against, keys, progress)?,
            Ranked::Length(dedup) => finish(dedup, excluded, against, keys, progress)?,
            Ranked::Largest(dedup) => finish(dedup, excluded, against, keys, progress)?,
        };
        let shared = repeats.values().copied().collect();
        let Self { origins, blanks, named, .. } = self;
        Ok(Choice { decisions, trail, origins, blanks, named, repeats, shared })
    }
}

fn push<F: Fingerprint, R: Ord + Sync>(
    dedup: &mut Dedup<F, R>,
    fingerprint: F,
    proofs: Proofs,
    rank: R,
) -> Result<()> {
    match proofs.prepared {
        Some(evidence) => dedup.push_prepared(fingerprint, Some(evidence), rank)?,
        None => dedup.push(fingerprint, proofs.evidence(), rank)?,
    };
    Ok(())
}

fn finish<F: Fingerprint, R: Ord + Sync>(
    mut dedup: Dedup<F, R>,
    (excluded, leave): (&[u32], Option<u32>),
    against: Against<'_, F>,
    keys: Option<&[Option<u128>]>,
    progress: &dyn Progress,
) -> hamdex::Result<(Decisions<F>, Option<Trail>)> {
    for &position in excluded {
        dedup.exclude(position);
    }
    if let Some(documents) = leave {
        dedup.leave_at_least(documents);
    }
    match against {
        Against::Index(index) => {
            let own = |position: u32| keys?.get(position as usize).copied().flatten();
            Ok((dedup.finish_against_others(index, &own, progress)?, None))
        }
        Against::State(state) => {
            let Decided { decisions, trail, .. } = state.decide(dedup, progress)?;
            Ok((decisions, Some(trail)))
        }
        Against::Nothing => Ok((dedup.finish(progress)?, None)),
    }
}

impl Unique {
    /// Finds the rows to remove, each with the row that is kept, and their positions.
    fn repeats(self) -> (HashMap<u64, u64>, Vec<u32>) {
        let mut best: HashMap<u128, &UniqueRow> = HashMap::new();
        for row in &self.rows {
            let kept = best.entry(row.value).or_insert(row);
            if row.rank > kept.rank {
                *kept = row;
            }
        }
        let (mut repeats, mut positions) = (HashMap::new(), Vec::new());
        for row in &self.rows {
            let kept = best.get(&row.value).map_or(row.origin, |kept| kept.origin);
            if kept != row.origin {
                repeats.insert(row.origin, kept);
                positions.extend(row.position);
            }
        }
        (repeats, positions)
    }
}

impl<F: Fingerprint> Choice<F> {
    /// Returns true if this row is a document that is kept.
    pub fn keeps(&self, origin: u64) -> bool {
        let found = self.origins.find(origin);
        let position = found.and_then(|position| u32::try_from(position).ok());
        !self.repeats.contains_key(&origin)
            && position.is_some_and(|position| {
                matches!(self.decisions.of(position), Decision::Kept { .. })
            })
    }
}

impl<F: Fingerprint> Sink<F> for Documents<F> {
    fn preparer(&self) -> Option<EvidencePreparer> {
        match &self.ranked {
            Ranked::Order(dedup) => dedup.preparer(),
            Ranked::Length(dedup) => dedup.preparer(),
            Ranked::Largest(dedup) => dedup.preparer(),
        }
    }

    fn document(&mut self, document: Document<'_, F>) -> Result<()> {
        let Document { key, fingerprint, proofs, length, stamp, unique, source, origin, .. } =
            document;
        if let Some(named) = &mut self.named {
            named.document(source.as_deref());
        }
        if unique.is_some() {
            let position = u32::try_from(self.origins.count()).ok();
            self.note(unique, origin, position, self.rank(length, &stamp));
        }
        self.stamped |= !stamp.is_missing();
        self.evidence += proofs.evidence().len() as u64;
        match &mut self.ranked {
            Ranked::Order(dedup) => push(dedup, fingerprint, proofs, ())?,
            Ranked::Length(dedup) => push(dedup, fingerprint, proofs, length)?,
            Ranked::Largest(dedup) => push(dedup, fingerprint, proofs, stamp)?,
        }
        self.origins.push(origin);
        if let Some(keys) = &mut self.keys {
            keys.push(Some(hamdex::dedup::key_hash(key)));
        }
        Ok(())
    }

    fn blank(&mut self, blank: Blank) -> Result<()> {
        let Blank { length, stamp, unique, source, origin, .. } = blank;
        if let Some(named) = &mut self.named {
            named.blank(source.as_deref());
        }
        self.stamped |= !stamp.is_missing();
        self.note(unique, origin, None, self.rank(length, &stamp));
        self.blanks.push(origin);
        Ok(())
    }
}

/// The decision about every row.
#[derive(Debug)]
pub struct Choice<F> {
    pub decisions: Decisions<F>,
    /// The additions to the state; `None` without one.
    pub trail: Option<Trail>,
    /// Ordinal of each document's row over all inputs.
    pub origins: Ordinals,
    /// The same of rows with nothing to compare, which are kept.
    pub blanks: Ordinals,
    /// Where they come from; `None` if that is their file.
    pub named: Option<Named>,
    /// Rows that share a value with a kept one, by ordinal, and the ordinal of that one.
    pub repeats: HashMap<u64, u64>,
    /// Ordinals of the rows that are kept of these.
    pub shared: HashSet<u64>,
}

impl<F: Fingerprint> Choice<F> {
    /// Returns whether the results name a row; `position` is that of a document.
    pub fn is_labelled(&self, position: Option<u32>, origin: u64) -> bool {
        let named = |position| {
            self.trail.is_some()
                || self.decisions.of(position) != (Decision::Kept { cluster: None })
        };
        position.is_some_and(named)
            || self.repeats.contains_key(&origin)
            || self.shared.contains(&origin)
    }
}

/// Source of rows, by a field.
#[derive(Debug, Default)]
pub struct Named {
    pub sources: Sources,
    /// The source of every document, and of every row with nothing to compare.
    documents: Vec<u32>,
    blanks: Vec<u32>,
}

impl Named {
    pub fn document(&mut self, value: Option<&str>) {
        let source = self.sources.number(value);
        self.documents.push(source);
    }

    pub fn blank(&mut self, value: Option<&str>) {
        let source = self.sources.number(value);
        self.blanks.push(source);
    }

    pub fn of_document(&self, position: u32) -> u32 {
        self.documents.get(position as usize).copied().unwrap_or(u32::MAX)
    }

    pub fn of_blank(&self, position: usize) -> u32 {
        self.blanks.get(position).copied().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_counts_or_shares_of_all_rows() {
        let rows = |text: &str| text.parse::<To>().map(|to| to.rows(250));
        assert_eq!(rows("80"), Ok(80));
        assert_eq!(rows("2k"), Ok(2000));
        assert_eq!([rows("0.8"), rows("80%"), rows("1.0")], [Ok(200), Ok(200), Ok(250)]);
        assert_eq!(rows("0.001"), Ok(1));
        for bad in ["", "0", "0.0", "1.5", "120%", "-3", "half"] {
            assert!(rows(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn choices_of_what_to_keep_parse_back() {
        for text in ["first", "longest", "newest:date", "best:meta.score"] {
            assert_eq!(text.parse::<Keep>().unwrap().to_string(), text);
        }
        for bad in ["", "newest", "newest:", "best:", "worst:score", "last"] {
            assert!(bad.parse::<Keep>().is_err(), "{bad}");
        }
    }
}
