//! `doctor`: checks the machine, its settings and an index, and prints remedies.

mod index;
mod machine;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstream::ColorChoice;
use clap::Args;
use serde::Serialize;

use crate::console;
use crate::failure::{Failure, Result};
use crate::options::resources::SeedArg;
use crate::options::{MemoryArg, TmpArg};
use crate::output::Output;
use crate::session::Session;

pub(crate) use index::warn_of_seal;

/// Check this machine, its settings and an index
///
/// Prints a line for each check: good, a warning or bad, with a remedy for everything that is not
/// good. The status is 1 if anything is bad, because other verbs would fail. With --json each line
/// is an object {"check","grade","found","remedy"}. Nothing changes; the index is opened for
/// reading, and its lock is held for a moment.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex doctor pages.idx --memory 4G --tmp /scratch\n  hamdex doctor"
)]
pub(crate) struct DoctorArgs {
    /// Also check this index
    index: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    tmp: TmpArg,
    #[command(flatten)]
    seed: SeedArg,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Good,
    /// Slower or narrower than it could be.
    Warning,
    /// Other verbs would fail.
    Bad,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    grade: Grade,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, grade: Grade::Good, found: found.into(), remedy: None }
    }

    fn warning(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { check, grade: Grade::Warning, found: found.into(), remedy }
    }

    fn bad(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, grade: Grade::Bad, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// Returns the finding for a failure of other verbs.
    fn failed(check: &'static str, failure: &Failure) -> Self {
        let remedy = failure.remedy().map(ToOwned::to_owned);
        Self { check, grade: Grade::Bad, found: failure.to_string(), remedy }
    }

    /// Writes a line, and one below it for the remedy.
    fn write(&self, colour: bool, out: &mut dyn Write) -> io::Result<()> {
        let (grade, style) = match self.grade {
            Grade::Good => ("good", console::GOOD),
            Grade::Warning => ("warning", console::WARNING),
            Grade::Bad => ("bad", console::BAD),
        };
        let (begin, end) = if colour {
            (style.render().to_string(), style.render_reset().to_string())
        } else {
            (String::new(), String::new())
        };
        writeln!(out, "{begin}{grade:7}{end}  {:12}  {}", self.check, self.found)?;
        match &self.remedy {
            Some(remedy) => writeln!(out, "{:23}{remedy}", ""),
            None => Ok(()),
        }
    }
}

impl DoctorArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let mut findings = vec![
            machine::processor(),
            machine::memory(self.memory.memory.0 as u64),
            machine::open_files(),
            machine::huge_pages(),
            machine::calibration(),
        ];
        let tmp = self.tmp.directory().map_or_else(std::env::temp_dir, Path::to_path_buf);
        findings.extend(machine::temporary(&tmp));
        if let Some(path) = &self.index {
            findings.extend(index::look(path, &self.seed));
        } else if self.seed.given() {
            findings.push(match self.seed.secret() {
                Ok(_) => Finding::good("secret", "the secret file is readable"),
                Err(failure) => Finding::failed("secret", &failure),
            });
        }
        let colour = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let printed = print(session, &findings, colour);
        match findings.iter().filter(|finding| finding.grade == Grade::Bad).count() {
            0 => printed,
            count => Failure::Unfit { count }.over(printed),
        }
    }
}

fn print(session: &Session, findings: &[Finding], colour: bool) -> Result<()> {
    let mut out = Output::stdout(&session.console);
    for finding in findings {
        if session.json {
            out.json(finding)?;
        } else {
            out.with(|out| finding.write(colour, out))?;
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_line_up_and_tell_the_remedy_below() {
        let text = |finding: &Finding, colour| {
            let mut out = Vec::new();
            finding.write(colour, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let good = Finding::good("memory", "8 GiB");
        assert_eq!(text(&good, false), "good     memory        8 GiB\n");
        assert!(text(&good, true).starts_with("\u{1b}["));
        let bad = Finding::bad("open files", "12", "ulimit -n 4096");
        let lines = text(&bad, false);
        assert_eq!(lines, format!("bad      open files    12\n{:23}ulimit -n 4096\n", ""));
    }
}
