//! Wrong calls: refusals of the argument parser are reported as all other failures.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::ErrorKind;

use hamdex_io::host::Host;

use crate::cli::{Cli, index_verbs};
use crate::console::{Console, complain};
use crate::failure::{self, Status};

/// A refused call: a message and hints.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    hints: Vec<String>,
}

impl Refused {
    pub(crate) fn new(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        // The first paragraph says what is wrong; the others are tips, the usage and where help is.
        let mut paragraphs = text.split("\n\n").map(words);
        let message = paragraphs.next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
        let mut hints: Vec<String> = paragraphs.filter(|hint| !hint.is_empty()).collect();
        if error.kind() == ErrorKind::InvalidSubcommand {
            hints.push(format!("verbs: {}", verbs().join(", ")));
        }
        Self { message, hints }
    }
}

/// Returns the names of all verbs, as a user types them.
fn verbs() -> Vec<String> {
    let shown = |verb: &&clap::Command| !verb.is_hide_set() && verb.get_name() != "index";
    let command = Cli::command();
    let daily = command.get_subcommands().filter(shown).map(|verb| verb.get_name().to_owned());
    let upkeep = index_verbs().into_iter().map(|verb| format!("index {}", verb.get_name()));
    daily.chain(upkeep).collect()
}

/// Former spellings of options, each with the present one and the verb that has it, if only one.
const RENAMED: [(&str, &str, Option<&str>); 4] = [
    ("--keep", "--prefer", Some("dedup")),
    ("--seed-file", "--secret-file", None),
    ("--verify-representative", "--linkage representative", None),
    ("--verify-chain", "--linkage chain", None),
];

/// Warns of options and verbs that are called by a former spelling, which still works.
pub(crate) fn warn_of_former_spellings(arguments: &[OsString], console: &Console) {
    let given = |name: &str| {
        let mut words = arguments.iter().skip(1).take_while(|word| *word != "--");
        words.any(|word| word.to_str().and_then(|word| word.split('=').next()) == Some(name))
    };
    for (former, present, verb) in RENAMED {
        if verb.is_none_or(given) && given(former) {
            console.warn(&format!("{former} has a new name; use {present}"));
        }
    }
    let mut words = arguments.iter().skip(1).skip_while(|word| *word == "index");
    if words.next().is_some_and(|verb| verb == "fold") {
        console.warn("fold has a new name; use index merge");
    }
}

/// Joins the lines of a message into one.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Prints the requested help, else the fault of the call.
pub(crate) fn refuse(error: &clap::Error, arguments: &[OsString]) -> u8 {
    if !error.use_stderr() {
        let _ = error.print();
        return Status::Done.number();
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return Status::Usage.number();
    }
    let refused = Refused::new(error);
    if asks_for_json(arguments) {
        let remedy = Some(refused.hints.join("; ")).filter(|hints| !hints.is_empty());
        let object = failure::object("usage", Status::Usage, &refused.message, remedy.as_deref());
        complain(&object.to_string());
    } else {
        complain(&format!("hamdex: {}", refused.message));
        refused.hints.iter().for_each(|hint| complain(&format!("  {hint}")));
    }
    Status::Usage.number()
}

/// Returns whether `--json` is among the arguments, which cannot be parsed as a whole.
fn asks_for_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|a| a == "--json")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn refused(call: &str) -> Refused {
        Refused::new(&Cli::try_parse_from(call.split(' ')).unwrap_err())
    }

    #[test]
    fn a_refused_call_is_one_line_and_hints_of_one_line() {
        let missing = refused("hamdex remove idx");
        let either = "<--id <KEY>...|--ids <FILE>>";
        assert_eq!(
            missing.message,
            format!("the following required arguments were not provided: {either}")
        );
        let stray = refused("hamdex remove idx ids.txt");
        for call in [&missing, &stray] {
            let shows =
                |hint: &String| hint.starts_with("Usage: hamdex remove") && hint.contains(either);
            assert!(call.hints.iter().any(shows), "{call:?}");
        }
        let unknown = refused("hamdex balance");
        assert!(unknown.message.contains("'balance'"), "{unknown:?}");
        assert!(unknown.hints.last().unwrap().starts_with("verbs: dedup, pairs"));
        for text in missing.hints.iter().chain(&unknown.hints) {
            assert!(!text.contains('\n'), "{text}");
        }
    }
}
