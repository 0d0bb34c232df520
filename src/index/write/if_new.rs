//! Inserting new documents: rejects near-duplicates of stored ones, in one step with the search.
//!
//! The search runs in a snapshot, before the turn. The turn then updates its answers. Only
//! documents with fingerprints that batches changed since the snapshot can differ, so only such
//! fingerprints near a query are looked up again.

use super::new_document::AsDocument;
use super::steps::{Sifted, Step, sift};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::committer::{Turn, Watch};
use crate::index::read::query::{Match, Query, check_distance};
use crate::index::read::search::{Found, distinct};
use crate::index::{BatchReport, Durability, Index, Shared};
use crate::kernel;
use crate::verify::DuplicateRule;

/// Comparisons with changes that a turn may make: a few hundred microseconds.
const WITHIN_TURN: usize = 1 << 18;

/// Maximum number of rounds of comparisons with changes before the turn.
const ROUNDS: usize = 4;

impl<F: Fingerprint> Index<F> {
    /// Stores a document unless a near-duplicate is already stored.
    ///
    /// Searching and storing are one atomic step: of two concurrent near-duplicates, only one is
    /// stored. Writers do not wait for the search. Returns the nearest stored document within
    /// `distance` bits, or `None` if the new one was stored. A stored document with the same key is
    /// not a near-duplicate; it is replaced.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// use hamdex::Durability;
    ///
    /// assert!(index.insert_if_new(b"page", 0xff, 3, Durability::Synced)?.is_none());
    /// let near = index.insert_if_new(b"copy", 0xfe, 3, Durability::Synced)?;
    /// assert_eq!(near.expect("a near-duplicate").key, b"page");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::insert`] and [`Index::search`].
    pub fn insert_if_new(
        &self,
        key: &[u8],
        fingerprint: F,
        distance: u32,
        durability: Durability,
    ) -> Result<Option<Match<F>>> {
        let refused = self.insert_batch_if_new(&[(key, fingerprint)], distance, durability)?;
        Ok(refused.into_iter().next().flatten())
    }

    /// Stores the documents that have no near-duplicate, in the order given.
    ///
    /// `near` is a distance, or a [`DuplicateRule`] with a check that near-duplicates must pass; then
    /// every document needs features. Each document is also compared with earlier ones in the
    /// batch. Returns for every document the nearest near-duplicate, or `None` if the document was
    /// stored.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// use hamdex::Durability;
    ///
    /// let batch = [(b"page", 0xff), (b"copy", 0xfe), (b"news", 0xff00)];
    /// let refused = index.insert_batch_if_new(&batch, 3, Durability::Synced)?;
    /// assert_eq!(refused.iter().filter(|near| near.is_none()).count(), 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::insert_batch`] and [`Index::search`]. Then nothing was
    /// changed.
    pub fn insert_batch_if_new<D: AsDocument<F>>(
        &self,
        documents: &[D],
        near: impl Into<DuplicateRule>,
        durability: Durability,
    ) -> Result<Vec<Option<Match<F>>>> {
        self.insert_batch_if_new_counted(documents, near, durability).map(|(refused, _)| refused)
    }

    /// Like [`Index::insert_batch_if_new`], and also counts the stored documents.
    ///
    /// A document that is already stored without any difference counts as `replaced` and
    /// `unchanged`.
    ///
    /// ```
    /// use hamdex::{Durability, Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let index = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// index.insert(b"a", 0xff)?;
    /// let batch = [(b"a", 0xff), (b"b", 0xfe), (b"c", 0xff00)];
    /// let (refused, report) = index.insert_batch_if_new_counted(&batch, 3, Durability::Synced)?;
    /// assert_eq!(refused[1].as_ref().map(|near| near.key.as_slice()), Some(&b"a"[..]));
    /// assert_eq!((report.inserted, report.replaced, report.unchanged), (1, 1, 1));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::insert_batch_if_new`].
    pub fn insert_batch_if_new_counted<D: AsDocument<F>>(
        &self,
        documents: &[D],
        near: impl Into<DuplicateRule>,
        durability: Durability,
    ) -> Result<(Vec<Option<Match<F>>>, BatchReport)> {
        let near = near.into();
        check_distance::<F>(near.distance)?;
        let steps: Vec<_> =
            documents.iter().map(|document| Step::PutIfNew(document.as_document(), near)).collect();
        for step in &steps {
            step.check(self.header().keeps_features)?;
        }
        self.shared.store.require_writable()?;
        let (turn, (refused, changes)) = self.shared.decide(&steps)?;
        let outcome = self.shared.apply_in(turn, &self.shared.in_order(&changes)?)?;
        self.shared.make_durable(durability)?;
        Ok((refused, outcome.report()))
    }
}

/// Searches for the steps that need one, made in a snapshot.
struct Asked<'s, F: Fingerprint> {
    watch: Watch<'s, F>,
    queries: Vec<Query<F>>,
    answers: Vec<Vec<Match<F>>>,
    /// Changed fingerprints near each query, since the snapshot.
    changed: Vec<Vec<Found<F>>>,
}

