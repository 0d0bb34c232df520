//! One run of the program: the options that every verb shares become a session.

use std::num::NonZero;
use std::thread::available_parallelism;

use clap::Args;

use hamdex_io::host::Host;

use crate::console::Console;
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::output::{Output, Overwrite};

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Write only warnings and errors to standard error
    #[arg(long, short, global = true, help_heading = "General")]
    quiet: bool,
    /// Write results as JSON objects instead of tables, and an error as an object on standard error
    #[arg(long, global = true, help_heading = "General")]
    pub(crate) json: bool,
    /// Replace existing result files
    #[arg(long, global = true, help_heading = "General")]
    overwrite: bool,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N", global = true, help_heading = "General")]
    threads: Option<usize>,
}

/// Returns how many threads do the work of a verb.
///
/// Threads that compute would only displace each other from processors and caches; those that wait
/// for a cold disk read more at a time.
fn threads(wanted: usize, processors: usize, waits_for_disk: bool) -> usize {
    if waits_for_disk { wanted } else { wanted.min(processors) }
}

/// The surroundings of a verb: console, output form and threads.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) console: Console,
    pub(crate) json: bool,
    pub(crate) overwrite: Overwrite,
}

impl Session {
    /// Prepares a verb, which computes or also waits for the disk.
    pub(crate) fn new(global: &Global, waits_for_disk: bool) -> Result<Self> {
        if let Some(wanted) = global.threads {
            if wanted == 0 {
                return Err(Failure::Usage("--threads must be at least 1".to_owned()));
            }
            let processors = available_parallelism().map_or(wanted, NonZero::get);
            let threads = threads(wanted, processors, waits_for_disk);
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build_global()
                .map_err(|e| Failure::Usage(format!("--threads {threads}: {e}")))?;
        }
        Ok(Self {
            console: Console::new(global.quiet),
            json: global.json,
            overwrite: global.overwrite.into(),
        })
    }

    /// Prints a verb's one result: an object with `--json`, else the table.
    pub(crate) fn report(&self, object: &impl serde::Serialize, table: &Table) -> Result<()> {
        self.console.end_phase();
        let mut out = Output::stdout(&self.console);
        if self.json {
            out.json(object)?;
        } else {
            out.with(|out| table.write(out))?;
        }
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_verbs_that_read_an_index_use_more_threads_than_processors() {
        assert_eq!([1, 2, 8].map(|wanted| threads(wanted, 2, false)), [1, 2, 2]);
        assert_eq!([1, 2, 8].map(|wanted| threads(wanted, 2, true)), [1, 2, 8]);
    }
}
