//! Groups: finds the near fingerprints of each key in rows sorted by key.

use std::sync::{Mutex, PoisonError};

use super::keys::Keys;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::{self, Pair, UnionFind};

/// Groups of at most this many members are compared directly instead of by a join.
const SMALL: usize = 64;

/// What groups search for among the members of a key.
///
/// See [`Groups`] for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// A spanning forest of the near pairs of each group, which suffices for clusters.
    ///
    /// A link connects the smallest member of a component with another member, so its ends may be
    /// further apart than the distance.
    Links,
    /// Every near pair, once over all groups.
    Pairs,
    /// Every near pair of a first and a second fingerprint, once over all groups.
    Across,
}

/// A fingerprint and one of its keys.
///
/// See [`Groups`] for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<F> {
    /// One of [`Keys::first`] or [`Keys::below`].
    pub key: u64,
    /// The fingerprint.
    pub fingerprint: F,
    /// For [`Wanted::Across`]: whether the fingerprint is in the second set.
    pub second: bool,
}

/// The results of groups; the caller may empty it at any time.
///
/// See [`Groups`] for an example.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found<F> {
    /// Links or pairs.
    pub pairs: Vec<Pair<F>>,
    /// Rows of groups above the limit; give them the keys of [`Keys::below`].
    pub skewed: Vec<Row<F>>,
}

impl<F> Default for Found<F> {
    fn default() -> Self {
        Self { pairs: Vec::new(), skewed: Vec::new() }
    }
}

/// Counts of the processed rows and groups.
///
/// See [`Groups`] for an example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Rows received.
    pub rows: u64,
    /// Groups of at least two members that were compared.
    pub groups: u64,
    /// Number of members of the largest compared group.
    pub largest: u64,
    /// Links or pairs found.
    pub pairs: u64,
    /// Skewed groups, which were returned row by row because they exceeded the limit.
    pub skewed: u64,
}

/// Compares the members of one key after another.
///
/// Memory is that of the largest group: its fingerprints, the join of them, and its results. Runs
/// on the current rayon pool.
///
/// ```
/// use hamdex::spread::{Counts, Found, Groups, Keys, Row, Wanted};
///
/// let keys = Keys::<u64>::new(3, 1_000_000)?;
/// let mut rows = Vec::new();
/// for fingerprint in [0x00ff_u64, 0x00fe, 0xffff_0000_0000_0000] {
///     rows.extend(keys.first(fingerprint).map(|key| Row { key, fingerprint, second: false }));
/// }
/// rows.sort_by_key(|row| row.key);
///
/// let mut groups = Groups::new(keys, Wanted::Pairs, 1000);
/// let mut found = Found::default();
/// for row in rows {
///     groups.push(row, &mut found)?;
/// }
/// let Counts { rows, pairs, .. } = groups.finish(&mut found)?;
/// assert_eq!((rows, pairs, found.pairs[0].distance), (12, 1, 1));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Groups<F> {
    keys: Keys<F>,
    wanted: Wanted,
    limit: usize,
    key: Option<u64>,
    first: Vec<F>,
    second: Vec<F>,
    /// Whether the current group exceeded the limit, so that its rows are returned.
    skewed: bool,
    counts: Counts,
}

impl<F: Fingerprint> Groups<F> {
    /// Creates a comparison that returns groups of more than `limit` rows row by row.
    ///
    /// Groups of the last level cannot be split and are always compared. The limit is at least 2.
    pub fn new(keys: Keys<F>, wanted: Wanted, limit: usize) -> Self {
        let limit = limit.max(2);
        let (first, second) = (Vec::new(), Vec::new());
        let counts = Counts::default();
        Self { keys, wanted, limit, key: None, first, second, skewed: false, counts }
    }

    /// Adds the next row; compares the group before it if the key changes.
    ///
    /// Results are added to `found`. A fingerprint that occurs twice under a key is compared once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if the key is below the one before it, or belongs to no
    /// table.
    pub fn push(&mut self, row: Row<F>, found: &mut Found<F>) -> Result<()> {
        let Row { key, fingerprint, second } = row;
        if self.key != Some(key) {
            if let Some(before) = self.key.filter(|&before| before > key) {
                let reason = format!("{key:#x} follows {before:#x}; sort the rows by key");
                return Err(Error::InvalidOption { name: "key", reason });
            }
            if !self.keys.knows(key) {
                let reason = format!("{key:#x} is the key of no table; use `first` or `below`");
                return Err(Error::InvalidOption { name: "key", reason });
            }
            self.close(found)?;
            self.key = Some(key);
        }
        self.counts.rows += 1;
        if self.skewed {
            found.skewed.push(row);
            return Ok(());
        }
        if second { &mut self.second } else { &mut self.first }.push(fingerprint);
        if self.first.len() + self.second.len() > self.limit && self.keys.splits(key) {
            self.skewed = true;
            self.counts.skewed += 1;
            let row = |second| move |fingerprint| Row { key, fingerprint, second };
            found.skewed.extend(self.first.drain(..).map(row(false)));
            found.skewed.extend(self.second.drain(..).map(row(true)));
        }
        Ok(())
    }