impl<F: Fingerprint> Shared<F> {
    /// Waits for the turn to write, and separates refused steps from changes.
    ///
    /// The result is valid while the turn is held.
    pub(in crate::index) fn decide<'s, 'a>(
        &'s self,
        steps: &[Step<'a, F>],
    ) -> Result<(Turn<'s, F>, Sifted<'a, F>)> {
        if !steps.iter().any(Step::asks) {
            let sifted = sift(steps, Vec::new(), &[])?;
            return Ok((self.committer.turn(), sifted));
        }
        let near_earlier = near_earlier(steps);
        let mut all = false;
        loop {
            let watch = self.committer.watch()?;
            let queries = self.queries(&watch.reader, steps, all)?;
            let answers = watch.reader.search_batch(&queries)?;
            let changed = vec![Vec::new(); queries.len()];
            let mut asked = Asked { watch, queries, answers, changed };
            asked.catch_up()?;
            let turn = self.committer.turn();
            if let Some(answers) = asked.revalidate(&turn, steps)? {
                return Ok((turn, sift(steps, answers, &near_earlier)?));
            }
            // Some answers were cut off at their limit and lost all their documents. Search for all
            // near documents, so that removals leave no gap.
            all = true;
        }
    }
}

impl<F: Fingerprint> Asked<'_, F> {
    /// Compares with earlier changes, so that little is left for the turn.
    fn catch_up(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            if self.learn()? <= WITHIN_TURN {
                break;
            }
        }
        Ok(())
    }

    /// Compares with changes since the last call, and returns the number of comparisons.
    #[expect(clippy::indexing_slicing, reason = "the kernel returns the index of a member")]
    fn learn(&mut self) -> Result<usize> {
        let mut compared = 0;
        for changes in self.watch.since() {
            for (query, near) in self.queries.iter().zip(&mut self.changed) {
                let distance = query.effective_distance(0)?;
                kernel::within(&changes, query.fingerprint, distance, &mut |at, apart| {
                    near.push((apart, changes[at]));
                });
            }
            compared += changes.len() * self.queries.len();
        }
        Ok(compared)
    }

    /// Updates the answers to the state of a turn. Returns `None` if some may be incomplete.
    fn revalidate(
        mut self,
        turn: &Turn<'_, F>,
        steps: &[Step<'_, F>],
    ) -> Result<Option<Vec<Vec<Match<F>>>>> {
        self.learn()?;
        if self.changed.iter().all(Vec::is_empty) {
            return Ok(Some(self.answers));
        }
        turn.wait_for_all();
        let reader = turn.read()?;
        let each = self.answers.iter_mut().zip(self.changed).zip(&self.queries);
        for ((answer, changed), query) in each.filter(|((_, changed), _)| !changed.is_empty()) {
            let whole = query.limit.is_none_or(|limit| answer.len() < limit);
            let changed = distinct(changed);
            answer.retain(|near| {
                !changed.iter().any(|&(_, fingerprint)| fingerprint == near.fingerprint)
            });
            // Steps may ignore documents under their own keys, but no others.
            let other = |near: &Match<F>| steps.iter().all(|step| step.key() != near.key);
            if !whole && !answer.iter().any(other) {
                return Ok(None);
            }
            let query = query.clone().limit(steps.len() + 1);
            answer.extend(reader.with_view(|view| reader.expand(view, &changed, &query, None))?);
            answer.sort_by(|a, b| (a.distance, &a.key).cmp(&(b.distance, &b.key)));
        }
        Ok(Some(self.answers))
    }
}

