//! `remove`: ids become durable removals, counted as found and not found.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use hamdex::{Durability, Fingerprint, Index};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::key;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::table::Table;
use crate::width::for_width;

/// Removals in one durable batch.
const BATCH: usize = 1000;

/// Remove documents from an index, durably
///
/// An id is written as the other verbs show it. Digits name the text id that reads so or, where
/// there is none, the number: a numeric JSON id or the position of a raw fingerprint.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex remove pages.idx --id page-17 page-18")]
pub(crate) struct RemoveArgs {
    /// Directory of the index
    index: PathBuf,
    /// Ids to remove
    #[arg(long, value_name = "KEY", num_args = 1.., required_unless_present = "ids")]
    id: Vec<String>,
    /// File of ids to remove, one a line; - is standard input
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    removed: u64,
    not_found: u64,
}

impl RemoveArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let lines = self.ids.as_deref().map(open).transpose()?;
        let header = stored::require(&self.index, None)?;
        let summary = for_width!(header.bits, F => {
            let mut removal = Removal {
                index: &Index::<F>::open(&self.index)?,
                waiting: BTreeSet::new(),
                summary: Summary::default(),
            };
            self.id.iter().try_for_each(|id| removal.push(id))?;
            if let Some((name, lines)) = lines {
                for line in lines.lines() {
                    let line = line.map_err(|e| Failure::io(&name, e))?;
                    if !line.is_empty() {
                        removal.push(line.strip_suffix('\r').unwrap_or(&line))?;
                    }
                }
            }
            removal.write()?;
            removal.summary
        });
        let mut table = Table::list();
        table
            .pair("removed", size::thousands(summary.removed))
            .pair("not found", size::thousands(summary.not_found));
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

/// Keys on their way out of the index.
struct Removal<'a, F: Fingerprint> {
    index: &'a Index<F>,
    waiting: BTreeSet<Vec<u8>>,
    summary: Summary,
}

impl<F: Fingerprint> Removal<'_, F> {
    fn push(&mut self, id: &str) -> Result<()> {
        for key in key::spelled(id) {
            if !self.waiting.contains(&key) && self.index.get(&key)?.is_some() {
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
        self.summary.not_found += keys.len() as u64 - found.min(keys.len() as u64);
        Ok(())
    }
}
