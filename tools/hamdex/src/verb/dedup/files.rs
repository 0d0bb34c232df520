//! Files: the name of the output decides the results and their places.
//!
//! A directory gets all results; a file, by its extension, or standard output gets the kept rows
//! alone. Results of an earlier run are replaced on request, as a whole set.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::form::Form;
use crate::failure::{Failure, Result};
use crate::input::{Compression, Inputs, Kind, Source, is_index, without_compression};
use crate::output::{Output, Overwrite, is_stdout};
use crate::temporary;

/// Extensions of files that are not directories either, but what is not written.
const REFUSED: [&str; 22] = [
    "7z", "arrow", "avro", "bz2", "db", "duckdb", "feather", "gz", "html", "json", "lz4", "md",
    "ods", "orc", "sqlite", "tar", "txt", "xls", "xlsx", "xz", "zip", "zst",
];

/// Results other than the kept rows.
pub(super) const DUPLICATES: &str = "duplicates.jsonl";
pub(super) const CLUSTERS: &str = "clusters.jsonl";
pub(super) const REJECTS: &str = "rejects.jsonl";
pub(super) const REPORT: &str = "report.json";
/// Only if boilerplate is cut.
pub(super) const BOILERPLATE: &str = "boilerplate.jsonl";

/// Destination of the kept rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rows {
    File(PathBuf),
    Stdout,
    /// A file for each source, in the order of the sources.
    Shards(Vec<PathBuf>),
}

/// Destination of the results.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) form: Form,
    pub(super) rows: Rows,
    /// Directory of the other results; `None` if only the kept rows are requested.
    directory: Option<PathBuf>,
    pub(super) overwrite: Overwrite,
}

impl Files {
    /// Uses the kind of what exists, else the extension.
    pub(super) fn of(output: &Path, form: Option<Form>, overwrite: Overwrite) -> Result<Self> {
        let files = |form, rows, directory| Self { form, rows, directory, overwrite };
        if is_stdout(output) {
            return Ok(files(form.unwrap_or(Form::Jsonl), Rows::Stdout, None));
        }
        let lower = |path: &Path| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            extension.unwrap_or_default().to_ascii_lowercase()
        };
        let named = match lower(&without_compression(output)).as_str() {
            "ndjson" => Some(Form::Jsonl),
            other => Form::from_str(other, false).ok(),
        };
        let compression = Compression::of_name(output);
        if output.is_dir() || (named.is_none() && !REFUSED.contains(&lower(output).as_str())) {
            let form = form.unwrap_or(Form::Jsonl);
            let kept = output.join(format!("kept.{}", form.name()));
            return Ok(files(form, Rows::File(kept), Some(output.to_path_buf())));
        }
        let shown = output.display();
        let Some(named) = named else {
            return Err(Failure::Usage(format!(
                "{shown}: the format is unknown; give a name in .jsonl, .ndjson, .csv or .tsv \
                    (optionally with .gz or .zst) or .parquet, or a directory"
            )));
        };
        if form.is_some_and(|form| form != named) {
            return Err(Failure::Usage(format!(
                "{shown} is {} by its name; drop --format",
                named.name()
            )));
        }
        if compression.is_some() && named == Form::Parquet {
            return Err(Failure::Usage(format!(
                "{shown}: Parquet compresses its data; drop the second extension"
            )));
        }
        Ok(files(named, Rows::File(output.to_path_buf()), None))
    }

    /// Writes a file for each source, under its own name and in its own form.
    pub(super) fn shards(mut self, output: &Path, inputs: &Inputs) -> Result<Self> {
        let Some(directory) = &self.directory else {
            return Err(Failure::Usage(format!(
                "{}: --shards writes a file for every input; give a directory",
                output.display()
            )));
        };
        let names = shards(inputs, "--shards")?;
        let taken = names.iter().find(|name| results().any(|result| result == **name));
        if let Some(name) = taken {
            return Err(Failure::Usage(format!(
                "--shards: the input {name} has the name of a result; rename it"
            )));
        }
        self.rows = Rows::Shards(names.iter().map(|name| directory.join(name)).collect());
        Ok(self)
    }

    /// Takes all results of a shard in a directory that is there for them alone.
    pub(super) fn within(directory: &Path, form: Form) -> Self {
        let rows = Rows::File(directory.join(format!("kept.{}", form.name())));
        let directory = Some(directory.to_path_buf());
        Self { form, rows, directory, overwrite: Overwrite::Never }
    }

    /// Refuses places where results must not go, before anything is written.
    pub(super) fn check(&self, inputs: &Inputs, page: Option<&Path>) -> Result<()> {
        let mut written: Vec<PathBuf> = match &self.rows {
            Rows::Stdout => Vec::new(),
            Rows::File(path) => vec![path.clone()],
            Rows::Shards(paths) => paths.clone(),
        };
        if let Some(directory) = &self.directory {
            written.extend(results().map(|name| directory.join(name)));
        }
        for place in written.iter().filter_map(|path| path.parent()) {
            if is_index(place) {
                return Err(Failure::Usage(format!(
                    "{} is an index; give another directory for the results",
                    place.display()
                )));
            }
        }
        for path in written.iter().map(PathBuf::as_path).chain(page) {
            if self.overwrite == Overwrite::Never && path.is_file() {
                return Err(Failure::WouldOverwrite { path: path.display().to_string() });
            }
            apart(path, inputs)?;
        }
        Ok(())
    }

    /// Returns the file of another result; `None` if it is not requested.
    pub(super) fn beside(&self, name: &str) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(name))
    }

    /// Returns the directory of all results, or of the file.
    pub(super) fn place(&self) -> Option<&Path> {
        match (&self.directory, &self.rows) {
            (Some(directory), _) => Some(directory),
            (None, Rows::File(path)) => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => Some(parent),
                _ => Some(Path::new(".")),
            },
            (None, _) => None,
        }
    }

    /// Results of an earlier run that this one does not write again; its report shows that they
    /// are such.
    pub(super) fn stale(&self, cuts: bool) -> Vec<PathBuf> {
        let Some(directory) = &self.directory else { return Vec::new() };
        let report = std::fs::read(directory.join(REPORT)).ok();
        let report: Option<serde_json::Value> =
            report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let ours = report.is_some_and(|report| {
            report.get("settings").is_some() && report.get("largest").is_some()
        });
        if !ours || self.overwrite == Overwrite::Never {
            return Vec::new();
        }
        let kept = Form::value_variants().iter().map(|form| format!("kept.{}", form.name()));
        let kept = kept.map(|name| directory.join(name));
        let kept = kept.filter(|path| self.rows != Rows::File(path.clone()));
        let cut = (!cuts).then(|| directory.join(BOILERPLATE));
        kept.chain(cut).filter(|path| path.is_file()).collect()
    }
}

