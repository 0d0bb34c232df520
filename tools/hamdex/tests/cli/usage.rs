//! Wrong calls: status 2, and a message that names what is supported.

use crate::support::{Bench, stored};

#[test]
fn verbs_and_options_that_do_not_exist_are_usage_errors() {
    let bench = Bench::new();
    bench.run("").refused(2, &["Usage: hamdex"]);
    bench.run("balance idx copy").refused(2, &["balance", "verbs: fingerprint, build, insert"]);
    bench.run("mirror copy idx").refused(2, &["mirror", "restore, export, evaluate"]);
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
    bench.run("dedup a.jsonl -o out --keep last").refused(2, &["last", "newest:FIELD"]);
    bench.run("fingerprint a.jsonl --bits 48").refused(2, &["48", "32, 64 and 128"]);
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
        "explain",
        "stats",
        "check",
        "fold",
        "compact",
        "repair",
        "backup",
        "restore",
        "export",
        "evaluate",
        "doctor",
        "completions",
        "man",
    ] {
        assert!(help.contains(verb), "{verb}");
        let own = bench.ok(&format!("{verb} --help")).stdout;
        assert!(own.contains(&format!("Example:\n  hamdex {verb} ")), "{own}");
    }
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
