use super::*;
use crate::Pipeline;
use crate::backup::{Backup, BackupOptions, RestoreOptions};
use crate::text::PipelineOptions;
use crate::verify::Linkage;

const EDIT: Verification = Verification::Edit(0.9);

/// Texts of 40 stories in many versions, some of which differ a lot.
fn texts(seed: u64, count: usize) -> Vec<String> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let words: Vec<String> = (0..500).map(|n| format!("word{}", n * n)).collect();
    let stories: Vec<Vec<&str>> =
        (0..40).map(|_| (0..60).map(|_| words[rng.usize(..500)].as_str()).collect()).collect();
    (0..count)
        .map(|_| {
            let mut story = stories[rng.usize(..40)].clone();
            for _ in 0..rng.usize(..24) {
                story[rng.usize(..60)] = &words[rng.usize(..500)];
            }
            story.join(" ")
        })
        .collect()
}

struct Bench {
    directory: tempfile::TempDir,
    pipeline: Pipeline,
    settings: DedupOptions,
}

impl Bench {
    fn new(settings: DedupOptions) -> Self {
        let pipeline = Pipeline::new(&PipelineOptions::preset("page").unwrap()).unwrap();
        Self { directory: tempfile::tempdir().unwrap(), pipeline, settings }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn create(&self) -> Result<State<u64>> {
        State::create(&self.path(), &IndexOptions::new().text(&self.pipeline), &self.settings)
    }

    fn open(&self) -> Result<State<u64>> {
        State::open(&self.path(), &IndexOptions::new(), &())
    }

    fn dedup<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Dedup<u64> {
        let mut dedup = Dedup::new(&self.settings).unwrap();
        dedup.push_texts(&self.pipeline, texts).unwrap();
        dedup
    }
}

/// Outcome of a document: `None` if kept, else place, distance and similarity of the kept one.
type Outcome = Option<(usize, u32, Option<u64>)>;

/// Similarity in four digits, as results show it.
fn shown(similarity: Option<f64>) -> Option<u64> {
    similarity.map(|value| format!("{:.0}", value * 1e4).parse().unwrap())
}

fn whole(bench: &Bench, texts: &[String]) -> Vec<Outcome> {
    let decisions = bench.dedup(texts).finish(&()).unwrap();
    let outcome = |decision: Decision<'_>| match decision {
        Decision::Kept { .. } => None,
        Decision::Duplicate { kept, distance, similarity, .. } => {
            Some((kept as usize, distance, shown(similarity)))
        }
        Decision::Stored { .. } => panic!("{decision:?}"),
    };
    decisions.iter().map(outcome).collect()
}

fn by_shards(bench: &Bench, texts: &[String], cuts: &[usize]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut start = 0;
    for (number, &end) in cuts.iter().chain([&texts.len()]).enumerate() {
        let mut state = if number == 0 { bench.create() } else { bench.open() }.unwrap();
        let decided = state.decide(bench.dedup(&texts[start..end]), &()).unwrap();
        for decision in decided.decisions.iter() {
            outcomes.push(match decision {
                Decision::Kept { .. } => None,
                Decision::Duplicate { kept, distance, similarity, .. } => {
                    Some((start + kept as usize, distance, shown(similarity)))
                }
                Decision::Stored { key, distance, similarity } => {
                    let place = decided.trail.known(key).unwrap().place.parse().unwrap();
                    Some((place, distance, shown(similarity)))
                }
            });
        }
        let show = |at: u32| {
            Ok(Known { label: format!("{at}"), place: format!("{}", start + at as usize) })
        };
        let input = format!("shard {number}");
        let shard = NewShard { input: &input, content: "", results: None };
        state.commit(&shard, (&decided.decisions, &decided.trail), &show, &()).unwrap();
        start = end;
    }
    outcomes
}

