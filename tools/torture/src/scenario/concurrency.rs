//! Concurrency: many threads on one handle and one secondary, compared with an oracle.
//!
//! Every writer owns some keys. For each key the oracle has two numbers: the last acknowledged
//! version and the last begun one. A reader takes the first number before it reads and the second
//! afterwards; the version that it reads must be between them. A lower one is a lost update, a
//! higher one is a phantom. Offers compete for the same centres under a separate tag, so that two
//! stored offers that are near each other are a violation.

use std::path::Path;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hamdex::any::AnyReader;
use hamdex::{Durability, IndexOptions, Query, SearchPath, Secondary, for_width};

use crate::copies;
use crate::oracle::{Model, compare, documents, verify};
use crate::report::{Account, Finding, Verdict};
use crate::setup::{Handle, Setup};

const WRITERS: u64 = 3;
const READERS: u64 = 2;
const OFFERERS: u64 = 2;
/// Several, so that merges meet.
const MAINTAINERS: u64 = 2;

/// Keys of one writer.
const KEYS: u64 = 60;

/// Maximum number of keys changed by one call.
const BATCH: u64 = 6;

/// Distance at which an offer is rejected as a duplicate.
const NEAR: u32 = 3;

/// Checks, 20 ms apart, without progress of any thread that indicate a deadlock.
const PATIENCE: u32 = 3000;

/// Returns the fingerprint of a key's version; `None` for a version that removes the key.
///
/// Some keys share a fingerprint, so that their postings change together.
fn version(setup: Setup, key: u64, version: u64) -> Option<u128> {
    let tag = setup.narrow(!0) >> 8;
    match version % 5 {
        0 => None,
        1 => Some(u128::from(key % 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) & tag),
        _ => Some(Rng::with_seed(key << 32 | version).u128(..) & tag),
    }
}

fn key_bytes(key: u64) -> Vec<u8> {
    key.to_be_bytes().to_vec()
}

/// Draws the fingerprint of an offer, which is not near any writer's.
fn offered(setup: Setup, rng: &mut Rng, centres: &[u128]) -> u128 {
    let mut fingerprint = rng.choice(centres).copied().unwrap_or_default() | tag(setup);
    for _ in 0..rng.u32(0..3) {
        fingerprint ^= 1 << rng.u32(0..setup.bits - 8);
    }
    fingerprint
}

/// Returns the bits that all offers have and no other document has.
fn tag(setup: Setup) -> u128 {
    setup.narrow(!0) & !(setup.narrow(!0) >> 8)
}

struct Oracle {
    acknowledged: Vec<AtomicU64>,
    begun: Vec<AtomicU64>,
    stop: AtomicBool,
    /// Calls that returned, of all threads.
    calls: AtomicU64,
    /// Threads at work.
    working: AtomicU64,
    finding: Mutex<Option<Finding>>,
}

impl Oracle {
    fn new() -> Self {
        let zeros = || (0..WRITERS * KEYS).map(|_| AtomicU64::new(0)).collect();
        Self {
            acknowledged: zeros(),
            begun: zeros(),
            stop: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            working: AtomicU64::new(0),
            finding: Mutex::default(),
        }
    }

    fn read(numbers: &[AtomicU64], key: u64) -> u64 {
        let at = usize::try_from(key).unwrap_or(usize::MAX);
        numbers.get(at).map_or(0, |number| number.load(Ordering::SeqCst))
    }

