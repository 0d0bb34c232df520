//! The command as a whole: its verbs and the options that all of them share.

use clap::Parser;
use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};

use crate::session::Global;
use crate::status::Status;
use crate::verb::Verb;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "Examples:
  hamdex demo                              look at a first result
  hamdex dedup posts.jsonl -o clean        keep one document of every group
  hamdex build pages.idx pages.jsonl.gz    make an index
  hamdex query pages.idx --text 'a text'   find what is near a text
  hamdex doctor pages.idx                  check this machine and an index

'hamdex VERB -h' is short; 'hamdex VERB --help' has the details and examples.";

/// Finds near-duplicate documents: every one within k bits, none beyond.
#[derive(Debug, Parser)]
#[command(
    name = "hamdex",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    styles = STYLES,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", Status::help())
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}