#[test]
fn shards_one_after_another_give_what_one_run_over_all_gives() {
    for (seed, verification) in
        [(1, EDIT), (2, "edit:0.78,0.88".parse().unwrap()), (3, Verification::Jaccard(0.7))]
    {
        let settings = DedupOptions::new(16).verify(verification);
        let texts = texts(seed, 400);
        let expected = whole(&Bench::new(settings.clone()), &texts);
        let removed = expected.iter().flatten().count();
        assert!((50..350).contains(&removed), "seed {seed}: {removed} removed");
        for cuts in [&[200][..], &[1, 2, 399], &[100, 200, 300], &[0, 250, 250]] {
            let bench = Bench::new(settings.clone());
            assert_eq!(by_shards(&bench, &texts, cuts), expected, "seed {seed}, cut at {cuts:?}");
            let state = bench.open().unwrap();
            assert_eq!(state.index().len().unwrap(), (texts.len() - removed) as u64);
        }
    }
}

#[test]
fn chains_through_removed_documents_are_not_remembered() {
    let bench = Bench::new(DedupOptions::new(2));
    let commit = |state: &mut State<u64>, input: &str, fingerprints: &[u64]| {
        let mut dedup = Dedup::<u64>::new(&bench.settings).unwrap();
        for &fingerprint in fingerprints {
            dedup.push(fingerprint, &[], ()).unwrap();
        }
        let decided = state.decide(dedup, &()).unwrap();
        let show = |_| Ok(Known { label: String::new(), place: String::new() });
        let shard = NewShard { input, content: "", results: None };
        state.commit(&shard, (&decided.decisions, &decided.trail), &show, &()).unwrap();
        decided.decisions.kept()
    };
    let mut state = bench.create().unwrap();
    assert_eq!(commit(&mut state, "a", &[0b0000, 0b0011]), 1);
    assert_eq!(commit(&mut state, "b", &[0b1111]), 1, "one run keeps the first of three");
    assert_eq!(commit(&mut state, "c", &[0b0111_1111, 0b0001_1111, 0b0011]), 0);
}

#[test]
fn ranks_decide_within_a_shard_and_never_against_an_earlier_one() {
    let bench = Bench::new(DedupOptions::new(2));
    let mut state = bench.create().unwrap();
    for (input, ranks, kept) in [("a", [1, 2], vec![1]), ("b", [7, 9], vec![])] {
        let mut dedup = Dedup::<u64, u32>::new(&bench.settings).unwrap();
        for (fingerprint, rank) in [0b01, 0b11].into_iter().zip(ranks) {
            dedup.push(fingerprint, &[], rank).unwrap();
        }
        let decided = state.decide(dedup, &()).unwrap();
        let decisions = decided.decisions.iter().zip(0..);
        let found: Vec<u32> = decisions
            .filter(|(decision, _)| matches!(decision, Decision::Kept { .. }))
            .map(|(_, at)| at)
            .collect();
        assert_eq!(found, kept, "{input}");
        let show = |at: u32| Ok(Known { label: format!("\"{input}{at}\""), place: String::new() });
        let shard = NewShard { input, content: "1", results: None };
        state.commit(&shard, (&decided.decisions, &decided.trail), &show, &()).unwrap();
        if input == "b" {
            let Decision::Stored { key, .. } = decided.decisions.of(0) else { panic!() };
            assert_eq!(decided.trail.known(key).unwrap().label, "\"a1\"");
        }
    }
    assert_eq!(state.shard("b").map(|shard| (shard.kept, shard.content.as_str())), Some((0, "1")));
}

#[test]
fn other_settings_and_other_documents_are_refused() {
    let bench = Bench::new(DedupOptions::new(3).verify(EDIT));
    let state = bench.create().unwrap();
    for settings in [
        DedupOptions::new(2).verify(EDIT),
        DedupOptions::new(3).verify(Verification::Edit(0.8)),
        DedupOptions::new(3).verify(EDIT).linkage(Linkage::Chain),
    ] {
        let dedup = Dedup::<u64>::new(&settings).unwrap();
        let refused = state.decide(dedup, &()).unwrap_err();
        assert_eq!(refused.code(), "header-mismatch", "{settings:?}");
    }
    state.index().insert(b"somebody's", 7).unwrap();
    let mut dedup = Dedup::<u64>::new(&bench.settings).unwrap();
    dedup.push(7, b"text", ()).unwrap();
    assert_eq!(state.decide(dedup, &()).unwrap_err().code(), "invalid-option");
    assert_eq!(bench.open().unwrap_err().code(), "locked");
    drop(state);
    assert_eq!(bench.create().unwrap_err().code(), "already-exists");
    assert_eq!(State::<u64>::settings_at(&bench.path()).unwrap().unwrap().verification, EDIT);
    let contains = Bench::new(DedupOptions::new(3).verify(Verification::Contains(0.8)));
    assert_eq!(contains.create().unwrap_err().code(), "invalid-option");
    assert_eq!(contains.open().unwrap_err().code(), "not-found");
}

