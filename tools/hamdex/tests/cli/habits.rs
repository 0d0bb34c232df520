//! What people expect of a program: completions, pages, colours, and a doctor.

use std::os::unix::fs::PermissionsExt;

use hamdex::{Index, IndexOptions};

use crate::support::{Bench, Outcome, outcome, stored};

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
    for verb in ["stats", "check", "repair", "merge", "compact", "backup", "restore", "explain"] {
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
