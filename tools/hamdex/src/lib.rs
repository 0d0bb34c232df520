//! The command line of hamdex: arguments become library calls, results become lines.
//!
//! Standard output carries results only. The status is 0 when the work is done, 1 when it failed
//! and 2 when the call itself was wrong. Other programs of this workspace call [`embed`].

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod advise;
mod bars;
mod chart;
mod cli;
mod console;
mod costs;
pub mod embed;
mod evidence;
mod failure;
mod input;
mod key;
mod options;
mod output;
mod page;
mod plot;
mod resource_options;
mod session;
mod size;
mod stored;
mod table;
mod temporary;
mod verb;
mod verify_options;
mod width;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::cli::Cli;
use crate::session::Session;

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let session = match Session::new(&cli.global) {
        Ok(session) => session,
        Err(failure) => return fail(&failure),
    };
    let outcome = cli.verb.run(&session);
    session.console.close();
    outcome.map_or_else(|failure| fail(&failure), |()| ExitCode::SUCCESS)
}

/// Feeds the reader of rows with what a fuzzer makes up.
#[cfg(feature = "coverage")]
pub fn fuzz_rows(bytes: &[u8]) {
    input::fuzzing::rows(bytes);
}

/// Shows help, or what is wrong with the call.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.kind() == ErrorKind::InvalidSubcommand {
        let command = Cli::command();
        let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        console::complain(&format!("\nverbs: {}", verbs.join(", ")));
    }
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

fn fail(failure: &failure::Failure) -> ExitCode {
    if failure.status() != 0 {
        console::complain(&format!("hamdex: {failure}"));
        if let Some(remedy) = failure.remedy() {
            console::complain(&format!("  {remedy}"));
        }
    }
    ExitCode::from(failure.status())
}
