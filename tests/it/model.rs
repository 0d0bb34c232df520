//! Random sequences of operations: after every step the index equals a sorted map.
//!
//! `HAMDEX_MODEL_STEPS` sets the length of the long ones; a failure reports seed and step. A
//! failure of the short ones is shrunk to the shortest sequence.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use hamdex::build::{BuildOptions, Builder};
use hamdex::{
    Durability, Fingerprint, Index, IndexOptions, Match, Query, Reader, Result, SearchPath,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support::{
    Model, Rng, assert_holds, clusters_of, documents_of, options, pairs_of, scan, scan_clusters,
    scan_pairs,
};

fn steps() -> usize {
    let asked = std::env::var("HAMDEX_MODEL_STEPS").ok();
    asked.map_or(200, |steps| steps.parse().expect("HAMDEX_MODEL_STEPS is a number"))
}

/// An index, its expected documents, and readers with theirs.
struct Run<'a, F: Fingerprint> {
    path: &'a Path,
    rng: Rng,
    index: Option<Index<F>>,
    model: Model<F>,
    frozen: Vec<(Reader<F>, Model<F>)>,
    /// Few centres, so that near and equal fingerprints are common.
    centres: Vec<F>,
    context: String,
}

impl<'a, F: Fingerprint> Run<'a, F> {
    fn start(path: &'a Path, seed: u64, plan: &str) -> Result<Self> {
        let mut rng = Rng::new(seed);
        let mut centres: Vec<F> = (0..12).map(|_| rng.fingerprint()).collect();
        centres.extend([F::ZERO, F::ONES]);
        let index = Some(Index::create(path, &options::<F>(plan))?);
        let (model, frozen, context) = (BTreeMap::new(), Vec::new(), String::new());
        Ok(Self { path, rng, index, model, frozen, centres, context })
    }

