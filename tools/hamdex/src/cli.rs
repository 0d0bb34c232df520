//! The command: its verbs, the options that all of them share, and what is made of their
//! description: completions and manual pages.

use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::{Args, Command, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::{Failure, Result, Status};
use crate::output::Output;
use crate::reference;
use crate::session::{Global, Session};
use crate::verb::{IndexVerb, Verb};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "Examples:
  hamdex demo                              show a first result
  hamdex dedup posts.jsonl -o clean        keep one document of every group
  hamdex build pages.idx pages.jsonl.gz    build an index
  hamdex query pages.idx --text 'a text'   find what is near a text
  hamdex index stats pages.idx             show what an index holds
  hamdex doctor pages.idx                  check this machine and an index

'hamdex VERB -h' is short; 'hamdex VERB --help' has the details and examples.";

/// Find near-duplicate documents: every one within k bits, no misses, no extras
#[derive(Debug, Parser)]
#[command(
    name = "hamdex",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    styles = STYLES,
    after_help = format!("{}\n\n{EXAMPLES}", upkeep()),
    after_long_help = format!("{}\n\n{EXAMPLES}\n\n{}", upkeep(), Status::help())
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Returns the verbs below `index`.
pub(crate) fn index_verbs() -> Vec<Command> {
    IndexVerb::augment_subcommands(Command::new("index")).get_subcommands().cloned().collect()
}

/// Lists the verbs below `index` as the parser lists those of the command.
fn upkeep() -> String {
    index_verbs().iter().fold("Looking after an index:".to_owned(), |mut text, verb| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, "\n  index {:10}{about}", verb.get_name());
        text
    })
}

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
