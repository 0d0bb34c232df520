//! Calls: what people type is understood, or refused with status 2 and what is supported.

use serde_json::json;

use crate::support::{Bench, json_lines, stored};

#[test]
fn verbs_and_options_that_do_not_exist_are_usage_errors() {
    let bench = Bench::new();
    bench.run("").refused(2, &["Usage: hamdex"]);
    bench.run("balance idx copy").refused(2, &["balance", "verbs: dedup, pairs, clusters"]);
    bench.run("mirror copy idx").refused(2, &["mirror", "index backup, index restore"]);
    bench.run("build").refused(2, &["INDEX"]);
    bench.run("plan").refused(2, &["--count"]);
    bench.run("build idx a.jsonl --resume --abandon").refused(2, &["--abandon"]);
}

#[test]
fn what_is_not_supported_names_what_is() {
    let bench = Bench::new();
    bench.file("a.jsonl", "").file("a.parquet.gz", "").file("a.json", "");
    for name in ["a.parquet.gz", "a.wat.gz"] {
        bench.file(name, "");
        bench.run(&format!("build idx {name}")).refused(2, &[name, "is not supported"]);
        assert!(!bench.path("idx").exists());
    }
    bench.run("fingerprint a.jsonl --sketch shingle").refused(2, &["shingle", "simhash"]);
    bench.run("pairs a.jsonl --verify jaccard:1.5").refused(2, &["jaccard:1.5", "from 0 to 1"]);
    bench.run("pairs a.jsonl --verify cosine:0.5").refused(2, &["cosine:0.5", "zhou:K,T"]);
    bench.run("dedup a.jsonl -o out --format avro").refused(2, &["parquet", "jsonl"]);
    bench.run("dedup a.jsonl -o out --prefer last").refused(2, &["last", "newest:FIELD"]);
    bench.run("fingerprint a.jsonl --bits 48").refused(2, &["48", "32, 64 or 128"]);
    bench.run("fingerprint a.jsonl --segment letters").refused(2, &["letters", "chars"]);
    bench.run("fingerprint a.jsonl --pipeline news").refused(2, &["news", "page"]);
    bench.run("fingerprint a.jsonl --ngram 0").refused(2, &["ngram"]);
}

#[test]
fn sizes_and_numbers_are_checked() {
    let bench = Bench::new();
    bench.file("a.jsonl", "");
    for size in ["lots", "5X", "0", "-1M"] {
        bench.run(&format!("build idx a.jsonl --memory={size}")).refused(2, &["512M or 2G"]);
    }
    bench.run("fingerprint a.jsonl --threads 0").refused(2, &["--threads"]);
    bench.run("plan --count many").refused(2, &["many"]);
    bench.run("fingerprint - -").refused(2, &["standard input", "once"]);
}

#[test]
fn distances_above_the_width_are_refused_with_both_sides() {
    let bench = stored();
    let words = ["distance 17", "16", "64-bit", "smaller -k"];
    bench.run("query idx --fingerprint 00000000000000ff -k 17").refused(2, &words);
    bench.run("pairs prints.jsonl -k 65").refused(2, &["distance 65", "64"]);
    bench.run("dedup prints.jsonl -o out -k 17").refused(2, &words);
    bench.file("labels.tsv", "");
    bench.run("evaluate prints.jsonl --pairs labels.tsv -k 17").refused(2, &words);
    bench.run("build other prints.jsonl -k 17").refused(2, &words);
    bench.run("plan --count 1000 -k 17").refused(2, &words);
    bench.run("plan --count 1000 --bits 32 -k 9").refused(2, &["distance 9", "8", "32-bit"]);
    assert!(!bench.path("other").exists());
}

#[test]
fn plans_that_are_none_are_refused() {
    let bench = stored();
    for plan in ["5", "4x4", "x", "0x0"] {
        bench
            .run(&format!("build other prints.jsonl --plan {plan}"))
            .refused(2, &[plan, "hamdex plan"]);
        assert!(!bench.path("other").exists());
    }
}

#[test]
fn help_names_every_verb_and_each_has_an_example() {
    let bench = Bench::new();
    let help = bench.ok("--help").stdout;
    let (daily, upkeep) = help.split_once("Looking after an index:").unwrap();
    for verb in [
        "fingerprint",
        "build",
        "insert",
        "query",
        "remove",
        "pairs",
        "clusters",
        "dedup",
        "plan",
        "index explain",
        "index stats",
        "index check",
        "index merge",
        "index compact",
        "index repair",
        "index backup",
        "index restore",
        "export",
        "evaluate",
        "doctor",
        "completions",
        "man",
    ] {
        let group = if verb.starts_with("index ") { upkeep } else { daily };
        assert!(group.contains(&format!("\n  {verb} ")), "{verb}");
        let own = bench.ok(&format!("{verb} --help")).stdout;
        assert!(own.contains(&format!("Example:\n  hamdex {verb} ")), "{own}");
    }
}

