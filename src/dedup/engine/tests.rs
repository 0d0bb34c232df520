use super::*;
use crate::dedup::{Decision, key_hash};
use crate::index::{Durability, IndexOptions, NewDocument};
use crate::text::{Pipeline, PipelineOptions};
use crate::verify::{FeatureSet, Linkage, Verification};

const EDIT: Verification = Verification::Edit(0.9);

/// Every text is near the one before it; the first and the last are far apart.
const CHAIN: [&str; 4] = [
    "the quick brown fox jumps over the lazy dog while wizards box with a jolly queen in the park",
    "the quick xyzqk fox jumps over the lazy dog while wizards box with a jolly queen in the park",
    "the quick xyzqk fox jumps over xyz lazy dog while wizards box xyzq a jolly queen in the park",
    "the quick xyzqk fox jumps over xyz lazy dog while xyzqkjw box xyzq a jolly queen in the park",
];

fn pipeline() -> Pipeline {
    Pipeline::new(&PipelineOptions::preset("post").unwrap()).unwrap()
}

fn kept(decisions: &Decisions<u64>) -> Vec<u32> {
    let kept = |position: &u32| matches!(decisions.of(*position), Decision::Kept { .. });
    (0..).take(decisions.len()).filter(kept).collect()
}

fn of_chain(settings: &DedupOptions, ranks: [u32; 4]) -> Decisions<u64> {
    let pipeline = pipeline();
    let mut dedup = Dedup::<u64, u32>::new(settings).unwrap();
    for (text, rank) in CHAIN.iter().zip(ranks) {
        let fingerprint = pipeline.fingerprint(text).unwrap().fingerprint;
        let evidence = settings.verification.evidence(&pipeline, text);
        dedup.push(fingerprint, &evidence, rank).unwrap();
    }
    dedup.finish(&()).unwrap()
}

#[test]
fn duplicates_pass_the_verification_with_the_kept_document() {
    let settings = DedupOptions::new(16).verify(EDIT);
    for ranks in [[0; 4], [4, 3, 2, 1], [1, 2, 3, 4], [2, 4, 1, 3]] {
        let decisions = of_chain(&settings, ranks);
        assert_eq!(decisions.kept(), 2, "{ranks:?}");
        for decision in decisions.iter() {
            if let Decision::Duplicate { similarity, .. } = decision {
                assert!(similarity.unwrap() >= 0.9, "{ranks:?}: {decision:?}");
            }
        }
    }
    let whole = of_chain(&settings.linkage(Linkage::Chain), [0; 4]);
    assert_eq!(kept(&whole), [0]);
    let Decision::Duplicate { kept: 0, similarity: Some(far), .. } = whole.of(3) else {
        panic!("{:?}", whole.of(3))
    };
    assert!(far < 0.9, "{far}");
}

#[test]
fn the_distance_falls_with_the_length_of_texts() {
    let verification: Verification = "edit:0.78,0.88".parse().unwrap();
    let settings = DedupOptions::new(16).verify(verification);
    let pipeline = pipeline();
    let removed = |letters: usize, apart: u32| {
        let mut dedup = Dedup::<u64>::new(&settings).unwrap();
        let text = "sunny days are back ".repeat(letters / 20 + 1);
        for (last, fingerprint) in [("x", 0), ("y", (1_u64 << apart) - 1)] {
            let text = format!("{}{last}", &text[..letters - 1]);
            let evidence = verification.evidence(&pipeline, &text);
            dedup.push(fingerprint, &evidence, ()).unwrap();
        }
        dedup.finish(&()).unwrap().removed() == 1
    };
    for (letters, within) in [(100, 16), (200, 16), (600, 14), (1600, 13), (9000, 13)] {
        assert!(removed(letters, within), "{letters} letters, {within} bits");
        assert!(!removed(letters, within + 1), "{letters} letters, {within} bits and one");
    }
}

#[test]
fn duplicates_are_within_the_distance_of_the_kept_document() {
    let decide = |settings: &DedupOptions| {
        let mut dedup = Dedup::<u64>::new(settings).unwrap();
        for (step, text) in
            ["0123456789", "012345678a", "012345678b", "012345678c"].iter().enumerate()
        {
            dedup.push((1 << step) - 1, text.as_bytes(), ()).unwrap();
        }
        dedup.finish(&()).unwrap()
    };
    let settings = DedupOptions::new(2).verify(EDIT);
    let decisions = decide(&settings);
    assert_eq!(kept(&decisions), [0, 3]);
    for decision in decisions.iter() {
        if let Decision::Duplicate { distance, .. } = decision {
            assert!(distance <= 2, "{decision:?}");
        }
    }
    let chained = decide(&settings.linkage(Linkage::Chain));
    assert!(matches!(chained.of(3), Decision::Duplicate { kept: 0, distance: 3, .. }));
}

