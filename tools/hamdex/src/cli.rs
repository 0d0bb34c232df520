//! The command: its verbs, and the options that all of them share.

use std::fmt::Write;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::{Command, Parser, Subcommand};

use crate::failure::Status;
use crate::session::Global;
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
