//! Calls: what people type is understood, or refused with status 2 and what is supported; and what
//! they expect of any program: completions, pages, colours, and a doctor.

use std::os::unix::fs::PermissionsExt;

use hamdex::{Index, IndexOptions};
use serde_json::json;

use crate::support::{Bench, Outcome, json_lines, outcome, stored};

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
        "index resident",
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

#[test]
fn completions_know_every_verb_and_its_options() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.ok(&format!("completions {shell}")).stdout;
        for word in ["dedup", "doctor", "warc-id", "linkage"] {
            assert!(script.contains(word), "{word} in {shell}");
        }
    }
    bench.run("completions tcsh").refused(2, &["tcsh", "bash"]);
}

#[test]
fn there_is_a_manual_page_for_every_verb() {
    let bench = Bench::new();
    let page = bench.ok("man").stdout;
    assert!(page.contains(".TH") && page.contains("doctor"), "{page}");
    bench.ok("man pages/man1");
    let help = bench.ok("--help").stdout;
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs: Vec<&str> = verbs
        .map_while(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|verb| !verb.is_empty() && *verb != "help")
        .collect();
    assert!(verbs.len() > 14, "{verbs:?}");
    for verb in verbs {
        let page = bench.read(&format!("pages/man1/hamdex-{verb}.1"));
        assert!(page.contains("SYNOPSIS") && page.contains("Example:"), "{verb}: {page}");
    }
    let verbs = [
        "stats", "check", "repair", "merge", "compact", "resident", "backup", "restore", "explain",
    ];
    for verb in verbs {
        let page = bench.read(&format!("pages/man1/hamdex-index-{verb}.1"));
        assert!(page.contains("SYNOPSIS") && page.contains("Example:"), "{verb}: {page}");
        assert!(!bench.path(&format!("pages/man1/hamdex-{verb}.1")).exists(), "{verb}");
    }
    assert!(bench.path("pages/man1/hamdex.1").exists());
}

#[test]
fn short_help_is_short_and_long_help_ends_with_an_example() {
    let bench = Bench::new();
    for verb in ["dedup", "build", "query", "backup"] {
        let (short, long) =
            (bench.ok(&format!("{verb} -h")).stdout, bench.ok(&format!("{verb} --help")).stdout);
        assert!(!short.contains("Example:"), "{short}");
        assert!(short.lines().count() < long.lines().count(), "{verb}");
        let last = long.trim_end().lines().last().unwrap();
        assert!(last.starts_with("  hamdex "), "{long}");
    }
}

/// Runs the program with these variables and no others that choose colours.
fn with(bench: &Bench, args: &str, variables: &[(&str, &str)]) -> Outcome {
    let mut command = bench.command(args);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    outcome(command.output().unwrap())
}

#[test]
fn colours_come_and_go_as_the_variables_say() {
    let bench = Bench::new();
    for args in ["query nothing --text x", "doctor", "--help"] {
        let colours = |variables: &[(&str, &str)]| {
            let outcome = with(&bench, args, variables);
            format!("{}{}", outcome.stdout, outcome.stderr).contains('\u{1b}')
        };
        assert!(!colours(&[]), "{args}: no terminal, no colours");
        assert!(colours(&[("CLICOLOR_FORCE", "1")]), "{args}");
        assert!(!colours(&[("NO_COLOR", "1")]), "{args}");
        assert!(!colours(&[("CLICOLOR", "0")]), "{args}");
    }
}

#[test]
fn the_doctor_looks_at_the_machine_and_tells_remedies() {
    let bench = Bench::new();
    bench.file("scratch/.keep", "");
    let good = bench.ok("doctor --tmp scratch --memory 16M");
    for check in ["processor", "memory", "open files", "huge pages", "calibration", "tmp"] {
        assert!(good.stdout.contains(&format!("  {check}")), "{check}: {}", good.stdout);
    }
    let rows = bench.ok("doctor --tmp scratch --memory 16M --json").json();
    assert!(rows.len() >= 6, "{rows:?}");
    for row in &rows {
        assert_eq!(row["remedy"].is_string(), row["grade"] != "good", "{row}");
    }
    let bad = bench.run("doctor --tmp nowhere");
    assert_eq!(bad.status, 1, "{bad:?}");
    assert!(bad.stdout.contains("bad      tmp") && bad.stdout.contains("--tmp DIR"), "{bad:?}");
    assert!(bad.stderr.contains("checks failed: 1"), "{bad:?}");
    let greedy = bench.run("doctor --tmp scratch --memory 4000000G");
    assert_eq!(greedy.status, 1, "{greedy:?}");
    assert!(greedy.stdout.contains("lower --memory"), "{greedy:?}");
}