#[test]
fn the_highest_rank_is_kept_and_of_equals_the_first() {
    let kept_of = |ranks: [u8; 4]| {
        let mut dedup = Dedup::<u64, u8>::new(&DedupOptions::new(1)).unwrap();
        for (fingerprint, rank) in [0b01, 0b11, u64::MAX, 0b11].into_iter().zip(ranks) {
            dedup.push(fingerprint, &[], rank).unwrap();
        }
        kept(&dedup.finish(&()).unwrap())
    };
    assert_eq!(kept_of([0, 0, 0, 0]), [0, 2]);
    assert_eq!(kept_of([1, 2, 0, 2]), [1, 2]);
    assert_eq!(kept_of([1, 2, 9, 3]), [2, 3]);
}

#[test]
fn texts_without_features_are_no_documents() {
    let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3).verify(EDIT)).unwrap();
    let texts = [CHAIN[0], " \n", CHAIN[0], ""];
    let positions = dedup.push_texts(&pipeline(), &texts).unwrap();
    assert_eq!(positions, [Some(0), None, Some(1), None]);
    let decisions = dedup.finish(&()).unwrap();
    let copy = Decision::Duplicate { kept: 0, distance: 0, similarity: Some(1.0), cluster: 1 };
    assert_eq!(decisions.iter().collect::<Vec<_>>(), [Decision::Kept { cluster: Some(1) }, copy]);
}

#[test]
fn a_document_without_text_duplicates_only_its_copies() {
    let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3).verify(EDIT)).unwrap();
    for (fingerprint, evidence) in [(1, "abcdefghij"), (1, ""), (1, ""), (3, "")] {
        dedup.push(fingerprint, evidence.as_bytes(), ()).unwrap();
    }
    assert_eq!((dedup.unverifiable(), dedup.len()), (3, 4));
    assert_eq!(kept(&dedup.finish(&()).unwrap()), [0, 1, 3]);
}

#[test]
fn what_is_near_a_stored_document_is_removed_and_links_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
    index.insert(b"old", 0b0011).unwrap();
    let decide = |ranks: [u8; 4]| {
        let mut dedup = Dedup::<u64, u8>::new(&DedupOptions::new(1)).unwrap();
        for (fingerprint, rank) in [0b1111, 0b0111, 0b1111, 0b0001].into_iter().zip(ranks) {
            dedup.push(fingerprint, &[], rank).unwrap();
        }
        dedup.finish_against(&index, &()).unwrap()
    };
    let near = Decision::Stored { key: b"old", distance: 1, similarity: None };
    let decisions = decide([0; 4]);
    assert_eq!((decisions.of(1), decisions.of(3)), (near, near));
    assert_eq!((decisions.near_stored(), decisions.removed()), (2, 3));
    assert_eq!((kept(&decisions), kept(&decide([1, 9, 2, 0]))), (vec![0], vec![2]));
}

#[test]
fn a_document_is_not_removed_by_its_stored_self() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
    index.insert(b"a", 0b0000).unwrap();
    index.insert(b"b", 0b0001).unwrap();
    index.insert(b"c", 0xffff).unwrap();
    let keys = [Some("a"), Some("c"), None, Some("new"), Some("b")];
    let push = || {
        let mut dedup = Dedup::<u64>::new(&DedupOptions::new(2)).unwrap();
        for fingerprint in [0b0000, 0xffff, 0xffff, 0b0011, 0x7fff] {
            dedup.push(fingerprint, &[], ()).unwrap();
        }
        dedup
    };
    let own = |at: u32| keys[at as usize].map(|key| key_hash(key.as_bytes()));
    let decisions = push().finish_against_others(&index, &own, &()).unwrap();
    let stored = |key, distance| Decision::Stored { key, distance, similarity: None };
    assert_eq!(
        decisions.iter().collect::<Vec<_>>(),
        [
            stored(b"b", 1),
            Decision::Kept { cluster: None },
            stored(b"c", 0),
            stored(b"b", 1),
            stored(b"c", 1),
        ]
    );
    assert_eq!(push().finish_against(&index, &()).unwrap().near_stored(), 5);
}

