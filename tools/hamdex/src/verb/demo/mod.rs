//! `demo`: texts in many languages become a first result, with files to open.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use serde::Deserialize;

use super::dedup::difference::{self, Part, Piece};
use crate::cli::Cli;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::session::Session;

/// Written for this purpose, under the licence of the program.
const TEXTS: &str = include_str!("corpus.jsonl");

/// Languages of which a pair is shown: three scripts, one without spaces, one from right to left.
const SHOWN: [&str; 3] = ["en", "zh", "ar"];

/// Show what dedup does, with texts in eleven languages
///
/// Writes 36 short texts to a directory, runs 'hamdex dedup' over them, and prints some of the
/// results. The texts, the results and a page for the browser stay in the directory. The texts were
/// written for hamdex and have its licence.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex demo\n  hamdex demo -o /tmp/first-look")]
pub(crate) struct DemoArgs {
    /// Directory for texts and results
    #[arg(short, long, value_name = "DIR", default_value = "hamdex-demo")]
    output: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Text {
    id: String,
    text: String,
}

/// A line of duplicates.jsonl.
#[derive(Debug, Deserialize)]
struct Duplicate {
    id: String,
    kept_id: String,
    distance: u32,
    similarity: f64,
}

impl DemoArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let texts = self.output.join("texts.jsonl");
        let results = self.output.join("results");
        let page = self.output.join("report.html");
        std::fs::create_dir_all(&self.output).map_err(|e| Failure::io(&self.output, e))?;
        let mut file = Output::file(&texts, session.overwrite)?;
        file.with(|out| out.write_all(TEXTS.as_bytes()))?;
        file.finish()?;

        let mut out = Output::stdout(&session.console);
        if !session.json {
            let (texts, results, page) = (texts.display(), results.display(), page.display());
            out.with(|out| {
                writeln!(out, "$ hamdex dedup {texts} -o {results} --report {page}\n")?;
                out.flush()
            })?;
        }
        let arguments = [
            "hamdex".as_ref(),
            "dedup".as_ref(),
            texts.as_os_str(),
            "-o".as_ref(),
            results.as_os_str(),
            "--report".as_ref(),
            page.as_os_str(),
        ];
        Cli::try_parse_from(arguments)
            .map_err(|error| Failure::Usage(error.to_string()))?
            .verb
            .run(session)?;
        if !session.json {
            let found = duplicates(&results.join("duplicates.jsonl"))?;
            out.with(|out| show(out, &found))?;
            out.with(|out| {
                writeln!(out, "\nPage with all groups: {}", page.display())?;
                writeln!(
                    out,
                    "With your documents: hamdex dedup FOLDER -o clean --report \
                               report.html"
                )
            })?;
        }
        out.finish()
    }
}

fn duplicates(path: &Path) -> Result<Vec<Duplicate>> {
    let lines = std::fs::read_to_string(path).map_err(|e| Failure::io(path, e))?;
    let line = |line| serde_json::from_str(line).map_err(|e| Failure::file(path, e.to_string()));
    lines.lines().map(line).collect()
}

/// Prints the first removed text of some languages with the kept one.
fn show(out: &mut dyn Write, found: &[Duplicate]) -> io::Result<()> {
    let texts = TEXTS.lines().filter_map(|line| serde_json::from_str(line).ok());
    let texts: BTreeMap<String, String> = texts.map(|Text { id, text }| (id, text)).collect();
    for language in SHOWN {
        let of_it = |id: &str| id.split('/').next() == Some(language);
        let Some(Duplicate { id, kept_id, distance, similarity }) =
            found.iter().find(|duplicate| of_it(&duplicate.id))
        else {
            continue;
        };
        let (Some(kept), Some(removed)) = (texts.get(kept_id), texts.get(id)) else { continue };
        let [ours, theirs] = beside(kept, removed);
        writeln!(out, "\nkept     {kept_id}\n         {ours}")?;
        writeln!(out, "removed  {id}: {distance} bits away, {:.0} % alike", 100.0 * similarity)?;
        writeln!(out, "         {theirs}")?;
    }
    Ok(())
}

/// Returns two texts with their differences in brackets; long common parts are cut.
fn beside(kept: &str, removed: &str) -> [String; 2] {
    let (mut ours, mut theirs) = (String::new(), String::new());
    for part in difference::parts(kept, removed) {
        match part {
            Part::Stretch { kept, removed } => {
                mark(&mut ours, &kept);
                mark(&mut theirs, &removed);
            }
            Part::Alike(_) | Part::More(_) => {
                ours.push('\u{2026}');
                theirs.push('\u{2026}');
            }
        }
    }
    [ours, theirs]
}

fn mark(line: &mut String, pieces: &[Piece]) {
    for Piece { text, own } in pieces {
        if *own {
            line.extend(["[", text, "]"]);
        } else {
            line.push_str(text);
        }
    }
}
