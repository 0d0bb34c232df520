//! The readmes: what they call is there, in either language.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::support::Bench;

const READMES: [&str; 3] = ["README.md", ".github/README.zh-CN.md", "tools/hamdex/EQUIVALENTS.md"];

/// Options of other programs that the readmes call, or of the tools that other programs replace.
const OTHERS: [&str; 9] = [
    "--presets",
    "--release",
    "--long",
    "--largest",
    "--corpus",
    "--python",
    "--example",
    "--features",
    "--million",
];

fn text(name: &str) -> String {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// Every word of a text that begins with two hyphens.
fn options(text: &str) -> BTreeSet<String> {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let found = text.match_indices("--").filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| !inside(c) && !c.is_ascii_alphanumeric())
    });
    let words = found.map(|(at, _)| {
        let word = &text[at..];
        word[..word.find(|c| !inside(c)).unwrap_or(word.len())].trim_end_matches('-').to_owned()
    });
    words.filter(|word| word.len() > 3).collect()
}

/// Verbs as the main help lists them.
fn verbs(bench: &Bench) -> Vec<String> {
    let help = bench.ok("--help").stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = lines.map_while(|line| line.strip_prefix("  ")?.split(' ').next());
    verbs.filter(|verb| !verb.is_empty() && *verb != "help").map(ToOwned::to_owned).collect()
}

#[test]
fn every_option_in_a_readme_is_one_of_the_program() {
    let bench = Bench::new();
    let known = options(&bench.ok("completions bash").stdout);
    assert!(known.len() > 60 && known.contains("--warc-id"), "{known:?}");
    for name in READMES {
        let text = text(name);
        // The left column of a table of equivalents is of other tools.
        let own = if name.ends_with("EQUIVALENTS.md") {
            text.lines().filter_map(|line| line.rsplit(" | ").next()).collect()
        } else {
            text
        };
        let named = options(&own);
        assert!(named.len() > 10, "{name}: {named:?}");
        for option in named {
            let fine = known.contains(&option) || OTHERS.contains(&option.as_str());
            assert!(fine, "{name} names {option}, which is no option");
        }
    }
}

#[test]
fn every_verb_is_in_every_readme_and_no_other() {
    let bench = Bench::new();
    let verbs = verbs(&bench);
    assert!(verbs.len() > 20, "{verbs:?}");
    for name in &READMES[..2] {
        let text = text(name);
        for verb in &verbs {
            let called = [format!("`{verb}`"), format!("`{verb} ")];
            assert!(called.iter().any(|call| text.contains(call)), "{name} does not name {verb}");
        }
        for line in text.lines() {
            let Some(call) = line.strip_prefix("$ hamdex ") else { continue };
            let verb = call.split(' ').next().unwrap();
            assert!(verbs.iter().any(|known| known == verb), "{name} calls {verb}");
        }
    }
}
