//! The demo: a first result without any data, which leaves what a real run leaves.

use serde_json::Value;

use crate::support::{Bench, json_lines};

#[test]
fn the_demo_finds_copies_in_every_language_and_leaves_texts_results_and_page() {
    let bench = Bench::new();
    let ran = bench.ok("demo");
    assert!(ran.stdout.starts_with("$ hamdex dedup hamdex-demo/texts.jsonl -o "), "{ran:?}");
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let texts = json_lines(&bench.read("hamdex-demo/texts.jsonl"));
    let kept = json_lines(&bench.read("hamdex-demo/results/kept.jsonl"));
    let removed = json_lines(&bench.read("hamdex-demo/results/duplicates.jsonl"));
    assert_eq!(texts.len(), kept.len() + removed.len());
    let language = |row: &Value, field: &str| {
        row[field].as_str().and_then(|id| id.split('/').next()).map(ToOwned::to_owned)
    };
    for language_of in ["en", "de", "fr", "es", "pt", "ru", "ar", "hi", "zh", "ja", "ko"] {
        let mine = removed.iter().filter(|row| language(row, "id").as_deref() == Some(language_of));
        let mut pairs = 0;
        for row in mine {
            assert_eq!(language(row, "kept_id"), language(row, "id"), "{row}");
            pairs += 1;
        }
        assert!(pairs > 0, "{language_of}");
    }
    assert!(bench.read("hamdex-demo/report.html").contains("<html"));
    // Copies, with what is their own in brackets.
    for own in ["[(Morning Wire) - ]", "【转载】", "[وكالة"] {
        assert!(ran.stdout.contains(own), "{own} {ran:?}");
    }
}

#[test]
fn the_demo_replaces_nothing_unasked() {
    let bench = Bench::new();
    bench.ok("demo -o first");
    bench.file("first/texts.jsonl", "mine\n");
    let ran = bench.run("demo -o first --json");
    assert_eq!((ran.status, bench.read("first/texts.jsonl").as_str()), (2, "mine\n"), "{ran:?}");
    let report = bench.ok("demo -o first --overwrite --json");
    assert_eq!(report.json()[0]["documents"], 36);
}
