//! The readmes, the guide and the reference: what they call exists and prints what they show.
//!
//! Both languages of the readme have the same outline, and every verb has its page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::rows::crawls::{self, OK, gzip, response};
use crate::support::{Bench, outcome};

/// Pages of the guide with commands of a shell, and how many each has at least.
const PAGES: [(&str, usize); 6] = [
    ("crawl", 5),
    ("daily_feed", 8),
    ("images", 4),
    ("report", 5),
    ("settings", 7),
    ("training_set", 7),
];

/// Lines that differ from run to run, by their first word.
const VARYING: [&str; 4] = ["seconds", "rate", "bytes", "memory"];

/// Returns the commands of the text blocks of a page, each with the output that the page shows.
fn calls(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut calls: Vec<(&str, Vec<&str>)> = Vec::new();
    for block in page.split("```text\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), calls.last_mut()) {
                (Some(command), _) => calls.push((command, Vec::new())),
                (None, Some((_, shown))) => shown.push(line),
                (None, None) => panic!("{line} is the output of nothing"),
            }
        }
    }
    calls
}

/// Returns true if lines are those that a page shows; three dots stand for any lines.
fn agree(shown: &[&str], printed: &[&str]) -> bool {
    let Some((line, rest)) = shown.split_first() else { return printed.is_empty() };
    if *line == "..." {
        return (0..=printed.len()).any(|at| agree(rest, &printed[at..]));
    }
    let word = line.split(' ').next().unwrap();
    printed.split_first().is_some_and(|(first, others)| {
        let same = if VARYING.contains(&word) {
            first.split(' ').next() == Some(word)
        } else {
            first == line
        };
        same && agree(rest, others)
    })
}

/// Runs a line in a shell that finds the program, and returns what it prints to standard output.
fn printed(bench: &Bench, line: &str) -> String {
    let mut folders = vec![Path::new(env!("CARGO_BIN_EXE_hamdex")).parent().unwrap().to_owned()];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(bench.path("")).stdin(Stdio::null());
    command.env("PATH", std::env::join_paths(folders).unwrap()).env("LC_ALL", "C");
    // Estimates are those of a machine that was not measured.
    command.env("HAMDEX_COSTS", bench.path("costs"));
    let outcome = outcome(command.output().unwrap());
    assert_eq!(outcome.status, 0, "{line}: {}", outcome.stderr);
    outcome.stdout
}

/// Writes the crawl of a page: two captures of one page, a copy, and what is no page.
fn crawl(bench: &Bench) {
    const SNAILS: &str = "Researchers measured how fast snails climb wet glass. ";
    const BRIDGE: &str = "The old bridge over the river stays closed until spring. ";
    let page = |number, address, menu, text: &str| {
        response(address, number, OK, crawls::page(menu, text).as_bytes())
    };
    let old = [
        page(1, "https://news.example/snails", "Home News", SNAILS),
        page(2, "https://city.example/bridge", "City council", BRIDGE),
        response("https://city.example/old", 3, "HTTP/1.1 404 Not Found\r\n", b"gone"),
        response(
            "https://city.example/logo.png",
            4,
            "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n",
            b"\x89PNG",
        ),
    ];
    let new = [
        page(5, "https://mirror.example/7261", "Mirror of the web", SNAILS),
        page(6, "https://city.example/bridge", "City council", &format!("{BRIDGE}Or summer. ")),
    ];
    for (name, records) in [("45", &old[..]), ("46", &new[..])] {
        let packed: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
        bench.file(&format!("crawl/week-{name}.warc.gz"), packed);
    }
}

#[test]
fn commands_of_the_guide_print_what_its_pages_show() {
    for (name, least) in PAGES {
        let bench = Bench::new();
        if name == "crawl" {
            crawl(&bench);
        }
        let page = text(&format!("src/guide/{name}.md"));
        let calls = calls(&page);
        assert!(calls.len() >= least, "{name} has {} commands", calls.len());
        for (line, shown) in calls {
            // What a reader has is shown by `cat`.
            if let Some(file) = line.strip_prefix("cat ").filter(|file| !bench.path(file).exists())
            {
                bench.file(file, shown.join("\n") + "\n");
            }
            let printed = printed(&bench, line);
            let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
            assert!(agree(&shown, &lines), "{name}: $ {line}\n{printed}");
        }
    }
}

#[test]
fn dots_and_measured_lines_agree_with_any() {
    let printed = ["a  1", "b", "seconds  0.4", "c"];
    assert!(agree(&["a  1", "...", "seconds  0.1", "c"], &printed));
    assert!(agree(&["...", "c"], &printed) && agree(&["..."], &[]));
    assert!(!agree(&["a  2", "..."], &printed) && !agree(&["...", "b"], &printed));
    assert!(!agree(&[], &printed) && !agree(&["a  1", "seconds  0.1"], &printed[..2]));
}

#[test]
fn the_reference_has_a_page_for_every_verb_and_names_every_option() {
    let bench = Bench::new();
    bench.ok("man --html site");
    let mut named = BTreeSet::new();
    for verb in verbs(&bench) {
        let page = bench.read(&format!("site/{}.html", verb.replace(' ', "-")));
        assert!(page.contains(&format!("<h1>hamdex {verb}</h1>")), "{page}");
        assert!(
            page.contains("<dt id=\"threads\"><code>--threads &lt;N&gt;</code></dt>"),
            "{page}"
        );
        named.extend(options(&page));
    }
    named.extend(FORMER.map(ToOwned::to_owned));
    let known = options(&bench.ok("completions bash").stdout);
    let missing: Vec<_> = known.difference(&named).filter(|name| *name != "--version").collect();
    assert!(missing.is_empty(), "{missing:?}");
    let overview = bench.read("site/index.html");
    for page in std::fs::read_dir(bench.path("site")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        assert!(name == "index.html" || overview.contains(&format!("href=\"{name}\"")), "{name}");
    }
}

#[test]
fn every_page_of_the_guide_is_run_by_a_test() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let module = text("src/guide/mod.rs");
    let mut names = Vec::new();
    for file in std::fs::read_dir(root.join("src/guide")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".md") else { continue };
        names.push(name.to_owned());
        let page = text(&format!("src/guide/{name}.md"));
        assert!(page.lines().count() <= 120, "{name} is longer than a page");
        assert!(module.contains(&format!("include_str!(\"{name}.md\")")), "{name} is no module");
        let run = PAGES.iter().any(|(other, _)| *other == name)
            || page.contains("```rust\n")
            || page.contains("```c\n") && text("tools/c/tests/tours.rs").contains("guide/c.md")
            || ["test_docs.py", "spark/test_three_ways.py"].iter().any(|test| {
                text(&format!("tools/python/tests/{test}")).contains(&format!("\"{name}\""))
            });
        assert!(run, "no test runs {name}");
    }
    assert_eq!(names.len(), 12, "{names:?}");
}

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