#[test]
fn results_are_renamed_once_and_replace_nothing() {
    let bench = Bench::new(DedupOptions::new(2));
    let mut state = bench.create().unwrap();
    let out = bench.directory.path().join("out");
    let decided = || {
        let mut dedup = Dedup::<u64>::new(&bench.settings).unwrap();
        dedup.push(7, &[], ()).unwrap();
        dedup
    };
    let show = |_| Ok(Known { label: String::new(), place: String::new() });
    let stage = state.stage(&out).unwrap();
    fs::create_dir_all(&stage).unwrap();
    fs::write(stage.join("kept"), "row").unwrap();
    let stage = state.stage(&out).unwrap();
    assert!(!stage.exists(), "uncommitted results are removed");
    fs::create_dir_all(&stage).unwrap();
    fs::write(stage.join("kept"), "row").unwrap();
    let results = out.join("a.jsonl");
    fs::create_dir(&results).unwrap();
    let shard = NewShard { input: "a", content: "", results: Some((&stage, &results)) };
    let made = state.decide(decided(), &()).unwrap();
    let refused = state.commit(&shard, (&made.decisions, &made.trail), &show, &()).unwrap_err();
    assert_eq!(refused.code(), "invalid-option");
    fs::remove_dir(&results).unwrap();
    state.commit(&shard, (&made.decisions, &made.trail), &show, &()).unwrap();
    assert_eq!(fs::read_to_string(results.join("kept")).unwrap(), "row");
    assert!(!stage.exists());
    drop(state);
    assert_eq!(bench.open().unwrap().shard("a").unwrap().results.as_deref(), Some(&*results));
}

#[test]
fn an_unfinished_commit_is_finished_by_the_next_opening() {
    let bench = Bench::new(DedupOptions::new(16).verify(EDIT));
    let texts = texts(5, 60);
    let mut state = bench.create().unwrap();
    let decided = state.decide(bench.dedup(&texts), &()).unwrap();
    let show = |at: u32| Ok(Known { label: format!("{at}"), place: format!("{at}") });
    let shard = NewShard { input: "a", content: "", results: None };
    state.commit(&shard, (&decided.decisions, &decided.trail), &show, &()).unwrap();
    let documents = |state: &State<u64>| -> Vec<Vec<u8>> {
        state.index().documents().unwrap().map(|document| document.unwrap().0).collect()
    };
    let expected = documents(&state);
    // The state after a kill in mid-commit: documents are missing and the segment is pending.
    for key in expected.iter().skip(3) {
        state.index().remove(key).unwrap();
    }
    let (pending, done) = (state.segment(1, PENDING), state.segment(1, DONE));
    let part = state.segment(2, WRITTEN);
    drop(state);
    fs::rename(&done, &pending).unwrap();
    fs::write(&part, "cut off").unwrap();
    let state = bench.open().unwrap();
    assert_eq!(documents(&state), expected);
    assert!(done.exists() && !pending.exists() && !part.exists());
    drop(state);
    fs::rename(&done, bench.path().join("elsewhere")).unwrap();
    fs::copy(bench.path().join("elsewhere"), bench.path().join(STATE_DIR).join("00000002.segment"))
        .unwrap();
    assert_eq!(bench.open().unwrap_err().code(), "damaged");
}

