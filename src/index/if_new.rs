//! Inserting what is new: documents near stored ones are kept out, in one step with the search.
//!
//! The search itself comes before the turn to write, in a snapshot. Within the turn its answers
//! are made those of that moment: only documents with fingerprints that batches changed since the
//! snapshot can have come, gone or changed, so what lies near a query among these is looked up
//! anew, and all else stands.

use super::committer::{Turn, Watch};
use super::new_document::AsDocument;
use super::query::{Match, Query, check_distance};
use super::search::{Found, distinct};
use super::steps::{Sifted, Step, sift};
use super::{BatchReport, Durability, Index, Shared};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::verify::Nearness;

/// Comparisons that a turn may take to learn what has changed: some hundred microseconds.
const WITHIN_TURN: usize = 1 << 18;

/// How often changes are caught up with before the turn, however many keep coming.
const ROUNDS: usize = 4;

impl<F: Fingerprint> Index<F> {
    /// Stores a document unless a near-duplicate of it is stored already.
    ///
    /// Searching and storing are one step: of two near-duplicates that come at the same time
    /// only one gets in. Other writers do not wait for the search, nor it for them. Returns the
    /// nearest stored document when there is one within the distance. An older document of the
    /// same key does not count as one; it is replaced.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`] and [`Index::search`].
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

    /// Stores those documents that have no near-duplicate, in their order.
    ///
    /// `near` is a distance, or a [`Nearness`] with a check that near documents have to pass to
    /// keep a new one out; every document then has to bring its features. Each document is also
    /// compared with the ones before it in the batch. The result holds, for every document in
    /// order, the nearest one that kept it out, or `None` when it was stored.
    ///
    /// # Errors
    ///
    /// As [`Index::insert_batch`] and [`Index::search`]; then nothing was changed.
    pub fn insert_batch_if_new<D: AsDocument<F>>(
        &self,
        documents: &[D],
        near: impl Into<Nearness>,
        durability: Durability,
    ) -> Result<Vec<Option<Match<F>>>> {
        self.insert_batch_if_new_counted(documents, near, durability).map(|(refused, _)| refused)
    }

    /// As [`Index::insert_batch_if_new`], and counts what became of the others.
    ///
    /// The counts are those of the documents that were stored: a document that is there already,
    /// the same in every part, is one of `replaced` and of `unchanged`.
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
    /// As [`Index::insert_batch_if_new`].
    pub fn insert_batch_if_new_counted<D: AsDocument<F>>(
        &self,
        documents: &[D],
        near: impl Into<Nearness>,
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
        self.shared.settle(durability)?;
        Ok((refused, outcome.report()))
    }
}

/// Searches for the steps that ask, made in a snapshot.
struct Asked<'s, F: Fingerprint> {
    watch: Watch<'s, F>,
    queries: Vec<Query<F>>,
    answers: Vec<Vec<Match<F>>>,
    /// Near each query, what batches changed since the snapshot.
    changed: Vec<Vec<Found<F>>>,
}

impl<F: Fingerprint> Shared<F> {
    /// Waits for the turn to write and parts steps into those that are refused and the rest.
    ///
    /// What the turn is waited for holds for as long as it is held.
    pub(super) fn decide<'s, 'a>(
        &'s self,
        steps: &[Step<'a, F>],
    ) -> Result<(Turn<'s, F>, Sifted<'a, F>)> {
        if !steps.iter().any(Step::asks) {
            let sifted = sift(steps, Vec::new(), &[])?;
            return Ok((self.committer.turn(), sifted));
        }
        let crowded = crowded(steps);
        let mut all = false;
        loop {
            let watch = self.committer.watch()?;
            let queries = self.queries(&watch.reader, steps, all)?;
            let answers = watch.reader.search_batch(&queries)?;
            let changed = vec![Vec::new(); queries.len()];
            let mut asked = Asked { watch, queries, answers, changed };
            asked.catch_up()?;
            let turn = self.committer.turn();
            if let Some(answers) = asked.settle(&turn, steps)? {
                return Ok((turn, sift(steps, answers, &crowded)?));
            }
            // Some answers were cut off where they were long enough then: with all of what is
            // near, what is gone since leaves no gap.
            all = true;
        }
    }
}

impl<F: Fingerprint> Asked<'_, F> {
    /// Compares with what has changed already, so that little is left for the turn.
    fn catch_up(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            if self.learn()? <= WITHIN_TURN {
                break;
            }
        }
        Ok(())
    }

    /// Compares with what has changed since the last call; returns the number of comparisons.
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

    /// Makes the answers those of a turn; `None` if some may lack what is near.
    fn settle(
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
            // The steps may pass over documents under their own keys, and over no others.
            let other = |near: &Match<F>| steps.iter().all(|step| step.key() != near.key);
            if !whole && !answer.iter().any(other) {
                return Ok(None);
            }
            let query = query.clone().limit(steps.len() + 1);
            answer.extend(reader.with_view(|view| reader.expand(view, &changed, &query))?);
            answer.sort_by(|a, b| (a.distance, &a.key).cmp(&(b.distance, &b.key)));
        }
        Ok(Some(self.answers))
    }
}

/// For every step whether a document of an earlier one may be near what it asks for.
fn crowded<F: Fingerprint>(steps: &[Step<'_, F>]) -> Vec<bool> {
    let mut fingerprints = Vec::with_capacity(steps.len());
    let mut crowded = Vec::with_capacity(steps.len());
    for step in steps {
        let mut near = false;
        if let Step::PutIfNew(document, nearness) = step {
            let wanted = document.fingerprint;
            kernel::within(&fingerprints, wanted, nearness.distance, &mut |_, _| near = true);
        }
        crowded.push(near);
        if let Step::Put(document) | Step::PutIfNew(document, _) = step {
            fingerprints.push(document.fingerprint);
        }
    }
    crowded
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

    /// A worker that waits for the other half of its search runs what is queued meanwhile.
    ///
    /// The hook makes that certain: the caller's worker is held until the other worker has taken
    /// half of the search, and that one until an insert, which only the first can run, has begun.
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

    /// A fingerprint near one of a few.
    fn crowded(rng: &mut fastrand::Rng) -> u64 {
        let centre = rng.u64(..3) * 0x1111_2222_4444_8888;
        (0..rng.u32(..4)).fold(centre, |near, _| near ^ 1 << rng.u32(..64))
    }

    /// What the documents would be refused by if they came one after the other.
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

    /// Others insert, replace and remove within the search; the answer is that of the moment
    /// after them.
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
                    (0..rng.usize(1..4)).map(|_| ([rng.u8(..12)], crowded(&mut rng))).collect();
                let mut changes = Vec::new();
                for _ in 0..rng.usize(..4) {
                    let key = [rng.u8(..12)];
                    changes.push(if rng.u8(..3) == 0 {
                        model.remove(&key);
                        Op::Remove(key)
                    } else {
                        let fingerprint = crowded(&mut rng);
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
