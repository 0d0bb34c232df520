use rayon::prelude::*;

use super::*;

const SEED: u64 = 0x5eed;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 3
    }
}

type Owned = (Vec<u8>, Vec<u8>);

/// Records with the given keys and their number as payload, to check stability.
fn numbered(keys: impl Iterator<Item = Vec<u8>>) -> Vec<Owned> {
    keys.zip(0_u64..).map(|(key, number)| (key, number.to_be_bytes().to_vec())).collect()
}

fn drain(mut sorted: Sorted) -> Result<Vec<Owned>> {
    let len = sorted.len();
    let mut all = Vec::new();
    while let Some((key, payload)) = sorted.next()? {
        all.push((key.to_vec(), payload.to_vec()));
    }
    assert!(sorted.next()?.is_none(), "the stream continues after its end");
    assert_eq!(all.len() as u64, len);
    Ok(all)
}

fn filled(dir: &Path, budget: usize, records: &[Owned]) -> RecordSorter {
    let mut sorter = RecordSorter::new(dir, budget, "docs");
    for (key, payload) in records {
        sorter.push(key, payload).unwrap();
    }
    assert_eq!(sorter.len(), records.len() as u64);
    sorter
}

fn stable_sorted(records: &[Owned]) -> Vec<Owned> {
    let mut expected = records.to_vec();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    expected
}

fn files_in(dir: &Path) -> usize {
    dir.read_dir().unwrap().count()
}

#[test]
fn any_keys_under_any_budget_come_as_a_stable_sort_gives_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(SEED);
    let mut cases: Vec<(&str, Vec<Owned>)> = vec![
        ("empty", Vec::new()),
        ("one", numbered(std::iter::once(b"key".to_vec()))),
        ("sequential", numbered((0..6_000_u64).map(|i| i.to_be_bytes().to_vec()))),
        ("reverse", numbered((0..6_000_u64).rev().map(|i| i.to_be_bytes().to_vec()))),
        ("equal", numbered((0..6_000).map(|_| b"the same long key".to_vec()))),
        ("empty keys", numbered((0..3_000).map(|_| Vec::new()))),
    ];
    cases.push(("random", numbered((0..6_000).map(|_| random.next().to_be_bytes().to_vec()))));
    cases.push(("repeated", numbered((0..6_000).map(|_| vec![0, (random.next() % 50) as u8]))));
    let address = |number: u64| format!("https://example.org/{:07}/index", number % 30_000);
    let addresses = (0..6_000).map(|_| address(random.next()).into_bytes());
    cases.push(("shared prefixes", numbered(addresses)));
    let zeros = (0..6_000).map(|_| vec![0; (random.next() % 40) as usize]);
    cases.push(("only zeros", numbered(zeros)));
    let long = (0..3_000).map(|_| {
        let (len, end) = ((random.next() % 1024) as usize, random.next());
        [vec![b'a'; len], end.to_be_bytes().to_vec()].concat()
    });
    cases.push(("long", numbered(long)));
    for (name, records) in &cases {
        let expected = stable_sorted(records);
        for budget in [8_000, 60_000, 1 << 30] {
            let sorted = filled(dir.path(), budget, records).finish().unwrap();
            let all = drain(sorted).unwrap();
            assert!(all == expected, "{name} keys, budget {budget}, seed {SEED:#x}");
            assert_eq!(files_in(dir.path()), 0, "{name} keys, budget {budget}: files are left");
        }
    }
}

#[test]
fn hundreds_of_spills_merge_in_generations() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(SEED);
    let records = numbered((0..6_000).map(|_| (random.next() % 5_000).to_be_bytes().to_vec()));
    let sorter = filled(dir.path(), 1_000, &records);
    assert!(sorter.next_number > 100, "{} spills", sorter.next_number);
    let sorted = sorter.finish().unwrap();
    assert!(files_in(dir.path()) <= 64);
    assert!(drain(sorted).unwrap() == stable_sorted(&records), "seed {SEED:#x}");
    assert_eq!(files_in(dir.path()), 0, "files are left");
}

#[test]
fn records_larger_than_the_budget_are_sorted_too() {
    let dir = tempfile::tempdir().unwrap();
    let records: Vec<Owned> = (0..12_u8)
        .map(|i| (vec![b'z' - i; 1024], vec![i; usize::from(i % 4) * (1 << 20)]))
        .collect();
    for budget in [1_000, 5 << 20] {
        let sorted = filled(dir.path(), budget, &records).finish().unwrap();
        assert!(drain(sorted).unwrap() == stable_sorted(&records), "budget {budget}");
    }
}

#[test]
fn records_that_fit_the_budget_are_not_written_to_disk() {
    let absent = Path::new("no such directory");
    let records = numbered((0..1_000_u32).rev().map(|i| i.to_be_bytes().to_vec()));
    let sorted = filled(absent, 1 << 20, &records).finish().unwrap();
    assert!(drain(sorted).unwrap() == stable_sorted(&records));
}

