//! Groups: rows in the order of their keys become what is near within each key.

use std::sync::{Mutex, PoisonError};

use super::keys::Keys;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::{self, Pair, UnionFind};

/// Up to so many members, comparing all is done before a join has begun.
const SMALL: usize = 64;

/// What is looked for among the members of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A spanning forest of the near pairs of each group: enough for clusters.
    ///
    /// A link goes from the smallest member of a connected part to each other one, so its ends
    /// may be further apart than the distance.
    Links,
    /// Every near pair, once over all groups.
    Pairs,
    /// Every near pair of a first and a second fingerprint, once over all groups.
    Across,
}

/// A fingerprint under one of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<F> {
    /// One of [`Keys::first`] or [`Keys::below`].
    pub key: u64,
    /// The fingerprint.
    pub fingerprint: F,
    /// For [`Wanted::Across`], whether it is of the second set.
    pub second: bool,
}

/// What groups have found since it was last emptied.
#[derive(Debug, Clone)]
pub struct Found<F> {
    /// Links or pairs.
    pub pairs: Vec<Pair<F>>,
    /// Rows of groups above the limit, to be given the keys [below](Keys::below) theirs.
    pub heavy: Vec<Row<F>>,
}

impl<F> Default for Found<F> {
    fn default() -> Self {
        Self { pairs: Vec::new(), heavy: Vec::new() }
    }
}

/// What some groups took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows taken in.
    pub rows: u64,
    /// Groups of two members or more that were compared.
    pub groups: u64,
    /// Members of the largest of them.
    pub largest: u64,
    /// Links or pairs found.
    pub pairs: u64,
    /// Groups that were handed back because they had more members than allowed.
    pub heavy: u64,
}

/// Compares the members of one key after the other.
///
/// Memory is that of the largest group: its fingerprints, what a join of them takes and what it
/// finds. Work is done on rayon's current pool.
#[derive(Debug)]
pub struct Groups<F> {
    keys: Keys<F>,
    wanted: Wanted,
    limit: usize,
    key: Option<u64>,
    first: Vec<F>,
    second: Vec<F>,
    /// The group of the key is handed back row by row.
    heavy: bool,
    counts: Counts,
}

impl<F: Fingerprint> Groups<F> {
    /// Begins; groups of more than `limit` rows are handed back where they can be split.
    ///
    /// The limit is 2 at least.
    pub fn new(keys: Keys<F>, wanted: Wanted, limit: usize) -> Self {
        let limit = limit.max(2);
        let (first, second) = (Vec::new(), Vec::new());
        let counts = Counts::default();
        Self { keys, wanted, limit, key: None, first, second, heavy: false, counts }
    }

    /// Takes the next row; `found` is given what the groups before its key hold.
    ///
    /// A fingerprint that comes twice under a key counts once.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a key below the one before it, or of no table.
    pub fn push(&mut self, row: Row<F>, found: &mut Found<F>) -> Result<()> {
        let Row { key, fingerprint, second } = row;
        if self.key != Some(key) {
            if let Some(before) = self.key.filter(|&before| before > key) {
                let reason = format!("{key:#x} follows {before:#x}: rows come in order of keys");
                return Err(Error::InvalidOption { name: "key", reason });
            }
            if !self.keys.knows(key) {
                let reason = format!("{key:#x} is the key of no table: use those of these keys");
                return Err(Error::InvalidOption { name: "key", reason });
            }
            self.close(found)?;
            self.key = Some(key);
        }
        self.counts.rows += 1;
        if self.heavy {
            found.heavy.push(row);
            return Ok(());
        }
        if second { &mut self.second } else { &mut self.first }.push(fingerprint);
        if self.first.len() + self.second.len() > self.limit && self.keys.splits(key) {
            self.heavy = true;
            self.counts.heavy += 1;
            let row = |second| move |fingerprint| Row { key, fingerprint, second };
            found.heavy.extend(self.first.drain(..).map(row(false)));
            found.heavy.extend(self.second.drain(..).map(row(true)));
        }
        Ok(())
    }

    /// Compares the last group and returns what all of them took.
    ///
    /// # Errors
    ///
    /// As [`join::clusters`].
    pub fn finish(mut self, found: &mut Found<F>) -> Result<Counts> {
        self.close(found)?;
        Ok(self.counts)
    }

    /// Compares the members of the present key.
    fn close(&mut self, found: &mut Found<F>) -> Result<()> {
        self.heavy = false;
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

/// The members of one key, rising and distinct.
struct Group<'a, F> {
    keys: &'a Keys<F>,
    key: u64,
    first: &'a [F],
    second: &'a [F],
}

impl<F: Fingerprint> Group<'_, F> {
    /// Links the smallest member of every connected part with each other one.
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

    /// Returns for every member the place of the smallest one that it is connected with.
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

    /// Takes over those of a join's pairs that belong to this key.
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