#[test]
fn former_names_of_verbs_work_and_are_not_shown() {
    let bench = stored();
    let help = bench.ok("--help").stdout;
    for call in ["stats idx", "check idx", "explain idx --fingerprint 00000000000000fc --json"] {
        let (former, present) = (bench.run(call), bench.run(&format!("index {call}")));
        assert_eq!((former.status, present.status), (0, 0), "{}", present.stderr);
        let verb = call.split(' ').next().unwrap();
        assert!(!help.contains(&format!("\n  {verb} ")), "{help}");
        if verb != "explain" {
            assert_eq!(former.stdout, present.stdout);
        }
    }
    for call in ["fold idx", "index fold idx"] {
        assert!(bench.ok(call).stderr.contains("fold has a new name; use index merge"), "{call}");
    }
    assert!(!help.contains(" fold "), "{help}");
    assert_eq!(bench.ok("index merge idx").stderr, "");
    bench.ok("compact idx");
    bench.ok("backup idx backups");
    bench.ok("restore backups copy");
    bench.ok("repair idx repaired");
    bench.run("index").refused(2, &["Usage: hamdex index"]);
}

#[test]
fn former_names_of_options_work_with_a_warning() {
    let bench = stored();
    bench.file("seed", "00112233445566778899aabbccddeeff");
    for (former, present) in [
        ("dedup prints.jsonl -o - --keep longest", "--prefer longest"),
        ("dedup prints.jsonl -o - --keep=longest", "--prefer=longest"),
        ("dedup prints.jsonl -o - --verify-representative", "--linkage representative"),
        ("dedup prints.jsonl -o - --verify-chain", "--linkage chain"),
        ("query idx --fingerprint 00000000000000fc --seed-file seed", "--secret-file seed"),
    ] {
        let (call, option) = former.split_at(former.rfind(" --").unwrap());
        let option = option.trim().split([' ', '=']).next().unwrap();
        let (former, present) = (bench.ok(former), bench.ok(&format!("{call} {present}")));
        assert_eq!(former.stdout, present.stdout, "{option}");
        let warning = format!("warning: {option} has a new name; use --");
        assert!(former.stderr.contains(&warning), "{}", former.stderr);
        assert!(!present.stderr.contains("new name"), "{}", present.stderr);
    }
    let kept = bench.ok("backup idx backups --keep 2");
    assert!(!kept.stderr.contains("warning"), "{}", kept.stderr);
    bench
        .run("clusters prints.jsonl --linkage chain --verify-representative")
        .refused(2, &["--linkage", "--verify-representative"]);
}

#[test]
fn plan_shows_the_table_of_the_literature() {
    let bench = Bench::new();
    let rows = bench.ok("plan --count 17179869184 -k 3 --json").json();
    let wanted = [
        ("20", 20, 31, 33, 8),
        ("16", 16, 28, 28, 64),
        ("10", 10, 25, 26, 512),
        ("4", 4, 16, 16, 262_144),
    ];
    for (plan, tables, min, max, candidates) in wanted {
        let row = rows.iter().find(|row| row["plan"] == plan).unwrap();
        assert_eq!(row["tables"], tables);
        assert_eq!((&row["prefix_min"], &row["prefix_max"]), (&min.into(), &max.into()));
        assert_eq!(row["candidates_per_probe"], candidates);
    }
    assert!(bench.ok("plan --count 17179869184 -k 3").stdout.contains(" 262,144 "));
}

