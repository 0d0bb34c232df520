//! The readmes: what they call exists, and both languages have the same outline.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::support::Bench;

const READMES: [&str; 4] = [
    "README.md",
    ".github/README.zh-CN.md",
    "tools/hamdex/README.md",
    "tools/hamdex/EQUIVALENTS.md",
];

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

/// Former spellings of options, which work and are in no completion script.
pub(crate) const FORMER: [&str; 3] = ["--seed-file", "--verify-representative", "--verify-chain"];

pub(crate) fn text(name: &str) -> String {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// Every word of a text that begins with two hyphens.
pub(crate) fn options(text: &str) -> BTreeSet<String> {
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
pub(crate) fn verbs(bench: &Bench) -> Vec<String> {
    let help = bench.ok("--help").stdout;
    let listed = |title: &'static str, prefix: &'static str| {
        let lines = help.lines().skip_while(move |line| *line != title).skip(1);
        lines.map_while(move |line| line.strip_prefix(prefix)?.split(' ').next())
    };
    let daily = listed("Commands:", "  ").filter(|verb| !["", "help", "index"].contains(verb));
    let upkeep = listed("Looking after an index:", "  index ");
    daily.map(ToOwned::to_owned).chain(upkeep.map(|verb| format!("index {verb}"))).collect()
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
        assert!(named.len() > 5, "{name}: {named:?}");
        for option in named {
            let others = OTHERS.iter().chain(&FORMER);
            let fine = known.contains(&option) || others.into_iter().any(|other| *other == option);
            assert!(fine, "{name} names {option}, which is no option");
        }
    }
}

#[test]
fn every_verb_is_in_the_reference_and_no_readme_calls_another() {
    let bench = Bench::new();
    let verbs = verbs(&bench);
    assert!(verbs.len() > 20, "{verbs:?}");
    let reference = text("tools/hamdex/README.md");
    for verb in &verbs {
        let called = [format!("`{verb}`"), format!("`{verb} ")];
        assert!(called.iter().any(|call| reference.contains(call)), "it does not name {verb}");
    }
    for name in READMES {
        for line in text(name).lines() {
            let Some(call) = line.strip_prefix("$ hamdex ") else { continue };
            let known =
                verbs.iter().any(|verb| format!("{call} ").starts_with(&format!("{verb} ")));
            assert!(known, "{name} calls {call}");
        }
    }
}

/// What two languages have to share: the levels of headings, the blocks of code, the rows of tables.
#[derive(PartialEq, Debug)]
enum Part {
    Heading(usize),
    Code(String),
    Table(usize),
}

fn outline(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            parts.push(Part::Code(format!("{line}\n{}", block.join("\n"))));
        } else if line.starts_with('#') {
            parts.push(Part::Heading(line.find(' ').unwrap()));
        } else if line.starts_with('|') {
            let mut rows = 1;
            while lines.next_if(|line| line.starts_with('|')).is_some() {
                rows += 1;
            }
            parts.push(Part::Table(rows));
        }
    }
    parts
}

#[test]
fn the_chinese_readme_has_the_outline_and_the_code_of_the_english_one() {
    let [english, chinese] = [READMES[0], READMES[1]].map(|name| outline(&text(name)));
    assert!(english.len() > 20, "{english:#?}");
    for (at, (english, chinese)) in english.iter().zip(&chinese).enumerate() {
        assert_eq!(chinese, english, "part {at}");
    }
    assert_eq!(chinese.len(), english.len());
}