/// Returns for every step whether a document of an earlier step may be near.
fn near_earlier<F: Fingerprint>(steps: &[Step<'_, F>]) -> Vec<bool> {
    let mut fingerprints = Vec::with_capacity(steps.len());
    let mut near_earlier = Vec::with_capacity(steps.len());
    for step in steps {
        let mut near = false;
        if let Step::PutIfNew(document, rule) = step {
            let wanted = document.fingerprint;
            kernel::within(&fingerprints, wanted, rule.distance, &mut |_, _| near = true);
        }
        near_earlier.push(near);
        if let Step::Put(document) | Step::PutIfNew(document, _) = step {
            fingerprints.push(document.fingerprint);
        }
    }
    near_earlier
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::index::IndexOptions;

    /// A worker that waits for the other half of its search meanwhile runs queued jobs.
    ///
    /// The hook enforces this. It holds the caller's worker until the other worker has taken half
    /// of the search, and the other worker until an insert has begun, which only the first one can
    /// run.
    #[test]
    fn an_insert_that_runs_within_the_search_of_another_does_not_wait_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        index.insert(b"stored", 0xff).unwrap();
        let index = Arc::new(index);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (caller, queued) = (Arc::new(AtomicUsize::new(2)), AtomicBool::new(false));
        let (hooked, callers) = (Arc::downgrade(&index), Arc::clone(&caller));
        let hook = move || {
            let (Some(worker), Some(index)) = (rayon::current_thread_index(), hooked.upgrade())
            else {
                return;
            };
            if worker == callers.load(Ordering::SeqCst) {
                while !queued.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
            } else if !queued.load(Ordering::SeqCst) {
                let begun = Arc::new(AtomicBool::new(false));
                let begins = Arc::clone(&begun);
                rayon::spawn(move || {
                    begins.store(true, Ordering::SeqCst);
                    index.insert_batch(&[(b"within", 0xff00)], Durability::Buffered).unwrap();
                });
                queued.store(true, Ordering::SeqCst);
                while !begun.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
            }
        };
        index.shared.core.within_search.0.set(Box::new(hook)).ok().unwrap();
        let (ended, end) = mpsc::channel();
        let inserting = Arc::clone(&index);
        pool.spawn(move || {
            caller.store(rayon::current_thread_index().unwrap(), Ordering::SeqCst);
            let batch = [(b"near", 0xfe_u64), (b"far.", 0x00ff_0000)];
            let refused = inserting.insert_batch_if_new(&batch, 3, Durability::Buffered);
            ended.send(refused.unwrap()).unwrap();
        });
        let Ok(refused) = end.recv_timeout(Duration::from_mins(1)) else {
            panic!("the batch waits for a lock that its own thread holds");
        };
        assert_eq!(refused[0].as_ref().map(|near| near.key.as_slice()), Some(&b"stored"[..]));
        assert_eq!(refused[1], None);
        assert_eq!(index.len().unwrap(), 3);
    }

    enum Op {
        Put([u8; 1], u64),
        Remove([u8; 1]),
    }

    /// Returns a fingerprint near one of three centres.
    fn near_centre(rng: &mut fastrand::Rng) -> u64 {
        let centre = rng.u64(..3) * 0x1111_2222_4444_8888;
        (0..rng.u32(..4)).fold(centre, |near, _| near ^ 1 << rng.u32(..64))
    }

    /// Returns what would refuse the documents if they were inserted one after the other.
    fn in_turn(
        model: &mut BTreeMap<[u8; 1], u64>,
        batch: &[([u8; 1], u64)],
    ) -> Vec<Option<([u8; 1], u32)>> {
        let mut refused = Vec::new();
        for &(key, wanted) in batch {
            let others = model.iter().filter(|&(other, _)| *other != key);
            let near = others.map(|(&other, stored)| ((stored ^ wanted).count_ones(), other));
            let nearest = near.filter(|near| near.0 <= 3).min();
            if nearest.is_none() {
                model.insert(key, wanted);
            }
            refused.push(nearest.map(|(distance, key)| (key, distance)));
        }
        refused
    }

    /// Others insert, replace and remove during the search. The answer is that of the moment after
    /// them.
    #[test]
    fn what_changes_within_the_search_counts_as_if_it_had_come_before() {
        for resident in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
            assert!(!resident || index.load_resident(64 << 20).unwrap());
            let index = Arc::new(index);
            let ops = Arc::new(Mutex::new(Vec::new()));
            let (hooked, queue) = (Arc::downgrade(&index), Arc::clone(&ops));
            let hook = move || {
                let index = hooked.upgrade().unwrap();
                for op in std::mem::take(&mut *queue.lock().unwrap()) {
                    match op {
                        Op::Put(key, fingerprint) => {
                            let document = [(key, fingerprint)];
                            index.insert_batch(&document, Durability::Buffered).unwrap();
                        }
                        Op::Remove(key) => {
                            index.remove_batch(&[key], Durability::Buffered).unwrap();
                        }
                    }
                }
            };
            index.shared.core.within_search.0.set(Box::new(hook)).ok().unwrap();
            let mut model = BTreeMap::new();
            let (mut met, seed) = ([0, 0], 5);
            let mut rng = fastrand::Rng::with_seed(seed);
            for round in 0..1500 {
                let batch: Vec<_> =
                    (0..rng.usize(1..4)).map(|_| ([rng.u8(..12)], near_centre(&mut rng))).collect();
                let mut changes = Vec::new();
                for _ in 0..rng.usize(..4) {
                    let key = [rng.u8(..12)];
                    changes.push(if rng.u8(..3) == 0 {
                        model.remove(&key);
                        Op::Remove(key)
                    } else {
                        let fingerprint = near_centre(&mut rng);
                        model.insert(key, fingerprint);
                        Op::Put(key, fingerprint)
                    });
                }
                *ops.lock().unwrap() = changes;
                let wanted = in_turn(&mut model, &batch);
                let refused = index.insert_batch_if_new(&batch, 3, Durability::Buffered).unwrap();
                let found: Vec<_> = refused
                    .iter()
                    .map(|near| near.as_ref().map(|near| ([near.key[0]], near.distance)))
                    .collect();
                assert_eq!(found, wanted, "round {round}, seed {seed}, resident {resident}");
                for near in found {
                    met[usize::from(near.is_some())] += 1;
                }
                let stored: BTreeMap<_, _> = index
                    .documents()
                    .unwrap()
                    .map(|d| d.map(|(k, f)| ([k[0]], f)).unwrap())
                    .collect();
                assert_eq!(stored, model, "round {round}, seed {seed}, resident {resident}");
            }
            assert!(met.iter().all(|&times| times > 300), "{met:?}");
        }
    }
}
