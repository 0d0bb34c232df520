//! `completions`: the command's own description becomes a script for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Result;
use crate::output::Output;
use crate::session::Session;

/// Print a script that completes commands in a shell
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex completions bash > ~/.local/share/bash-completion/completions/hamdex\n  \
                       hamdex completions zsh > ~/.zfunc/_hamdex\n  \
                       hamdex completions fish > ~/.config/fish/completions/hamdex.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
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