#[test]
fn similarities_to_stored_documents_have_four_digits() {
    let directory = tempfile::tempdir().unwrap();
    let options = IndexOptions::new().text(&pipeline()).keep_features(true);
    let index = Index::<u64>::create(directory.path(), &options).unwrap();
    let features = FeatureSet::of_text(&pipeline(), CHAIN[0]).encode();
    let fingerprint = pipeline().fingerprint(CHAIN[0]).unwrap().fingerprint;
    let old = NewDocument::new(b"old", fingerprint).features(&features);
    index.insert_batch(&[old], Durability::Buffered).unwrap();
    let settings = DedupOptions::new(16).verify(Verification::Jaccard(0.1));
    let mut dedup = Dedup::<u64>::new(&settings).unwrap();
    dedup.push_texts(&pipeline(), &[CHAIN[1]]).unwrap();
    let decisions = dedup.finish_against(&index, &()).unwrap();
    let Decision::Stored { similarity: Some(similarity), .. } = decisions.of(0) else {
        panic!("{:?}", decisions.of(0))
    };
    assert_eq!(similarity.to_string(), format!("{similarity:.4}"));
}

#[test]
fn excluded_documents_belong_to_no_group() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
    index.insert(b"old", 0xff00).unwrap();
    let push = || {
        let mut dedup = Dedup::<u64, u8>::new(&DedupOptions::new(1)).unwrap();
        // The best of the first three links the other two; the last is near a stored document.
        for (fingerprint, rank) in [(0b000, 1), (0b001, 9), (0b011, 2), (0b000, 0), (0xff00, 0)] {
            dedup.push(fingerprint, &[], rank).unwrap();
        }
        dedup
    };
    assert_eq!(kept(&push().finish(&()).unwrap()), [1, 4]);
    let mut dedup = push();
    for position in [1, 1, 4, 77] {
        dedup.exclude(position);
    }
    assert_eq!(dedup.excluded(), 2);
    let decisions = dedup.finish_against(&index, &()).unwrap();
    let alone = Decision::Kept { cluster: None };
    assert_eq!([1, 2, 4].map(|at| decisions.of(at)), [alone; 3]);
    assert!(matches!(decisions.of(3), Decision::Duplicate { kept: 0, distance: 0, .. }));
    assert_eq!((decisions.kept(), decisions.near_stored()), (4, 0));
    assert_eq!(decisions.clusters().len(), 1);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let texts: Vec<String> = (0..3000)
        .map(|n| {
            let n = n % 700;
            format!("notice {n} of the {} office, room {}, for {}", n % 13, n * n % 997, n % 5)
        })
        .collect();
    let decide = |threads: usize| -> Vec<(u32, Option<u32>)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut dedup = Dedup::<u64>::new(&DedupOptions::new(14).verify(EDIT)).unwrap();
            dedup.push_texts(&pipeline(), &texts).unwrap();
            let decisions = dedup.finish(&()).unwrap();
            let kept = |decision: Decision<'_>| match decision {
                Decision::Duplicate { kept, .. } => Some(kept),
                Decision::Kept { .. } | Decision::Stored { .. } => None,
            };
            (0..).zip(decisions.iter().map(kept)).collect()
        })
    };
    let alone = decide(1);
    assert_eq!(alone, decide(4));
    assert!(alone.iter().filter(|(_, kept)| kept.is_some()).count() >= 2300);
}

