//! Short sequences of operations; a failure is shrunk to the shortest sequence.

use hamdex::{Durability, Index, Query, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support::{Model, assert_holds, options, scan};

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
                index.fold_step()?;
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