/// Rows with the number 7, the text of the same digit, and another text.
const SEVENS: &str = "\
{\"id\":7,\"fingerprint\":\"0000000000000001\"}
{\"id\":\"7\",\"fingerprint\":\"0000000000000002\"}
{\"id\":\"a\\tb\",\"fingerprint\":\"0000000000000004\"}
";

fn sevens() -> Bench {
    let bench = Bench::new();
    bench.file("rows.jsonl", SEVENS);
    bench.ok("build idx rows.jsonl");
    bench
}

#[test]
fn a_line_of_json_names_exactly_one_id_to_remove() {
    let bench = sevens();
    bench.file("numbers.jsonl", "{\"id\":7}\n{\"id\":7}\n{\"id\":8}\n{\"id\":null}\n");
    let removed = bench.ok("remove idx --ids numbers.jsonl --json").json();
    assert_eq!(removed, [json!({ "removed": 1, "not_found": 3 })]);
    bench.file("texts.jsonl", "{\"kept_id\":\"x\",\"id\":\"a\\tb\",\"distance\":3}\n");
    assert_eq!(bench.ok("remove idx --ids texts.jsonl --json").json()[0]["removed"], 1);
    assert_eq!(json_lines(&bench.export("idx"))[0]["id"], "7");
}

#[test]
fn the_duplicates_of_a_deduplication_can_be_removed() {
    let bench = Bench::new();
    let row = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"sunny days are here again\"}}\n");
    bench.file("rows.jsonl", row("a") + &row("b") + &row("c"));
    bench.ok("build idx rows.jsonl --pipeline code -k 3");
    bench.ok("dedup rows.jsonl -o out --pipeline code -k 3");
    let removed = bench.ok("remove idx --ids out/duplicates.jsonl --json").json();
    assert_eq!(removed, [json!({ "removed": 2, "not_found": 0 })]);
    assert_eq!(json_lines(&bench.export("idx"))[0]["id"], "a");
}

#[test]
fn a_repeated_line_of_digits_does_not_fall_to_the_number() {
    let bench = sevens();
    let removed = bench.feed("remove idx --ids - --json", b"7\n7\n").json();
    assert_eq!(removed, [json!({ "removed": 1, "not_found": 1 })]);
    assert_eq!(json_lines(&bench.export("idx"))[0]["id"], 7);
    // A number that is removed by its digits is counted as one.
    let removed = bench.ok("remove idx --id 7 --json").json();
    assert_eq!(removed, [json!({ "removed": 1, "by_number": 1, "not_found": 0 })]);
}

#[test]
fn fingerprints_may_begin_with_0x() {
    let bench = stored();
    let plain = bench.ok("query idx --fingerprint 00000000000000fc --json").json();
    let prefixed = bench.ok("query idx --fingerprint 0x00000000000000fc --json").json();
    let found =
        |rows: &[serde_json::Value]| rows.iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    assert_eq!(found(&plain), found(&prefixed));
    assert_eq!(plain.len(), 2);
    bench.ok("explain idx --fingerprint 0X00000000000000fc");
}

#[test]
fn a_search_for_a_text_can_be_explained() {
    let bench = Bench::new();
    bench.file("rows.jsonl", "{\"id\":\"t\",\"text\":\"sunny days\"}\n");
    bench.ok("build idx rows.jsonl --pipeline code -k 3");
    let mut command = bench.command("explain idx --json --text");
    let output = command.arg("sunny days").output().unwrap();
    let account = &json_lines(&String::from_utf8(output.stdout).unwrap())[0];
    assert_eq!(account["matches"][0]["id"], "t", "{account}");
    bench.run("explain idx").refused(2, &["--fingerprint"]);
    bench.run("explain idx --fingerprint 00 --text x").refused(2, &["--text"]);
    bench.run("explain idx --text ...").refused(2, &["no features"]);
    stored().run("explain idx --text x").refused(1, &["fingerprints only"]);
}

#[test]
fn counts_may_have_units_exponents_and_underscores() {
    let bench = Bench::new();
    let plain = bench.ok("plan --count 1000000 --json").stdout;
    for count in ["1e6", "1M", "1_000_000"] {
        assert_eq!(bench.ok(&format!("plan --count {count} --json")).stdout, plain, "{count}");
    }
    bench.run("plan --count 1MB").refused(2, &["1MB", "1e6"]);
}

#[test]
fn backups_say_what_was_verified_and_can_be_listed_alone() {
    let bench = stored();
    let line = |call: &str| {
        let table = bench.ok(call).stdout;
        table.lines().find_map(|line| line.strip_prefix("verified")).unwrap().trim().to_owned()
    };
    assert_eq!(line("backup idx backups"), "no");
    assert!(line("backup idx backups --verify").contains(" files, "));
    assert!(line("restore backups --verify").contains(" files, "));
    let both = bench.ok("backup idx backups --list --json").stdout;
    assert_eq!(bench.ok("backup backups --list --json").stdout, both);
    assert_eq!(both.lines().count(), 2);
    bench.run("backup backups").refused(2, &["<DIR>"]);
}