#[test]
fn kept_documents_stay_separate_when_boilerplate_is_recounted() {
    let menu = "home and contact of the site with all its many pages and the search for them";
    let page = |own| format!("{menu}\n{menu} again\n{menu} and once more\n{own}\n{own}");
    let pages = [
        "rain and heavy storms are coming from the north",
        "an early frost has killed the apples in gardens",
        "skiers wait for snow while the lifts stand still",
        "much sunshine for tourists at the quiet lakes",
    ];
    let pages = pages.map(page);
    let bench = Bench::new(DedupOptions::new(16).verify("edit:0.6,0.6,3".parse().unwrap()));
    let mut state = bench.create().unwrap();
    let show = |_| Ok(Known { label: String::new(), place: String::new() });
    let mut kept = Vec::new();
    // The second shard is compared with only two of the four pages, so that the menu occurs in two
    // texts. Its last page is near the second page, but not near the first.
    let near = [0, (1 << 10) - 1, !0, !1];
    let first: Vec<(u64, &String)> = near.into_iter().zip(&pages).collect();
    let second = vec![(1, &pages[0]), ((1 << 20) - 1, &pages[1])];
    for (input, documents) in [("a", first), ("b", second)] {
        let mut dedup = Dedup::<u64>::new(&bench.settings).unwrap();
        for (fingerprint, text) in documents {
            dedup.push(fingerprint, text.as_bytes(), ()).unwrap();
        }
        let decided = state.decide(dedup, &()).unwrap();
        let shard = NewShard { input, content: "", results: None };
        state.commit(&shard, (&decided.decisions, &decided.trail), &show, &()).unwrap();
        kept.push(decided.decisions.kept());
    }
    assert_eq!(kept, [4, 0]);
}

/// Adds a shard to a state, and returns how many of its texts are kept.
fn add(bench: &Bench, state: &mut State<u64>, input: &str, texts: &[String]) -> u64 {
    let decided = state.decide(bench.dedup(texts), &()).unwrap();
    let show = |at: u32| Ok(Known { label: format!("{at}"), place: format!("{input}:{at}") });
    let shard = NewShard { input, content: "", results: None };
    state.commit(&shard, (&decided.decisions, &decided.trail), &show, &()).unwrap();
    state.shard(input).unwrap().kept
}

#[test]
fn a_backup_brings_the_state_back_as_it_was() {
    let bench = Bench::new(DedupOptions::new(12).verify(EDIT));
    let (texts, backups) = (texts(31, 300), bench.directory.path().join("backups"));
    let mut state = bench.create().unwrap();
    add(&bench, &mut state, "monday", &texts[..150]);
    let first = state.index().backup(&backups).unwrap();
    let tuesday = add(&bench, &mut state, "tuesday", &texts[150..]);
    let second = state.index().backup(&backups).unwrap();
    assert_eq!((first.id, second.id), (1, 2));
    assert!(second.copied_files < second.files, "the settings and the first segment are shared");
    drop(state);

    let backup = Backup::open(&backups).unwrap();
    assert_eq!(backup.list().unwrap()[1].files, second.files);
    backup.verify(Some(1), &()).unwrap();
    let restore = |id| RestoreOptions::new().id(id).replace(true);
    assert_eq!(backup.restore_with(bench.path(), &restore(1)).unwrap().files, first.files);
    let mut state = bench.open().unwrap();
    assert_eq!(state.shards().len(), 1);
    assert_eq!(add(&bench, &mut state, "tuesday", &texts[150..]), tuesday);
    drop(state);
    backup.restore_with(bench.path(), &restore(2)).unwrap();
    assert_eq!(add(&bench, &mut bench.open().unwrap(), "again", &texts), 0);
}

