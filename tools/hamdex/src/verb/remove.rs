//! `remove`: ids become durable removals, counted as found and not found.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use hamdex::Durability;
use hamdex::any::AnyIndex;
use hamdex_io::host::Host;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::console::Console;
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::key::{self, Name};
use crate::session::Session;
use crate::size;

/// Removals in one durable batch.
const BATCH: usize = 1000;

/// Remove documents from an index, durably
///
/// Write an id as other verbs print it. Digits mean the text id with these digits or, if there is
/// none, the number: a numeric JSON id or the position of a raw fingerprint. Documents removed by
/// number are counted separately. A line of JSON in --ids is exact: {"id":"7"} is the text and
/// {"id":7} the number.
#[derive(Debug, Args)]
#[command(
    // The index first: an id takes every word behind it.
    override_usage = "hamdex remove <INDEX> <--id <KEY>...|--ids <FILE>> [OPTIONS]",
    after_long_help = "Example:\n  hamdex remove pages.idx --id page-17 page-18",
    group(ArgGroup::new("removed").args(["id", "ids"]).required(true).multiple(true))
)]
pub(crate) struct RemoveArgs {
    /// Directory of the index
    index: PathBuf,
    /// Ids to remove
    #[arg(long, value_name = "KEY", num_args = 1..)]
    id: Vec<String>,
    /// File of ids to remove, - for standard input: one id a line, or JSON Lines with a field "id"
    ///
    /// duplicates.jsonl of dedup is such a file.
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    removed: u64,
    /// Removed documents whose id is a number and was given as plain digits.
    #[serde(skip_serializing_if = "is_zero")]
    by_number: u64,
    not_found: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RemoveArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let lines = self.ids.as_deref().map(open).transpose()?;
        let mut removal = Removal {
            index: &AnyIndex::open(&self.index)?,
            waiting: BTreeSet::new(),
            taken: HashSet::new(),
            console: &session.console,
            summary: Summary::default(),
        };
        self.id.iter().try_for_each(|id| removal.push(key::spelled(id)))?;
        if let Some((name, lines)) = lines {
            for line in lines.lines() {
                let line = line.map_err(|e| Failure::io(&name, e))?;
                session.console.check()?;
                if !line.is_empty() {
                    removal.push(keys_of(line.strip_suffix('\r').unwrap_or(&line)))?;
                }
            }
        }
        removal.write()?;
        let summary = removal.summary;
        let mut table = Table::list();
        table.pair("removed", size::thousands(summary.removed));
        if summary.by_number > 0 {
            table.pair("  by number", size::thousands(summary.by_number));
        }
        table.pair("not found", size::thousands(summary.not_found));
        session.report(&summary, &table)
    }
}

fn open(path: &Path) -> Result<(String, Box<dyn BufRead>)> {
    let name = path.display().to_string();
    if name == "-" {
        return Ok((name, Box::new(io::stdin().lock())));
    }
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    Ok((name, Box::new(BufReader::new(file))))
}

/// Returns the keys that a line may mean: the exact one of a JSON row, else several.
fn keys_of(line: &str) -> Vec<Vec<u8>> {
    #[derive(Deserialize)]
    struct Row<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    match serde_json::from_str::<Row<'_>>(line) {
        Ok(row) => key::of_json(row.id.get()).ok().flatten().into_iter().collect(),
        Err(_) => key::spelled(line),
    }
}

/// Keys on their way out of the index.
struct Removal<'a> {
    index: &'a AnyIndex,
    waiting: BTreeSet<Vec<u8>>,
    /// Keys of names that may mean another document too, so that a repeated line removes none.
    taken: HashSet<Vec<u8>>,
    console: &'a Console,
    summary: Summary,
}

impl Removal<'_> {
    fn push(&mut self, keys: Vec<Vec<u8>>) -> Result<()> {
        let several = keys.len() > 1;
        for key in keys {
            if self.waiting.contains(&key) || self.taken.contains(&key) {
                break;
            }
            if self.index.get(&key)?.is_some() {
                let number = matches!(Name::of(&key), Name::Number(_));
                self.summary.by_number += u64::from(several && number);
                if several {
                    self.taken.insert(key.clone());
                }
                self.waiting.insert(key);
                return if self.waiting.len() >= BATCH { self.write() } else { Ok(()) };
            }
        }
        self.summary.not_found += 1;
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let keys: Vec<_> = std::mem::take(&mut self.waiting).into_iter().collect();
        let found = self.index.remove_batch(&keys, Durability::Synced)?;
        self.summary.removed += found;
        self.console.stored(found, "removed");
        self.summary.not_found += keys.len() as u64 - found.min(keys.len() as u64);
        Ok(())
    }
}
