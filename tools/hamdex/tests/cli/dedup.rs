//! Deduplication: what is kept is unchanged, what is removed can be looked up.

use serde_json::json;

use crate::support::{Bench, json_lines, stored};

const ROWS: &str = "{\"id\":\"a\", \"text\":\"sunny days are here again\",\"date\":\"2021\"}\n\
                    {\"id\":\"b\",\"text\":\"an article about something else altogether\"}\r\n\
                    {\"id\":\"c\",\"date\":\"2023\",\"text\":\"Sunny days are here again!!\"}\n\
                    {\"id\":\"d\",\"text\":\"sunny days are here again\",\"n\":1.50}";

fn line(number: usize) -> String {
    let line = ROWS.split_inclusive('\n').nth(number).unwrap();
    if line.ends_with('\n') { line.to_owned() } else { format!("{line}\n") }
}

#[test]
fn rows_to_keep_are_copied_byte_for_byte() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    bench.ok("dedup rows.jsonl -o out -k 3 --verify none");
    assert_eq!(bench.read("out/kept.jsonl"), line(0) + &line(1));
    let duplicate = |id: &str, row: u32| {
        json!({
            "id": id, "at": format!("rows.jsonl:{row}"), "kept_id": "a", "kept_at": "rows.jsonl:1",
            "distance": 0, "cluster": 1
        })
    };
    assert_eq!(
        json_lines(&bench.read("out/duplicates.jsonl")),
        [duplicate("c", 3), duplicate("d", 4)]
    );
    assert_eq!(
        json_lines(&bench.read("out/clusters.jsonl")),
        [json!({ "cluster": 1, "size": 3, "ids": ["a", "c", "d"], "diameter": 0 })]
    );
    assert_eq!(bench.read("out/rejects.jsonl"), "");
    let names: Vec<_> =
        std::fs::read_dir(bench.path("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "nothing temporary stays behind: {names:?}");
}

#[test]
fn the_report_holds_counts_settings_and_groups() {
    let bench = Bench::new();
    bench.file("rows.jsonl", format!("{ROWS}\n{{\n"));
    let printed = bench.ok("dedup rows.jsonl -o out -k 2 --json --max-bad 1").json();
    let report: serde_json::Value = serde_json::from_str(&bench.read("out/report.json")).unwrap();
    assert_eq!(printed, std::slice::from_ref(&report));
    for (name, count) in
        [("documents", 4), ("kept", 2), ("removed", 2), ("clusters", 1), ("rejects", 1)]
    {
        assert_eq!(report[name], count, "{name}");
    }
    let settings = &report["settings"];
    assert_eq!(
        (&settings["bits"], &settings["distance"], &settings["keep"]),
        (&json!(64), &json!(2), &json!("first"))
    );
    assert_eq!(report["largest"], json!([{ "cluster": 1, "size": 3, "kept_id": "a" }]));
    assert!(report["seconds"].is_number());
}

#[test]
fn the_longest_or_newest_of_a_group_can_be_kept() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    bench.ok("dedup rows.jsonl -o longest --prefer longest");
    assert_eq!(bench.read("longest/kept.jsonl"), line(1) + &line(2));
    bench.ok("dedup rows.jsonl -o newest --prefer newest:date");
    assert_eq!(bench.read("newest/kept.jsonl"), line(1) + &line(2));
    let kept: Vec<_> = json_lines(&bench.read("newest/duplicates.jsonl"));
    assert!(kept.iter().all(|row| row["kept_id"] == "c"), "{kept:?}");
}

#[test]
fn the_best_of_a_group_has_the_largest_number() {
    let bench = Bench::new();
    let row = |id: &str, score: &str| {
        format!(
            "{{\"id\":\"{id}\",\"q\":{{\"score\":{score}}},\"text\":\"sunny days are here again\"}}\n"
        )
    };
    let rows = [row("a", "9.5"), row("b", "\"10\""), row("c", "null"), row("d", "-1e3")].concat();
    bench.file("rows.jsonl", rows);
    bench.ok("dedup rows.jsonl -o out --prefer best:q.score");
    assert_eq!(bench.read("out/kept.jsonl"), row("b", "\"10\""));
    let report: serde_json::Value = serde_json::from_str(&bench.read("out/report.json")).unwrap();
    assert_eq!(report["settings"]["keep"], "best:q.score");
    bench.run("dedup rows.jsonl -o no --prefer best:score").refused(3, &["--prefer best", "score"]);
}

