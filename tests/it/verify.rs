//! Verification over an index, compared with a verified linear scan.

use std::collections::BTreeMap;

use hamdex::build::{BuildOptions, Builder};
use hamdex::join::Linkage;
use hamdex::verify::FeatureSet;
use hamdex::verify::{DuplicateRule, Verification};
use hamdex::{
    Durability, Error, Index, IndexOptions, NewDocument, Pipeline, PipelineOptions, Query, Result,
};

use crate::support::{Rng, assert_holds};

/// Documents by key: fingerprint and evidence.
type Stored = BTreeMap<Vec<u8>, (u64, Vec<u8>)>;

const JACCARD: Verification = Verification::Jaccard(0.6);

fn keeping() -> IndexOptions {
    IndexOptions::new().keep_features(true).memory(16 << 20)
}

/// Documents around a few centres, whose fingerprints and features vary independently.
fn documents(rng: &mut Rng, count: usize) -> Stored {
    let centres: Vec<u64> = (0..5).map(|_| rng.number()).collect();
    (0..count)
        .map(|number| {
            let (centre, flips) = (centres[rng.below(5)], rng.up_to(4));
            let fingerprint = rng.flipped(centre, flips);
            // Each of twelve features is present with probability 4/5.
            let features: Vec<u64> =
                (1..=12).filter(|_| rng.below(5) > 0).map(|feature| feature << 56).collect();
            let key = format!("document {number:04}").into_bytes();
            (key, (fingerprint, FeatureSet::from_hashes(&features).encode()))
        })
        .collect()
}

fn rows(stored: &Stored) -> Vec<NewDocument<'_, u64>> {
    stored
        .iter()
        .map(|(key, (fp, features))| NewDocument::new(key, *fp).features(features))
        .collect()
}

fn filled(path: &std::path::Path, stored: &Stored) -> Result<Index<u64>> {
    let index = Index::create(path, &keeping())?;
    index.insert_batch(&rows(stored), Durability::Buffered)?;
    Ok(index)
}

fn expected(
    stored: &Stored,
    (fingerprint, evidence): &(u64, Vec<u8>),
    distance: u32,
    check: Verification,
) -> Vec<(Vec<u8>, u32, f64)> {
    let mut matches: Vec<_> = stored
        .iter()
        .filter_map(|(key, (theirs, features))| {
            let apart = (fingerprint ^ theirs).count_ones();
            let similarity = check.check(apart, evidence, features).unwrap()?;
            (apart <= distance).then(|| (key.clone(), apart, similarity))
        })
        .collect();
    matches.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    matches
}

#[test]
fn a_verified_search_is_the_filtered_linear_scan() -> Result<()> {
    let mut rng = Rng::new(1);
    let stored = documents(&mut rng, 400);
    let directory = tempfile::tempdir().unwrap();
    let index = filled(directory.path(), &stored)?;
    for check in
        [JACCARD, Verification::Jaccard(0.9), Verification::Zhou { k: 3.0, threshold: 2.4 }]
    {
        for query in stored.values().take(60) {
            for (distance, limit) in [(0, 1000), (3, 1000), (6, 1000), (6, 1), (6, 7), (6, 0)] {
                let asked = Query::new(query.0).distance(distance).limit(limit);
                let found = index.search(asked.verify(check, query.1.as_slice()))?;
                let mut expected = expected(&stored, query, distance, check);
                expected.truncate(limit);
                let found: Vec<_> =
                    found.into_iter().map(|m| (m.key, m.distance, m.similarity.unwrap())).collect();
                assert_eq!(found, expected, "{check} within {distance}, limit {limit}");
            }
        }
    }
    let unchecked = index.search(Query::new(stored.values().next().unwrap().0).distance(6))?;
    assert!(unchecked.iter().all(|found| found.similarity.is_none()));
    Ok(())
}