/// Refuses results within an input.
pub(super) fn apart(path: &Path, inputs: &Inputs) -> Result<()> {
    let real = real(path);
    for source in &inputs.sources {
        let Some(root) = source.directory() else { continue };
        if root.canonicalize().is_ok_and(|root| real.starts_with(root)) {
            return Err(Failure::Usage(format!(
                "{} is inside the input {}, so the next run would read it; write the results to \
                    another place",
                path.display(),
                root.display()
            )));
        }
    }
    Ok(())
}

/// Returns the names of all results that a directory may have.
fn results() -> impl Iterator<Item = String> {
    let kept = Form::value_variants().iter().map(|form| format!("kept.{}", form.name()));
    kept.chain([DUPLICATES, CLUSTERS, REJECTS, REPORT, BOILERPLATE].map(str::to_owned))
}

/// Returns the names of the results of each source; `option` requests them.
pub(super) fn shards(inputs: &Inputs, option: &str) -> Result<Vec<String>> {
    let mut names: Vec<String> = inputs.sources.iter().map(|source| shard(source, false)).collect();
    if repeated(&names).is_some() {
        names = inputs.sources.iter().map(|source| shard(source, true)).collect();
    }
    if let Some((first, second)) = repeated(&names) {
        let name = |at: usize| inputs.sources.get(at).map_or("", |source| &source.name);
        return Err(Failure::Usage(format!(
            "{option}: {} and {} would have the same name in the results; give their common \
                directory instead",
            name(first),
            name(second)
        )));
    }
    Ok(names)
}

