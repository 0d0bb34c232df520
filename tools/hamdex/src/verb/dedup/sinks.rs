//! Sinks: the rows to keep go to one file, or to one for each source.

use std::io::Write;
use std::path::PathBuf;

use super::files::{Files, Rows};
use super::form::{Form, Sink};
use crate::console::Console;
use crate::failure::Result;
use crate::input::{self, Inputs, Kind, Origins};
use crate::output::Output;
use crate::session::Session;

/// Receives the kept rows.
#[derive(Debug)]
pub(super) enum Sinks {
    One(Sink),
    Shards(Shards),
}

/// A file for each source, one after another.
#[derive(Debug)]
pub(super) struct Shards {
    sources: Vec<Shard>,
    /// The current source.
    current: Option<(usize, Sink)>,
    done: Vec<Output>,
}

/// What the file of a source is made of.
#[derive(Debug)]
struct Shard {
    path: PathBuf,
    form: Form,
    /// Ordinal of its first row.
    base: u64,
}

impl Sinks {
    pub(super) fn new(
        files: &Files,
        inputs: &Inputs,
        origins: &Origins,
        session: &Session,
    ) -> Result<Self> {
        let all = 0..inputs.sources.len();
        Ok(match &files.rows {
            Rows::Stdout => {
                let output = Output::stdout(&session.console);
                Self::One(Sink::new(files.form, output, inputs, all, 0)?)
            }
            Rows::File(path) => {
                let output = Output::file(path, files.overwrite)?;
                Self::One(Sink::new(files.form, output, inputs, all, 0)?)
            }
            Rows::Shards(paths) => {
                let shard = |(at, path): (usize, &PathBuf)| Shard {
                    path: path.clone(),
                    form: match inputs.sources.get(at).map(|source| &source.kind) {
                        Some(Kind::Columnar(_)) => Form::Parquet,
                        Some(Kind::Delimited(b'\t')) => Form::Tsv,
                        Some(Kind::Delimited(_)) => Form::Csv,
                        _ => Form::Jsonl,
                    },
                    base: origins.start(at).unwrap_or(0),
                };
                let sources: Vec<Shard> = paths.iter().enumerate().map(shard).collect();
                Self::Shards(Shards { sources, current: None, done: Vec::new() })
            }
        })
    }

    /// Returns how much of a row has to be read.
    pub(super) fn reads(&self) -> input::Rows {
        match self {
            Self::One(sink) => sink.reads(),
            Self::Shards(_) => input::Rows::Whole,
        }
    }

    /// Receives a row: a line of JSON with other texts than it had, or what `copy` writes as one.
    pub(super) fn row(
        &mut self,
        inputs: &Inputs,
        files: &Files,
        (source, origin, line): (usize, u64, Option<&[u8]>),
        console: &Console,
        copy: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        match self {
            Self::One(sink) => sink.row(origin, line, copy),
            Self::Shards(shards) => {
                shards.reach(Some(source), inputs, files, console)?;
                match &mut shards.current {
                    Some((_, sink)) => sink.row(origin, line, copy),
                    None => Ok(()),
                }
            }
        }
    }

    /// Writes the remaining rows.
    pub(super) fn close(
        self,
        inputs: &Inputs,
        files: &Files,
        console: &Console,
    ) -> Result<Vec<Output>> {
        match self {
            Self::One(sink) => Ok(vec![sink.close(inputs, console)?]),
            Self::Shards(mut shards) => {
                shards.reach(None, inputs, files, console)?;
                Ok(shards.done)
            }
        }
    }
}

impl Shards {
    /// Closes the files of all sources before this one; each source has a file, be it empty.
    fn reach(
        &mut self,
        source: Option<usize>,
        inputs: &Inputs,
        files: &Files,
        console: &Console,
    ) -> Result<()> {
        loop {
            let at = match self.current.take() {
                Some((at, sink)) if Some(at) == source => {
                    self.current = Some((at, sink));
                    return Ok(());
                }
                Some((at, sink)) => {
                    self.done.push(sink.close(inputs, console)?);
                    at + 1
                }
                None => self.done.len(),
            };
            let Some(Shard { path, form, base }) = self.sources.get(at) else { return Ok(()) };
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)
                    .map_err(|e| crate::failure::Failure::io(parent, e))?;
            }
            let output = Output::file(path, files.overwrite)?;
            self.current = Some((at, Sink::new(*form, output, inputs, at..at + 1, *base)?));
        }
    }
}