#[test]
fn a_failed_spill_is_reported_with_its_path_and_fails_later_calls() {
    let absent = Path::new("no such directory");
    let mut sorter = filled(absent, 1 << 20, &numbered(std::iter::once(vec![1])));
    let outcome = sorter.seal();
    assert!(
        matches!(&outcome, Err(Error::Io { path, .. }) if path.starts_with(absent)),
        "{outcome:?}"
    );
    assert!(matches!(sorter.seal(), Err(Error::Store { .. })));
    assert!(matches!(sorter.finish(), Err(Error::Store { .. })));
}

#[test]
fn resuming_from_sealed_files_gives_the_same_stream() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(SEED);
    let records = numbered((0..9_000).map(|_| (random.next() % 900).to_be_bytes().to_vec()));
    let (before, after) = records.split_at(6_000);
    let mut sorter = filled(dir.path(), 30_000, before);
    let files = sorter.seal().unwrap();
    assert_eq!(files.iter().map(|file| file.records).sum::<u64>(), 6_000);
    for (key, payload) in after {
        sorter.push(key, payload).unwrap();
    }
    drop(sorter);
    assert_eq!(files_in(dir.path()), files.len(), "only sealed files outlive the sorter");
    std::fs::write(dir.path().join("docs-0999.run"), "left by a killed build").unwrap();
    std::fs::write(dir.path().join("docs.manifest"), "not a spill file").unwrap();

    let mut resumed = RecordSorter::resume(dir.path(), 40_000, "docs", files.clone()).unwrap();
    assert_eq!(files_in(dir.path()), files.len() + 1, "strays are removed, nothing else");
    assert_eq!(resumed.len(), 6_000);
    for (key, payload) in after {
        resumed.push(key, payload).unwrap();
    }
    let all = drain(resumed.finish().unwrap()).unwrap();
    assert!(all == stable_sorted(&records), "seed {SEED:#x}");
    assert!(files.iter().all(|file| file.path.exists()), "named files belong to the caller");
    assert_eq!(files_in(dir.path()), files.len() + 1, "unnamed files are left");
}

#[test]
fn spilled_files_are_named_once_and_cover_the_first_pushes() {
    let dir = tempfile::tempdir().unwrap();
    let records = numbered((0..6_000_u64).rev().map(|i| i.to_be_bytes().to_vec()));
    let mut sorter = RecordSorter::new(dir.path(), 50_000, "docs");
    let mut taken = Vec::new();
    for (key, payload) in &records {
        sorter.push(key, payload).unwrap();
        taken.extend(sorter.take_spilled().unwrap());
    }
    assert!(taken.len() > 2, "{} files were taken", taken.len());
    assert!(sorter.seal().unwrap().starts_with(&taken));
    assert!(sorter.take_spilled().unwrap().is_empty());
    drop(sorter);
    let covered = taken.iter().map(|file| file.records).sum::<u64>();
    let resumed = RecordSorter::resume(dir.path(), 50_000, "docs", taken).unwrap();
    let first = &records[..usize::try_from(covered).unwrap()];
    assert!(drain(resumed.finish().unwrap()).unwrap() == stable_sorted(first));
}

#[test]
fn damaged_files_are_refused_when_read_and_truncated_ones_when_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let records = numbered((0..6_000_u64).rev().map(|i| i.to_be_bytes().to_vec()));
    let files = filled(dir.path(), 100_000, &records).seal().unwrap();
    let good = std::fs::read(&files[1].path).unwrap();

    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    std::fs::write(&files[1].path, flipped).unwrap();
    let resumed = RecordSorter::resume(dir.path(), 100_000, "docs", files.clone()).unwrap();
    let outcome = resumed.finish().and_then(drain).map(|all| all.len());
    let name = files[1].path.display().to_string();
    assert!(
        matches!(&outcome, Err(Error::Corrupt { family, .. }) if *family == name),
        "{outcome:?}"
    );

    std::fs::write(&files[1].path, &good[..good.len() - 1]).unwrap();
    let outcome = RecordSorter::resume(dir.path(), 100_000, "docs", files);
    assert!(matches!(outcome, Err(Error::Corrupt { .. })), "a truncated file was accepted");
}

#[test]
fn workers_that_share_a_sorter_do_not_wait_for_each_other() {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    let dir = tempfile::tempdir().unwrap();
    let sorter = Mutex::new(RecordSorter::new(dir.path(), 64 << 10, "shared"));
    let (done, waiting) = channel();
    std::thread::spawn(move || {
        let records = 200_000_u32;
        (0..records).into_par_iter().with_max_len(64).for_each(|record| {
            let key = record.wrapping_mul(0x9e37_79b9).to_be_bytes();
            sorter.lock().unwrap().push(&key, &[]).unwrap();
        });
        let sorted = sorter.into_inner().unwrap().finish().unwrap();
        done.send(sorted.len() == u64::from(records)).unwrap();
    });
    assert_eq!(waiting.recv_timeout(Duration::from_mins(2)), Ok(true), "all workers wait");
}
