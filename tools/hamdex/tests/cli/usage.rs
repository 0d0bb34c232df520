//! Wrong calls: status 2, and a message that names what is supported.

use crate::support::{Bench, stored};

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
        "index fold",
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
    bench.ok("fold idx");
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
