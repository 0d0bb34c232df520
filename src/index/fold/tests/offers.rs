//! Tests of steps whose batch a writer commits.

use super::*;
use crate::error::Fault;

fn runs(index: &Index<u64>) -> u64 {
    index.shared.committer.withdraw_runs();
    index.stats(&()).unwrap().runs
}

/// Merges the rest, and compares the index with what [`index`](super::index) stored.
fn finish(index: &Index<u64>, but: &[u64]) {
    while index.shared.offering_step().unwrap().more {}
    let stored = (0..2000).step_by(2).chain((0..3000).step_by(3));
    for n in stored {
        assert_eq!(near(index, n), usize::from(!but.contains(&n)), "{n}");
    }
    let report = index.check(&()).unwrap();
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
}

#[test]
fn the_next_write_of_any_kind_commits_the_batch_that_a_step_leaves() {
    type Write = fn(&Index<u64>) -> bool;
    let writes: [(Write, &[u64]); 3] = [
        (|index| index.insert(&7000_u64.to_be_bytes(), 7000 << 40).unwrap(), &[]),
        (|index| index.insert(&8_u64.to_be_bytes(), 7000 << 40).unwrap(), &[8]),
        (|index| index.remove(&8_u64.to_be_bytes()).unwrap(), &[8]),
    ];
    for (write, but) in writes {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        let before = runs(&index);
        assert!(index.shared.offering_step().unwrap().merged > 0);
        assert_eq!(runs(&index), before);
        // Whether there was a document before.
        assert_eq!(write(&index), !but.is_empty());
        let after = runs(&index);
        assert!(after > before, "{after} runs, before {before}");
        finish(&index, but);
    }
}

#[test]
fn a_step_commits_what_the_last_one_left_and_no_write_has_committed() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let before = runs(&index);
    for _ in 0..2 {
        assert!(index.shared.offering_step().unwrap().merged > 0);
    }
    assert!(runs(&index) > before);
    finish(&index, &[]);
}

#[test]
fn the_batch_of_a_pass_that_is_given_up_is_not_committed() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let before = runs(&index);
    assert!(index.shared.offering_step().unwrap().merged > 0);
    index.shared.committer.begin_fold();
    index.insert(&7000_u64.to_be_bytes(), 7000 << 40).unwrap();
    assert_eq!(runs(&index), before);
    finish(&index, &[]);
}

#[test]
fn a_step_whose_batch_a_writer_could_not_commit_is_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let mut failures = 0;
    loop {
        match index.shared.offering_step() {
            Ok(step) if !step.more => break,
            Ok(_) if failures < 40 => index.shared.committer.fail_offer(),
            Ok(_) => (),
            Err(error) => {
                assert_eq!(error.fault(), Fault::Environment);
                failures += 1;
            }
        }
    }
    assert_eq!(failures, 40);
    finish(&index, &[]);
}