/// Returns the name of a source's file, with its directory if requested.
fn shard(source: &Source, with_directory: bool) -> String {
    let path = Path::new(&source.name);
    let base = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (root, name) = match (&source.kind, &source.within) {
        (Kind::Directory(_), _) => (source.directory().map(base), "documents.jsonl".to_owned()),
        (_, Some(within)) => (source.directory().map(base), within.clone()),
        (_, None) => (path.parent().map(base), base(path)),
    };
    let name = if name == "-" { "stdin.jsonl".to_owned() } else { name };
    let name = match (&source.kind, Compression::of_name(Path::new(&name))) {
        (Kind::Lines | Kind::Delimited(_), None | Some(Compression::Gzip | Compression::Zstd))
        | (Kind::Directory(_), _) => name,
        (Kind::Lines | Kind::Delimited(_), Some(_)) => {
            without_compression(Path::new(&name)).to_string_lossy().into_owned()
        }
        (kind, _) => {
            let plain = without_compression(Path::new(&name));
            let extension = if matches!(kind, Kind::Columnar(_)) { "parquet" } else { "jsonl" };
            plain.with_extension(extension).to_string_lossy().into_owned()
        }
    };
    match root.filter(|root| with_directory && !root.is_empty()) {
        Some(root) => format!("{root}/{name}"),
        None => name,
    }
}

/// Returns the first two places that have the same name.
fn repeated(names: &[String]) -> Option<(usize, usize)> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        if let Some(before) = first.insert(name, at) {
            return Some((before, at));
        }
    }
    None
}

/// Returns a path without links; its last parts need not exist.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for there in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), absolute.strip_prefix(there)) {
            return real.join(rest);
        }
    }
    absolute
}

/// Renames all results to their names, one right after another.
pub(super) fn publish(mut written: Vec<Output>, stale: &[PathBuf]) -> Result<()> {
    written.iter_mut().try_for_each(Output::prepare)?;
    for path in stale {
        std::fs::remove_file(path).map_err(|e| Failure::io(path, e))?;
    }
    written.into_iter().try_for_each(Output::finish)
}

/// The directory of the results; removed if the run made it and has no results.
pub(super) struct Place<'a> {
    made: Option<&'a Path>,
}

impl<'a> Place<'a> {
    pub(super) fn make(path: Option<&'a Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self { made: None }) };
        let made = !path.exists();
        std::fs::create_dir_all(path).map_err(|e| Failure::io(path, e))?;
        if made {
            temporary::note_directory(path);
        }
        Ok(Self { made: made.then_some(path) })
    }

    pub(super) fn keep(mut self) {
        self.made = None;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.made {
            // Fails if the directory is not empty, as intended.
            let _ = std::fs::remove_dir(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str, form: Option<Form>) -> Result<Files> {
        Files::of(Path::new(output), form, Overwrite::Never)
    }

    #[test]
    fn a_directory_takes_everything_and_a_file_the_kept_rows() {
        let all = of("clean.d", Some(Form::Parquet)).unwrap();
        assert_eq!(all.rows, Rows::File("clean.d/kept.parquet".into()));
        assert_eq!(all.beside("report.json").unwrap(), Path::new("clean.d/report.json"));
        assert_eq!(all.place(), Some(Path::new("clean.d")));
        let alone = of("clean.TSV", None).unwrap();
        assert_eq!((alone.form, alone.place()), (Form::Tsv, Some(Path::new("."))));
        assert_eq!(alone.beside("report.json"), None);
        assert_eq!(of("a/b.ndjson", Some(Form::Jsonl)).unwrap().place(), Some(Path::new("a")));
        assert_eq!(of("a.jsonl.zst", None).unwrap().form, Form::Jsonl);
        let stdout = of("-", Some(Form::Csv)).unwrap();
        assert_eq!((stdout.form, stdout.rows), (Form::Csv, Rows::Stdout));
    }

    #[test]
    fn a_directory_is_one_whatever_its_name() {
        let there = tempfile::Builder::new().suffix(".parquet").tempdir().unwrap();
        let files = Files::of(there.path(), None, Overwrite::Never).unwrap();
        assert_eq!(files.rows, Rows::File(there.path().join("kept.jsonl")));
    }

    #[test]
    fn names_that_promise_something_else_are_refused() {
        for (output, form) in [
            ("a.tar.gz", None),
            ("a.json", None),
            ("a.xlsx", None),
            ("a.parquet.zst", None),
            ("a.csv", Some(Form::Parquet)),
        ] {
            assert_eq!(of(output, form).unwrap_err().status(), 2, "{output}");
        }
    }

    #[test]
    fn paths_that_do_not_exist_yet_are_found_below_those_that_do() {
        let root = tempfile::tempdir().unwrap();
        let below = real(&root.path().join("none/out"));
        assert_eq!(below, root.path().canonicalize().unwrap().join("none/out"));
    }
}
