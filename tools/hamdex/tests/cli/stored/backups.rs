//! Copies of an index: `backup` and `restore`, and exports from which an equal index is built.

use serde_json::{Value, json};

use crate::support::{Bench, EXPORTED, json_lines, stored};

#[test]
fn a_backup_restores_to_the_index_of_then() {
    let bench = stored();
    bench.file("more.jsonl", "{\"id\":\"d\",\"fingerprint\":\"0000000000000000\"}\n");
    let first = &bench.ok("backup idx backups --json").json()[0];
    assert_eq!((&first["id"], &first["removed"]), (&json!(1), &json!([])));
    assert_eq!(first["bytes"], first["copied_bytes"]);
    bench.ok("insert idx more.jsonl");
    let second = &bench.ok("backup idx backups --verify --json").json()[0];
    assert_eq!((&second["id"], &second["verified"]), (&json!(2), &json!(true)));
    assert!(second["copied_files"].as_u64() < second["files"].as_u64(), "{second}");
    let restored = &bench.ok("restore backups new --json").json()[0];
    assert_eq!((&restored["id"], &restored["documents"]), (&json!(2), &json!(4)));
    assert_eq!(bench.export("new"), bench.export("idx"));
    bench.ok("check new --deep");
    bench.ok("restore backups old --backup-id 1");
    assert_eq!(bench.export("old"), EXPORTED);
    let table = bench.ok("backup idx backups").stdout;
    for name in ["backup", "files copied", "bytes copied", "backups removed", "seconds"] {
        assert!(table.contains(name), "{table}");
    }
}