#[test]
fn shards_that_are_not_in_the_copied_index_are_added_after_a_restore() {
    let bench = Bench::new(DedupOptions::new(12).verify(EDIT));
    let (texts, backups) = (texts(32, 200), bench.directory.path().join("backups"));
    let mut state = bench.create().unwrap();
    state.index().backup(&backups).unwrap();
    for (input, texts) in [("monday", &texts[..100]), ("tuesday", &texts[100..])] {
        add(&bench, &mut state, input, texts);
    }
    let documents = state.index().len().unwrap();
    drop(state);
    // The index of the first backup beside the segments as they were a moment later.
    let stored = bench.path().join("dedup.state");
    let later = bench.directory.path().join("later");
    std::fs::create_dir(&later).unwrap();
    for (number, _) in numbers(&stored).unwrap() {
        let name = |extension| format!("{number:08}.{extension}");
        std::fs::copy(stored.join(name(DONE)), later.join(name(PENDING))).unwrap();
    }
    std::fs::copy(stored.join("settings"), later.join("settings")).unwrap();
    let backup = Backup::open(&backups).unwrap();
    backup.restore_with(bench.path(), &RestoreOptions::new().replace(true)).unwrap();
    std::fs::remove_dir_all(&stored).unwrap();
    std::fs::rename(&later, &stored).unwrap();
    let mut state = bench.open().unwrap();
    assert_eq!((state.shards().len(), state.index().len().unwrap()), (2, documents));
    assert_eq!(add(&bench, &mut state, "again", &texts), 0);
    drop(state);
    // A shard that is still to be added when the backup is made.
    std::fs::rename(stored.join("00000002.segment"), stored.join("00000002.pending")).unwrap();
    let index = Index::<u64>::open(bench.path()).unwrap();
    index.backup(&backups).unwrap();
    drop(index);
    let copy = bench.directory.path().join("copy");
    backup.restore(&copy).unwrap();
    let state = State::<u64>::open(&copy, &IndexOptions::new(), &()).unwrap();
    assert_eq!((state.shards().len(), state.index().len().unwrap()), (3, documents));
}

#[test]
fn damage_to_the_copy_of_a_state_is_found_before_anything_is_replaced() {
    let bench = Bench::new(DedupOptions::new(12).verify(EDIT));
    let (texts, backups) = (texts(33, 60), bench.directory.path().join("backups"));
    let mut state = bench.create().unwrap();
    let kept = add(&bench, &mut state, "monday", &texts);
    state.index().backup(&backups).unwrap();
    drop(state);
    let backup = Backup::open(&backups).unwrap();
    let refused = |what: &str| {
        let target = bench.path();
        let restored = backup.restore_with(&target, &RestoreOptions::new().replace(true));
        assert!(matches!(restored, Err(Error::Corrupt { .. })), "{what}: {restored:?}");
        assert!(matches!(backup.verify(None, &()), Err(Error::Corrupt { .. })), "{what}");
        assert_eq!(bench.open().unwrap().shard("monday").unwrap().kept, kept, "{what}");
    };
    let mut rng = fastrand::Rng::with_seed(33);
    for name in ["settings", "00000001.segment", "listing"] {
        let file = backups.join("dedup.state/1").join(name);
        let whole = std::fs::read(&file).unwrap();
        for _ in 0..6 {
            let mut damaged = whole.clone();
            let at = rng.usize(..damaged.len());
            damaged[at] ^= 1 << rng.u32(..8);
            std::fs::write(&file, &damaged).unwrap();
            refused(&format!("{name}: byte {at}"));
        }
        std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        refused(&format!("{name}, truncated"));
        std::fs::remove_file(&file).unwrap();
        refused(&format!("{name}, removed"));
        std::fs::write(&file, &whole).unwrap();
    }
    backup.restore_with(bench.path(), &RestoreOptions::new().replace(true)).unwrap();
    assert_eq!(add(&bench, &mut bench.open().unwrap(), "again", &texts), 0);
}

#[test]
fn copies_of_states_go_with_their_backups() {
    let bench = Bench::new(DedupOptions::new(2));
    let (texts, backups) = (texts(34, 20), bench.directory.path().join("backups"));
    let mut state = bench.create().unwrap();
    add(&bench, &mut state, "monday", &texts);
    for _ in 0..3 {
        state.index().backup_with(&backups, &BackupOptions::new().keep(2)).unwrap();
    }
    let copies = || {
        let entries = std::fs::read_dir(backups.join("dedup.state")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(copies(), ["2", "3"]);
    // A backup that was killed before its state was complete.
    std::fs::remove_file(backups.join("dedup.state/3/listing")).unwrap();
    assert!(Backup::open(&backups).unwrap().list().unwrap()[1].damage.is_some());
    assert_eq!(state.index().backup(&backups).unwrap().id, 3);
    assert_eq!(copies(), ["2", "3"]);
    Backup::open(&backups).unwrap().verify(None, &()).unwrap();
}