#[test]
fn the_doctor_looks_at_an_index() {
    let bench = stored();
    let grade = |args: &str, check: &str| {
        let rows = bench.run(&format!("doctor --tmp . --memory 16M --json {args}")).json();
        let found = rows.iter().find(|row| row["check"] == check);
        found.map_or_else(|| format!("no {check}"), |row| row["grade"].as_str().unwrap().to_owned())
    };
    for check in ["index", "seal", "lock"] {
        assert_eq!(grade("idx", check), "good", "{check}");
    }
    assert_eq!(grade("idx", "texts"), "warning", "it was made from fingerprints");
    assert_eq!(grade("nothing", "index"), "bad");
    let index = Index::<u64>::open(bench.path("idx")).unwrap();
    assert_eq!(grade("idx", "lock"), "warning");
    drop(index);
    assert_eq!(grade("idx", "lock"), "good");

    bench.file("seed", "0123456789abcdef".repeat(2)).file("other", "fedcba9876543210".repeat(2));
    bench.file("texts.jsonl", "{\"id\":1,\"text\":\"sunny days are here again\"}\n");
    bench.ok("build secret texts.jsonl --secret-file seed --pipeline code");
    assert_eq!(grade("secret", "texts"), "warning");
    assert_eq!(grade("secret --secret-file seed", "texts"), "good");
    assert_eq!(grade("secret --secret-file other", "texts"), "bad");

    let manifest = std::fs::read_dir(bench.path("idx")).unwrap().map(|entry| entry.unwrap().path());
    let manifest = manifest.into_iter().find(|path| path.to_string_lossy().contains("MANIFEST"));
    std::fs::write(manifest.unwrap(), "").unwrap();
    let rows = bench.run("doctor --tmp . --memory 16M --json idx");
    assert_eq!(rows.status, 1, "{rows:?}");
    assert!(rows.json().iter().any(|row| row["grade"] == "bad"), "{rows:?}");
}

#[test]
fn a_secret_that_others_can_read_is_warned_of_once() {
    let bench = Bench::new();
    bench.file("rows.jsonl", "{\"id\":1,\"text\":\"sunny days are here again\"}\n");
    bench.file("seed", "0123456789abcdef".repeat(2));
    let call = "fingerprint rows.jsonl --pipeline code --secret-file seed";
    let mode = |mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(bench.path("seed"), mode).unwrap();
    };
    for open in [0o644, 0o640, 0o602] {
        mode(open);
        let told = bench.ok(call).stderr;
        assert_eq!(told.matches("chmod 600 seed").count(), 1, "{told}");
        assert!(bench.ok(&format!("{call} --quiet")).stderr.contains("chmod 600 seed"));
    }
    mode(0o600);
    assert!(!bench.ok(call).stderr.contains("chmod"));
}

#[test]
fn an_index_made_by_the_library_is_fit() {
    let bench = Bench::new();
    drop(Index::<u32>::create(bench.path("idx"), &IndexOptions::new()).unwrap());
    let outcome = bench.ok("doctor idx --tmp . --memory 16M");
    assert!(outcome.stdout.contains("32 bits"), "{outcome:?}");
}

/// jemalloc alone prints statistics at the end. It takes the variable of this name only as the
/// `malloc` of the whole program.
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[test]
fn the_whole_program_allocates_by_jemalloc_whose_threads_return_memory() {
    let bench = Bench::new();
    let output =
        bench.command("--version").env("MALLOC_CONF", "stats_print:true").output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("jemalloc statistics"), "{printed}");
    assert!(printed.contains("opt.background_thread: true (background_thread: true)"), "{printed}");
}