#[test]
fn verified_pairs_and_clusters_are_those_of_all_comparisons() -> Result<()> {
    let stored = documents(&mut Rng::new(2), 300);
    let directory = tempfile::tempdir().unwrap();
    let index = filled(directory.path(), &stored)?;
    let check = Verification::Jaccard(0.85);
    let near = DuplicateRule::new(3).verify(check);
    let (mut pairs, mut wanted) = (Vec::new(), Vec::new());
    let count = index.pairs(near, &(), &mut |pair| {
        pairs.push((pair.a.to_vec(), pair.b.to_vec(), pair.distance, pair.similarity.unwrap()));
        Ok(())
    })?;
    for (a, one) in &stored {
        for (b, apart, similarity) in expected(&stored, one, 3, check) {
            if *a < b {
                wanted.push((a.clone(), b, apart, similarity));
            }
        }
    }
    pairs.sort_by(|a, b| a.partial_cmp(b).unwrap());
    wanted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(pairs, wanted);
    assert_eq!(count, wanted.len() as u64);

    let mut groups: Vec<Vec<Vec<u8>>> = stored.keys().map(|key| vec![key.clone()]).collect();
    for (a, b, ..) in &wanted {
        let at = |key| groups.iter().position(|group| group.contains(key)).unwrap();
        let (one, other) = (at(a).min(at(b)), at(a).max(at(b)));
        if one != other {
            let moved = groups.remove(other);
            groups[one].extend(moved);
        }
    }
    groups.retain(|group| group.len() > 1);
    for group in &mut groups {
        group.sort();
    }
    groups.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    let clusters = index.clusters(near, &())?;
    for cluster in &clusters {
        let fingerprint = |key: &Vec<u8>| stored[key].0;
        let widest = cluster.keys.iter().flat_map(|a| {
            cluster.keys.iter().map(move |b| (fingerprint(a) ^ fingerprint(b)).count_ones())
        });
        assert_eq!(cluster.diameter.bits, widest.max().unwrap());
        assert!(cluster.diameter.exact);
    }
    let keys: Vec<_> = clusters.into_iter().map(|cluster| cluster.keys).collect();
    assert_eq!(keys, groups);
    Ok(())
}