#[test]
fn backups_are_listed_verified_and_kept_by_number() {
    let bench = stored();
    for _ in 0..3 {
        bench.ok("backup idx backups");
    }
    let last = &bench.ok("backup idx backups --keep 2 --json").json()[0];
    assert_eq!(last["removed"], json!([1, 2]));
    for list in ["restore backups --list --json", "backup idx backups --list --json"] {
        let rows = bench.ok(list).json();
        assert_eq!(rows.iter().map(|row| &row["id"]).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(rows[1]["damage"], json!(null));
        assert!(rows[1]["created"].as_u64() > Some(1_600_000_000));
    }
    let table = bench.ok("restore backups --list").stdout;
    assert!(table.starts_with("backup") && table.contains("none seen"), "{table}");
    let verified = &bench.ok("restore backups --verify --json").json()[0];
    assert_eq!((&verified["id"], &verified["verified"]), (&json!(4), &json!(true)));
    bench.run("restore backups new --backup-id 1").refused(6, &["no backup 1", "--list"]);
    bench.run("backup idx backups --keep 0").refused(2, &["keep"]);
}

#[test]
fn a_damaged_backup_is_refused_with_the_remedy() {
    let bench = stored();
    bench.ok("backup idx backups");
    bench.ok("backup idx backups");
    let current = bench.read("backups/private/2/CURRENT");
    bench.file("backups/private/2/CURRENT", current.replacen("MANIFEST", "MANIFESU", 1));
    for call in ["restore backups new", "restore backups --verify"] {
        bench.run(call).refused(4, &["backup 2", "--backup-id", "--list"]);
    }
    assert!(!bench.path("new").exists());
    bench.run("restore backups idx --replace").refused(4, &["backup 2"]);
    assert_eq!(bench.export("idx"), EXPORTED);
    bench.ok("restore backups new --backup-id 1");
    assert_eq!(bench.export("new"), EXPORTED);
}

#[test]
fn what_is_there_is_given_up_only_by_replace() {
    let bench = stored();
    bench.ok("backup idx backups");
    bench.ok("remove idx --id a");
    bench.run("restore backups idx").refused(1, &["idx", "--replace"]);
    assert_eq!(bench.export("idx").lines().count(), 2);
    bench.ok("restore backups idx --replace");
    assert_eq!(bench.export("idx"), EXPORTED);
    bench.run("backup idx idx").refused(2, &["contain each other"]);
    bench.file("thesis/thesis.txt", "years of work");
    bench.run("backup idx thesis").refused(1, &["thesis", "already holds"]);
    bench.run("restore thesis new").refused(6, &["thesis", "no backup"]);
    bench.run("restore backups").refused(2, &["INDEX"]);
}

#[test]
fn an_index_that_another_process_writes_is_backed_up() {
    let bench = stored();
    let index = hamdex::Index::<u64>::open(bench.path("idx")).unwrap();
    index.insert(b"d", 0).unwrap();
    bench.run("remove idx --id a").refused(5, &["in use"]);
    bench.ok("backup idx backups");
    index.insert(b"e", 1).unwrap();
    bench.ok("backup idx backups");
    for (id, lines) in [(1, 4), (2, 5)] {
        bench.ok(&format!("restore backups new-{id} --backup-id {id}"));
        assert_eq!(bench.export(&format!("new-{id}")).lines().count(), lines);
    }
}

const TEXTS: &str = "\
{\"id\":\"a\",\"text\":\"the quick brown fox jumps over the lazy dog in the old garden today\"}
{\"id\":\"b\",\"text\":\"the quick brown fox jumps over a lazy dog in the old garden today\"}
{\"id\":\"c\",\"text\":\"nothing of this has to do with animals or with any garden at all\"}
";

fn stats(bench: &Bench, index: &str) -> Value {
    let mut stats = bench.ok(&format!("stats {index} --json")).json().remove(0);
    for changing in ["bytes", "bytes_docs", "bytes_postings", "bytes_tables", "tables"] {
        stats.as_object_mut().unwrap().remove(changing);
    }
    stats
}

/// A bench with an index of texts that has everything an index can have.
fn everything() -> Bench {
    let bench = Bench::new();
    bench
        .file("texts.jsonl", TEXTS)
        .file("stop.txt", "the\nof\n")
        .file("weights.tsv", "fox\t3\ngarden\t2\n");
    let tables = "--segment words --stop-words stop.txt --weights weights.tsv";
    bench.ok(&format!("build idx texts.jsonl {tables} -k 8 --plan 10 --keep-features"));
    bench
}

#[test]
fn a_build_of_an_export_is_an_equal_index() {
    let bench = everything();
    let export = bench.ok("export idx").stdout;
    bench.file("idx.jsonl", &export);
    bench.ok("build again idx.jsonl");
    assert_eq!(bench.ok("export again").stdout, export);
    assert_eq!(stats(&bench, "again"), stats(&bench, "idx"));
    let header = &json_lines(&export)[0];
    assert_eq!((&header["distance"], &header["keeps_features"]), (&8.into(), &true.into()));
    assert_eq!(header["resources"].as_object().unwrap().len(), 2);
    let rows = json_lines(&bench.export("again"));
    assert!(rows.iter().all(|row| row["hamdex_features"].is_string()), "{rows:?}");
    bench.file("query.txt", "a quick brown fox jumps over the lazy dog in the old garden today");
    let query = |index: &str| {
        bench.ok(&format!("query {index} query.txt -k 16 --verify jaccard:0.5 --json")).stdout
    };
    assert_eq!(query("again"), query("idx"));
    assert!(query("again").contains("\"a\""), "{}", query("again"));
    bench.ok("check again --deep");
}

#[test]
fn an_export_goes_through_a_pipe() {
    let bench = everything();
    let export = bench.ok("export idx").stdout;
    let built = bench.feed("build piped -", export.as_bytes());
    assert_eq!(built.status, 0, "{built:?}");
    assert_eq!(bench.ok("export piped").stdout, export);
}

#[test]
fn options_override_what_an_export_says() {
    let bench = everything();
    bench.ok("export idx -o idx.jsonl");
    bench.ok("build other idx.jsonl -k 5 --plan 4");
    let header = &json_lines(&bench.ok("export other").stdout)[0];
    assert_eq!((&header["distance"], &header["plan"]), (&5.into(), &stats_plan(&bench)));
}

/// The plan "4" in its own words.
fn stats_plan(bench: &Bench) -> Value {
    bench.file("none.jsonl", "{\"id\":1,\"fingerprint\":\"0000000000000001\"}\n");
    bench.ok("build plain none.jsonl --plan 4 -k 5");
    stats(bench, "plain")["plan"].clone()
}

#[test]
fn other_verbs_skip_the_header() {
    let bench = stored();
    bench.ok("export idx -o idx.jsonl");
    for call in ["pairs idx.jsonl -k 1", "insert idx idx.jsonl", "query idx idx.jsonl -k 0"] {
        let outcome = bench.ok(&format!("{call} --strict"));
        assert!(!outcome.stderr.contains("bad row"), "{call}: {outcome:?}");
    }
    let pairs = bench.ok("pairs idx.jsonl -k 1 --json").stdout;
    assert_eq!(pairs, bench.ok("pairs prints.jsonl -k 1 --json").stdout);
}

#[test]
fn fingerprints_of_another_pipeline_are_refused() {
    let bench = everything();
    bench.ok("build other texts.jsonl --pipeline code");
    bench.ok("export idx -o idx.jsonl");
    for verb in ["build", "insert"] {
        bench.run(&format!("{verb} other idx.jsonl")).refused(1, &["pipeline"]);
    }
    bench.run("insert new idx.jsonl").refused(2, &["hamdex build"]);
}

#[test]
fn a_secret_is_not_exported_and_asked_for_again() {
    let bench = Bench::new();
    bench.file("texts.jsonl", TEXTS).file("seed", "6f1d0c9be2a8475393d4c07a51fe286b");
    bench.ok("build idx texts.jsonl --pipeline page --secret-file seed");
    let export = bench.ok("export idx").stdout;
    assert!(!export.contains("6f1d0c9b"), "{export}");
    bench.file("idx.jsonl", &export);
    bench.run("build again idx.jsonl").refused(1, &["secret", "--secret-file"]);
    bench.ok("build again idx.jsonl --secret-file seed");
    assert_eq!(bench.ok("export again").stdout, export);
}
