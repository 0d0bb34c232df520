//! Inputs: paths become sources, in the order given.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::kind::Kind;
use super::look::Bring;
use super::source::{Options, STDIN, Source};
use super::walk;
use crate::face::failure::{Failure, Result};
use crate::face::host::Host;
use crate::formats::chunk::Extents;
use crate::formats::fields::{ID_FIELD, Names, TEXT_FIELDS};

/// Bytes that a row of JSON Lines is taken to have, compressed or not.
const TYPICAL_ROW: u64 = 1000;

/// Bytes that a page of a crawl is taken to have, compressed.
const TYPICAL_RECORD: u64 = 10_000;

/// All inputs of a run, in the order given.
#[derive(Debug)]
pub struct Inputs {
    pub sources: Vec<Source>,
    pub names: Names,
    /// The rows to read; `None` is all.
    pub drawn: Option<Draw>,
}

/// Rows that were drawn from all inputs.
#[derive(Debug)]
pub struct Draw {
    /// Their origins, rising.
    pub origins: Vec<u64>,
    /// How far every source was read. All later readings know the origin of each row from it.
    pub extents: Extents,
}

impl Source {
    /// Returns the name without links and detours, by which it is known again.
    pub fn canonical_name(&self) -> String {
        let path = Path::new(&self.name);
        path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
    }
}

impl Inputs {
    /// Opens every path; fails before anything is read or written.
    ///
    /// In a directory, documents precede data files, which are in the order of their names.
    pub fn resolve(paths: &[PathBuf], options: &Options, console: &dyn Host) -> Result<Self> {
        if paths.iter().filter(|path| path.as_os_str() == STDIN).count() > 1 {
            return Err(Failure::Usage(
                "- is standard input and can be given only once".to_owned(),
            ));
        }
        let mut sources = Vec::new();
        for path in paths {
            console.check()?;
            let found = if path.as_os_str() == STDIN {
                None
            } else {
                Some(path.metadata().map_err(|e| Failure::io(path, e))?)
            };
            if found.as_ref().is_some_and(std::fs::Metadata::is_dir) {
                directory(path, options, console, &mut sources)?;
            } else {
                sources.push(Source::file(path, found.as_ref(), options)?);
            }
        }
        let inputs = Self { sources, names: options.names.clone(), drawn: None };
        inputs.announce(console);
        Ok(inputs)
    }

    /// Takes rows in memory as the only source, whose name is empty.
    ///
    /// # Errors
    ///
    /// Returns an error if a column that is named cannot be what it is named for.
    #[cfg(feature = "parquet")]
    pub fn of_rows(
        schema: arrow_schema::SchemaRef,
        batches: Vec<arrow_array::RecordBatch>,
        names: Names,
    ) -> Result<Self> {
        let sources = vec![Source::memory(schema, batches, &names)?];
        Ok(Self { sources, names, drawn: None })
    }

    /// Reports the fields of texts and ids if they are not the usual ones, and warns of an id field
    /// that no row has.
    fn announce(&self, console: &dyn Host) {
        let rows = || self.sources.iter().filter(|source| source.has_fields());
        let report = |what: &str, usual: &str, fields: &mut dyn Iterator<Item = &str>| {
            let mut chosen: Vec<&str> = Vec::new();
            for field in fields {
                if !chosen.contains(&field) {
                    chosen.push(field);
                }
            }
            if chosen.iter().any(|field| *field != usual) {
                console.say(&format!("{what} from field {}", chosen.join(", ")));
            }
        };
        if self.names.text.is_none() {
            let texts = rows().filter(|source| source.bring == Bring::Texts);
            let fields = texts.filter_map(|source| source.fields.texts.first());
            report("text", TEXT_FIELDS[0], &mut fields.map(String::as_str));
        }
        match &self.names.id {
            None => report("ids", ID_FIELD, &mut rows().map(|source| source.fields.id.as_str())),
            Some(id) if rows().next().is_some() && rows().all(|source| !source.has_id) => {
                console.warn(&format!("no row has the field \"{id}\" of --id-field"));
            }
            Some(_) => {}
        }
    }

    /// Makes every source readable twice.
    pub fn spool(&mut self, directory: Option<&Path>, console: &dyn Host) -> Result<()> {
        self.sources.iter_mut().try_for_each(|source| source.spool(directory, console))
    }

    /// Returns the width of the raw files and the name of one; they must agree.
    pub fn raw_width(&self) -> Result<Option<(u32, &str)>> {
        let mut found: Option<(u32, &str)> = None;
        for source in &self.sources {
            let Kind::Raw(bits) = source.kind else { continue };
            match found {
                Some((other, name)) if other != bits => {
                    return Err(Failure::file(
                        &source.name,
                        format!(
                            "has {bits}-bit fingerprints, but {name} has {other}-bit ones; give \
                                files of one width"
                        ),
                    ));
                }
                _ => found = Some((bits, &source.name)),
            }
        }
        Ok(found)
    }

    /// Returns whether the inputs have texts or fingerprints, from the first rows of each.
    pub fn bring(&self) -> Bring {
        self.sources.iter().map(|source| source.bring).max().unwrap_or(Bring::Nothing)
    }

    /// Returns the columns of CSV files; `None` unless all inputs are CSV and agree on distinct
    /// ones.
    pub fn header(&self) -> Result<Option<Vec<String>>> {
        let mut common: Option<Vec<String>> = None;
        for source in &self.sources {
            let Some(header) = source.header()? else { return Ok(None) };
            // An empty file has no rows that would miss a column.
            if header.is_empty() {
                continue;
            }
            let distinct: HashSet<&String> = header.iter().collect();
            let agrees = common.as_ref().is_none_or(|common| *common == header);
            if distinct.len() < header.len() || !agrees {
                return Ok(None);
            }
            common = Some(header);
        }
        Ok(Some(common.unwrap_or_default()))
    }