    fn index(&self) -> &Index<F> {
        self.index.as_ref().expect("the index is open between operations")
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:02}", self.rng.below(90)).into_bytes()
    }

    fn fingerprint(&mut self) -> F {
        let centre = *self.rng.pick(&self.centres);
        let flips = self.rng.up_to(4);
        self.rng.flipped(centre, flips)
    }

    fn documents(&mut self) -> Vec<(Vec<u8>, F)> {
        let count = self.rng.below(12);
        (0..count).map(|_| (self.key(), self.fingerprint())).collect()
    }

    fn durability(&mut self) -> Durability {
        if self.rng.below(20) == 0 { Durability::Synced } else { Durability::Buffered }
    }

    /// Applies one random operation to the index and to the model.
    fn step(&mut self) -> Result<()> {
        match self.rng.below(80) {
            0..=9 => self.insert()?,
            10..=22 => self.insert_batch()?,
            23..=26 => self.remove()?,
            27..=32 => self.remove_batch()?,
            33..=38 => self.insert_if_new()?,
            39..=44 => self.insert_batch_if_new()?,
            45..=51 => {
                self.index().merge_step()?;
            }
            52 => {
                self.index().merge(&())?;
                assert_eq!(self.index().stats(&())?.delta_entries, 0, "{}", self.context);
            }
            53 => {
                self.index().compact()?;
            }
            54 => self.reopen()?,
            55 => self.merge()?,
            56..=60 => self.freeze()?,
            61..=63 => self.joins()?,
            64..=66 => assert_holds(self.index(), &self.model, &self.context),
            _ => self.search()?,
        }
        self.thaw()
    }

    fn insert(&mut self) -> Result<()> {
        let (key, fingerprint, durability) = (self.key(), self.fingerprint(), self.durability());
        let report = self.index().insert_batch(&[(&key, fingerprint)], durability)?;
        let replaced = report.replaced == 1;
        assert_eq!(replaced, self.model.insert(key, fingerprint).is_some(), "{}", self.context);
        Ok(())
    }

    fn insert_batch(&mut self) -> Result<()> {
        let (documents, durability) = (self.documents(), self.durability());
        let report = self.index().insert_batch(&documents, durability)?;
        let before = self.model.len() as u64;
        let mut keys: Vec<_> = documents.iter().map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys.dedup();
        self.model.extend(documents);
        assert_eq!(report.inserted, self.model.len() as u64 - before, "{}", self.context);
        assert_eq!(report.inserted + report.replaced, keys.len() as u64, "{}", self.context);
        Ok(())
    }

    fn remove(&mut self) -> Result<()> {
        let (key, durability) = (self.key(), self.durability());
        let removed = self.index().remove_batch(&[&key], durability)? == 1;
        assert_eq!(removed, self.model.remove(&key).is_some(), "{}", self.context);
        assert_eq!(self.index().get(&key)?, None, "{}", self.context);
        Ok(())
    }

    fn remove_batch(&mut self) -> Result<()> {
        let count = self.rng.below(10);
        let keys: Vec<_> = (0..count).map(|_| self.key()).collect();
        let durability = self.durability();
        let removed = self.index().remove_batch(&keys, durability)?;
        let before = self.model.len();
        for key in &keys {
            self.model.remove(key);
        }
        assert_eq!(removed, (before - self.model.len()) as u64, "{}", self.context);
        Ok(())
    }

    fn insert_if_new(&mut self) -> Result<()> {
        let (key, fingerprint) = (self.key(), self.fingerprint());
        let (distance, durability) = (self.rng.up_to(F::MAX_DISTANCE / 2), self.durability());
        let refused = self.index().insert_if_new(&key, fingerprint, distance, durability)?;
        let expected = offer(&mut self.model, &key, fingerprint, distance);
        assert_eq!(refused, expected, "{}", self.context);
        Ok(())
    }

    fn insert_batch_if_new(&mut self) -> Result<()> {
        let (documents, durability) = (self.documents(), self.durability());
        let distance = self.rng.up_to(F::MAX_DISTANCE / 2);
        let refused = self.index().insert_batch_if_new(&documents, distance, durability)?;
        let expected: Vec<_> = documents
            .iter()
            .map(|(key, fingerprint)| offer(&mut self.model, key, *fingerprint, distance))
            .collect();
        assert_eq!(refused, expected, "{}", self.context);
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.frozen.clear();
        self.index = None;
        let background = self.rng.below(2) == 0;
        let options = IndexOptions::new().memory(16 << 20).background_merge(background);
        self.index = Some(Index::open_with(self.path, &options)?);
        Ok(())
    }

    /// Merges rows into the index; the first of equal keys wins, and replaces a stored document.
    fn merge(&mut self) -> Result<()> {
        self.frozen.clear();
        self.index = None;
        let documents = self.documents();
        let build = BuildOptions::new().memory(16 << 20);
        let mut builder = Builder::create(self.path, &IndexOptions::new(), &build)?;
        for (origin, (key, fingerprint)) in (0..).zip(&documents) {
            builder.push(key, *fingerprint, origin)?;
        }
        let mut duplicates = Vec::new();
        let report =
            builder.finish(&(), &mut |key, origin| duplicates.push((origin, key.to_vec())))?;
        let mut first = BTreeMap::new();
        let mut repeated = Vec::new();
        for (origin, (key, fingerprint)) in (0..).zip(documents) {
            match first.entry(key) {
                Entry::Occupied(known) => repeated.push((origin, known.key().clone())),
                Entry::Vacant(free) => {
                    free.insert(fingerprint);
                }
            }
        }
        duplicates.sort();
        assert_eq!(duplicates, repeated, "{}", self.context);
        let replaced = first.keys().filter(|key| self.model.contains_key(*key)).count();
        self.model.extend(first);
        assert_eq!(report.replaced, replaced as u64, "{}", self.context);
        assert_eq!(report.duplicates, repeated.len() as u64, "{}", self.context);
        assert_eq!(report.documents, self.model.len() as u64, "{}", self.context);
        self.reopen()
    }

    fn freeze(&mut self) -> Result<()> {
        if self.frozen.len() == 3 {
            self.frozen.remove(0);
        }
        self.frozen.push((self.index().reader()?, self.model.clone()));
        Ok(())
    }

    /// Searches one of the frozen readers, which must not see later writes.
    fn thaw(&mut self) -> Result<()> {
        if self.frozen.is_empty() || self.rng.below(4) > 0 {
            return Ok(());
        }
        let query = self.fingerprint();
        let key = self.key();
        let at = self.rng.below(self.frozen.len());
        let (reader, model) = &self.frozen[at];
        let found = reader.search(Query::new(query).distance(F::MAX_DISTANCE))?;
        assert_eq!(found, scan(model, query, F::MAX_DISTANCE), "frozen, {}", self.context);
        assert_eq!(reader.len(), model.len() as u64, "frozen, {}", self.context);
        assert_eq!(reader.get(&key)?, model.get(&key).copied(), "frozen, {}", self.context);
        let documents = reader.documents()?.collect::<Result<Model<F>>>()?;
        assert!(documents == *model, "frozen documents, {}", self.context);
        Ok(())
    }

    fn joins(&mut self) -> Result<()> {
        let distance = self.rng.up_to(F::MAX_DISTANCE);
        let pairs = pairs_of(self.index(), distance)?;
        assert_eq!(pairs, scan_pairs(&self.model, distance), "{}", self.context);
        let clusters = clusters_of(self.index(), distance)?;
        assert_eq!(clusters, scan_clusters(&self.model, distance), "{}", self.context);
        Ok(())
    }

    fn search(&mut self) -> Result<()> {
        let (query, distance) = (self.fingerprint(), self.rng.up_to(F::MAX_DISTANCE / 2));
        let limit = self.rng.below(40);
        let mut expected = scan(&self.model, query, distance);
        expected.truncate(limit);
        let path = *self.rng.pick(&[SearchPath::Auto, SearchPath::Scan, SearchPath::Tables]);
        // Many flips of long prefixes take too long.
        let path = if distance > 8 { SearchPath::Auto } else { path };
        let query = Query::new(query).distance(distance).limit(limit).path(path);
        assert_eq!(self.index().search(query.clone())?, expected, "{query:?}, {}", self.context);
        let key = self.key();
        assert_eq!(self.index().get(&key)?, self.model.get(&key).copied(), "{}", self.context);
        Ok(())
    }
}