    /// Compares the last group and returns the counts of all groups.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`join::clusters`].
    pub fn finish(mut self, found: &mut Found<F>) -> Result<Counts> {
        self.close(found)?;
        Ok(self.counts)
    }

    /// Compares the members of the current key.
    fn close(&mut self, found: &mut Found<F>) -> Result<()> {
        self.skewed = false;
        let Some(key) = self.key else { return Ok(()) };
        for set in [&mut self.first, &mut self.second] {
            set.sort_unstable();
            set.dedup();
        }
        let members = (self.first.len() + self.second.len()) as u64;
        if members > 1 {
            self.counts.groups += 1;
            self.counts.largest = self.counts.largest.max(members);
        }
        let before = found.pairs.len();
        let group = Group { keys: &self.keys, key, first: &self.first, second: &self.second };
        match self.wanted {
            Wanted::Links => group.links(&mut found.pairs)?,
            Wanted::Pairs => group.pairs(&mut found.pairs)?,
            Wanted::Across => group.across(&mut found.pairs)?,
        }
        self.counts.pairs += (found.pairs.len() - before) as u64;
        self.first.clear();
        self.second.clear();
        Ok(())
    }
}

/// The members of one key, ascending and distinct.
struct Group<'a, F> {
    keys: &'a Keys<F>,
    key: u64,
    first: &'a [F],
    second: &'a [F],
}

impl<F: Fingerprint> Group<'_, F> {
    /// Links the smallest member of each component with every other member.
    fn links(&self, found: &mut Vec<Pair<F>>) -> Result<()> {
        let members = self.first;
        if members.len() < 2 {
            return Ok(());
        }
        let labels = if members.len() > SMALL {
            join::clusters(members, self.keys.distance(), &())?
        } else {
            self.labels()
        };
        for (&b, &label) in members.iter().zip(&labels) {
            let a = members[label as usize];
            if a != b {
                found.push(Pair { a, b, distance: a.distance(b) });
            }
        }
        Ok(())
    }

    /// Returns, for each member, the index of the smallest member of its component.
    fn labels(&self) -> Vec<u32> {
        let len = u32::try_from(self.first.len()).expect("a small group");
        let mut sets = UnionFind::new(len);
        for (&a, at) in self.first.iter().zip(0..) {
            for (&b, other) in self.first.iter().zip(0..at) {
                if a.distance(b) <= self.keys.distance() {
                    sets.union(other, at);
                }
            }
        }
        let mut smallest = vec![u32::MAX; self.first.len()];
        let label = |at: u32| {
            let smallest = &mut smallest[sets.root(at) as usize];
            *smallest = at.min(*smallest);
            *smallest
        };
        (0..len).map(label).collect()
    }

    /// Finds the near pairs that belong to this key.
    fn pairs(&self, found: &mut Vec<Pair<F>>) -> Result<()> {
        if self.first.len() <= SMALL {
            for (at, &a) in self.first.iter().enumerate() {
                self.compare(a, &self.first[at + 1..], found);
            }
            return Ok(());
        }
        self.joined(found, |distance, visit| {
            join::self_join(self.first, distance, &(), visit).map(|_| ())
        })
    }

    /// Finds the near pairs of a first and a second member that belong to this key.
    fn across(&self, found: &mut Vec<Pair<F>>) -> Result<()> {
        if self.first.is_empty() || self.second.is_empty() {
            return Ok(());
        }
        if self.first.len().saturating_mul(self.second.len()) <= SMALL * SMALL {
            self.first.iter().for_each(|&a| self.compare(a, self.second, found));
            return Ok(());
        }
        self.joined(found, |distance, visit| {
            join::cross_join(self.first, self.second, distance, &(), visit).map(|_| ())
        })
    }

    fn compare(&self, a: F, others: &[F], found: &mut Vec<Pair<F>>) {
        for &b in others {
            let distance = a.distance(b);
            if distance <= self.keys.distance() && self.keys.owns(self.key, a ^ b) {
                found.push(Pair { a, b, distance });
            }
        }
    }

    /// Adds the pairs of a join that belong to this key.
    fn joined(
        &self,
        found: &mut Vec<Pair<F>>,
        join: impl FnOnce(u32, &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync)) -> Result<()>,
    ) -> Result<()> {
        let shared = Mutex::new(found);
        join(self.keys.distance(), &|batch| {
            let owned = batch.iter().filter(|pair| self.keys.owns(self.key, pair.a ^ pair.b));
            shared.lock().unwrap_or_else(PoisonError::into_inner).extend(owned);
            Ok(())
        })
    }
}
