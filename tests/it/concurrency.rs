//! Concurrency: many callers of one handle get the results of some sequential order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hamdex::{Durability, Index, IndexOptions, Query, Result};
use rayon::prelude::*;

use crate::support::{Model, Rng, assert_holds, documents_of, keyed, options, pairs_of, random};

#[test]
fn concurrent_insert_if_new_stores_no_near_duplicates_and_loses_none() -> Result<()> {
    const THREADS: usize = 4;
    const DISTANCE: u32 = 3;
    let seed = 31;
    let rng = &mut Rng::new(seed);
    let centres: Vec<u64> = (0..150).map(|_| rng.fingerprint()).collect();
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<u64>("4"))?;
    let barrier = Barrier::new(THREADS);
    let offered: Vec<Vec<(Vec<u8>, u64, bool)>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (index, barrier, centres) = (&index, &barrier, &centres);
                scope.spawn(move || {
                    let rng = &mut Rng::new(seed + 1 + thread as u64);
                    barrier.wait();
                    let offer = |(at, centre): (usize, &u64)| {
                        let flips = rng.up_to(2);
                        let fingerprint = rng.flipped(*centre, flips);
                        let key = format!("{thread}-{at}").into_bytes();
                        let refused = index
                            .insert_if_new(&key, fingerprint, DISTANCE, Durability::Buffered)
                            .unwrap();
                        if let Some(near) = &refused {
                            assert!((fingerprint ^ near.fingerprint).count_ones() <= DISTANCE);
                        }
                        (key, fingerprint, refused.is_none())
                    };
                    centres.iter().enumerate().map(offer).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let offered: Vec<_> = offered.into_iter().flatten().collect();
    let accepted: Model<u64> =
        offered.iter().filter(|(.., new)| *new).map(|(key, f, _)| (key.clone(), *f)).collect();
    assert_holds(&index, &accepted, &format!("seed {seed}"));
    assert_eq!(pairs_of(&index, DISTANCE)?, [], "near-duplicates were stored, seed {seed}");
    for (key, fingerprint, _) in &offered {
        let near = index.search(Query::new(*fingerprint).distance(DISTANCE))?;
        assert!(!near.is_empty(), "{} was lost, seed {seed}", key.escape_ascii());
    }
    Ok(())
}

/// A call that waits inside a pool runs other calls of that pool.
#[test]
fn calls_as_jobs_of_one_pool_finish_and_reject_near_duplicates() -> Result<()> {
    const DISTANCE: u32 = 3;
    for resident in [0, 64 << 20] {
        let rng = &mut Rng::new(61);
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &options::<u64>("4").resident(resident))?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let centres: Vec<u64> = (0..90).map(|_| rng.fingerprint()).collect();
        let batches: Vec<Vec<(Vec<u8>, u64)>> = (0..240_u64)
            .map(|batch| {
                let documents = (0..8_u64).map(|at| {
                    let (centre, flips) = (*rng.pick(&centres), rng.up_to(2));
                    ([batch.to_be_bytes(), at.to_be_bytes()].concat(), rng.flipped(centre, flips))
                });
                documents.collect()
            })
            .collect();
        // Far from all others, and enough documents that tables in memory are merged.
        let others: Vec<Vec<(Vec<u8>, u64)>> = (0..24_u64)
            .map(|batch| {
                let documents = (0..300_u64).map(|at| {
                    let key = [b"far".as_slice(), &batch.to_be_bytes(), &at.to_be_bytes()].concat();
                    (key, rng.fingerprint())
                });
                documents.collect()
            })
            .collect();
        let (ended, end) = mpsc::channel();
        let index = Arc::new(index);
        let inserting = Arc::clone(&index);
        thread::spawn(move || {
            let refused = pool.install(|| {
                let plain = || {
                    others.par_iter().for_each(|batch| {
                        inserting.insert_batch(batch, Durability::Buffered).unwrap();
                    });
                };
                let if_new = || -> Vec<_> {
                    let insert = |batch: &Vec<_>| {
                        inserting.insert_batch_if_new(batch, DISTANCE, Durability::Buffered)
                    };
                    batches.par_iter().map(|batch| insert(batch).unwrap()).collect()
                };
                rayon::join(plain, if_new).1
            });
            ended.send((batches, refused)).unwrap();
        });
        let Ok((batches, refused)) = end.recv_timeout(Duration::from_mins(2)) else {
            panic!("a call waits for a lock that its own thread holds");
        };
        let stored = documents_of(&index)?;
        assert_holds(&index, &stored, "after all calls");
        for ((key, fingerprint), near) in batches.iter().flatten().zip(refused.iter().flatten()) {
            assert_eq!(stored.contains_key(key), near.is_none());
            if let Some(near) = near {
                assert_eq!(stored.get(&near.key), Some(&near.fingerprint));
                assert!((fingerprint ^ near.fingerprint).count_ones() <= DISTANCE);
            }
        }
        assert_eq!(pairs_of(&index, DISTANCE)?, [], "near-duplicates were stored");
        assert_eq!(index.reader()?.is_resident(), resident > 0);
    }
    Ok(())
}