/// Applies `insert_if_new` to the model.
fn offer<F: Fingerprint>(
    model: &mut Model<F>,
    key: &[u8],
    fingerprint: F,
    distance: u32,
) -> Option<Match<F>> {
    let near = scan(model, fingerprint, distance);
    let nearest = near.into_iter().find(|found| found.key != key);
    if nearest.is_none() {
        model.insert(key.to_vec(), fingerprint);
    }
    nearest
}

fn run<F: Fingerprint>(seed: u64, plan: &str) -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::<F>::start(directory.path(), seed, plan)?;
    for step in 0..steps() {
        run.context = format!("seed {seed}, plan {plan}, {} bits, step {step}", F::BITS);
        if let Err(error) = run.step() {
            panic!("{error}, {}", run.context);
        }
    }
    assert_holds(run.index(), &run.model, &run.context);
    run.reopen()?;
    assert_holds(run.index(), &run.model, &run.context);
    assert!(documents_of(run.index())? == run.model);
    Ok(())
}

#[test]
fn long_sequences_match_the_model_at_32_bits() -> Result<()> {
    run::<u32>(1, "4")?;
    run::<u32>(2, "16")
}

#[test]
fn long_sequences_match_the_model_at_64_bits() -> Result<()> {
    run::<u64>(3, "4")?;
    run::<u64>(4, "10")
}

#[test]
fn long_sequences_match_the_model_at_128_bits() -> Result<()> {
    run::<u128>(5, "4")?;
    run::<u128>(6, "3x1/4x1")
}

#[derive(Debug, Clone)]
enum Operation {
    Insert(Vec<(u8, u32)>),
    Remove(Vec<u8>),
    InsertIfNew(u8, u32, u32),
    FoldStep,
    Reopen,
}

/// Few keys, and fingerprints with few bits set, so that they collide often.
fn operation() -> impl Strategy<Value = Operation> {
    let fingerprint = || {
        let bits = vec(0_u32..32, 0..3);
        bits.prop_map(|bits| bits.into_iter().fold(0, |fingerprint, bit| fingerprint | 1 << bit))
    };
    prop_oneof![
        4 => vec((0_u8..16, fingerprint()), 0..8).prop_map(Operation::Insert),
        2 => vec(0_u8..16, 0..6).prop_map(Operation::Remove),
        2 => (0_u8..16, fingerprint(), 0_u32..4)
            .prop_map(|(key, fingerprint, k)| Operation::InsertIfNew(key, fingerprint, k)),
        2 => Just(Operation::FoldStep),
        1 => Just(Operation::Reopen),
    ]
}

fn follow(operations: &[Operation]) -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let mut index = Index::<u32>::create(directory.path(), &options::<u32>("2x1"))?;
    let mut model = Model::new();
    for operation in operations {
        match operation {
            Operation::Insert(documents) => {
                let documents: Vec<_> = documents.iter().map(|(key, f)| ([*key], *f)).collect();
                index.insert_batch(&documents, Durability::Buffered)?;
                model.extend(documents.into_iter().map(|(key, f)| (key.to_vec(), f)));
            }
            Operation::Remove(keys) => {
                let keys: Vec<_> = keys.iter().map(|key| [*key]).collect();
                index.remove_batch(&keys, Durability::Buffered)?;
                model.retain(|key, _| !keys.iter().any(|gone| gone[..] == key[..]));
            }
            Operation::InsertIfNew(key, fingerprint, k) => {
                let key = [*key];
                let refused = index.insert_if_new(&key, *fingerprint, *k, Durability::Buffered)?;
                let near = scan(&model, *fingerprint, *k);
                let nearest = near.into_iter().find(|found| found.key != key);
                assert_eq!(refused, nearest);
                if refused.is_none() {
                    model.insert(key.to_vec(), *fingerprint);
                }
            }
            Operation::FoldStep => {
                index.merge_step()?;
            }
            Operation::Reopen => {
                drop(index);
                index = Index::open(directory.path())?;
            }
        }
        for query in [0, 1, 1 << 31 | 1] {
            let found = index.search(Query::new(query).distance(3))?;
            assert_eq!(found, scan(&model, query, 3));
        }
    }
    assert_holds(&index, &model, "at the end");
    Ok(())
}

#[test]
fn short_sequences_match_the_model() {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&vec(operation(), 1..24), |operations| {
        follow(&operations).map_err(|error| TestCaseError::fail(error.to_string()))
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
