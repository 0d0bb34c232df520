//! Secrets: they change fingerprints but not distances, and an index refuses any other secret.

use hamdex::inspect::Header;
use hamdex::text::{Resources, Secret, Segment, SketchKind, Weights};
use hamdex::verify::FeatureSet;
use hamdex::{Error, Fingerprint, Index, IndexOptions, Pipeline, PipelineOptions, Result};

const CALLS: &str = "你妈妈喊你回家吃饭哦,回家罗回家罗";
const SHOUTS: &str = "你妈妈叫你回家吃饭啦,回家罗回家罗";

fn secret(number: u8) -> Secret {
    Secret::from_bytes(&[[number; 8], [200; 8]].concat()).unwrap()
}

fn every_kind() -> Vec<PipelineOptions> {
    let new = PipelineOptions::new;
    let mut all: Vec<_> = PipelineOptions::PRESETS
        .iter()
        .map(|name| PipelineOptions::preset(name).unwrap())
        .collect();
    for sketch in [SketchKind::MinHash, SketchKind::Longest(2)] {
        all.push(new().sketch(sketch));
    }
    for weights in [Weights::Uniform, Weights::Tf, Weights::TfIdf, Weights::Levels] {
        all.push(new().segment(Segment::Auto).weights(weights));
    }
    all.extend([Segment::Chars, Segment::Raw].map(|segment| new().segment(segment)));
    all
}

fn differ_by_secret<F: Fingerprint>(options: &PipelineOptions, text: &str) {
    let of = |options: &PipelineOptions| {
        let pipeline = Pipeline::new(options).unwrap();
        pipeline.fingerprint::<F>(text).expect("has features")
    };
    let open = of(options);
    let keyed = [1, 2].map(|number| of(&options.clone().secret(secret(number))));
    let what = Pipeline::new(options).unwrap().descriptor().to_owned();
    for (a, b) in [(&open, &keyed[0]), (&open, &keyed[1]), (&keyed[0], &keyed[1])] {
        assert_eq!(a.features, b.features, "{what}");
        let apart = a.fingerprint.distance(b.fingerprint);
        assert!(apart > F::BITS / 8, "{apart} of {} bits by {what}", F::BITS);
    }
    assert_eq!(keyed[0], of(&options.clone().secret(secret(1))), "twice, {what}");
}

#[test]
fn a_secret_changes_every_kind_of_fingerprint_at_every_width() {
    let text = format!("{CALLS} The saucer's pilots landed behind the hill. {SHOUTS}");
    for options in every_kind() {
        differ_by_secret::<u32>(&options, &text);
        differ_by_secret::<u64>(&options, &text);
        differ_by_secret::<u128>(&options, &text);
    }
}

#[test]
fn near_texts_stay_near_under_a_secret() -> Result<()> {
    for number in 0..20 {
        let pipeline = Pipeline::new(&PipelineOptions::preset("post")?.secret(secret(number)))?;
        let [calls, shouts] =
            [CALLS, SHOUTS].map(|text| pipeline.fingerprint::<u64>(text).unwrap());
        let apart = calls.fingerprint.distance(shouts.fingerprint);
        assert!(apart <= 18, "{apart} under secret {number}");
        let sets = [CALLS, SHOUTS].map(|text| FeatureSet::of_text(&pipeline, text));
        let open = Pipeline::new(&PipelineOptions::preset("post")?)?;
        let plain = [CALLS, SHOUTS].map(|text| FeatureSet::of_text(&open, text));
        assert!((sets[0].jaccard(&sets[1]) - plain[0].jaccard(&plain[1])).abs() < 1e-9);
        assert_ne!(sets[0], plain[0], "feature sets are keyed too");
    }
    Ok(())
}

#[test]
fn an_index_accepts_only_its_secret() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let pipeline = Pipeline::new(&PipelineOptions::new().secret(secret(1)))?;
    let index = Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?;
    index.insert(b"calls", pipeline.fingerprint::<u64>(CALLS).unwrap().fingerprint)?;
    let again = index.pipeline_with(Some(secret(1)))?.expect("made with one");
    let query = again.fingerprint::<u64>(CALLS).unwrap().fingerprint;
    assert_eq!(index.search(query)?[0].key, b"calls");
    let digest = secret(1).digest();
    for given in [None, Some(secret(2))] {
        let shown = given.map_or("none".to_owned(), |secret: Secret| secret.digest());
        for refused in [
            index.pipeline_with(given),
            Header::read_pipeline_with(&path, given),
            Pipeline::from_descriptor_with(
                pipeline.descriptor(),
                &given.map_or_else(Resources::default, |s| Resources::default().with_secret(s)),
            )
            .map(Some),
        ] {
            let Err(Error::HeaderMismatch { what: "secret", stored, wanted }) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((stored.as_str(), wanted.as_str()), (digest.as_str(), shown.as_str()));
        }
    }
    assert_eq!(index.check(&())?.problem_count, 0, "a check needs no secret");
    Ok(())
}

#[test]
fn an_index_without_a_secret_refuses_one() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let open = Pipeline::new(&PipelineOptions::new())?;
    let index = Index::<u64>::create(directory.path().join("i"), &IndexOptions::new().text(&open))?;
    assert!(index.pipeline()?.is_some());
    let refused = index.pipeline_with(Some(secret(1)));
    let named = matches!(&refused, Err(Error::HeaderMismatch { stored, .. }) if stored == "none");
    assert!(named, "{refused:?}");
    Ok(())
}
