//! Queries and their answers: a fingerprint in, matches with key and distance out.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::resident::TableAccount;
use crate::verify::Verification;

/// The way a search goes; every way gives the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchPath {
    /// The cheaper one by the cost model.
    #[default]
    Auto,
    /// Probing the permutation tables.
    Tables,
    /// Comparing with every stored fingerprint.
    Scan,
    /// Memory, where [`OpenOptions::resident`](crate::OpenOptions::resident) or
    /// [`Index::load_resident`](crate::Index::load_resident) has loaded it.
    Resident,
}

/// A search: a fingerprint, how far matches may lie, how many are wanted.
///
/// ```
/// use hamdex::Query;
///
/// let query = Query::new(0xdead_beef_u64).distance(8).limit(10);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Query<F> {
    pub(crate) fingerprint: F,
    pub(crate) distance: Option<u32>,
    pub(crate) limit: Option<usize>,
    pub(crate) path: SearchPath,
    pub(crate) verification: Verification,
    pub(crate) evidence: Vec<u8>,
}

impl<F: Fingerprint> Query<F> {
    /// Asks for everything within the index's own distance.
    pub fn new(fingerprint: F) -> Self {
        Self {
            fingerprint,
            distance: None,
            limit: None,
            path: SearchPath::Auto,
            verification: Verification::None,
            evidence: Vec::new(),
        }
    }

    /// Sets how many bits may differ: 0 to a quarter of the width.
    pub fn distance(mut self, bits: u32) -> Self {
        self.distance = Some(bits);
        self
    }

    /// Sets how many of the nearest matches are returned. Default = all.
    pub fn limit(mut self, matches: usize) -> Self {
        self.limit = Some(matches);
        self
    }

    /// Sets the way that the search goes. Default = the cheaper one.
    pub fn path(mut self, path: SearchPath) -> Self {
        self.path = path;
        self
    }

    /// Returns only matches that pass a check of features shared. Default = all within reach.
    ///
    /// `evidence` is that of the text searched for, as [`Verification::evidence`] makes it; it is
    /// compared with the feature sets that the index keeps. The limit counts matches that pass.
    pub fn verify(mut self, verification: Verification, evidence: impl Into<Vec<u8>>) -> Self {
        self.verification = verification;
        self.evidence = evidence.into();
        self
    }

    /// The distance that counts, checked against the width.
    pub(crate) fn effective_distance(&self, default: u32) -> Result<u32> {
        check_distance::<F>(self.distance.unwrap_or(default))
    }
}

impl<F: Fingerprint> From<F> for Query<F> {
    fn from(fingerprint: F) -> Self {
        Self::new(fingerprint)
    }
}

/// Refuses distances above a quarter of the width.
pub(crate) fn check_distance<F: Fingerprint>(distance: u32) -> Result<u32> {
    if distance > F::MAX_DISTANCE {
        return Err(Error::InvalidDistance { distance, bits: F::BITS, max: F::MAX_DISTANCE });
    }
    Ok(distance)
}

/// A stored document within the distance of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Match<F> {
    /// The document's key.
    pub key: Vec<u8>,
    /// Its stored fingerprint.
    pub fingerprint: F,
    /// How many bits it differs from the query.
    pub distance: u32,
    /// How much it is like the query, where the query asked for a check.
    pub similarity: Option<f64>,
}

/// What one table did for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableExplanation {
    /// Number of the table, from 0.
    pub table: usize,
    /// Bits that its ranges agree on.
    pub prefix_bits: u32,
    /// Flips tried on the prefix; `None` where the table was not used.
    pub radius: Option<u32>,
    /// Ranges of keys that were read.
    pub ranges: u64,
    /// Runs that were decoded.
    pub runs: u64,
    /// Fingerprints compared with the query.
    pub candidates: u64,
    /// Fingerprints found within the distance, before repetitions are dropped.
    ///
    /// Not counted, and 0, where memory answers.
    pub matches: u64,
    /// Blocks read from files, because the block cache did not hold them.
    pub blocks: u64,
}

impl TableExplanation {
    /// Adds what a part of the work has done.
    pub(super) fn add(&mut self, done: &Self) {
        self.ranges += done.ranges;
        self.runs += done.runs;
        self.candidates += done.candidates;
        self.matches += done.matches;
        self.blocks += done.blocks;
    }

    pub(super) fn of_memory((table, account): (usize, &TableAccount)) -> Self {
        Self {
            table,
            prefix_bits: account.bucket_bits,
            radius: account.radius,
            ranges: account.buckets,
            candidates: account.members,
            ..Self::default()
        }
    }
}

/// What a search does to the tables, told as it goes on.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) tables: Vec<TableExplanation>,
    /// Whether blocks are counted, which takes some time itself.
    pub(super) count_blocks: bool,
}

/// What a search did, what it was expected to cost and what it found.
#[derive(Debug, Clone)]
pub struct Explanation<F> {
    /// The index's plan in its canonical words.
    pub plan: String,
    /// The way that was taken.
    pub path: SearchPath,
    /// The distance that was searched.
    pub distance: u32,
    /// One entry a table.
    pub tables: Vec<TableExplanation>,
    /// Documents in the index.
    pub entries: u64,
    /// Expected time by way of the tables, and of the documents that a random query finds.
    pub predicted: Duration,
    /// Expected time of a scan, with documents as above.
    pub predicted_scan: Duration,
    /// Expected time from memory, with documents as above; `None` where fingerprints are not resident.
    pub predicted_resident: Option<Duration>,
    /// Time that it took.
    pub actual: Duration,
    /// Fingerprints compared, over all tables.
    pub candidates: u64,
    /// Blocks read from files, for tables and for the documents of what was found.
    pub blocks: u64,
    /// The answer itself.
    pub matches: Vec<Match<F>>,
}
