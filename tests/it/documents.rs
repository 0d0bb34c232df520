//! The documents of the project: plain words, working links, existing tests.
//!
//! And the examples, run as `cargo run --example` does; each asserts its result. They are modules
//! of this binary, so that the storage engine is not linked again for each.

#[path = "../examples/crawler.rs"]
mod crawler;
#[cfg(feature = "rocksdb-interop")]
#[path = "../examples/crawler_store.rs"]
mod crawler_store;
#[path = "../examples/images.rs"]
mod images;
#[path = "../examples/training_data.rs"]
mod training_data;
#[path = "../examples/two_corpora.rs"]
mod two_corpora;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::architecture::root;

/// Phrases that the documents must not use, and what to write instead.
///
/// A phrase matches in any letter case and across line breaks, but not in code. The changelog is
/// not searched, because it quotes earlier versions.
const WORDS: &[(&str, &str)] = &[
    ("tells", "returns, reports, prints"),
    ("tell of", "report"),
    ("is told", "is reported"),
    ("are told", "are reported"),
    ("was told", "was reported, received"),
    ("told by", "recognised by, read from"),
    ("so many", "`n`, up to `n`"),
    ("so far as", "if"),
    ("as many as", "up to `n`"),
    ("is gone", "is missing, was removed"),
    ("gone around", "skipped"),
    ("goes around", "skips"),
    ("gone round", "skipped"),
    ("goes round", "loops"),
    ("passes over", "skips"),
    ("passed over", "skipped"),
    ("let through", "accepted"),
    ("lets through", "accepts"),
    ("mend", "fix, repair"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("the own one", "its, the index's"),
    ("of its own", "its, separate"),
    ("of their own", "their, separate"),
    ("caller's own", "the caller's"),
    ("user's own", "the user's"),
    ("who comes", "users of"),
    ("who has", "a caller with"),
    ("who knows", "anybody that knows"),
    ("those who", "users that"),
    ("whoever", "anyone that"),
    ("whatever", "any, every, all"),
    ("whichever", "any"),
    ("however many", "any number of"),
    ("for ever", "indefinitely, without end"),
    ("in vain", "without effect"),
    ("all the same", "still"),
    ("beforehand", "in advance"),
    ("is ended", "is stopped, is closed"),
    ("ends it", "stops it, closes it, frees it"),
    ("ends themselves", "frees itself"),
    ("counts as", "is treated as"),
    ("goes by", "is identified by"),
    ("go by", "are identified by"),
    ("taken for", "treated as"),
    ("comes to", "reaches"),
    ("comes of it", "results"),
    ("came of it", "resulted"),
    ("comes out", "results"),
    ("what comes", "what is returned"),
    ("come in by", "enter through"),
    ("comes in by", "enters through"),
    ("comes from", "is from, is read from"),
    ("comes once", "is returned once"),
    ("stands beside", "is next to"),
    ("stands in", "is in"),
    ("stand in", "are in"),
    ("stand behind", "are behind"),
    ("stands behind", "is behind"),
    ("lies in", "is in, is stored in"),
    ("lie in", "are in, are stored in"),
    ("lies within", "is within"),
    ("lies near", "is near"),
    ("brings", "has, contains"),
    ("bring a", "have"),
    ("bring texts", "have texts"),
    ("at hand", "available"),
    ("can be had", "can be installed, are available"),
    ("is had", "is available"),
    ("none but", "only"),
    ("none beyond", "no others"),
    ("none is", "no ... is"),
    ("wishes", "overrides"),
    ("settled", "resolved, chosen"),
    ("settles", "resolves, chooses"),
    ("settling", "resolving, choosing"),
    ("heavy", "skewed"),
    ("crowded", "skewed, hot"),
    ("crowds", "dense groups"),
    ("crowd", "dense group"),
    ("singles", "delta entries"),
    ("touched", "dirty, changed"),
    ("aim", "target"),
    ("aiming", "targeting"),
    ("kept out", "rejected as a duplicate"),
    ("keeps out", "rejects"),
    ("do not do", "do not work"),
    ("does not do", "is not enough"),
    ("would not do", "would not be enough"),
    ("nobody says", "without an error"),
    ("says why", "reports the reason"),
    ("held against", "compared with"),
    ("holds against", "compares with"),
    ("is no leave", "does not allow"),
    ("by looking", "from a sample"),
    ("a look at", "a sample of"),
    ("works off", "applies"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("made anew", "rebuilt"),
    ("anew", "again"),
    ("as it comes", "as distributed"),
    ("as they come", "in any order"),
    ("same door", "same code"),
    ("writes down", "records"),
    ("written down", "recorded"),
    ("but for", "except for"),
    ("all but", "nearly, except"),
    ("nothing but", "only"),
    ("now and then", "sometimes"),
    ("in turn", "alternately, one after the other"),
    ("is content", "accepts"),
    ("gets to", "can"),
    ("told apart", "distinguished"),
    ("hardly ever", "rarely"),
    ("thus", "so"),
    ("upon", "on"),
    ("of DESIGN", "a link to the document beside the code"),
    ("none of its own", "no separate"),
    ("tells whether", "returns true if"),
    ("the same again", "again"),
    ("wants behind", "needs after"),
    ("is asked for", "is requested"),
    ("in the place of", "instead of"),
    ("goes up to", "reaches up to"),
    ("no matter", "with any"),
    ("lest", "so that ... not"),
    ("such as it is", "unchanged"),
];

/// Former words of public names, each with the term of the glossary.
const NAMES: &[(&str, &str)] = &[
    ("fold", "merge"),
    ("folded", "merged"),
    ("folding", "merging"),
    ("unfolded", "unmerged"),
    ("single", "delta entry"),
    ("nearness", "duplicate rule"),
    ("settle", "resolve"),
];

/// Returns every Markdown file of the project with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let made = ["target", "dist", "bench-report", "hamdex-demo"].contains(&name.as_str());
            let hidden = name.starts_with('.') && name != ".github";
            if path.is_dir() && !made && !hidden {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(files.len() > 15, "found only {} documents", files.len());
    files
}

/// Returns the lines of a text without fenced blocks, which become empty lines.
fn prose(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let outside = |line| {
        let fence = str::starts_with(line, "```");
        fenced ^= fence;
        if fenced || fence { "" } else { line }
    };
    text.lines().map(outside).collect()
}

/// Returns the words of a text in lower case, each with its line number.
///
/// Code in backticks, the targets of links and punctuation become one mark each, so that no phrase
/// matches across them.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (at, line) in prose(text).into_iter().enumerate() {
        let inside =
            |(part, text): (usize, &str)| if part % 2 == 0 { text.to_owned() } else { "|".into() };
        let line: Vec<String> = line.split('`').enumerate().map(inside).collect();
        let line = line.join(" ").to_lowercase();
        let mut parts = line.split("](");
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            shown.push_str(" | ");
            shown.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
        }
        let mut word = String::new();
        for c in shown.chars().chain([' ']) {
            if c.is_alphanumeric() || c == '\'' || c == '-' {
                word.push(c);
                continue;
            }
            if !word.is_empty() {
                words.push((at + 1, std::mem::take(&mut word)));
            }
            if !c.is_whitespace() && !"*_[]".contains(c) {
                words.push((at + 1, "|".into()));
            }
        }
        if line.is_empty() {
            words.push((at + 1, "|".into()));
        }
    }
    words
}

