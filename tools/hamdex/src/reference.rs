//! The reference: the description of the command becomes HTML pages, one for every verb.

use clap::{Arg, Command};
use maud::{Markup, html};

use crate::draw::page;

/// Group of options that have no heading.
const OPTIONS: &str = "Options";

/// List of verbs in the help that the overview has as a table with links.
const UPKEEP: &str = "Looking after an index";

/// Returns the name and the HTML of every page; `index` lists the verbs.
pub(crate) fn pages(mut command: Command) -> Vec<(String, String)> {
    // Fills in names, and the options that all verbs share.
    command.build();
    let overview = html! {
        (description(&command))
        (verbs("Daily work", &command))
        @if let Some(index) = command.find_subcommand("index") { (verbs(UPKEEP, index)) }
        (details(&command))
    };
    let mut pages = vec![("index".to_owned(), page::shell("The command line", &overview))];
    collect(&command, &mut pages);
    pages
}

/// Adds the pages of the visible verbs of a command, and of the verbs below these.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) {
    for verb in visible(command) {
        let body = html! {
            p { a href="index.html" { "All verbs" } }
            (description(verb))
            @if verb.has_subcommands() { (verbs("Verbs", verb)) }
            (details(verb))
        };
        pages.push((file(verb), page::shell(title(verb), &body)));
        collect(verb, pages);
    }
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let verbs = command.get_subcommands();
    verbs.filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

/// Returns the verb as it is called, such as `hamdex index stats`.
fn title(verb: &Command) -> &str {
    verb.get_bin_name().unwrap_or_else(|| verb.get_name())
}

/// Returns the name of a page without its extension, such as `index-stats`.
fn file(verb: &Command) -> String {
    match title(verb).split(' ').skip(1).collect::<Vec<_>>().join("-") {
        // The overview has that name.
        name if name == "index" => "index-verbs".to_owned(),
        name => name,
    }
}

fn verbs(heading: &str, command: &Command) -> Markup {
    html! {
        h2 { (heading) }
        dl.verbs {
            @for verb in visible(command) {
                dt { a href=(format!("{}.html", file(verb))) { code { (title(verb)) } } }
                dd { (verb.get_about().map(ToString::to_string).unwrap_or_default()) }
            }
        }
    }
}

/// Returns what a command does, and how it is called.
fn description(command: &Command) -> Markup {
    let about = command.get_long_about().or(command.get_about());
    let usage = command.clone().render_usage().to_string();
    html! {
        (prose(&about.map(ToString::to_string).unwrap_or_default()))
        pre { code { (usage.trim_start_matches("Usage: ")) } }
    }
}

/// Returns arguments, options and the notes after them.
fn details(command: &Command) -> Markup {
    let shown: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        shown.into_iter().partition(|arg| arg.is_positional());
    let heading = |arg: &Arg| arg.get_help_heading().unwrap_or(OPTIONS).to_owned();
    let mut headings = vec![OPTIONS.to_owned()];
    for arg in &options {
        if !headings.contains(&heading(arg)) {
            headings.push(heading(arg));
        }
    }
    let notes = command.get_after_long_help().or(command.get_after_help());
    html! {
        @if !positional.is_empty() { h2 { "Arguments" } (list(&positional)) }
        @for name in &headings {
            @let group: Vec<&Arg> =
                options.iter().copied().filter(|arg| heading(arg) == *name).collect();
            @if !group.is_empty() { h2 { (name) } (list(&group)) }
        }
        (blocks(&notes.map(ToString::to_string).unwrap_or_default()))
    }
}

fn list(args: &[&Arg]) -> Markup {
    html! {
        dl {
            @for arg in args {
                dt id=(arg.get_long().unwrap_or(arg.get_id().as_str())) { code { (spelling(arg)) } }
                dd { (explanation(arg)) }
            }
        }
    }
}

/// Returns an argument as the help shows it, such as `-k, --distance <N>`.
fn spelling(arg: &Arg) -> String {
    let short = arg.get_short().filter(|_| arg.get_long().is_some());
    short.map(|short| format!("-{short}, ")).unwrap_or_default() + &arg.to_string()
}

fn explanation(arg: &Arg) -> Markup {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
    let values = arg.get_possible_values();
    let explained = values.iter().any(|value| value.get_help().is_some());
    let defaults = arg.get_default_values();
    let shown = arg.get_action().takes_values() && !arg.is_hide_default_value_set();
    html! {
        (prose(&help.unwrap_or_default()))
        @if explained && !arg.is_hide_possible_values_set() {
            ul {
                @for value in values.iter().filter(|value| !value.is_hide_set()) {
                    li {
                        code { (value.get_name()) } ": "
                        (value.get_help().map(ToString::to_string).unwrap_or_default())
                    }
                }
            }
        }
        @if shown && !defaults.is_empty() {
            p.quiet {
                "Default: "
                @for value in defaults { code { (value.to_string_lossy()) } " " }
            }
        }
    }
}

/// Returns paragraphs, with what is in backticks as code.
fn prose(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            p {
                @for (at, part) in paragraph.split('`').enumerate() {
                    @if at % 2 == 1 { code { (part) } } @else { (part) }
                }
            }
        }
    }
}

/// Returns the notes after the options: a title with indented lines, or a paragraph.
fn blocks(notes: &str) -> Markup {
    html! {
        @for block in notes.split("\n\n").filter(|block| !block.is_empty()) {
            @match block.split_once(":\n") {
                Some((title, lines)) if !title.contains('\n') => {
                    @if title != UPKEEP { h2 { (title) } pre { code { (lines) } } }
                }
                _ => (prose(block)),
            }
        }
    }
}