#[test]
fn a_chain_is_cut_by_the_representative_check() -> Result<()> {
    // Each document shares nine of eleven features with the next one, and fewer with later ones.
    let stored: Stored = (0..6_u64)
        .map(|step| {
            let features: Vec<u64> = (step..step + 10).map(|feature| (feature + 1) << 56).collect();
            let key = format!("{step}").into_bytes();
            (key, ((1 << step) - 1, FeatureSet::from_hashes(&features).encode()))
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let index = filled(directory.path(), &stored)?;
    let near = DuplicateRule::new(2).verify(Verification::Jaccard(0.65));
    let keys = |near| -> Result<Vec<Vec<Vec<u8>>>> {
        Ok(index.clusters(near, &())?.into_iter().map(|cluster| cluster.keys).collect())
    };
    let named =
        |names: [&str; 2]| names.map(|n| n.chars().map(|c| vec![c as u8]).collect::<Vec<_>>());
    assert_eq!(keys(near)?.concat().len(), 6, "one chain");
    assert_eq!(keys(near.linkage(Linkage::Representative))?, named(["012", "345"]));
    Ok(())
}

#[test]
fn equal_fingerprints_of_different_texts_are_not_grouped() -> Result<()> {
    let features = |shift: u64| FeatureSet::from_hashes(&[shift << 40, (shift + 1) << 40]).encode();
    let stored: Stored = [("a", 1), ("b", 5), ("c", 1), ("d", 9)]
        .into_iter()
        .map(|(key, shift)| (key.as_bytes().to_vec(), (7, features(shift))))
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let index = filled(directory.path(), &stored)?;
    let near = DuplicateRule::new(3).verify(JACCARD);
    let clusters = index.clusters(near, &())?;
    assert_eq!(clusters.len(), 1);
    assert_eq!(clusters[0].keys, [b"a", b"c"]);
    let mut pairs = Vec::new();
    index.pairs(near, &(), &mut |pair| {
        pairs.push((pair.a.to_vec(), pair.b.to_vec()));
        Ok(())
    })?;
    assert_eq!(pairs, [(b"a".to_vec(), b"c".to_vec())]);
    let found = index.search(Query::new(7).verify(JACCARD, features(9)))?;
    assert_eq!(found.iter().map(|m| m.key.as_slice()).collect::<Vec<_>>(), [b"d"]);
    assert_eq!(index.clusters(3, &())?[0].keys.len(), 4);
    Ok(())
}

#[test]
fn a_replaced_document_replaces_its_features_and_they_survive_a_reopen() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = [1_u64, 2].map(|hash| FeatureSet::from_hashes(&[hash << 40]).encode());
    let index = Index::<u64>::create(directory.path(), &keeping())?;
    let put = |index: &Index<u64>, fingerprint, features: Option<&[u8]>| {
        index.insert_batch(&[(b"a", fingerprint, features)], Durability::Buffered).unwrap();
        assert_eq!(index.features(b"a").unwrap().as_deref(), features);
        assert_holds(index, &[(b"a".to_vec(), fingerprint)].into_iter().collect(), "replaced");
    };
    put(&index, 1, Some(&one));
    put(&index, 1, Some(&other));
    put(&index, 2, Some(&one));
    put(&index, 2, None);
    put(&index, 2, Some(&other));
    drop(index);
    let index = Index::<u64>::open(directory.path())?;
    assert!(index.header().keeps_features);
    assert_eq!(index.features(b"a")?, Some(other.clone()));
    assert_eq!(index.features(b"b")?, None);
    let stats = index.stats(&())?;
    assert_eq!((stats.with_features, stats.bytes_features), (1, other.len() as u64));
    assert!(index.remove(b"a")?);
    assert_eq!(index.features(b"a")?, None);
    Ok(())
}

#[test]
fn a_bulk_build_keeps_what_inserts_keep_and_merges_with_it() -> Result<()> {
    let mut stored = documents(&mut Rng::new(3), 500);
    let directory = tempfile::tempdir().unwrap();
    let (old, new): (Vec<_>, Vec<_>) =
        rows(&stored).into_iter().enumerate().partition(|(at, _)| at % 3 == 0);
    let path = directory.path().join("built");
    {
        let index = Index::<u64>::create(&path, &keeping())?;
        let old: Vec<_> = old.iter().map(|(_, document)| *document).collect();
        index.insert_batch(&old, Durability::Buffered)?;
    }
    let build = BuildOptions::new().memory(16 << 20);
    let mut builder = Builder::<u64>::create(&path, &IndexOptions::new(), &build)?;
    for (origin, (_, document)) in (0..).zip(new.iter().rev()) {
        builder.push_document(document, origin)?;
    }
    builder.push(b"without", 77, 1000)?;
    builder.push(b"document 0000", 78, 1001)?;
    let report = builder.finish(&(), &mut |_, _| panic!("no duplicates"))?;
    assert_eq!(report.documents, 501);
    let replaced = stored.keys().next().unwrap().clone();
    let index = Index::<u64>::open(&path)?;
    assert_eq!(index.features(&replaced)?, None);
    assert_eq!(index.features(b"without")?, None);
    stored.remove(&replaced);
    for (key, (fingerprint, features)) in &stored {
        assert_eq!(index.get(key)?, Some(*fingerprint));
        assert_eq!(index.features(key)?.as_ref(), Some(features));
    }
    assert_eq!(index.check(&())?.problem_count, 0);
    drop(index);
    let refused = Builder::<u64>::create(&path, &IndexOptions::new().keep_features(false), &build);
    assert!(matches!(refused, Err(Error::HeaderMismatch { what: "keep_features", .. })));
    Ok(())
}

#[test]
fn an_interrupted_and_resumed_build_keeps_features() -> Result<()> {
    let mut rng = Rng::new(4);
    let directory = tempfile::tempdir().unwrap();
    let features = |number: u64| {
        let hashes: Vec<u64> =
            (1..60).map(|feature| (feature << 58 >> 1) + (number << 40)).collect();
        FeatureSet::from_hashes(&hashes).encode()
    };
    let fingerprints: Vec<u64> = (0..60_000).map(|_| rng.number()).collect();
    let build = BuildOptions::new().memory(16 << 20);
    let push = |builder: &mut Builder<u64>, from: u64| {
        for (number, &fingerprint) in (0..).zip(&fingerprints).filter(|(number, _)| *number >= from)
        {
            let (key, features) = (number.to_be_bytes(), features(number));
            let document = NewDocument::new(&key, fingerprint).features(&features);
            builder.push_document(&document, number).unwrap();
        }
    };
    let mut builder = Builder::create(directory.path(), &keeping(), &build)?;
    push(&mut builder, 0);
    drop(builder);
    let mut builder = Builder::resume(directory.path(), &build)?;
    let after = builder.resume_after().expect("not all documents fit in memory");
    push(&mut builder, after + 1);
    assert_eq!(builder.finish(&(), &mut |_, _| panic!("no duplicates"))?.documents, 60_000);
    let index = Index::<u64>::open(directory.path())?;
    for number in (0..60_000_u64).step_by(97) {
        assert_eq!(index.features(&number.to_be_bytes())?, Some(features(number)), "{number}");
    }
    assert_eq!(index.stats(&())?.with_features, 60_000);
    Ok(())
}

#[test]
fn only_a_verified_duplicate_rejects_a_new_document() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &keeping())?;
    let features = |shift: u64| FeatureSet::from_hashes(&[shift << 40, (shift + 1) << 40]).encode();
    let near = DuplicateRule::new(3).verify(JACCARD);
    let row = |key: &'static str, fp: u64, shift| (key, fp, Some(features(shift)));
    let batch = [row("a", 0, 1), row("b", 1, 5), row("c", 1, 1), row("d", 3, 5), row("e", 255, 1)];
    let refused = index.insert_batch_if_new(&batch, near, Durability::Buffered)?;
    let of: Vec<_> = refused
        .iter()
        .map(|found| found.as_ref().map(|m| (m.key.as_slice(), m.distance, m.similarity)))
        .collect();
    let (a, b) = (&b"a"[..], &b"b"[..]);
    assert_eq!(of, [None, None, Some((a, 1, Some(1.0))), Some((b, 1, Some(1.0))), None]);
    let again = [row("f", 0, 5), row("g", 0, 9), row("b", 1, 5)];
    let refused = index.insert_batch_if_new(&again, near, Durability::Buffered)?;
    let of: Vec<_> = refused.iter().map(|m| m.as_ref().map(|m| m.key.as_slice())).collect();
    assert_eq!(of, [Some(b), None, None]);
    assert_eq!(index.len()?, 4);
    let bare = index.insert_batch_if_new(&[(b"h", 9)], near, Durability::Buffered);
    assert!(matches!(bare, Err(Error::NoFeatureSet { key }) if key == "h"));
    Ok(())
}