#[test]
fn every_source_is_accounted_for() {
    let bench = Bench::new();
    let rows = |from: &str, texts: std::ops::Range<u32>| -> String {
        let text = |n: u32| {
            format!("article {} speaks of {} and of {} alone", n * n, n * 7919, n * 104_729)
        };
        let row = |n: u32| json!({ "id": format!("{from}{n}"), "from": from, "text": text(n) });
        texts.map(|n| row(n).to_string() + "\n").collect()
    };
    bench.file("a.jsonl", rows("a", 0..30)).file("b.jsonl", rows("b", 0..25) + &rows("c", 30..40));
    let report = |call: &str| -> serde_json::Value {
        bench.ok(&format!("dedup {call} -o out --overwrite -k 0 --verify none --report out.html"));
        serde_json::from_str(&bench.read("out/report.json")).unwrap()
    };
    let counts = |report: &serde_json::Value| -> Vec<String> {
        let sources = report["sources"].as_array().unwrap();
        sources
            .iter()
            .map(|from| {
                let [name, documents, kept, share] =
                    ["name", "documents", "kept", "removed_share"].map(|field| &from[field]);
                format!("{name} {documents} {kept} {share}")
            })
            .collect()
    };
    let files = report("a.jsonl b.jsonl");
    assert_eq!(counts(&files), ["\"b.jsonl\" 35 10 0.7143", "\"a.jsonl\" 30 30 0.0"]);
    assert_eq!(files["sources"][0]["largest_group"]["documents"], 1);
    let pair = &files["sources"][0]["farthest"];
    assert_eq!(
        [&pair["id"], &pair["kept_id"], &pair["distance"]],
        [&json!("b0"), &json!("a0"), &json!(0)]
    );
    assert_eq!(files["sources"][1]["farthest"], json!(null));
    let fields = report("a.jsonl b.jsonl --source-field from");
    assert_eq!(counts(&fields), ["\"b\" 25 0 1.0", "\"a\" 30 30 0.0", "\"c\" 10 10 0.0"]);
    let warnings = fields["warnings"].to_string();
    assert!(
        warnings.contains("25 of the 25 documents of b were removed, next to all"),
        "{warnings}"
    );
    let page = bench.read("out.html");
    assert!(page.contains("Nearly all documents were removed from: b."), "{page}");
    // In one input alone, a field tells of more sources than one.
    let one = report("b.jsonl --source-field id");
    assert_eq!(one["sources"].as_array().unwrap().len(), 35);
    bench.run("dedup b.jsonl -o no --source-field host").refused(3, &["--source-field", "host"]);
}

#[test]
fn what_is_near_a_stored_document_is_dropped_too() {
    let bench = Bench::new();
    bench
        .file("old.jsonl", "{\"id\":\"old\",\"text\":\"sunny days are here again\"}\n")
        .file("rows.jsonl", ROWS);
    bench.ok("build idx old.jsonl");
    let before = bench.export("idx");
    bench.ok("dedup rows.jsonl -o out --against idx");
    assert_eq!(bench.read("out/kept.jsonl"), line(1));
    let duplicate = |id: &str, row: u32| {
        json!({
            "id": id, "at": format!("rows.jsonl:{row}"), "kept_id": "old", "kept_at": null,
            "distance": 0, "cluster": null
        })
    };
    let duplicates = json_lines(&bench.read("out/duplicates.jsonl"));
    assert_eq!(duplicates, [duplicate("a", 1), duplicate("c", 3), duplicate("d", 4)]);
    assert_eq!(bench.read("out/clusters.jsonl"), "");
    assert_eq!(bench.export("idx"), before);
}