    /// Estimates the number of rows, for choosing a plan; exact for raw files only.
    pub fn estimated_rows(&self, fingerprint_bytes: usize) -> u64 {
        let rows = |source: &Source| match &source.kind {
            Kind::Raw(_) => source.bytes().unwrap_or(0) / fingerprint_bytes as u64,
            Kind::Lines | Kind::Json | Kind::Delimited(_) => {
                source.bytes().unwrap_or(0) / TYPICAL_ROW
            }
            Kind::Columnar(columnar) => {
                columnar.rows().unwrap_or_else(|| source.bytes().unwrap_or(0) / TYPICAL_ROW)
            }
            Kind::Warc => source.bytes().unwrap_or(0) / TYPICAL_RECORD,
            Kind::Text => 1,
            Kind::Directory(listing) => listing.files.len() as u64,
        };
        self.sources.iter().map(rows).sum()
    }

    /// Returns the bytes on disk; `None` if a pipe is among the sources.
    pub fn bytes(&self) -> Option<u64> {
        self.sources.iter().map(Source::bytes).sum()
    }

    /// Returns the file of a row, and its number there from 1; 0 if the file is one document.
    pub fn find(&self, origins: &Origins, origin: u64) -> Option<(Cow<'_, str>, u64)> {
        let (source, row) = origins.find(origin)?;
        let source = self.sources.get(source)?;
        Some(match source.kind {
            Kind::Text | Kind::Directory(_) => (source.at(row).into(), 0),
            Kind::Lines
            | Kind::Json
            | Kind::Columnar(_)
            | Kind::Delimited(_)
            | Kind::Raw(_)
            | Kind::Warc => (source.name.as_str().into(), row + 1),
        })
    }

    /// Returns the place of a row, by its ordinal over all inputs.
    pub fn at(&self, origins: &Origins, origin: u64) -> String {
        let found = origins.find(origin);
        let source = found.and_then(|(source, row)| Some((self.sources.get(source)?, row)));
        source.map_or_else(String::new, |(source, row)| source.at(row))
    }
}

/// Adds the contents of a directory.
fn directory(
    path: &Path,
    options: &Options,
    console: &dyn Host,
    sources: &mut Vec<Source>,
) -> Result<()> {
    let name = path.display().to_string();
    if walk::is_index(path) {
        return Err(Failure::refused(
            path,
            "is an index, not an input; 'hamdex export' writes its documents as JSON Lines",
        ));
    }
    let mut tree = walk::list(path, options.reading)?;
    let data = std::mem::take(&mut tree.data);
    let names: Vec<String> = data.iter().map(|file| file.name.clone()).collect();
    let files: Vec<Result<Option<Source>>> =
        data.into_par_iter().map(|file| Source::data(path, file, options)).collect();
    let mut rows = Vec::new();
    for (name, file) in names.into_iter().zip(files) {
        match file {
            Ok(Some(source)) => rows.push(source),
            Ok(None) => tree.documents.files.push(name),
            // A file that cannot be read is a bad one among good ones.
            Err(Failure::Io { source, .. }) => {
                tree.documents.unreadable.push((name, source.to_string()));
            }
            Err(failure) => return Err(failure),
        }
    }
    tree.documents.files.sort_unstable();
    console.say(&tree.summary(&name, rows.len() as u64));
    if !tree.documents.files.is_empty() || !tree.documents.unreadable.is_empty() {
        sources.push(Source::documents(&name, path, tree.documents, &options.names));
    }
    sources.extend(rows);
    Ok(())
}

/// Reads names of files, separated by zero bytes if there are any, else by line ends.
pub fn files_from(list: &Path) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = if list.as_os_str() == STDIN {
        io::stdin().read_to_end(&mut bytes)
    } else {
        File::open(list).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|e| Failure::io(list, e))?;
    let separator = if bytes.contains(&0) { 0 } else { b'\n' };
    let names = bytes.split(|&byte| byte == separator);
    let names = names.map(|name| name.strip_suffix(b"\r").unwrap_or(name));
    Ok(names.filter(|name| !name.is_empty()).map(path_of).collect())
}

fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(name).into()
}

/// Finds the file and line of an origin again.
#[derive(Debug, Default)]
pub struct Origins {
    /// Origin of each source's first row, rising, and the source's position.
    starts: Vec<(u64, usize)>,
}

impl Origins {
    pub fn note(&mut self, origin: u64, source: usize) {
        if self.starts.last().is_none_or(|&(_, last)| last != source) {
            self.starts.push((origin, source));
        }
    }

    /// Returns the ordinal of a source's first row; `None` for a source without rows.
    pub fn start(&self, source: usize) -> Option<u64> {
        self.starts.iter().find(|&&(_, at)| at == source).map(|&(start, _)| start)
    }

    /// Returns the source and the ordinal of the row within it, from 0.
    pub fn find(&self, origin: u64) -> Option<(usize, u64)> {
        let after = self.starts.partition_point(|&(start, _)| start <= origin);
        let &(start, source) = self.starts.get(after.checked_sub(1)?)?;
        Some((source, origin - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_lead_back_to_source_and_row() {
        let mut origins = Origins::default();
        assert_eq!(origins.find(0), None);
        origins.note(0, 0);
        origins.note(50, 0);
        origins.note(100, 2);
        assert_eq!(origins.find(99), Some((0, 99)));
        assert_eq!(origins.find(100), Some((2, 0)));
    }
}