#[test]
fn missing_features_and_invalid_checks_are_refused_with_the_reason() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let plain = Index::<u64>::create(directory.path().join("plain"), &IndexOptions::new())?;
    plain.insert(b"a", 1)?;
    let features = FeatureSet::from_hashes(&[1 << 40]).encode();
    let ask = |check| Query::new(1).verify(check, features.as_slice());
    let refused = plain.search(ask(JACCARD)).unwrap_err();
    assert!(matches!(refused, Error::NoFeatureSets));
    assert!(refused.to_string().contains("keep_features"));
    assert!(matches!(
        plain.clusters(DuplicateRule::new(3).verify(JACCARD), &()),
        Err(Error::NoFeatureSets)
    ));
    let row = [(b"b", 2, Some(&features))];
    let refused = plain.insert_batch(&row, Durability::Buffered);
    assert!(matches!(refused, Err(Error::InvalidOption { name: "features", .. })));
    assert_eq!(plain.get(b"b")?, None);

    let index = Index::<u64>::create(directory.path().join("keeping"), &keeping())?;
    index.insert(b"a", 1)?;
    let refused = index.search(ask(JACCARD));
    assert!(matches!(refused, Err(Error::NoFeatureSet { key }) if key == "a"));
    index.insert_batch(&[(b"c", 1)], Durability::Buffered)?;
    let refused = index.clusters(DuplicateRule::new(3).verify(JACCARD), &());
    assert!(matches!(refused, Err(Error::NoFeatureSet { .. })));
    for check in [Verification::Edit(0.9), Verification::Jaccard(2.0)] {
        let refused = index.search(ask(check));
        assert!(matches!(refused, Err(Error::InvalidOption { name: "verify", .. })), "{check}");
    }
    let refused = index.search(Query::new(1).verify(JACCARD, [0x80]));
    assert!(matches!(refused, Err(Error::InvalidOption { name: "evidence", .. })));
    let refused = index.insert_batch(&[(b"d", 5, Some([0x80]))], Durability::Buffered);
    assert!(matches!(refused, Err(Error::InvalidOption { name: "features", .. })));
    Ok(())
}

#[test]
fn zero_and_one_document_can_be_verified() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &keeping())?;
    let features = FeatureSet::from_hashes(&[1 << 40]).encode();
    let near = DuplicateRule::new(3).verify(JACCARD).linkage(Linkage::Representative);
    for documents in 0..2 {
        assert!(index.clusters(near, &())?.is_empty());
        assert_eq!(index.pairs(near, &(), &mut |_| Ok(()))?, 0);
        let found = index.search(Query::new(1).verify(JACCARD, features.as_slice()))?;
        assert_eq!(found.len(), documents);
        index.insert_batch(&[(b"a", 1, Some(&features))], Durability::Buffered)?;
    }
    Ok(())
}

#[test]
fn verification_distinguishes_posts_within_the_distance() -> Result<()> {
    let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    let directory = tempfile::tempdir().unwrap();
    let options = keeping().pipeline(pipeline.descriptor()).distance(16);
    let index = Index::<u64>::create(directory.path(), &options)?;
    let texts = [
        ("rain", "heavy rain in the north tomorrow, please take an umbrella with you"),
        ("again", "heavy rain in the north tomorrow, please take an umbrella with you!!"),
        ("goals", "the home side scored four goals and still lost the match on Sunday"),
    ];
    for (key, text) in texts {
        let fingerprint = pipeline.fingerprint(text).unwrap().fingerprint;
        let features = JACCARD.evidence(&pipeline, text);
        index.insert_batch(&[(key, fingerprint, Some(features))], Durability::Buffered)?;
    }
    let fingerprint = pipeline.fingerprint(texts[0].1).unwrap().fingerprint;
    let evidence = JACCARD.evidence(&pipeline, texts[0].1);
    let found = index.search(Query::new(fingerprint).verify(JACCARD, evidence))?;
    let mut keys: Vec<_> = found.iter().map(|m| m.key.as_slice()).collect();
    keys.sort();
    assert_eq!(keys, [&b"again"[..], b"rain"]);
    Ok(())
}
