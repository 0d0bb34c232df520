//! `man`: the command's own description becomes manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::session::Session;

/// Print the manual page, or write one of every verb into a directory
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex man | man -l -\n  hamdex man ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// Directory for hamdex.1 and a page of each verb; made where it is not there
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        if let Some(directory) = &self.directory {
            std::fs::create_dir_all(directory).map_err(|e| Failure::io(directory, e))?;
            let written = clap_mangen::generate_to(Cli::command(), directory);
            return written.map_err(|e| Failure::io(directory, e));
        }
        let mut out = Output::stdout(&session.console);
        out.with(|out| Man::new(Cli::command()).render(out))?;
        out.finish()
    }
}