/// Returns the lines of a text that contain a phrase.
fn lines_with(words: &[(usize, String)], phrase: &str) -> Vec<usize> {
    let phrase: Vec<String> = phrase.split(' ').map(str::to_lowercase).collect();
    let found = words
        .windows(phrase.len())
        .filter(|window| window.iter().zip(&phrase).all(|((_, word), wanted)| word == wanted));
    found.map(|window| window[0].0).collect()
}

#[test]
fn documents_are_written_in_plain_words() {
    assert!(WORDS.len() >= 60);
    let mut found = Vec::new();
    for (path, text) in documents() {
        for line in prose(&text) {
            // An odd backtick would turn code into text and text into code.
            assert_eq!(line.matches('`').count() % 2, 0, "{}: half of {line}", path.display());
        }
        let words = words(&text);
        for (phrase, instead) in WORDS {
            for line in lines_with(&words, phrase) {
                found.push(format!("{}:{line}: {phrase}; write: {instead}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Returns the help and the errors of the command line, and the doc comments of its sources.
///
/// Other lines of a source become empty, so that line numbers stay the same.
fn texts_of_the_command() -> Vec<(PathBuf, String)> {
    let root = root();
    let snapshots = ["help.txt", "errors.txt"].map(|name| {
        let path = PathBuf::from("tools/hamdex/tests/cli").join(name);
        let text = fs::read_to_string(root.join(&path)).unwrap();
        (path, text)
    });
    let comment = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        text.unwrap_or_default().trim_start().to_owned() + "\n"
    };
    let sources = crate::architecture::sources(&["tools/io/src", "tools/hamdex/src"]).into_iter();
    let comments = sources.map(|(path, text)| {
        let path = path.strip_prefix(&root).unwrap().to_owned();
        (path, text.lines().map(comment).collect())
    });
    snapshots.into_iter().chain(comments).collect()
}

#[test]
fn the_command_line_is_written_and_documented_in_plain_words() {
    let mut found = Vec::new();
    for (path, text) in texts_of_the_command() {
        let words = words(&text);
        for (phrase, instead) in WORDS {
            for line in lines_with(&words, phrase) {
                found.push(format!("{}:{line}: {phrase}; write: {instead}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn public_names_follow_the_glossary() {
    let api = fs::read_to_string(root().join("src/API.txt")).unwrap();
    let mut found = Vec::new();
    for line in api.lines().filter(|line| !line.starts_with('#')) {
        // The case of letters is folded there, and a name of RocksDB's.
        let line = line.replace("LowerFold", "").replace("SingleThreaded", "");
        let mut spaced = String::new();
        for c in line.chars() {
            if c.is_uppercase() {
                spaced.push(' ');
            }
            spaced.push(if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
        }
        for (word, instead) in WORDS.iter().chain(NAMES) {
            if spaced.split(' ').any(|part| part == *word) {
                found.push(format!("{}: {word}; write: {instead}", line.trim()));
            }
        }
    }
    assert!(api.lines().count() > 1000 && found.is_empty(), "{found:#?}");
}

#[test]
fn phrases_are_found_over_lines_and_not_in_code() {
    let text = "It *tells*\nSo\nmany of `so many` [x](so many). So, many.\n```\nso many\n```\n";
    assert_eq!(lines_with(&words(text), "so many"), [2]);
    assert_eq!(lines_with(&words(text), "tells"), [1]);
}

/// Returns the anchors of a document, one for each heading.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = root();
    let mut seen = 0;
    for (path, text) in documents() {
        for part in prose(&text).join("\n").split("](").skip(1) {
            let target = part.split(')').next().unwrap();
            if target.contains("://") {
                continue;
            }
            seen += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let place = root.join(&path);
            let place = if file.is_empty() { place } else { place.parent().unwrap().join(file) };
            assert!(place.exists(), "{} links to {target}", path.display());
            if !anchor.is_empty() {
                let text = fs::read_to_string(&place).unwrap();
                assert!(anchors(&text).contains(anchor), "{} links to {target}", path.display());
            }
        }
    }
    assert!(seen > 80, "only {seen} links");
}

#[test]
fn the_entrance_is_short() {
    let lines = |name: &str| fs::read_to_string(root().join(name)).unwrap().lines().count();
    for (name, most) in [("README.md", 200), (".github/README.zh-CN.md", 200), ("DESIGN.md", 300)] {
        assert!(lines(name) <= most, "{name} has {} lines", lines(name));
    }
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let root = root();
    let report = fs::read_to_string(root.join("tools/torture/REPORT.md")).unwrap();
    let (_, rest) = report.split_once("## Invariants").unwrap();
    let (table, _) = rest.split_once("\n## ").unwrap();
    let mut functions = BTreeSet::new();
    for (_, text) in crate::architecture::sources(&["src", "tests", "tools"]) {
        let names = text.split("fn ").skip(1);
        functions.extend(names.map(|name| name.split('(').next().unwrap().to_owned()));
    }
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 50, "{} invariants", rows.len());
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [number, _, tests] = cells[..] else { panic!("{row}") };
        assert_eq!(number, format!("| {}", at + 1));
        let named: Vec<&str> = tests.split('`').filter(|name| name.contains("::")).collect();
        assert!(!named.is_empty(), "{row}");
        for name in named {
            let function = name.rsplit("::").next().unwrap();
            assert!(function == "tests" || functions.contains(function), "{name} is no test");
        }
    }
}

#[test]
fn every_example_runs() {
    let begun = Instant::now();
    crawler::main().unwrap();
    #[cfg(feature = "rocksdb-interop")]
    crawler_store::main().unwrap();
    images::main().unwrap();
    training_data::main().unwrap();
    two_corpora::main().unwrap();
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn every_example_is_declared_and_run_here() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let own = std::fs::read_to_string(root().join("tests/it/documents.rs")).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(root().join("tests/examples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        assert!(manifest.contains(&format!("path = \"tests/examples/{name}\"")), "{name}");
        assert!(own.contains(&format!("../examples/{name}")), "{name} is not run");
    }
}