    fn raise(numbers: &[AtomicU64], key: u64) {
        let at = usize::try_from(key).unwrap_or(usize::MAX);
        if let Some(number) = numbers.get(at) {
            number.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Repeats a step until stopped; the first finding stops all threads.
    fn work(&self, mut step: impl FnMut() -> Verdict) {
        self.working.fetch_add(1, Ordering::SeqCst);
        while !self.stop.load(Ordering::Relaxed) {
            let verdict = step();
            self.calls.fetch_add(1, Ordering::Relaxed);
            if let Err(finding) = verdict {
                let mut first = self.finding.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(finding);
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        self.working.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Writes the next version of some keys, with one call for inserts and one for removals.
fn write(index: &Handle, oracle: &Oracle, writer: u64, rng: &mut Rng) -> Verdict {
    let mut keys: Vec<u64> = (0..BATCH).map(|_| writer * KEYS + rng.u64(0..KEYS)).collect();
    keys.sort_unstable();
    keys.dedup();
    let durability = if rng.u32(0..30) == 0 { Durability::Synced } else { Durability::Buffered };
    let next = |key: u64| version(index.setup, key, Oracle::read(&oracle.acknowledged, key) + 1);
    let (puts, removals): (Vec<u64>, Vec<u64>) = keys.iter().partition(|key| next(**key).is_some());
    let documents: Vec<_> =
        puts.iter().filter_map(|key| Some((key_bytes(*key), next(*key)?))).collect();
    let raise = |versions: &[AtomicU64], keys: &[u64]| {
        for key in keys {
            Oracle::raise(versions, *key);
        }
    };
    raise(&oracle.begun, &puts);
    index.insert(&documents, durability)?;
    raise(&oracle.acknowledged, &puts);
    if !removals.is_empty() {
        let gone: Vec<_> = removals.iter().map(|key| key_bytes(*key)).collect();
        raise(&oracle.begun, &removals);
        let removed = index.remove(&gone, durability)?;
        // The version before a removal has a document, unless it is the first.
        let stored = |key: &&u64| Oracle::read(&oracle.acknowledged, **key) > 0;
        if removed != removals.iter().filter(stored).count() as u64 {
            return Err(Finding::lost(format!("{removed} of {} were removed", removals.len())));
        }
        raise(&oracle.acknowledged, &removals);
    }
    Ok(())
}

/// Reads a key through the writing handle.
fn read(index: &Handle, oracle: &Oracle, rng: &mut Rng) -> Verdict {
    judge(index.setup, || index.reader(), oracle, rng)
}

/// A secondary of any width: catches up and returns its newest state.
type Follower = Box<dyn Fn() -> hamdex::Result<AnyReader> + Send + Sync>;

fn follower(setup: Setup, path: &Path) -> hamdex::Result<Follower> {
    for_width!(setup.bits, F => {
        let secondary = Secondary::<F>::open_with(path, &IndexOptions::new().memory(16 << 20))?;
        let caught_up = move || {
            secondary.catch_up()?;
            Ok(secondary.reader()?.into())
        };
        Ok(Box::new(caught_up))
    })
}

/// Compares a key in one state with the oracle and with searches.
fn judge(
    setup: Setup,
    state: impl FnOnce() -> hamdex::Result<AnyReader>,
    oracle: &Oracle,
    rng: &mut Rng,
) -> Verdict {
    let key = rng.u64(0..WRITERS * KEYS);
    let before = Oracle::read(&oracle.acknowledged, key);
    let reader = state()?;
    let found = reader.get(&key_bytes(key))?;
    let after = Oracle::read(&oracle.begun, key);
    if !(before..=after).any(|number| version(setup, key, number) == found) {
        let text = format!("key {key} is {found:?}, of no version from {before} to {after}");
        let newest = (0..before).any(|number| version(setup, key, number) == found);
        return Err(if newest { Finding::lost(text) } else { Finding::wrong(text) });
    }
    let asked = found.unwrap_or_else(|| setup.narrow(rng.u128(..)));
    let mut answers = Vec::new();
    for way in [SearchPath::Tables, SearchPath::Scan] {
        answers.push(reader.search(Query::new(asked).distance(NEAR).path(way))?);
    }
    if answers.first() != answers.last() {
        return Err(Finding::wrong(format!("two ways, two answers for {asked:016x}")));
    }
    let named = |m: &hamdex::Match<u128>| m.key == key_bytes(key) && m.distance == 0;
    if found.is_some() && !answers.iter().flatten().any(named) {
        return Err(Finding::lost(format!("key {key} is stored and not found")));
    }
    if rng.u32(0..50) == 0 {
        no_two_near(setup, &reader)?;
    }
    Ok(())
}

/// Fails if two stored offers are near each other.
fn no_two_near(setup: Setup, reader: &AnyReader) -> Verdict {
    let tag = tag(setup);
    let offers: Vec<(Vec<u8>, u128)> = reader
        .documents()?
        .filter(|document| document.as_ref().map_or(true, |(_, f)| f & tag == tag))
        .collect::<hamdex::Result<_>>()?;
    for (at, (key, one)) in offers.iter().enumerate() {
        for (other, two) in offers.iter().skip(at + 1) {
            if (one ^ two).count_ones() <= NEAR {
                let (key, other) = (key.escape_ascii(), other.escape_ascii());
                return Err(Finding::wrong(format!("{key} and {other} are near and both stored")));
            }
        }
    }
    Ok(())
}

/// Offers a document; removes earlier offers, so that new ones can be stored.
fn offer(
    index: &Handle,
    offerer: u64,
    number: &mut u64,
    mine: &mut Vec<(Vec<u8>, u128)>,
    rng: &mut Rng,
    centres: &[u128],
) -> Verdict {
    *number += 1;
    let key = format!("offer-{offerer}-{number}").into_bytes();
    let fingerprint = offered(index.setup, rng, centres);
    let offer = (key, fingerprint);
    match index.insert_if_new(slice::from_ref(&offer), NEAR)?.into_iter().next().flatten() {
        None => {
            if index.reader()?.get(&offer.0)? != Some(fingerprint) {
                return Err(Finding::lost("an accepted offer is not stored"));
            }
            mine.push(offer);
        }
        Some(distance) if distance > NEAR => {
            let text = format!("rejected because of a document {distance} bits away");
            return Err(Finding::wrong(text));
        }
        Some(_) => (),
    }
    if mine.len() > 8 {
        let (gone, _) = mine.swap_remove(rng.usize(0..mine.len()));
        if index.remove(&[gone], Durability::Buffered)? != 1 {
            return Err(Finding::lost("an accepted offer could not be removed"));
        }
    }
    Ok(())
}

/// Keeps a reader for a while; its state must not change.
fn hold(index: &Handle, rng: &mut Rng) -> Verdict {
    let reader = index.reader()?;
    let first: Model = reader.documents()?.collect::<hamdex::Result<_>>()?;
    thread::sleep(Duration::from_millis(rng.u64(0..50)));
    let again: Model = reader.documents()?.collect::<hamdex::Result<_>>()?;
    compare(&again, &first).map_err(|found| found.within("a reader's state changed"))
}

/// Merges, flushes or compacts beside the other threads.
fn maintain(index: &Handle, rng: &mut Rng) -> Verdict {
    match rng.u32(0..40) {
        0 => index.compact()?,
        1 => index.flush()?,
        2..=5 => index.merge()?,
        6 if index.setup.resident => index.load_resident()?,
        _ => {
            index.merge_step()?;
            thread::sleep(Duration::from_millis(rng.u64(0..4)));
        }
    }
    Ok(())
}

/// Runs all threads for a time, then compares the index with the acknowledged documents.
fn crowd(path: &Path, setup: Setup, seed: u64, time: Duration, account: &mut Account) -> Verdict {
    // Background merges are a setting of opening alone.
    drop(setup.create(path)?);
    let index = setup.open(path)?;
    let follower = if setup.attached { None } else { Some(follower(setup, path)?) };
    let oracle = &Oracle::new();
    let centres: Vec<u128> = {
        let rng = &mut Rng::with_seed(seed);
        (0..40).map(|_| setup.narrow(rng.u128(..))).collect()
    };
    let mine: Mutex<Model> = Mutex::default();
    let rng = |thread: u64| Rng::with_seed(seed.wrapping_mul(101).wrapping_add(thread));
    thread::scope(|scope| {
        let (index, centres, mine) = (&index, &centres, &mine);
        for writer in 0..WRITERS {
            let mut rng = rng(writer);
            scope.spawn(move || oracle.work(|| write(index, oracle, writer, &mut rng)));
        }
        for reader in 0..READERS {
            let mut rng = rng(10 + reader);
            scope.spawn(move || oracle.work(|| read(index, oracle, &mut rng)));
        }
        for offerer in 0..OFFERERS {
            let mut rng = rng(20 + offerer);
            scope.spawn(move || {
                let (mut number, mut own) = (0, Vec::new());
                oracle.work(|| offer(index, offerer, &mut number, &mut own, &mut rng, centres));
                mine.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
            });
        }
        let (mut holding, mut following) = (rng(30), rng(31));
        scope.spawn(move || oracle.work(|| hold(index, &mut holding)));
        if let Some(follower) = &follower {
            let mut follow = move || {
                judge(setup, follower, oracle, &mut following)
                    .map_err(|found| found.within("read along"))
            };
            scope.spawn(move || oracle.work(&mut follow));
        }
        for maintainer in 0..MAINTAINERS {
            let mut rng = rng(40 + maintainer);
            scope.spawn(move || oracle.work(|| maintain(index, &mut rng)));
        }
        watch(oracle, time);
    });
    account.add("calls", oracle.calls.load(Ordering::Relaxed));
    if let Some(finding) = oracle.finding.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(finding);
    }
    let mut expected = mine.into_inner().unwrap_or_else(PoisonError::into_inner);
    for key in 0..WRITERS * KEYS {
        let last = Oracle::read(&oracle.acknowledged, key);
        if let Some(fingerprint) = version(setup, key, last) {
            expected.insert(key_bytes(key), fingerprint);
        }
    }
    compare(&documents(&index)?, &expected)?;
    no_two_near(setup, &index.reader()?)?;
    verify(&index, &expected, &mut rng(50))?;
    drop(index);
    verify(&setup.open(path)?, &expected, &mut rng(51))
}

/// Stops the threads after a time and waits for them; exits the process on a deadlock.
fn watch(oracle: &Oracle, time: Duration) {
    let begun = Instant::now();
    let (mut last, mut looks) = (0, 0);
    loop {
        thread::sleep(Duration::from_millis(20));
        if begun.elapsed() >= time {
            oracle.stop.store(true, Ordering::Relaxed);
        }
        if oracle.stop.load(Ordering::Relaxed) && oracle.working.load(Ordering::SeqCst) == 0 {
            return;
        }
        let calls = oracle.calls.load(Ordering::Relaxed);
        looks = if calls == last { looks + 1 } else { 0 };
        last = calls;
        if looks > PATIENCE {
            // The threads cannot be joined.
            eprintln!("concurrency Wrong: deadlock after {calls} calls");
            std::process::exit(1);
        }
    }
}

/// Runs all threads on one index after the other, each with other settings.
pub(crate) fn run(directory: &Path, seed: u64, time: Duration) -> Account {
    let mut account = Account::new("concurrency");
    let crowds = u32::try_from(time.as_secs() / 20).unwrap_or(u32::MAX).clamp(2, 20);
    for seed in (seed..).take(crowds as usize) {
        account.tried();
        let setup = Setup::drawn(seed);
        let path = directory.join(format!("crowd-{seed}"));
        let outcome = crowd(&path, setup, seed, time / crowds, &mut account);
        let context = format!("concurrency, seed {seed} ({setup})");
        if account.judge(outcome.map_err(|found| found.within(&context))) {
            account.count("oracles held");
            copies::remove(&path);
        }
    }
    account.end();
    account
}
