//! Verification over an index: what is kept, what passes, and what is refused.

use serde_json::json;

use super::support::{Bench, json_lines};

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
