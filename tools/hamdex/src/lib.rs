//! The command line of hamdex: arguments become library calls, results become lines.
//!
//! Standard output has only results; the exit status reports the cause of a failure. Other programs
//! of this workspace call [`embed`].

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod advise;
mod cli;
mod console;
mod costs;
mod draw;
pub mod embed;
mod options;
mod reference;
mod session;
mod signal;
mod stored;
mod usage;
mod verb;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use hamdex_io::{
    self as input, evidence, failure, job, key, output, settings, size, temporary, visible,
};

use crate::cli::Cli;
use crate::console::complain;
use crate::failure::Failure;
use crate::session::Session;
use crate::signal::Signal;

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

/// Runs the program with these arguments, the first its name, and returns its exit status.
///
/// Output, signals and messages are those of a process: it may end within.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error, &arguments),
    };
    let json = cli.global.json;
    let session = match Session::new(&cli.global, cli.verb.waits_for_disk()) {
        Ok(session) => session,
        Err(failure) => return end(&failure, json),
    };
    signal::watch(&session.console, move |failure| report(failure, json));
    usage::warn_of_former_spellings(&arguments, &session.console);
    let outcome = cli.verb.run(&session);
    signal::claim_end();
    session.console.close();
    match outcome {
        Ok(()) => 0,
        Err(failure) => end(&cause(failure, &session), json),
    }
}

/// Returns the signal that stopped the work, or the reader of its output.
fn cause(failure: Failure, session: &Session) -> Failure {
    let stopped =
        matches!(failure, Failure::Library(hamdex::Error::Cancelled) | Failure::OutputClosed);
    match Signal::caught() {
        Some(signal) if stopped => session.console.interrupted(signal),
        _ => failure,
    }
}

/// Reports the failure, if it is one, and returns its status.
fn end(failure: &Failure, json: bool) -> u8 {
    if failure.status() != 0 {
        report(failure, json);
    }
    failure.status()
}

/// Writes a failure for people, or with `--json` for programs, to standard error.
fn report(failure: &Failure, json: bool) {
    if json {
        complain(&failure.object().to_string());
        return;
    }
    complain(&format!("hamdex: {failure}"));
    if let Some(remedy) = failure.remedy() {
        complain(&format!("  {remedy}"));
    }
}
