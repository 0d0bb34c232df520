//! Pending: near fingerprints whose documents are looked up together.
//!
//! If documents do not fit memory, their keys are read from the postings. For one pair at a time
//! that is two random reads. So pairs are collected, and the documents of many are read in one
//! ascending pass.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::first_table::FirstTable;
use super::held::{self, Held, on_threads};
use super::pairing::{Pairing, Side};
use super::postings::Postings;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::Checker;
use crate::join::sets::{Source, join_sources};
use crate::join::{JoinOptions, Pair};
use crate::progress::Progress;

/// The share of a join's memory that pending pairs and their documents take.
const SHARE: usize = 3;
/// Bytes of an average key, with what it takes to find it.
const DOCUMENT: usize = 24;
/// Limits of the number of pairs, for very small and unlimited memory.
const PAIRS: (usize, usize) = (4096, 1 << 26);

/// Pairs until their documents are looked up.
struct Pending<F> {
    pairs: Mutex<Vec<Pair<F>>>,
    /// Held by the thread that looks documents up, so that one block is in memory at a time.
    turn: Mutex<()>,
    limit: usize,
    /// Bytes that the documents of a block may take.
    memory: usize,
}

impl<F: Fingerprint> Pending<F> {
    /// Prepares to collect pairs within a share of `memory`; returns what is left of it, too.
    fn new(memory: usize) -> (Self, usize) {
        let share = memory / SHARE;
        // The next block is collected while the documents of one are looked up.
        let pairs = 2 * size_of::<Pair<F>>();
        let documents = 2 * (F::BYTES + DOCUMENT);
        let limit = (share / (pairs + documents)).clamp(PAIRS.0, PAIRS.1);
        let documents = share.saturating_sub(limit.saturating_mul(pairs));
        let (pairs, turn) = (Mutex::default(), Mutex::default());
        (Self { pairs, turn, limit, memory: documents }, memory.saturating_sub(share))
    }

    /// Adds pairs; if there are many, all are passed on.
    fn add<const S: usize>(&self, pairs: &[Pair<F>], stored: &Stored<'_, '_, F, S>) -> Result<()> {
        let mut pending = lock(&self.pairs);
        pending.extend_from_slice(pairs);
        let many = pending.len() >= self.limit;
        drop(pending);
        if many { self.pass(self.limit, stored) } else { Ok(()) }
    }

    /// Passes on the pairs that are left.
    fn finish<const S: usize>(&self, stored: &Stored<'_, '_, F, S>) -> Result<()> {
        self.pass(1, stored)
    }

    fn pass<const S: usize>(&self, least: usize, stored: &Stored<'_, '_, F, S>) -> Result<()> {
        let _turn = lock(&self.turn);
        let mut pending = lock(&self.pairs);
        // Another thread may have taken them meanwhile.
        if pending.len() < least {
            return Ok(());
        }
        let pairs = std::mem::take(&mut *pending);
        drop(pending);
        stored.pairs(&pairs, self.memory)
    }
}

/// The documents of one set, or of two, that are read from the store.
pub(super) struct Stored<'a, 'b, F, const S: usize> {
    pub(super) tables: [FirstTable<'a, F>; S],
    pub(super) postings: [&'a Postings<'a>; S],
    pub(super) checkers: [Option<&'a Checker<'a>>; S],
    pub(super) pairing: &'a Pairing<'a, 'b>,
}

impl<F: Fingerprint, const S: usize> Stored<'_, '_, F, S> {
    /// Joins the sets in limited memory, and passes the pairs of documents on.
    pub(super) fn join(&self, options: JoinOptions, progress: &dyn Progress) -> Result<()> {
        let (pending, memory) = Pending::new(options.memory);
        let options = options.memory(memory);
        let sources = self.tables.each_ref().map(|table| table as &dyn Source<F>);
        join_sources(sources, options, progress, &|pairs| pending.add(pairs, self))?;
        pending.finish(self)
    }

    /// Reads the documents of all pairs, and passes pairs of documents on.
    fn pairs(&self, pairs: &[Pair<F>], memory: usize) -> Result<()> {
        let mut sets = Vec::with_capacity(S);
        for (at, postings) in self.postings.into_iter().enumerate() {
            let of_pair = |pair: &Pair<F>| [pair.a, pair.b];
            let mut fingerprints: Vec<F> = match (S, at) {
                (1, _) => pairs.iter().flat_map(of_pair).collect(),
                (_, at) => pairs.iter().map(|pair| of_pair(pair)[at]).collect(),
            };
            fingerprints.sort_unstable();
            fingerprints.dedup();
            match Held::of(postings, fingerprints, memory / S)? {
                Some(held) => sets.push(held),
                None => return self.halves(pairs, memory),
            }
        }
        let mut sides =
            sets.iter().zip(self.checkers).map(|(held, checker)| Side::new(held, checker));
        let Some(ours) = sides.next() else { return Ok(()) };
        let theirs = sides.next();
        let sides = [&ours, theirs.as_ref().unwrap_or(&ours)];
        let share = pairs.len().div_ceil(rayon::current_num_threads()).max(1);
        on_threads(pairs.chunks(share), |pairs| self.pairing.near(sides, pairs))?;
        Ok(())
    }

    /// Reads the documents in smaller blocks; those of a few pairs may take more memory.
    fn halves(&self, pairs: &[Pair<F>], memory: usize) -> Result<()> {
        match pairs {
            [_] if memory == usize::MAX => Err(held::too_many()),
            _ => {
                let memory = if pairs.len() > PAIRS.0 { memory } else { usize::MAX };
                let (first, rest) = pairs.split_at(pairs.len().div_ceil(2));
                self.pairs(first, memory)?;
                self.pairs(rest, memory)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