#[test]
fn standard_input_gives_the_same_result_as_a_file() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    bench.ok("dedup rows.jsonl -o file");
    assert_eq!(bench.feed("dedup - -o pipe", ROWS.as_bytes()).status, 0);
    for name in ["kept.jsonl", "duplicates.jsonl", "clusters.jsonl"] {
        let piped = bench.read(&format!("pipe/{name}")).replace("\"-:", "\"rows.jsonl:");
        assert_eq!(piped, bench.read(&format!("file/{name}")));
    }
}

#[test]
fn other_inputs_become_json_rows() {
    let bench = Bench::new();
    bench
        .file("docs/a.txt", "sunny days are here again")
        .file("docs/b.txt", "sunny days are here again")
        .file("docs/c.txt", "an article about something else altogether\n");
    bench.ok("dedup docs -o texts");
    assert_eq!(
        json_lines(&bench.read("texts/kept.jsonl")),
        [
            json!({ "id": "a.txt", "text": "sunny days are here again" }),
            json!({ "id": "c.txt", "text": "an article about something else altogether\n" }),
        ]
    );
    let bytes: Vec<u8> = [1_u64, u64::MAX, 1].iter().flat_map(|v| v.to_le_bytes()).collect();
    bench.file("a.u64", bytes);
    bench.ok("dedup a.u64 -o raw");
    let kept = "{\"id\":0,\"fingerprint\":\"0000000000000001\"}\n{\"id\":1,\"fingerprint\":\"ffffffffffffffff\"}\n";
    assert_eq!(bench.read("raw/kept.jsonl"), kept);
    assert_eq!(json_lines(&bench.read("raw/duplicates.jsonl"))[0]["id"], 2);
}

#[test]
fn a_result_can_take_the_place_of_an_older_one_and_of_its_own_input() {
    let bench = Bench::new();
    bench.file("out/kept.jsonl", ROWS);
    bench.ok("dedup out/kept.jsonl -o out --overwrite");
    assert_eq!(bench.read("out/kept.jsonl"), line(0) + &line(1));
    bench.ok("dedup out/kept.jsonl -o out --overwrite");
    assert_eq!(bench.read("out/kept.jsonl"), line(0) + &line(1));
}

#[test]
fn no_documents_and_one_document_are_inputs_like_any_other() {
    let bench = stored();
    bench.file("none.jsonl", "").file("one.jsonl", line(0));
    bench.ok("dedup none.jsonl -o none");
    assert_eq!(bench.read("none/kept.jsonl"), "");
    bench.ok("dedup one.jsonl -o one");
    assert_eq!(bench.read("one/kept.jsonl"), line(0));
    bench.ok("dedup none.jsonl -o none --against idx --overwrite");
}

#[test]
fn a_dry_run_says_what_is_needed_and_writes_nothing() {
    let bench = Bench::new();
    let row = |n: u64| {
        let text = format!("row {} of the many {}", n / 2, n * 7919);
        json!({ "id": n, "text": text }).to_string() + "\n"
    };
    let rows: String = (0..3000).map(row).collect();
    bench.file("rows.jsonl", &rows).file("raw.u64", [0; 800]);
    let need = bench.ok("dedup rows.jsonl -o out --dry-run --prefer longest --json").json();
    let need = &need[0];
    assert_eq!((&need["rows"], &need["rows_sampled"]), (&json!(3000), &json!(3000)));
    assert_eq!((&need["bytes"], &need["results"]), (&json!(rows.len()), &json!(rows.len())));
    assert_eq!((&need["distance"], &need["keep"]), (&json!(16), &json!("longest")));
    for name in ["memory", "temporary", "seconds"] {
        assert!(need[name].as_f64().unwrap() > 0.0, "{name}: {need}");
    }
    let told = bench.ok("dedup raw.u64 -o out --state seen --dry-run --tmp .").stdout;
    assert!(told.contains("100 (100 sampled)") && told.contains("up to"), "{told}");
    bench.run("dedup - -o out --dry-run").refused(2, &["--dry-run", "only once"]);
    let left = std::fs::read_dir(bench.path(".")).unwrap().count();
    assert_eq!(left, 2, "nothing was written");
}
