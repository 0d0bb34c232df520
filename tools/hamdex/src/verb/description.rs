//! `completions` and `man`: the command's own description becomes a script, or pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::reference;
use crate::session::Session;

/// Print a script that completes commands in a shell
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex completions bash > ~/.local/share/bash-completion/completions/hamdex\n  \
                       hamdex completions zsh > ~/.zfunc/_hamdex\n  \
                       hamdex completions fish > ~/.config/fish/completions/hamdex.fish"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete commands in
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "hamdex", &mut script);
        let mut out = Output::stdout(&session.console);
        out.with(|out| out.write_all(&script))?;
        out.finish()
    }
}

/// Print the manual page, or write one for every verb into a directory
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex man | man -l -\n  hamdex man ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// Directory for hamdex.1 and a page for each verb; made if absent
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Write the reference as HTML pages instead, for tools/site
    #[arg(long, hide = true, requires = "directory")]
    html: bool,
}

impl ManArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        if let Some(directory) = &self.directory {
            std::fs::create_dir_all(directory).map_err(|e| Failure::io(directory, e))?;
            if self.html {
                for (name, page) in reference::pages(Cli::command()) {
                    let path = directory.join(format!("{name}.html"));
                    std::fs::write(&path, page).map_err(|e| Failure::io(&path, e))?;
                }
                return Ok(());
            }
            let written = clap_mangen::generate_to(Cli::command(), directory);
            return written.map_err(|e| Failure::io(directory, e));
        }
        let mut out = Output::stdout(&session.console);
        out.with(|out| Man::new(Cli::command()).render(out))?;
        out.finish()
    }
}