#[test]
fn concurrent_inserts_and_removals_of_equal_fingerprints_lose_nothing() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<u64>("4"))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let folder = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                index.merge_step().unwrap();
            }
        });
        let writers: Vec<_> = (0..3_u8)
            .map(|thread| {
                let index = &index;
                scope.spawn(move || {
                    // All threads share these fingerprints, but no keys.
                    for round in 0..300_u16 {
                        let key = [thread, u8::try_from(round % 7).unwrap()];
                        let fingerprint = u64::from(round % 5);
                        let document = [(key, fingerprint)];
                        index.insert_batch(&document, Durability::Buffered).unwrap();
                        let found = index.search(Query::new(fingerprint).distance(0)).unwrap();
                        assert!(found.iter().any(|m| m.key == key), "round {round}");
                        if round % 3 == 0 {
                            assert_eq!(
                                index.remove_batch(&[key], Durability::Buffered).unwrap(),
                                1
                            );
                        }
                    }
                })
            })
            .collect();
        let failed = writers.into_iter().filter_map(|writer| writer.join().err()).count();
        stop.store(true, Ordering::Relaxed);
        folder.join().unwrap();
        assert_eq!(failed, 0);
    });
    let stored = documents_of(&index)?;
    assert_holds(&index, &stored, "after all threads");
    assert!(!stored.is_empty());
    Ok(())
}

/// Writers change whole groups, so a reader that sees part of one mixes two states.
#[test]
fn readers_see_whole_batches_during_writes_and_folds() -> Result<()> {
    const GROUP: u64 = 20;
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<u64>("4"))?;
    let group = |number: u64| -> Vec<(Vec<u8>, u64)> {
        (0..GROUP)
            .map(|at| {
                let key = [number.to_be_bytes(), at.to_be_bytes()].concat();
                (key, number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1 << at)
            })
            .collect()
    };
    let written = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|seed| {
                let (index, written, stop) = (&index, &written, &stop);
                scope.spawn(move || {
                    let rng = &mut Rng::new(41 + seed);
                    let mut seen = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let last = written.load(Ordering::Acquire);
                        let reader = index.reader().unwrap();
                        assert_eq!(reader.len() % GROUP, 0, "half a batch is counted");
                        let number = rng.number() % (last + 1);
                        let centre = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                        let found = reader.search(Query::new(centre).distance(1)).unwrap();
                        let whole = found.len() as u64;
                        assert!(whole == 0 || whole == GROUP, "{whole} of group {number}");
                        let again = reader.search(Query::new(centre).distance(1)).unwrap();
                        assert_eq!(found, again, "one reader, two answers");
                        seen += whole / GROUP;
                    }
                    seen
                })
            })
            .collect();
        let begun = Instant::now();
        let mut number = 0;
        while begun.elapsed() < Duration::from_millis(1500) {
            index.insert_batch(&group(number), Durability::Buffered).unwrap();
            written.store(number, Ordering::Release);
            if number % 3 == 2 {
                let keys: Vec<_> = group(number - 1).into_iter().map(|(key, _)| key).collect();
                let removed = index.remove_batch(&keys, Durability::Buffered).unwrap();
                assert_eq!(removed, GROUP);
            }
            if number % 5 == 4 {
                index.merge_step().unwrap();
            }
            if number % 50 == 49 {
                index.merge(&()).unwrap();
            }
            number += 1;
        }
        stop.store(true, Ordering::Relaxed);
        let seen: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(seen > 0, "no reader ever saw a group");
    });
    let stored = documents_of(&index)?;
    assert_holds(&index, &stored, "after all batches");
    Ok(())
}