#[test]
fn decisions_are_the_same_for_any_memory() {
    let seed = 8;
    let mut rng = fastrand::Rng::with_seed(seed);
    let words = ["rain", "snow", "town", "road", "river", "market", "bridge", "music", "frost"];
    let mut texts: Vec<String> = Vec::new();
    for _ in 0..700 {
        let text = match rng.u32(0..4) {
            0 if !texts.is_empty() => rng.choice(&texts).unwrap().clone(),
            1 if !texts.is_empty() => {
                rng.choice(&texts).unwrap().replacen(words[rng.usize(0..9)], "hail", 1)
            }
            _ => (0..12).map(|_| words[rng.usize(0..9)]).collect::<Vec<_>>().join(" "),
        };
        texts.push(text);
    }
    let pipeline = pipeline();
    let contains: Verification = "contains:0.8".parse().unwrap();
    let by_length: Verification = "edit:0.7,0.8,5".parse().unwrap();
    for verification in [Verification::None, EDIT, by_length, Verification::Jaccard(0.7), contains]
    {
        for linkage in [Linkage::Chain, Linkage::Representative] {
            let decide = |memory: usize| {
                let settings = DedupOptions::new(10).verify(verification).linkage(linkage);
                let mut dedup = Dedup::<u64, u32>::new(&settings.memory(memory)).unwrap();
                for (text, rank) in texts.iter().zip([3, 1, 2].into_iter().cycle()) {
                    let fingerprint = pipeline.fingerprint(text).unwrap().fingerprint;
                    let evidence = verification.evidence(&pipeline, text);
                    dedup.push(fingerprint, &evidence, rank).unwrap();
                }
                dedup.exclude(7);
                dedup.finish(&()).unwrap()
            };
            let all = decide(usize::MAX);
            assert!(all.removed() > 100, "{verification} {linkage:?}: {}", all.removed());
            for memory in [0, 100_000] {
                let few = decide(memory);
                assert!(few.iter().eq(all.iter()), "seed {seed}: {verification} {linkage:?}");
                assert!(few.clusters().eq(all.clusters()));
            }
        }
    }
}

#[test]
fn invalid_settings_are_refused_at_the_start() {
    let refused = Dedup::<u64>::new(&DedupOptions::new(17)).unwrap_err();
    assert!(matches!(refused, Error::InvalidDistance { distance: 17, bits: 64, max: 16 }));
    let directory = tempfile::tempdir().unwrap();
    let absent = DedupOptions::new(3).verify(EDIT).tmp(directory.path().join("absent"));
    assert!(matches!(Dedup::<u64>::new(&absent), Err(Error::Io { .. })));
}

