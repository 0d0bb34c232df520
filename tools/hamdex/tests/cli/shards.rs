//! `build --from-shards`.

use hamdex::Plan;
use hamdex::shards::{Layout, Manifest, ShardWriter};
use serde_json::json;

use crate::support::{Bench, EXPORTED, PRINTS};

/// Writes the rows of [`PRINTS`] as two tasks of a cluster would, to the directory `shards`.
fn shards() -> Bench {
    let bench = Bench::new();
    let directory = bench.path("shards");
    std::fs::create_dir(&directory).unwrap();
    let layout = Layout::new(Plan::named("4", 64).unwrap(), 3, "").unwrap();
    let documents = [("a", 0xff_u64), ("b", 0xfe), ("c", 0xffff_ffff_0000_0000)];
    let mut rows = Vec::new();
    for (key, fingerprint) in documents {
        let row = |family, key: &[u8], print| rows.push((family, key.to_vec(), print));
        layout.rows(key.as_bytes(), fingerprint, row).unwrap();
    }
    rows.sort();
    let mut written = Vec::new();
    for (part, rows) in rows.chunks(rows.len() / 2).enumerate() {
        let stem = format!("part-{part}");
        let mut writer = ShardWriter::<u64>::new(&directory, &stem, &layout).unwrap();
        for (family, key, fingerprint) in rows {
            writer.push(*family, key, *fingerprint).unwrap();
        }
        written.extend(writer.finish().unwrap());
    }
    Manifest::new(&layout, written).unwrap().write(&directory).unwrap();
    bench
}

#[test]
fn shards_become_the_index_that_a_build_makes() {
    let bench = shards();
    let summary = &bench.ok("build idx --from-shards shards --json").json()[0];
    assert_eq!((&summary["documents"], &summary["distinct"]), (&json!(3), &json!(3)));
    assert_eq!(bench.export("idx"), EXPORTED);
    bench.ok("check idx --deep");
    bench.file("prints.jsonl", PRINTS);
    bench.ok("build other prints.jsonl");
    let query = |index: &str| bench.ok(&format!("query {index} --fingerprint 00000000000000ff"));
    assert_eq!(query("idx").stdout, query("other").stdout);
    assert_eq!(bench.ok("stats idx --json").json()[0]["plan"], "4");
}

#[test]
fn shards_that_are_not_whole_are_refused_with_the_remedy() {
    let bench = shards();
    bench
        .run("build idx --from-shards nowhere")
        .refused(6, &["nowhere/manifest", "check the path"]);
    bench.run("build idx prints.jsonl --from-shards shards").refused(2, &["--from-shards"]);
    bench.run("build idx --from-shards shards -k 5").refused(2, &["--from-shards"]);
    bench.file("shards/part-0-000.sst", "no table file");
    bench.run("build idx --from-shards shards").refused(4, &["part-0-000.sst", "write the shards"]);
    assert!(!bench.path("idx").exists());
    bench.file("shards/manifest", "nothing");
    bench.run("build idx --from-shards shards").refused(4, &["manifest", "write the shards"]);
}