#[test]
fn a_background_fold_runs_next_to_writers_and_loses_nothing() -> Result<()> {
    // A merge begins with this number.
    const WORTH_FOLDING: u64 = 1 << 16;
    let directory = tempfile::tempdir().unwrap();
    let rng = &mut Rng::new(51);
    let mut model = Model::new();
    let mut key = 0_u32;
    let mut write = |index: &Index<u64>, model: &mut Model<u64>| -> Result<()> {
        let documents: Vec<_> = (0..2000)
            .map(|_| {
                key += 1;
                (key.to_be_bytes().to_vec(), rng.fingerprint::<u64>())
            })
            .collect();
        index.insert_batch(&documents, Durability::Buffered)?;
        model.extend(documents);
        let gone: Vec<_> = model.keys().skip(rng.below(50)).step_by(90).cloned().collect();
        index.remove_batch(&gone, Durability::Buffered)?;
        for key in gone {
            model.remove(&key);
        }
        Ok(())
    };
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    write(&index, &mut model)?;
    drop(index);

    let folding = IndexOptions::new().memory(16 << 20).background_merge(true);
    let index = Index::<u64>::open_with(directory.path(), &folding)?;
    for _ in 0..40 {
        write(&index, &mut model)?;
    }
    wait_for_deltas_below(&index, WORTH_FOLDING)?;
    assert!(index.stats(&())?.runs > 0);
    assert_holds(&index, &model, "folded in the background");
    drop(index);
    let index = Index::<u64>::open(directory.path())?;
    assert_holds(&index, &model, "reopened");
    Ok(())
}

fn wait_for_deltas_below(index: &Index<u64>, limit: u64) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while index.stats(&())?.tables.iter().any(|table| table.delta_entries >= limit) {
        assert!(Instant::now() < deadline, "the background fold does not finish");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn parallel_batches_count_every_document_and_store_one_of_each_key() -> Result<()> {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 25;
    let seed = 77;
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (index, barrier) = (&index, &barrier);
            scope.spawn(move || {
                let rng = &mut Rng::new(seed + thread);
                barrier.wait();
                for round in 0..ROUNDS {
                    // Half of the keys are of this thread, the others of all threads in this round.
                    let own = (0..20).map(|at| format!("{thread}-{round}-{at}"));
                    let common = (0..20).map(|at| format!("all-{round}-{at}"));
                    let documents: Vec<(String, u64)> =
                        own.chain(common).map(|key| (key, rng.fingerprint())).collect();
                    let documents: Vec<_> =
                        documents.iter().map(|(key, f)| (key.as_bytes(), *f)).collect();
                    index.insert_batch(&documents, Durability::Buffered).unwrap();
                    if round % 5 == thread {
                        let gone = format!("{thread}-{round}-0");
                        assert!(index.remove(gone.as_bytes()).unwrap());
                    }
                }
            });
        }
    });
    let kept = THREADS * (ROUNDS * 20 - ROUNDS / 5) + ROUNDS * 20;
    assert_eq!(index.len()?, kept, "seed {seed}");
    let model = documents_of(&index)?;
    assert_eq!(model.len() as u64, kept, "seed {seed}");
    assert_holds(&index, &model, &format!("seed {seed}"));
    drop(index);
    let index = Index::<u64>::open(directory.path())?;
    assert_eq!(index.len()?, kept, "seed {seed}, opened again");
    Ok(())
}

/// Compactions take turns with searches on busy CPUs, unless asked to stay behind them.
#[cfg(target_os = "linux")]
#[test]
fn compactions_run_at_the_lowest_priority_if_asked() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let niceness = |index: &Index<u64>, seed: u64| -> Vec<i32> {
        let documents: Vec<_> =
            keyed(&mut Rng::new(seed), &random::<u64>(&mut Rng::new(seed + 1), 1000));
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        index.compact().unwrap();
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let stats =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
        // The name is in parentheses; the priority is the 17th field behind it.
        stats
            .filter_map(|stat| {
                let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
                let nice = rest.split_whitespace().nth(16)?.parse().ok()?;
                name.starts_with("rocksdb:low").then_some(nice)
            })
            .collect()
    };
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    let usual = niceness(&index, 1);
    assert!(!usual.is_empty() && usual.iter().all(|&nice| nice < 19), "{usual:?}");
    drop(index);
    let low = IndexOptions::new().memory(16 << 20).low_priority_compaction(true);
    let index = Index::<u64>::open_with(directory.path(), &low)?;
    let lowered = niceness(&index, 3);
    assert!(lowered.contains(&19), "{lowered:?}");
    Ok(())
}