#[test]
fn a_deduplication_is_cancelled_in_every_phase() {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Asks to stop once a phase begins.
    struct StopIn(&'static str, AtomicBool);

    impl Progress for StopIn {
        fn begin(&self, phase: &str, _total: Option<u64>) {
            if phase == self.0 {
                self.1.store(true, Ordering::Relaxed);
            }
        }

        fn cancelled(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }
    }

    let directory = tempfile::tempdir().unwrap();
    let options = IndexOptions::new().text(&pipeline()).keep_features(true);
    let index = Index::<u64>::create(directory.path(), &options).unwrap();
    let settings = DedupOptions::new(3).verify(Verification::Jaccard(0.5));
    for phase in ["searching", "grouping", "measuring"] {
        let mut dedup = Dedup::<u64>::new(&settings).unwrap();
        dedup.push_texts(&pipeline(), &[CHAIN[0]; 3]).unwrap();
        let stop = StopIn(phase, AtomicBool::new(false));
        let ended = dedup.finish_against(&index, &stop);
        assert!(matches!(ended, Err(Error::Cancelled)), "{phase}: {ended:?}");
    }
}

/// Deduplicates texts of equal fingerprints by containment.
fn contained(texts: &[&str], ranks: &[u32], threshold: f64) -> Decisions<u64> {
    let check = Verification::Contains(threshold);
    let pipeline = pipeline();
    let mut dedup = Dedup::<u64, u32>::new(&DedupOptions::new(3).verify(check)).unwrap();
    for (text, rank) in texts.iter().zip(ranks) {
        dedup.push(7, &check.evidence(&pipeline, text), *rank).unwrap();
    }
    dedup.finish(&()).unwrap()
}

#[test]
fn an_excerpt_is_removed_and_the_full_text_kept_in_every_order() {
    let full = "heavy rain is expected in the north tonight and snow on the hills tomorrow";
    let part = "heavy rain is expected in the north tonight";
    for (texts, stays) in [([full, part], 0), ([part, full], 1)] {
        for ranks in [[0, 0], [1, 2], [2, 1]] {
            let decisions = contained(&texts, &ranks, 0.9);
            assert_eq!(kept(&decisions), [stays], "{ranks:?}");
        }
    }
    // Ranks decide between texts of equal length.
    assert_eq!(kept(&contained(&[part, full, full], &[5, 1, 2], 0.9)), [2]);
    assert_eq!(kept(&contained(&[part, full, full], &[5, 2, 1], 0.9)), [1]);
}

#[test]
fn forms_of_one_template_with_other_contents_stay() {
    let forms: Vec<String> = (0..40)
        .map(|n| {
            format!(
                "dear customer {n} your parcel number {} from sender {} will arrive on day {} thank you",
                n * 7919,
                n * 104_729,
                n * 31
            )
        })
        .collect();
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    let decisions = contained(&forms, &[0; 40], 0.9);
    assert_eq!(decisions.kept(), 40);
    let copies = [&forms[..], &forms[..]].concat();
    assert_eq!(contained(&copies, &[0; 80], 0.9).kept(), 40);
}

#[test]
fn texts_of_equal_length_are_removed_only_if_they_are_equal() {
    let texts =
        ["one two three four five", "one two three four six", "One, two, three: four five!"];
    assert_eq!(kept(&contained(&texts, &[0; 3], 0.9)), [0, 1]);
    assert_eq!(kept(&contained(&texts, &[0, 0, 1], 0.9)), [1, 2]);
    // With equally many words, the text with fewer phrases is removed: all phrases of "a b c a b"
    // are in "a b c a b c d".
    let repeats = ["a b c a b c a", "x a b c a b c"];
    assert_eq!(kept(&contained(&repeats, &[9, 0], 0.9)), [1]);
}

#[test]
fn every_script_is_contained_by_its_own_words() {
    let chinese =
        ["今天晴转多云气温三度", "北京今天晴转多云气温三度，明天有雪", "上海今天大雨气温九度"];
    assert_eq!(kept(&contained(&chinese, &[0; 3], 0.9)), [1, 2]);
    let thai = ["วันนี้ฝนตกหนัก", "กรุงเทพ วันนี้ฝนตกหนักมาก", "พรุ่งนี้อากาศดีและแดดออก"];
    assert_eq!(kept(&contained(&thai, &[0; 3], 0.9)), [1, 2]);
}

#[test]
fn containment_removes_what_the_definition_removes() {
    let seed = 11;
    let mut rng = fastrand::Rng::with_seed(seed);
    let check = Verification::Contains(0.75);
    let pipeline = pipeline();
    for round in 0..200 {
        let texts: Vec<Vec<u8>> = (0..rng.usize(2..24))
            .map(|_| (0..rng.usize(3..9)).map(|_| b'a' + rng.u8(0..3)).collect())
            .collect();
        let fingerprints: Vec<u64> = texts.iter().map(|_| rng.u64(0..64)).collect();
        let ranks: Vec<u32> = texts.iter().map(|_| rng.u32(0..3)).collect();
        let phrases = |text: &[u8]| -> std::collections::BTreeSet<Vec<u8>> {
            text.windows(3).map(<[u8]>::to_vec).collect()
        };
        let extent = |at: usize| (texts[at].len(), phrases(&texts[at]).len());
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse((extent(at), ranks[at])));
        let mut stays: Vec<usize> = Vec::new();
        for at in order {
            let is_in = |&kept: &usize| {
                let (part, whole) = (phrases(&texts[at]), phrases(&texts[kept]));
                let near = fingerprints[at].distance(fingerprints[kept]) <= 2;
                let shared = part.intersection(&whole).count();
                near && shared as f64 / part.len() as f64 >= 0.75
            };
            if !stays.iter().any(is_in) {
                stays.push(at);
            }
        }
        stays.sort_unstable();
        let mut dedup = Dedup::<u64, u32>::new(&DedupOptions::new(2).verify(check)).unwrap();
        for ((text, &fingerprint), &rank) in texts.iter().zip(&fingerprints).zip(&ranks) {
            let text: String = text.iter().flat_map(|&word| [char::from(word), ' ']).collect();
            dedup.push(fingerprint, &check.evidence(&pipeline, &text), rank).unwrap();
        }
        let found: Vec<usize> =
            kept(&dedup.finish(&()).unwrap()).iter().map(|&at| at as usize).collect();
        assert_eq!(found, stays, "seed {seed}, round {round}: {texts:?}");
    }
}

#[test]
fn containment_is_refused_against_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let options = IndexOptions::new().keep_features(true);
    let index = Index::<u64>::create(directory.path(), &options).unwrap();
    let check = Verification::Contains(0.9);
    let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3).verify(check)).unwrap();
    dedup.push(7, &check.evidence(&pipeline(), CHAIN[0]), ()).unwrap();
    let refused = dedup.finish_against(&index, &()).unwrap_err();
    assert!(matches!(refused, Error::InvalidOption { name: "verify", .. }), "{refused:?}");
}
