//! Bad rows: each one becomes a message, a count and a row of the rejects file.
//!
//! What is good is never lost to a bad neighbour: a bad row is skipped unless the caller asked
//! to stop at it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::key::MAX_KEY;
use crate::size;

/// Bad rows that are reported in full; later ones are counted.
const REPORTED: u64 = 10;

/// What is wrong with a row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("broken JSON: {0}")]
    Json(String),
    #[error("not a JSON object")]
    NoObject,
    #[error("invalid UTF-8 at byte {0}")]
    Utf8(usize),
    #[error("no field \"{0}\" and no field \"fingerprint\"")]
    NoText(String),
    #[error("field \"{0}\" is not a string")]
    NoString(String),
    #[error("empty text")]
    EmptyText,
    #[error("text without features")]
    NoFeatures,
    #[error("{0}")]
    Id(&'static str),
    #[error("id has {0} bytes, allowed are 1 to {MAX_KEY}")]
    LongId(usize),
    #[error("duplicate id {0}")]
    DuplicateId(String),
    #[error(transparent)]
    Fingerprint(hamdex::Error),
    #[error("{bytes} bytes left, a {bits}-bit fingerprint has {}", .bits / 8)]
    Partial { bytes: usize, bits: u32 },
    #[error("text, where the index was built from fingerprints only")]
    TextRefused,
    #[error("{0}")]
    Record(String),
    #[error("duplicate id {0}; --warc-id record tells captures of one address apart")]
    DuplicateUri(String),
    #[error("address of {0} bytes, an id has {MAX_KEY} at most; --warc-id record names it shorter")]
    LongUri(usize),
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("of type {0}, which is no text")]
    OtherType(String),
    #[error("not a text file")]
    Binary,
    #[error("longer than {} MiB", .0 >> 20)]
    TooLong(u64),
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

impl Reason {
    pub(super) fn json(error: &serde_json::Error) -> Self {
        // Every row is one line, so only the column tells something.
        Self::Json(error.to_string().replace(" at line 1 column ", " at column "))
    }

    /// The kind of fault, for counting.
    fn kind(&self) -> &'static str {
        match self {
            Self::Json(_) | Self::NoObject => "broken JSON",
            Self::Utf8(_) => "invalid UTF-8",
            Self::NoText(_) | Self::NoString(_) => "no text",
            Self::EmptyText => "empty text",
            Self::NoFeatures => "text without features",
            Self::Id(_) | Self::LongId(_) | Self::LongUri(_) => "bad id",
            Self::DuplicateId(_) | Self::DuplicateUri(_) => "duplicate id",
            Self::Fingerprint(_) | Self::Partial { .. } => "bad fingerprint",
            Self::TextRefused => "text in an index of fingerprints",
            Self::Binary => "not text",
            Self::Record(_) => "broken record",
            Self::Status(_) => "of another status",
            Self::OtherType(_) => "of another type",
            Self::TooLong(_) => "too long",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// Where a bad row stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) file: &'a str,
    pub(crate) at: At,
}

/// The spot within a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    Line(u64),
    Offset(u64),
    /// A record by its number from 1 and, where known, the offset at which it or its member begins.
    Record(u64, Option<u64>),
    Whole,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::Line(line) => write!(f, "{}:{line}", self.file),
            At::Offset(offset) => write!(f, "{} at byte {offset}", self.file),
            At::Record(number, Some(offset)) => {
                write!(f, "{} at byte {offset} (record {number})", self.file)
            }
            At::Record(number, None) => write!(f, "{} (record {number})", self.file),
            At::Whole => f.write_str(self.file),
        }
    }
}

/// What to do about bad rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    pub(crate) file: Option<PathBuf>,
    /// The name that the file will have in the end.
    pub(crate) shown: Option<PathBuf>,
    /// Add to the file, as a resumed build does.
    pub(crate) append: bool,
    pub(crate) strict: bool,
    pub(crate) max_bad: Option<u64>,
}

/// The bad rows of one run.
#[derive(Debug)]
pub(crate) struct Rejects {
    console: Console,
    policy: Policy,
    out: Option<(PathBuf, std::io::BufWriter<File>)>,
    kinds: BTreeMap<&'static str, u64>,
    count: u64,
}

#[derive(Serialize)]
struct Rejected<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<&'a str>,
}

impl Rejects {
    pub(crate) fn new(policy: Policy, console: &Console) -> Result<Self> {
        let out = policy.file.as_deref().map(|path| create(path, policy.append)).transpose()?;
        Ok(Self { console: console.clone(), policy, out, kinds: BTreeMap::new(), count: 0 })
    }

