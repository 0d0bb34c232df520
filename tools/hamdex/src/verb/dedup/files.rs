//! Files: the name of the output tells what is written, and where.
//!
//! A directory takes all results; a file, told by its extension, takes the kept rows alone.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::form::Form;
use crate::failure::{Failure, Result};

/// Extensions of files that are not directories either, but what is not written.
const REFUSED: [&str; 8] = ["arrow", "avro", "bz2", "feather", "gz", "json", "xz", "zst"];

/// Where the results go.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) form: Form,
    /// The file of the kept rows.
    pub(super) kept: PathBuf,
    /// Takes the other results; `None` where only the kept rows are asked for.
    directory: Option<PathBuf>,
}

impl Files {
    /// Takes what is there already for what it is, and goes by the extension of anything else.
    pub(super) fn of(output: &Path, form: Option<Form>) -> Result<Self> {
        let extension = output.extension().and_then(|extension| extension.to_str());
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        let named = match extension.as_str() {
            "ndjson" => Some(Form::Jsonl),
            other => Form::from_str(other, false).ok(),
        };
        if output.is_dir() || (named.is_none() && !REFUSED.contains(&extension.as_str())) {
            let form = form.unwrap_or(Form::Jsonl);
            let kept = output.join(format!("kept.{}", form.name()));
            return Ok(Self { form, kept, directory: Some(output.to_path_buf()) });
        }
        let shown = output.display();
        let Some(named) = named else {
            return Err(Failure::Usage(format!(
                "{shown}: rows are written as .jsonl, .ndjson, .parquet, .csv or .tsv; name such a \
                 file, or a directory"
            )));
        };
        if form.is_some_and(|form| form != named) {
            return Err(Failure::Usage(format!(
                "{shown} is {} by its name; leave --format out",
                named.name()
            )));
        }
        Ok(Self { form: named, kept: output.to_path_buf(), directory: None })
    }

    /// The directory in which the kept rows are on their way to their name.
    pub(super) fn place(&self) -> &Path {
        match self.kept.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// Another result's file; `None` where it is not asked for.
    pub(super) fn beside(&self, name: &str) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(name))
    }

    /// What was named as the output.
    pub(super) fn shown(&self) -> &Path {
        self.directory.as_ref().unwrap_or(&self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str, form: Option<Form>) -> Result<Files> {
        Files::of(Path::new(output), form)
    }

    #[test]
    fn a_directory_takes_everything_and_a_file_the_kept_rows() {
        let all = of("clean.d", Some(Form::Parquet)).unwrap();
        assert_eq!(all.kept, Path::new("clean.d/kept.parquet"));
        assert_eq!(all.beside("report.json").unwrap(), Path::new("clean.d/report.json"));
        assert_eq!((all.place(), all.shown()), (Path::new("clean.d"), Path::new("clean.d")));
        let alone = of("clean.TSV", None).unwrap();
        assert_eq!((alone.form, alone.place()), (Form::Tsv, Path::new(".")));
        assert_eq!((alone.beside("report.json"), alone.shown()), (None, Path::new("clean.TSV")));
        assert_eq!(of("a/b.ndjson", Some(Form::Jsonl)).unwrap().place(), Path::new("a"));
    }

    #[test]
    fn a_directory_is_one_whatever_its_name() {
        let there = tempfile::Builder::new().suffix(".parquet").tempdir().unwrap();
        let files = Files::of(there.path(), None).unwrap();
        assert_eq!(files.kept, there.path().join("kept.jsonl"));
    }

    #[test]
    fn names_that_promise_something_else_are_refused() {
        for (output, form) in
            [("a.jsonl.gz", None), ("a.json", None), ("a.csv", Some(Form::Parquet))]
        {
            assert_eq!(of(output, form).unwrap_err().status(), 2, "{output}");
        }
    }
}
