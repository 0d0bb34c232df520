use super::*;
use crate::Pipeline;
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
    fs::copy(bench.path().join("elsewhere"), bench.path().join(DIRECTORY).join("00000002.segment"))
        .unwrap();
    assert_eq!(bench.open().unwrap_err().code(), "damaged");
}

#[test]
fn kept_documents_stay_separate_when_boilerplate_is_recounted() {
    let menu = "home and contact of the site with all its many pages and the search for them";
    let page = |own| format!("{menu}\n{menu} again\n{menu} and once more\n{own}");
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