    /// Takes a bad row; fails when the caller asked to stop here.
    pub(crate) fn add(
        &mut self,
        place: Place<'_>,
        reason: Reason,
        row: Option<&[u8]>,
    ) -> Result<()> {
        self.count += 1;
        *self.kinds.entry(reason.kind()).or_default() += 1;
        if let Some((path, out)) = &mut self.out {
            let (line, record, offset) = match place.at {
                At::Line(line) => (Some(line), None, None),
                At::Offset(offset) => (None, None, Some(offset)),
                At::Record(number, offset) => (None, Some(number), offset),
                At::Whole => (None, None, None),
            };
            let row =
                row.map(|row| String::from_utf8_lossy(row.strip_suffix(b"\n").unwrap_or(row)));
            let rejected = Rejected {
                file: place.file,
                line,
                record,
                offset,
                reason: &reason.to_string(),
                row: row.as_deref(),
            };
            serde_json::to_writer(&mut *out, &rejected)
                .map_err(std::io::Error::from)
                .and_then(|()| out.write_all(b"\n"))
                .map_err(|e| Failure::io(path, e))?;
        }
        if self.policy.strict {
            self.flush()?;
            return Err(Failure::Row { place: place.to_string(), reason });
        }
        if self.count <= REPORTED {
            self.console.say(&format!("{place}: {reason}; skipped"));
        } else if self.count == REPORTED + 1 {
            self.console.say("further bad rows are counted only");
        }
        match self.policy.max_bad {
            Some(allowed) if self.count > allowed => {
                self.flush()?;
                Err(Failure::TooManyBad { count: self.count, allowed })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Hands the rows so far to the system.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match &mut self.out {
            Some((path, out)) => out.flush().map_err(|e| Failure::io(path, e)),
            None => Ok(()),
        }
    }

    /// Closes the file and sums up; returns the count.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.flush()?;
        if self.count > 0 {
            let kinds: Vec<String> = self
                .kinds
                .iter()
                .map(|(kind, count)| format!("{} {kind}", size::thousands(*count)))
                .collect();
            let utf8 = match self.kinds.get("invalid UTF-8") {
                Some(_) => "; JSON Lines are UTF-8, 'iconv -f GB18030 -t UTF-8' converts a file",
                None => "",
            };
            let rows = if self.count == 1 { "row" } else { "rows" };
            let seen = match self.policy.shown.as_ref().or(self.policy.file.as_ref()) {
                Some(path) => format!("; see {}", path.display()),
                None => "; --rejects FILE keeps them".to_owned(),
            };
            let count = size::thousands(self.count);
            self.console
                .say(&format!("{count} bad {rows} skipped: {}{seen}{utf8}", kinds.join(", ")));
        }
        Ok(self.count)
    }
}

fn create(path: &Path, append: bool) -> Result<(PathBuf, std::io::BufWriter<File>)> {
    let mut options = File::options();
    options.create(true).write(true);
    let options = if append { options.append(true) } else { options.truncate(true) };
    let file = options.open(path).map_err(|e| Failure::io(path, e))?;
    Ok((path.to_path_buf(), std::io::BufWriter::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place<'static> = Place { file: "a.jsonl", at: At::Line(7) };

    fn rejects(policy: Policy) -> Rejects {
        Rejects::new(policy, &Console::new(true)).unwrap()
    }

    #[test]
    fn bad_rows_are_kept_with_file_line_and_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let policy = Policy { file: Some(file.path().to_path_buf()), ..Policy::default() };
        let mut rejects = rejects(policy);
        rejects.add(HERE, Reason::EmptyText, Some(b"{}\n")).unwrap();
        let raw = Place { file: "b.u64", at: At::Offset(8) };
        rejects.add(raw, Reason::Partial { bytes: 3, bits: 64 }, None).unwrap();
        assert_eq!(rejects.finish().unwrap(), 2);
        assert_eq!(
            std::fs::read_to_string(file.path()).unwrap(),
            "{\"file\":\"a.jsonl\",\"line\":7,\"reason\":\"empty text\",\"row\":\"{}\"}\n\
             {\"file\":\"b.u64\",\"offset\":8,\"reason\":\"3 bytes left, a 64-bit fingerprint has 8\"}\n"
        );
    }

    #[test]
    fn strict_stops_at_the_first_and_max_bad_after_so_many() {
        let mut strict = rejects(Policy { strict: true, ..Policy::default() });
        let error = strict.add(HERE, Reason::EmptyText, None).unwrap_err();
        assert_eq!(error.to_string(), "a.jsonl:7: empty text");
        let mut limited = rejects(Policy { max_bad: Some(1), ..Policy::default() });
        limited.add(HERE, Reason::EmptyText, None).unwrap();
        assert!(matches!(
            limited.add(HERE, Reason::EmptyText, None),
            Err(Failure::TooManyBad { count: 2, allowed: 1 })
        ));
    }
}
