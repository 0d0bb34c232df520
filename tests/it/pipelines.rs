//! Pipelines with the caller's tables: stored with the index, rebuilt from it, and checked.

use std::path::Path;

use hamdex::build::{BuildOptions, Builder};
use hamdex::inspect::Header;
use hamdex::text::{Dictionary, IdfLearner, Resources, StopWords, WeightTable, Weights};
use hamdex::{Error, Index, IndexOptions, Pipeline, PipelineOptions, Result};

use crate::support::files;

fn is_table(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "sst")
}

const NEWS: [&str; 4] = [
    "美国51区雇员称内部有飞碟,曾看见灰色外星人",
    "海量指纹的去重算法和快速查找办法",
    "the saucer landed behind the hill at night",
    "the pilots of the saucer left in the morning",
];

/// Learns from texts how rare their words are, segmented with these options.
pub(crate) fn learnt<'a>(
    base: &PipelineOptions,
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<PipelineOptions> {
    let cutter = Pipeline::new(base)?;
    let mut learner = IdfLearner::new();
    for text in texts {
        learner.add(&cutter, text);
    }
    Ok(base.clone().idf(learner.finish()))
}

/// Options with tables of every kind, one of them learnt from the texts.
pub(crate) fn own_tables<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<PipelineOptions> {
    let base = PipelineOptions::new()
        .weights(Weights::TfIdf)
        .dictionary(Dictionary::parse("海量指纹 10 n\n外星人 0\n")?)
        .stop_words(StopWords::parse("the\n的\nof\nin\n")?);
    learnt(&base, texts)
}

fn options() -> Result<PipelineOptions> {
    own_tables(NEWS)
}

#[test]
fn an_index_is_searched_by_text_without_other_files() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let pipeline = Pipeline::new(&options()?)?;
    let keys: Vec<&[u8]> = vec![b"0", b"1", b"2", b"3"];
    let created = directory.path().join("created");
    let index = Index::<u64>::create(&created, &IndexOptions::new().text(&pipeline))?;
    let built = directory.path().join("built");
    let make = IndexOptions::new().text(&pipeline);
    let mut builder = Builder::<u64>::create(&built, &make, &BuildOptions::new())?;
    for ((key, text), origin) in keys.iter().zip(NEWS).zip(0..) {
        let sketch = pipeline.fingerprint::<u64>(text).unwrap();
        index.insert(key, sketch.fingerprint)?;
        builder.push(key, sketch.fingerprint, origin)?;
    }
    drop((index, builder));
    // An interrupted and resumed build keeps the tables, too.
    let mut builder = Builder::<u64>::resume(&built, &BuildOptions::new())?;
    for ((key, text), origin) in keys.iter().zip(NEWS).zip(0..) {
        if builder.resume_after().is_none_or(|last| origin > last) {
            builder.push(key, pipeline.fingerprint::<u64>(text).unwrap().fingerprint, origin)?;
        }
    }
    builder.finish(&(), &mut |_, _| ())?;
    for path in [&created, &built] {
        let index = Index::<u64>::open(path)?;
        let stored = index.pipeline()?.expect("made with a pipeline");
        assert_eq!(stored.descriptor(), pipeline.descriptor());
        assert_eq!(stored.resources(), pipeline.resources());
        assert_eq!(stored.features(NEWS[1]), pipeline.features(NEWS[1]));
        for (key, text) in keys.iter().zip(NEWS) {
            let sketch = stored.fingerprint::<u64>(text).unwrap();
            assert_eq!(index.search(sketch.fingerprint)?[0].key, *key, "{text}");
        }
        let of_path = Header::read_pipeline(path)?.expect("made with a pipeline");
        assert_eq!(of_path.descriptor(), pipeline.descriptor());
        let stats = index.stats(&())?;
        let names: Vec<_> = stats.resources.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["dictionary", "stop-words", "idf"]);
        assert!(stats.resources.iter().all(|(_, bytes)| *bytes > 0));
        assert_eq!(index.check(&())?.problem_count, 0);
    }
    Ok(())
}

#[test]
fn tables_of_many_megabytes_are_kept_in_parts() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let lines: Vec<_> = (0..900_000).map(|n| format!("word{n}\t{}", n % 9)).collect();
    let table = WeightTable::parse(&lines.join("\n"))?;
    assert!(table.as_str().len() > 9 << 20);
    let pipeline = Pipeline::new(&PipelineOptions::new().weight_table(table))?;
    drop(Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?);
    let index = Index::<u64>::open(&path)?;
    assert_eq!(index.pipeline()?.unwrap().resources(), pipeline.resources());
    Ok(())
}

#[test]
fn an_index_of_fingerprints_has_no_pipeline() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let index = Index::<u64>::create(&path, &IndexOptions::new())?;
    assert!(index.pipeline()?.is_none());
    drop(index);
    assert!(Header::read_pipeline(&path)?.is_none());
    Ok(())
}

#[test]
fn tables_other_than_the_descriptor_names_are_refused() -> Result<()> {
    let pipeline = Pipeline::new(&options()?)?;
    let mismatch = |resources: &Resources| {
        let refused = Pipeline::from_descriptor_with(pipeline.descriptor(), resources);
        assert!(matches!(refused, Err(Error::HeaderMismatch { what: "pipeline", .. })));
    };
    mismatch(&Resources::default());
    let other = PipelineOptions::new().stop_words(StopWords::parse("the\n")?);
    mismatch(Pipeline::new(&other)?.resources());
    let mut changed = pipeline.resources().clone();
    changed.insert("dictionary", "海量指纹 11 n\n".as_bytes())?;
    mismatch(&changed);
    let mut resources = Resources::default();
    assert!(matches!(resources.insert("idf", b"words"), Err(Error::Corrupt { .. })));
    assert!(matches!(resources.insert("words", b""), Err(Error::Corrupt { .. })));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let bare = IndexOptions::new().pipeline(pipeline.descriptor());
    let refused = Index::<u64>::create(&path, &bare);
    assert!(matches!(refused, Err(Error::InvalidOption { name: "pipeline", .. })));
    let merged = IndexOptions::new().text(&pipeline);
    drop(Index::<u64>::create(&path, &merged)?);
    let other = IndexOptions::new().text(&Pipeline::new(&other)?);
    let refused = Builder::<u64>::create(&path, &other, &BuildOptions::new());
    assert!(matches!(refused, Err(Error::HeaderMismatch { what: "pipeline", .. })));
    Ok(())
}

#[test]
fn flipped_bytes_of_a_table_are_damage() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let pipeline = Pipeline::new(&options()?)?;
    let index = Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?;
    index.insert(b"a", 1)?;
    index.flush()?;
    drop(index);
    let (mut refused, mut searched) = (0, 0);
    for file in files(&path, is_table) {
        let whole = std::fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by(41) {
            let mut bad = whole.clone();
            bad[at] ^= 0x11;
            std::fs::write(&file, &bad).unwrap();
            match Header::read_pipeline(&path) {
                Ok(read) => assert_eq!(read.unwrap().resources(), pipeline.resources()),
                Err(error) => {
                    assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error}");
                    refused += 1;
                }
            }
            // If only a table is damaged, searches by fingerprint still work.
            if let Ok(index) = Index::<u64>::open_read_only(&path)
                && let Err(error) = index.pipeline()
            {
                assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error}");
                assert!(index.check(&())?.problem_count > 0, "{at}");
                assert_eq!(index.search(1)?.len(), 1, "{at}");
                searched += 1;
            }
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert!(refused > 5, "{refused}, {searched}");
    assert!(Header::read_pipeline(&path)?.is_some());
    Ok(())
}
