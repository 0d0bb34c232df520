//! Rewrites the generated tables of FIGURES.md, between the comments that name them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::document::{Cell, Table, or_dash, plain, size};
use super::{contender, render, tables};
use crate::row::Row;

/// The names of the tables and their columns.
const TABLES: [(&str, &[&str]); 2] = [
    ("peers", &["engine", "build", "bytes a fingerprint", "median", "p99"]),
    ("shapes", &["engine", "work", "random", "text", "balanced"]),
];

/// Minimum size of a table; fewer fingerprints fit in the caches.
const LARGE: u64 = 10_000_000;

/// Options of the subcommand.
#[derive(clap::Args, Debug)]
pub(crate) struct TablesArgs {
    /// Directory of `peers/report.json` and of `random-1/report.json`, `text-1/report.json` ...
    directory: PathBuf,
    /// Files with the tables
    #[arg(default_values = ["tools/bench/FIGURES.md"])]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &TablesArgs) -> Result<(), Box<dyn Error>> {
    let made = [peers(&args.directory)?, shapes(&args.directory)?];
    for file in &args.files {
        let mut text = fs::read_to_string(file)?;
        for ((name, _), table) in TABLES.iter().zip(&made) {
            if !table.rows.is_empty() && text.contains(&opening(name)) {
                text = replaced(&text, name, &render::table(table)?)?;
                eprintln!("{}: wrote the table {name}", file.display());
            }
        }
        fs::write(file, text)?;
    }
    Ok(())
}

fn opening(name: &str) -> String {
    format!("<!-- hamdex-bench tables: {name} -->\n")
}

const CLOSING: &str = "<!-- end -->\n";

/// Splits a text into the parts before, between and after the comments of a table.
fn between<'t>(text: &'t str, name: &str) -> Result<(&'t str, &'t str, &'t str), String> {
    let opening = opening(name);
    let parts: Vec<&str> = text.split(&opening).collect();
    let [head, rest] = parts.as_slice() else {
        return Err(format!("expected one comment of the table {name}, found {}", parts.len() - 1));
    };
    let Some((table, tail)) = rest.split_once(CLOSING) else {
        return Err(format!("the table {name} has no end"));
    };
    if table.contains("<!--") {
        return Err(format!("the table {name} has no end before the next comment"));
    }
    Ok((head, table, tail))
}

fn replaced(text: &str, name: &str, table: &str) -> Result<String, String> {
    let (head, _, tail) = between(text, name)?;
    Ok(format!("{head}{}{table}{CLOSING}{tail}", opening(name)))
}

/// Reads the rows of a report; returns none if the report does not exist.
fn rows(report: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    if !report.exists() {
        return Ok(Vec::new());
    }
    let report: Value = serde_json::from_str(&fs::read_to_string(report)?)?;
    let rows = report.get("rows").and_then(Value::as_array).into_iter().flatten();
    Ok(rows.filter_map(|row| Row::parse(&row.to_string())).collect())
}

fn head(wanted: &str) -> Table {
    let (_, head) = TABLES.iter().find(|(name, _)| *name == wanted).expect("it is one of them");
    Table::new(head)
}

/// Returns the table of searches near stored fingerprints at k = 3, by all complete engines.
fn peers(directory: &Path) -> Result<Table, Box<dyn Error>> {
    let rows = rows(&directory.join("peers/report.json"))?;
    let mut table = head("peers");
    let complete = |row: &&Row| contender::all().any(|c| c.complete && c.name == row.engine);
    let large = |row: &&Row| row.work == "search" && row.kind == "near" && row.k == Some(3);
    let searches: Vec<&Row> =
        rows.iter().filter(|row| row.n >= LARGE).filter(large).filter(complete).collect();
    let mut sizes: Vec<u64> = searches.iter().map(|row| row.n).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for n in sizes {
        let mut row: Vec<Cell> = vec![format!("**{}**", size(n)).into()];
        row.resize(table.head.len(), "".into());
        table.rows.push(row);
        let mut here: Vec<&&Row> = searches.iter().filter(|row| row.n == n).collect();
        here.sort_by(|a, b| f64::total_cmp(&micros(a), &micros(b)));
        for search in here {
            let build = rows
                .iter()
                .find(|row| row.work == "build" && row.n == n && row.engine == search.engine);
            let figure = |name: &str| build.and_then(|row| row.median(name));
            let each = |name| figure(name).map(|bytes| bytes / n as f64);
            let bytes = if search.engine.ends_with("disk") {
                with_unit(each("disk_bytes"), "on disk")
            } else {
                or_dash(each("memory_bytes"))
            };
            table.rows.push(vec![
                search.engine.clone().into(),
                with_unit(figure("seconds"), "s").into(),
                bytes.into(),
                with_unit(search.median("median_us"), "us").into(),
                with_unit(search.median("p99_us"), "us").into(),
            ]);
        }
    }
    Ok(table)
}

