//! One run of the program: the options that every verb shares become a session.

use clap::Args;

use hamdex_io::host::Host;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::output::{Output, Overwrite};
use crate::table::Table;

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

/// The surroundings of a verb: console, output form and threads.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) console: Console,
    pub(crate) json: bool,
    pub(crate) overwrite: Overwrite,
}

impl Session {
    pub(crate) fn new(global: &Global) -> Result<Self> {
        if let Some(threads) = global.threads {
            if threads == 0 {
                return Err(Failure::Usage("--threads must be at least 1".to_owned()));
            }
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
