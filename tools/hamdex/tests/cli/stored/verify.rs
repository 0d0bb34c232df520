//! Verification over an index: what is kept, what passes, and what is refused.
//!
//! And pairs, clusters and evaluation, over an index and over documents.

use serde_json::json;

use crate::support::{Bench, PRINTS, json_lines, stored};

/// Two forms of one post, and another one whose words are different.
const POSTS: &str = "\
{\"id\":\"rain\",\"text\":\"heavy rain in the north tomorrow, please take an umbrella with you\"}
{\"id\":\"again\",\"text\":\"heavy rain in the north tomorrow, please take an umbrella with you!!\"}
{\"id\":\"goals\",\"text\":\"the home side scored four goals and still lost the match on Sunday\"}
";

/// So wide that fingerprints alone tell nothing apart.
const WIDE: &str = "-k 16 --pipeline post --segment words --ngram 1";

fn kept() -> Bench {
    let bench = Bench::new();
    bench.file("posts.jsonl", POSTS);
    bench.file("bare.jsonl", "{\"id\":\"bare\",\"fingerprint\":\"00000000000000ff\"}\n");
    bench.ok(&format!("build idx posts.jsonl --keep-features {WIDE}"));
    bench
}

#[test]
fn a_query_prints_what_passes_and_how_similar_it_is() {
    let bench = kept();
    let found = bench.ok("query idx posts.jsonl --verify jaccard:0.9").json();
    let pairs: Vec<_> = found
        .iter()
        .map(|row| format!("{} {}", row["query"], row["id"]).replace('"', ""))
        .collect();
    assert_eq!(pairs, ["rain again", "rain rain", "again again", "again rain", "goals goals"]);
    assert!(found.iter().all(|row| row["similarity"] == json!(1.0)), "{found:?}");
    assert_eq!(bench.ok("query idx posts.jsonl --verify zhou:3,4.1").stdout, "");
    let mut text = bench.command("query idx --verify jaccard:0.2 --limit 1 --text");
    let output = text.arg("an umbrella for the heavy rain in the north").output().unwrap();
    let lines = json_lines(std::str::from_utf8(&output.stdout).unwrap());
    assert!(lines.iter().all(|row| row["id"] != "goals"), "{lines:?}");
    let plain = bench.ok("query idx posts.jsonl --verify none").json();
    assert!(plain.iter().all(|row| row.get("similarity").is_none()));
}

#[test]
fn pairs_and_clusters_of_an_index_are_verified() {
    let bench = kept();
    let pairs = bench.ok("pairs idx --verify jaccard:0.9").stdout;
    assert_eq!(pairs, "again\train\t0\t1.0000\n");
    for more in ["", " --linkage representative"] {
        let clusters = bench.ok(&format!("clusters idx --verify jaccard:0.9{more}")).json();
        let group = json!({ "cluster": 1, "size": 2, "ids": ["again", "rain"], "diameter": 0 });
        assert_eq!(clusters, [group]);
    }
    bench.run("clusters idx --verify none --linkage representative").refused(2, &["--verify"]);
}

#[test]
fn a_spanning_forest_connects_the_groups_of_documents_and_of_an_index() {
    let bench = kept();
    // Each row is within a bit of the next, and of copies of itself.
    let row = |number: u32| {
        let fingerprint = (1_u64 << (number / 2)) - 1;
        format!("{{\"id\":\"{number}\",\"fingerprint\":\"{fingerprint:016x}\"}}\n")
    };
    bench.file("chain.jsonl", (0..20).map(row).collect::<String>());
    bench.ok("build chain.idx chain.jsonl");
    for source in ["chain.jsonl", "chain.idx"] {
        let all = bench.ok(&format!("pairs {source} -k 3")).stdout;
        let some = bench.ok(&format!("pairs {source} -k 3 --spanning")).stdout;
        assert_eq!((all.lines().count(), some.lines().count()), (106, 19), "{source}");
        assert!(some.lines().all(|pair| all.lines().any(|other| other == pair)), "{some}");
    }
    for source in ["posts.jsonl", "idx"] {
        for verify in ["none", "jaccard:0.9"] {
            let call = format!("pairs {source} {WIDE} --spanning --verify {verify}");
            let call = if source == "idx" { call.replace(WIDE, "-k 16") } else { call };
            let found = bench.ok(&call).stdout;
            assert_eq!(found.lines().count(), 1, "{source} {verify}: {found}");
        }
    }
    bench.run("pairs idx --against idx --spanning").refused(2, &["--against", "--spanning"]);
}

#[test]
fn an_index_made_to_be_verified_is_searched_so_without_being_told() {
    let bench = Bench::new();
    bench.file("posts.jsonl", POSTS);
    bench.file("bare.jsonl", "{\"id\":\"bare\",\"fingerprint\":\"00000000000000ff\"}\n");
    bench.ok("build idx posts.jsonl --keep-features");
    let columns = |more: &str| {
        let pairs = bench.ok(&format!("pairs idx {more}")).stdout;
        pairs.lines().next().map_or(0, |line| line.split('\t').count())
    };
    assert_eq!([columns(""), columns("--verify none"), columns("-k 14")], [4, 3, 4]);
    let verified = |more: &str| {
        let rows = bench.ok(&format!("query idx {more}")).json();
        rows.iter().filter(|row| row.get("similarity").is_some()).count()
    };
    assert_eq!(verified("posts.jsonl"), 5);
    assert_eq!(verified("posts.jsonl -k 14"), 5);
    assert_eq!(verified("bare.jsonl"), 0, "a fingerprint has nothing to verify");
    let clusters = bench.ok("clusters idx --linkage representative").json();
    assert_eq!(clusters[0]["ids"], json!(["again", "rain"]));
    let new = "{\"id\":\"late\",\"text\":\"heavy rain in the north tomorrow: please take an umbrella!\"}\n";
    bench.file("late.jsonl", new);
    let refused = bench.ok("insert idx late.jsonl --if-new").json();
    assert!(refused[0]["similarity"].as_f64().unwrap() > 0.66, "{refused:?}");
}

#[test]
fn only_what_is_verified_is_kept_out() {
    let bench = Bench::new();
    bench.file("posts.jsonl", POSTS);
    let insert = "insert idx posts.jsonl --if-new --verify jaccard:0.9";
    bench.run(&format!("{insert} {WIDE}")).refused(1, &["--keep-features"]);
    assert!(!bench.path("idx").exists(), "nothing is made for a call that cannot be done");
    let outcome = bench.ok(&format!("{insert} --keep-features {WIDE}"));
    let refused = json!({ "id": "again", "of": "rain", "distance": 0, "similarity": 1.0 });
    assert_eq!(outcome.json(), [refused]);
    bench.run("insert idx posts.jsonl --verify jaccard:0.9").refused(2, &["--if-new"]);
    // The index says what it keeps; nothing has to be asked for again.
    bench.ok("insert idx posts.jsonl");
    assert_eq!(bench.ok("pairs idx --verify jaccard:0.9").stdout.lines().count(), 1);
    let stats = &bench.ok("stats idx --json").json()[0];
    assert_eq!((&stats["keeps_features"], &stats["with_features"]), (&json!(true), &json!(3)));
    assert!(bench.ok("stats idx").stdout.contains("bytes a document"));
    bench.ok("check idx");
}

#[test]
fn rows_without_text_are_stored_without_features_and_counted() {
    let bench = kept();
    let summary = &bench.ok("build idx bare.jsonl --json").json()[0];
    assert_eq!(summary["without_features"], 1);
    assert!(bench.ok("stats idx").stdout.contains("1 documents have none"));
    bench.run("query idx bare.jsonl --verify jaccard:0.5").refused(2, &["bare", "no text"]);
    bench
        .run("query idx --fingerprint 00000000000000ff --verify jaccard:0.5")
        .refused(2, &["00000000000000ff", "no text"]);
    bench.file("near.jsonl", "{\"id\":\"near\",\"fingerprint\":\"00000000000000fe\"}\n");
    let outcome = bench.ok("insert idx near.jsonl");
    assert!(outcome.stderr.contains("without features"), "{}", outcome.stderr);
    let outcome = bench.run("pairs idx --verify jaccard:0.5");
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("document near is stored without features"), "{outcome:?}");
    assert!(outcome.stderr.contains("insert the document again"), "{outcome:?}");
}

#[test]
fn an_index_that_keeps_nothing_says_so() {
    let bench = Bench::new();
    bench.file("posts.jsonl", POSTS);
    bench.ok(&format!("build idx posts.jsonl {WIDE}"));
    for verb in ["query idx posts.jsonl", "pairs idx", "clusters idx"] {
        bench
            .run(&format!("{verb} --verify jaccard:0.5"))
            .refused(1, &["keeps no feature sets", "--keep-features"]);
        bench.run(&format!("{verb} --verify edit:0.9")).refused(2, &["edit:T", "jaccard:T"]);
    }
    bench.run("build idx posts.jsonl --keep-features").refused(1, &["keep_features"]);
    bench.run("insert idx posts.jsonl --keep-features").refused(1, &["keep_features"]);
    assert!(bench.ok("stats idx").stdout.contains("features kept"));
}

/// An excerpt, the full text, and another text of the same template.
const NOTICES: &str = "\
{\"id\":\"part\",\"from\":\"a\",\"date\":\"2024\",\"text\":\"the north of the country expects heavy rain tonight and strong winds from the sea\"}
{\"id\":\"whole\",\"from\":\"b\",\"date\":\"2021\",\"text\":\"warning: the north of the country expects heavy rain tonight and strong winds from the sea, says the office\"}
{\"id\":\"other\",\"from\":\"b\",\"date\":\"2022\",\"text\":\"warning: the south of the country expects heavy snow tonight and strong winds from the east, says the office\"}
";

#[test]
fn an_excerpt_goes_and_the_text_that_holds_it_stays() {
    let bench = Bench::new();
    let check = "-k 16 --pipeline page --verify contains:0.9";
    let turned: Vec<&str> = NOTICES.lines().rev().collect();
    bench.file("rows.jsonl", NOTICES).file("turned.jsonl", turned.join("\n"));
    for (input, keep) in [
        ("rows.jsonl", "first"),
        ("turned.jsonl", "first"),
        ("rows.jsonl", "longest"),
        ("rows.jsonl", "newest:date"),
        ("turned.jsonl", "best:date"),
    ] {
        bench.ok(&format!("dedup {input} -o out --overwrite {check} --prefer {keep}"));
        let removed = json_lines(&bench.read("out/duplicates.jsonl"));
        let removed: Vec<_> =
            removed.iter().map(|row| [&row["id"], &row["kept_id"], &row["similarity"]]).collect();
        assert_eq!(removed, [[&json!("part"), &json!("whole"), &json!(1.0)]], "{input} {keep}");
    }
    let pairs = bench.ok(&format!("pairs rows.jsonl {check}")).stdout;
    assert_eq!(pairs.lines().count(), 1, "{pairs}");
    assert!(pairs.starts_with("part\twhole\t") && pairs.ends_with("\t1.0000\n"), "{pairs}");
    let clusters =
        bench.ok(&format!("clusters rows.jsonl {check} --linkage representative")).json();
    assert_eq!(clusters.len(), 1);
    assert_eq!(clusters[0]["ids"], json!(["part", "whole"]));
    let told = bench.ok(&format!("dedup rows.jsonl -o told {check} --prefer best:date"));
    assert!(told.stderr.contains("keeps the longest"), "{}", told.stderr);
}

#[test]
fn what_is_contained_is_no_question_to_an_index() {
    let bench = kept();
    for call in [
        "query idx posts.jsonl",
        "pairs idx",
        "clusters idx",
        "insert idx posts.jsonl --if-new",
        "dedup posts.jsonl -o out --against idx",
        "evaluate posts.jsonl --pairs none.tsv",
    ] {
        bench.run(&format!("{call} --verify contains:0.9")).refused(2, &["contains:T"]);
    }
}

/// Two copies of `a`, and `d` within one bit of `b` alone.
const MORE: &str = "\
{\"id\":\"a2\",\"fingerprint\":\"00000000000000ff\"}
{\"id\":\"d\",\"fingerprint\":\"00000000000000fc\"}
";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("prints.jsonl", format!("{PRINTS}{MORE}"));
    bench.ok("build idx prints.jsonl");
    bench
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn pairs_of_an_index_and_of_its_documents_are_the_same() {
    let bench = bench();
    let mut wanted = vec!["a\ta2\t0", "a\tb\t1", "a2\tb\t1", "b\td\t1"];
    assert_eq!(sorted(&bench.ok("pairs idx -k 1").stdout), wanted);
    wanted[2] = "b\ta2\t1";
    wanted.sort_unstable();
    assert_eq!(sorted(&bench.ok("pairs prints.jsonl -k 1").stdout), wanted);
    bench.ok("pairs prints.jsonl -k 1 -o pairs.tsv --header");
    let file = bench.read("pairs.tsv");
    assert_eq!(file.lines().next(), Some("id_a\tid_b\tdistance"));
    assert_eq!(file.lines().count(), 5);
    let objects = bench.ok("pairs idx -k 0 --json").json();
    assert_eq!(objects, [json!({ "id_a": "a", "id_b": "a2", "distance": 0 })]);
}

#[test]
fn pairs_of_two_indexes_have_one_document_of_each() {
    let bench = bench();
    bench.file("more.jsonl", MORE);
    bench.ok("build more more.jsonl");
    let wanted = ["a\ta2\t0", "a2\ta2\t0", "b\ta2\t1", "b\td\t1", "d\td\t0"];
    assert_eq!(sorted(&bench.ok("pairs idx -k 1 --against more").stdout), wanted);
    assert_eq!(sorted(&bench.ok("pairs idx -k 1 --against more --memory 1").stdout), wanted);
    bench.run("pairs idx --against absent").refused(6, &["absent"]);
    bench.run("pairs more.jsonl --against idx").refused(2, &["build"]);
}

#[test]
fn clusters_hold_what_chains_connect() {
    let bench = bench();
    let of_index = json!({ "cluster": 1, "size": 4, "ids": ["a", "a2", "b", "d"], "diameter": 2 });
    assert_eq!(bench.ok("clusters idx -k 1").json(), [of_index]);
    let of_documents =
        json!({ "cluster": 1, "size": 4, "ids": ["a", "b", "a2", "d"], "diameter": 2 });
    assert_eq!(bench.ok("clusters prints.jsonl -k 1").json(), [of_documents]);
    bench.ok("clusters idx -k 0 -o clusters.jsonl");
    assert_eq!(
        bench.read("clusters.jsonl"),
        "{\"cluster\":1,\"size\":2,\"ids\":[\"a\",\"a2\"],\"diameter\":0}\n"
    );
}

#[test]
fn the_distance_of_the_index_is_the_default() {
    let bench = bench();
    bench.ok("build near prints.jsonl -k 0");
    assert_eq!(bench.ok("pairs near").stdout, "a\ta2\t0\n");
    assert_eq!(bench.ok("query near --fingerprint 00000000000000fc").json().len(), 1);
}

#[test]
fn evaluation_counts_found_and_labelled_pairs() {
    let bench = bench();
    bench.file(
        "labels.tsv",
        "id_a\tid_b\tsimilarity\na\tb\t0.95\nb\ta\t0.95\nb\td\t0.85\na\tc\t0.99\nx\ty\t1\n",
    );
    let rows = bench.ok("evaluate prints.jsonl --pairs labels.tsv --json -k 2").json();
    let counts = |rows: &[serde_json::Value], name: &str| -> Vec<u64> {
        rows.iter().map(|row| row[name].as_u64().unwrap()).collect()
    };
    assert_eq!(counts(&rows, "distance"), [0, 1, 2]);
    assert_eq!(counts(&rows, "found"), [1, 4, 6]);
    assert_eq!(counts(&rows, "correct"), [0, 2, 2]);
    assert_eq!(rows[1]["precision"], 0.5);
    let limits = "--min-similarity 0.9 --ignore-above 0.8";
    let rows =
        bench.ok(&format!("evaluate prints.jsonl --pairs labels.tsv {limits} --json -k 2")).json();
    assert_eq!(counts(&rows, "found"), [1, 3, 5]);
    assert_eq!(counts(&rows, "correct"), [0, 1, 1]);
    let outcome = bench.ok("evaluate prints.jsonl --pairs labels.tsv");
    assert!(
        outcome.stdout.contains("precision") && outcome.stdout.contains("F1"),
        "{}",
        outcome.stdout
    );
    assert!(outcome.stderr.contains("1 labelled pairs name ids"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().count(), 18);
}

#[test]
fn labels_that_cannot_be_read_are_named_with_their_line() {
    let bench = stored();
    bench.file("labels.tsv", "a\tb\nc\n");
    bench.run("evaluate prints.jsonl --pairs labels.tsv").refused(3, &["labels.tsv", "line 2"]);
    bench
        .run("evaluate prints.jsonl --pairs labels.tsv --similarity jaccard")
        .refused(3, &["jaccard"]);
}
