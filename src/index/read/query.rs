//! Queries and answers: a fingerprint becomes matches with key and distance.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::resident::TableAccount;
use crate::verify::Verification;

/// How a search is carried out. Every path gives the same answer.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
/// use hamdex::{Query, SearchPath};
///
/// index.insert(b"page", 0xff)?;
/// let scanned = index.search(Query::new(0xfe).path(SearchPath::Scan))?;
/// assert_eq!(scanned, index.search(0xfe)?);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SearchPath {
    /// The cheapest path by the cost model.
    #[default]
    Auto,
    /// Probes the permutation tables.
    Tables,
    /// Compares with every stored fingerprint.
    Scan,
    /// Searches in memory, if [`IndexOptions::resident`](crate::IndexOptions::resident) or
    /// [`Index::load_resident`](crate::Index::load_resident) has loaded the fingerprints.
    Resident,
}

/// A search: a fingerprint, a distance and a limit of matches.
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
    /// Creates a query for every match within the index's default distance.
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

    /// Sets how many bits may differ, from 0 to a quarter of the width.
    pub fn distance(mut self, bits: u32) -> Self {
        self.distance = Some(bits);
        self
    }

    /// Sets the maximum number of matches, nearest first. Default: all.
    pub fn limit(mut self, matches: usize) -> Self {
        self.limit = Some(matches);
        self
    }

    /// Sets how the search is carried out. Default: the cheapest path.
    ///
    /// ```
    /// use hamdex::{Query, SearchPath};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    ///
    /// index.insert(b"page", 0xff)?;
    /// let scanned = index.search(Query::new(0xfe).path(SearchPath::Scan))?;
    /// assert_eq!(scanned, index.search(0xfe)?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn path(mut self, path: SearchPath) -> Self {
        self.path = path;
        self
    }

    /// Returns only matches that pass a comparison of features. Default: all matches.
    ///
    /// `evidence` is that of the text searched for, from [`Verification::evidence`]. It is compared
    /// with the feature sets that the index keeps. The limit counts only matches that pass.
    ///
    /// ```
    /// use hamdex::verify::Verification;
    /// use hamdex::{Durability, Index, IndexOptions, Pipeline, PipelineOptions, Query};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("posts");
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    /// let options = IndexOptions::new().text(&pipeline).keep_features(true);
    /// let index = Index::<u64>::create(&path, &options)?;
    ///
    /// let text = "it will rain tomorrow";
    /// let fingerprint = pipeline.fingerprint(text).expect("has words").fingerprint;
    /// let check = Verification::Jaccard(0.8);
    /// let evidence = check.evidence(&pipeline, text);
    /// index.insert_batch(&[(b"rain", fingerprint, Some(&evidence))], Durability::Synced)?;
    /// let matches = index.search(Query::new(fingerprint).verify(check, evidence))?;
    /// assert_eq!(matches[0].similarity, Some(1.0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn verify(mut self, verification: Verification, evidence: impl Into<Vec<u8>>) -> Self {
        self.verification = verification;
        self.evidence = evidence.into();
        self
    }

    /// Returns the query's distance or the default, checked against the width.
    pub(crate) fn effective_distance(&self, default: u32) -> Result<u32> {
        check_distance::<F>(self.distance.unwrap_or(default))
    }
}

impl<F: Fingerprint> From<F> for Query<F> {
    fn from(fingerprint: F) -> Self {
        Self::new(fingerprint)
    }
}

/// Returns [`Error::InvalidDistance`] for a distance above a quarter of the width.
pub(crate) fn check_distance<F: Fingerprint>(distance: u32) -> Result<u32> {
    if distance > F::MAX_DISTANCE {
        return Err(Error::InvalidDistance { distance, bits: F::BITS, max: F::MAX_DISTANCE });
    }
    Ok(distance)
}

/// A stored document within the distance of a query.
///
/// ```
/// use hamdex::Match;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0b0111)?;
/// let nearest: Match<u64> = index.search(0b0001)?.remove(0);
/// assert_eq!((&nearest.key[..], nearest.fingerprint, nearest.distance), (&b"page"[..], 0b0111, 2));
/// assert_eq!(nearest.similarity, None); // the query requests no check
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Match<F> {
    /// The document's key.
    pub key: Vec<u8>,
    /// The document's stored fingerprint.
    pub fingerprint: F,
    /// Number of bits that differ from the query.
    pub distance: u32,
    /// Similarity to the query, if the query requested a check.
    pub similarity: Option<f64>,
}

/// Work of one table in a search.
///
/// ```
/// use hamdex::Query;
/// use hamdex::SearchPath;
/// use hamdex::inspect::TableExplanation;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// let explanation = index.explain(Query::new(0xfe).path(SearchPath::Tables))?;
/// let first: &TableExplanation = &explanation.tables[0];
/// assert_eq!((first.table, first.prefix_bits), (0, 16));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TableExplanation {
    /// Number of the table, from 0.
    pub table: usize,
    /// Length of the table's prefix in bits.
    pub prefix_bits: u32,
    /// Number of prefix bits flipped. `None` if the table was not used.
    pub radius: Option<u32>,
    /// Number of key ranges read.
    pub ranges: u64,
    /// Number of runs decoded.
    pub runs: u64,
    /// Number of fingerprints compared with the query.
    pub candidates: u64,
    /// Number of fingerprints within the distance, including duplicates.
    ///
    /// Not counted, and 0, if memory answered.
    pub matches: u64,
    /// Number of blocks read from files because the block cache did not have them.
    pub blocks: u64,
}

impl TableExplanation {
    /// Adds the counts of a part of the work.
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

/// Work of a search so far.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) tables: Vec<TableExplanation>,
    /// Whether to count blocks, which takes some time.
    pub(super) count_blocks: bool,
}

/// Answer of a search with its actual and expected costs.
///
/// ```
/// use hamdex::inspect::Explanation;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// let explanation: Explanation<u64> = index.explain(0xfe)?;
/// assert_eq!((explanation.plan.as_str(), explanation.entries), ("4", 1));
/// println!("{:?} expected, {:?} taken", explanation.predicted, explanation.actual);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation<F> {
    /// The index's plan in canonical form.
    pub plan: String,
    /// The path used.
    pub path: SearchPath,
    /// The distance searched, in bits.
    pub distance: u32,
    /// One entry per table.
    pub tables: Vec<TableExplanation>,
    /// Number of documents in the index.
    pub entries: u64,
    /// Expected time by tables, including the documents that a random query finds.
    pub predicted: Duration,
    /// Expected time of a scan, including documents as above.
    pub predicted_scan: Duration,
    /// Expected time in memory, including documents as above. `None` if not resident.
    pub predicted_resident: Option<Duration>,
    /// Actual time.
    pub actual: Duration,
    /// Number of fingerprints compared, over all tables.
    pub candidates: u64,
    /// Number of blocks read from files, for tables and documents.
    pub blocks: u64,
    /// The matches.
    pub matches: Vec<Match<F>>,
}