fn micros(search: &Row) -> f64 {
    search.median("median_us").unwrap_or(f64::INFINITY)
}

/// Formats a figure with its unit, or a dash if it is missing.
fn with_unit(figure: Option<f64>, unit: &str) -> String {
    figure.map_or_else(|| "–".into(), |figure| format!("{} {unit}", plain(figure)))
}

/// Returns the table of the smallest medians over all runs of each shape.
fn shapes(directory: &Path) -> Result<Table, Box<dyn Error>> {
    let mut table = head("shapes");
    let mut found: BTreeMap<(usize, u64, bool), Vec<Option<f64>>> = BTreeMap::new();
    let (shapes, mut engines) = (["random", "text", "balanced"], Vec::new());
    for (at, shape) in shapes.iter().enumerate() {
        for run in 1..=2 {
            let rows = rows(&directory.join(format!("{shape}-{run}/report.json")))?;
            for name in tables::engines(rows.iter()) {
                if !engines.iter().any(|known| known == name) {
                    engines.push(name.to_owned());
                }
            }
            for row in rows.iter().filter(|row| row.kind == "near" && row.threads == 1) {
                let batch = row.work == "batch";
                let micros = if batch {
                    row.median("per_second").map(|rate| 1e6 / rate)
                } else {
                    row.median("median_us")
                };
                let engine = engines.iter().position(|name| *name == row.engine);
                let (Some(micros), Some(k), Some(engine)) = (micros, row.k, engine) else {
                    continue;
                };
                let best = found.entry((engine, k, batch)).or_insert_with(|| vec![None; 3]);
                if let Some(best) = best.get_mut(at) {
                    *best = Some(best.map_or(micros, |known| known.min(micros)));
                }
            }
        }
    }
    for ((engine, k, batch), best) in found {
        let work = if batch { format!("a batch, k = {k}") } else { format!("k = {k}") };
        let engine = engines.get(engine).cloned().unwrap_or_default();
        let figures = best.iter().map(|&best| Cell::from(with_unit(best, "us")));
        table.rows.push([engine.into(), work.into()].into_iter().chain(figures).collect());
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the variable at run time, because clones may share a target directory.
    fn figures() -> String {
        let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
        fs::read_to_string(package.join("../../tools/bench/FIGURES.md")).unwrap()
    }

    #[test]
    fn every_table_has_its_comments_and_its_columns_in_the_figures() {
        let figures = figures();
        for (name, head) in TABLES {
            let (_, table, _) = between(&figures, name).unwrap();
            assert_eq!(table.lines().next(), Some(&*format!("| {} |", head.join(" | "))), "{name}");
            assert!(table.lines().count() > 4, "{name}");
            assert!(table.lines().all(|line| line.starts_with('|')), "{name}");
        }
    }

    #[test]
    fn a_report_rewrites_its_table_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("peers");
        fs::create_dir(&place).unwrap();
        let mut build = Row::new("hamdex, disk", "build", LARGE);
        build.add("seconds", 4.25);
        build.add("disk_bytes", 5e8);
        let mut search = Row::new("hamdex, disk", "search", LARGE);
        (search.k, search.kind) = (Some(3), "near".into());
        search.add("median_us", 17.7);
        let report = format!("{{\"rows\": [{}, {}]}}", build.to_json(), search.to_json());
        fs::write(place.join("report.json"), report).unwrap();
        let file = directory.path().join("FIGURES.md");
        fs::write(&file, figures()).unwrap();
        run(&TablesArgs { directory: directory.path().into(), files: vec![file.clone()] }).unwrap();
        let now = fs::read_to_string(&file).unwrap();
        let (head, table, tail) = between(&now, "peers").unwrap();
        assert_eq!(
            table.lines().skip(2).collect::<Vec<_>>(),
            [
                "| **10 million** |  |  |  |  |",
                "| hamdex, disk | 4.25 s | 50.0 on disk | 17.7 us | – |"
            ]
        );
        let then = figures();
        let (head_then, _, tail_then) = between(&then, "peers").unwrap();
        assert_eq!((head, tail), (head_then, tail_then));
    }

    #[test]
    fn missing_and_repeated_comments_are_refused() {
        let whole = format!("{}| a |\n{CLOSING}", opening("peers"));
        assert!(replaced(&whole, "peers", "").is_ok());
        for broken in ["", &opening("peers"), &whole.repeat(2)] {
            assert!(replaced(broken, "peers", "").is_err(), "{broken}");
        }
    }
}
