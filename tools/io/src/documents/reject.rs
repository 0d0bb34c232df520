//! Bad rows: each becomes a message, a count and a row of the rejects file.
//!
//! A bad row is skipped and does not affect its neighbours, unless the caller stops at the first
//! one.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

use super::key::MAX_KEY;
use crate::face::failure::{Failure, Result};
use crate::face::host::Host;
use crate::face::output::{Output, Overwrite};
use crate::face::size;

/// Bad rows that are reported in full; later ones are counted.
const REPORTED: u64 = 10;

const NULL_TEXT: &str = "null text";
const EMPTY_TEXT: &str = "empty text";
const NO_FEATURES: &str = "no features";
const NO_STRING: &str = "not a string";
const BROKEN_JSON: &str = "broken JSON";
const DUPLICATE_ID: &str = "duplicate id";
const NO_UTF8: &str = "invalid UTF-8";

/// Why rows have nothing to compare.
const NOT_COMPARED: [&str; 4] = [NULL_TEXT, EMPTY_TEXT, NO_FEATURES, NO_STRING];

/// The fault of a row.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    #[error("broken JSON: {0}")]
    Json(String),
    #[error("not a JSON object")]
    NoObject,
    #[error("invalid UTF-8 at byte {0}")]
    Utf8(usize),
    #[error("no field \"{0}\" and no field \"fingerprint\"")]
    NoText(String),
    #[error("field \"{0}\" is null")]
    NullText(String),
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
    #[error("text, but the index was built from fingerprints only")]
    TextRefused,
    #[error("{0}")]
    Record(String),
    #[error("duplicate id {0}; --warc-id record distinguishes captures of one address")]
    DuplicateUri(String),
    #[error(
        "address of {0} bytes, but an id has at most {MAX_KEY}; --warc-id record gives a \
             shorter id"
    )]
    LongUri(usize),
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("of type {0}, which is not text")]
    OtherType(String),
    #[error("not a text file")]
    Binary,
    #[error("longer than {} MiB", .0 >> 20)]
    TooLong(u64),
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

impl Reason {
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        // Every row is one line, so only the column is informative.
        Self::Json(error.to_string().replace(" at line 1 column ", " at column "))
    }

    /// Returns why a valid row has nothing to compare; `None` for a bad row.
    pub fn not_compared(&self) -> Option<&'static str> {
        let kind = self.kind();
        NOT_COMPARED.contains(&kind).then_some(kind)
    }

    /// Returns the kind of fault, for counting.
    fn kind(&self) -> &'static str {
        match self {
            Self::Json(_) | Self::NoObject => BROKEN_JSON,
            Self::Utf8(_) => NO_UTF8,
            Self::NoText(_) | Self::NullText(_) => NULL_TEXT,
            Self::NoString(_) => NO_STRING,
            Self::EmptyText => EMPTY_TEXT,
            Self::NoFeatures => NO_FEATURES,
            Self::Id(_) | Self::LongId(_) | Self::LongUri(_) => "bad id",
            Self::DuplicateId(_) | Self::DuplicateUri(_) => DUPLICATE_ID,
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

/// The place of a row.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub file: &'a str,
    pub at: At,
}

/// The spot within a file.
#[derive(Debug, Clone, Copy)]
pub enum At {
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

impl Place<'_> {
    /// Returns the number of the row in its file, from 1; 0 if the file is one document.
    ///
    /// `bytes` is the size of a raw fingerprint.
    pub fn row(&self, bytes: usize) -> u64 {
        match self.at {
            At::Line(number) | At::Record(number, _) => number,
            At::Offset(offset) => offset / bytes as u64 + 1,
            At::Whole => 0,
        }
    }
}

/// How to treat bad rows.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub file: Option<PathBuf>,
    /// Whether the file may replace another one.
    pub overwrite: Overwrite,
    /// Add to the file, as a resumed build does.
    pub append: bool,
    pub strict: bool,
    pub max_bad: MaxBad,
    /// Take inputs without a usable row, too.
    pub all_unusable: bool,
}

/// How many rows may be bad.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxBad {
    Rows(u64),
    /// A share of all rows, in per cent.
    Percent(f64),
}

impl Default for MaxBad {
    fn default() -> Self {
        Self::Percent(10.0)
    }
}

impl FromStr for MaxBad {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected a number of rows, or a share such as 5%";
        match text.strip_suffix('%') {
            None => text.parse().map(Self::Rows).map_err(|_| WRONG),
            Some(percent) => match percent.trim().parse() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
                _ => Err(WRONG),
            },
        }
    }
}

impl fmt::Display for MaxBad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => write!(f, "{rows}"),
            Self::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

impl MaxBad {
    /// Any number of rows.
    pub const ANY: Self = Self::Percent(100.0);

    fn allows(self, bad: u64, rows: u64) -> bool {
        match self {
            Self::Rows(allowed) => bad <= allowed,
            Self::Percent(percent) => bad as f64 * 100.0 <= percent * rows as f64,
        }
    }
}

/// Numbers of rows by their fault.
pub(crate) type Kinds = BTreeMap<&'static str, u64>;

/// Lists kinds with their numbers, for people.
fn listed(kinds: &Kinds) -> String {
    let kinds = kinds.iter().map(|(kind, count)| format!("{} {kind}", size::thousands(*count)));
    kinds.collect::<Vec<_>>().join(", ")
}

/// The bad rows of one run.
#[derive(Debug)]
pub struct Rejects {
    host: Arc<dyn Host>,
    policy: Policy,
    out: Option<(PathBuf, std::io::BufWriter<File>)>,
    /// A result that gets its name in the end.
    result: Option<Output>,
    /// That name, where the result has another one.
    named: Option<PathBuf>,
    kinds: Kinds,
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
    pub fn new(policy: Policy, host: &dyn Host) -> Result<Self> {
        let out = policy.file.as_deref().map(|path| create(path, &policy)).transpose()?;
        Ok(Self {
            host: host.share(),
            policy,
            out,
            result: None,
            named: None,
            kinds: Kinds::new(),
            count: 0,
        })
    }

    /// Records a bad row; fails if the caller stops at the first one.
    pub fn add(&mut self, place: Place<'_>, reason: Reason, row: Option<&[u8]>) -> Result<()> {
        self.count += 1;
        *self.kinds.entry(reason.kind()).or_default() += 1;
        if self.out.is_some() || self.result.is_some() {
            self.write(place, &reason, row)?;
        }
        if self.policy.strict {
            self.flush()?;
            return Err(Failure::Row { place: place.to_string(), reason });
        }
        if self.count <= REPORTED {
            self.host.say(&format!("{place}: {reason}; skipped"));
        } else if self.count == REPORTED + 1 {
            self.host.say("more bad rows follow; they are only counted");
        }
        match self.policy.max_bad {
            MaxBad::Rows(_) if !self.policy.max_bad.allows(self.bad(), 0) => {
                self.flush()?;
                Err(self.too_many(self.count))
            }
            MaxBad::Rows(_) | MaxBad::Percent(_) => Ok(()),
        }
    }

    /// Writes the rows to a result, too.
    pub fn write_to(&mut self, result: Option<Output>) {
        self.result = result;
    }

    /// Says where the result will be in the end.
    pub fn name(&mut self, path: PathBuf) {
        self.named = Some(path);
    }

    fn write(&mut self, place: Place<'_>, reason: &Reason, row: Option<&[u8]>) -> Result<()> {
        let (line, record, offset) = match place.at {
            At::Line(line) => (Some(line), None, None),
            At::Offset(offset) => (None, None, Some(offset)),
            At::Record(number, offset) => (None, Some(number), offset),
            At::Whole => (None, None, None),
        };
        let row = row.map(|row| String::from_utf8_lossy(row.strip_suffix(b"\n").unwrap_or(row)));
        let (reason, row) = (&*reason.to_string(), row.as_deref());
        let rejected = Rejected { file: place.file, line, record, offset, reason, row };
        if let Some((path, out)) = &mut self.out {
            serde_json::to_writer(&mut *out, &rejected)
                .map_err(std::io::Error::from)
                .and_then(|()| out.write_all(b"\n"))
                .map_err(|e| Failure::io(path, e))?;
        }
        self.result.as_mut().map_or(Ok(()), |result| result.json(&rejected))
    }

    /// Fails if too many rows were bad, or if none of them can be used.
    ///
    /// `rows` counts all rows, `usable` those that could be compared; `kept` are rows with nothing
    /// to compare that are no rejects.
    pub fn judge(&mut self, rows: u64, usable: u64, kept: &Kinds) -> Result<()> {
        self.flush()?;
        if rows > 0 && usable == 0 && !self.policy.all_unusable {
            let reasons = [self.reasons(), listed(kept)];
            let reasons = reasons.into_iter().filter(|reasons| !reasons.is_empty());
            let reasons = reasons.collect::<Vec<_>>().join(", ");
            let read = !self.kinds.keys().all(|kind| [BROKEN_JSON, NO_UTF8].contains(kind));
            return Err(Failure::NoUsableRows { rows, reasons, read: read || !kept.is_empty() });
        }
        if self.policy.max_bad.allows(self.bad(), rows) { Ok(()) } else { Err(self.too_many(rows)) }
    }

    fn too_many(&self, rows: u64) -> Failure {
        let allowed = self.policy.max_bad.to_string();
        let reasons = listed(&self.bad_kinds().collect());
        Failure::TooManyBad { count: self.bad(), rows, allowed, reasons }
    }

    fn bad(&self) -> u64 {
        self.bad_kinds().map(|(_, count)| count).sum()
    }

    /// Returns the kinds without those of valid rows with nothing to compare.
    fn bad_kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = self.kinds.iter().filter(|(kind, _)| !NOT_COMPARED.contains(kind));
        kinds.map(|(kind, count)| (*kind, *count))
    }

    /// Returns the kinds of bad rows with their numbers.
    fn reasons(&self) -> String {
        listed(&self.kinds)
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of rows with the id of an earlier one.
    pub fn repeated_ids(&self) -> u64 {
        self.kinds.get(DUPLICATE_ID).copied().unwrap_or_default()
    }

    /// Hands the rows so far to the system.
    pub fn flush(&mut self) -> Result<()> {
        match &mut self.out {
            Some((path, out)) => out.flush().map_err(|e| Failure::io(path, e)),
            None => Ok(()),
        }
    }

    /// Closes the file and sums up; returns the result that was to be written, if any.
    pub fn finish(mut self) -> Result<Option<Output>> {
        self.flush()?;
        if self.count > 0 {
            let utf8 = match self.kinds.get("invalid UTF-8") {
                Some(_) => {
                    "; JSON Lines are UTF-8: convert the file, such as with 'iconv -f \
                            GB18030 -t UTF-8'"
                }
                None => "",
            };
            let rows = if self.count == 1 { "row" } else { "rows" };
            let named = self.policy.file.as_ref().or(self.named.as_ref());
            let named = named.map(|path| path.display().to_string());
            let named = named.or_else(|| self.result.as_ref().map(|file| file.name().to_owned()));
            let seen = match named {
                Some(path) => format!("; see {path}"),
                None => "; --rejects FILE saves them".to_owned(),
            };
            let count = size::thousands(self.count);
            self.host.say(&format!("{count} bad {rows} skipped: {}{seen}{utf8}", self.reasons()));
        }
        Ok(self.result)
    }
}

fn create(path: &Path, policy: &Policy) -> Result<(PathBuf, std::io::BufWriter<File>)> {
    let mut options = File::options();
    options.create(true).write(true);
    if policy.append {
        options.append(true);
    } else if path.is_file() && policy.overwrite == Overwrite::Never {
        return Err(Failure::WouldOverwrite { path: path.display().to_string() });
    } else {
        options.truncate(true);
    }
    let file = options.open(path).map_err(|e| Failure::io(path, e))?;
    Ok((path.to_path_buf(), std::io::BufWriter::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::host::Silent;

    const HERE: Place<'static> = Place { file: "a.jsonl", at: At::Line(7) };

    fn rejects(policy: Policy) -> Rejects {
        Rejects::new(policy, &Silent).unwrap()
    }

    #[test]
    fn bad_rows_are_kept_with_file_line_and_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_path_buf();
        let policy =
            Policy { file: Some(path), overwrite: Overwrite::Allowed, ..Policy::default() };
        let mut rejects = rejects(policy);
        rejects.add(HERE, Reason::EmptyText, Some(b"{}\n")).unwrap();
        let raw = Place { file: "b.u64", at: At::Offset(8) };
        rejects.add(raw, Reason::Partial { bytes: 3, bits: 64 }, None).unwrap();
        assert_eq!(rejects.count(), 2);
        assert!(rejects.finish().unwrap().is_none());
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
        let mut limited = rejects(Policy { max_bad: MaxBad::Rows(1), ..Policy::default() });
        limited.add(HERE, Reason::EmptyText, None).unwrap();
        limited.add(HERE, Reason::NoObject, None).unwrap();
        let error = limited.add(HERE, Reason::NoObject, None).unwrap_err();
        assert_eq!(error.code(), "too-many-bad");
    }

    #[test]
    fn more_than_a_tenth_of_bad_rows_or_no_usable_one_is_a_failure() {
        let (mut rejects, kept) = (rejects(Policy::default()), Kinds::new());
        rejects.judge(0, 0, &kept).unwrap();
        rejects.add(HERE, Reason::NullText("text".to_owned()), None).unwrap();
        let remedy = |judged: Result<()>| judged.unwrap_err().remedy().unwrap_or_default();
        assert!(remedy(rejects.judge(1, 0, &kept)).contains("--text-field"));
        rejects.judge(2, 1, &kept).unwrap();
        rejects.add(HERE, Reason::NoObject, None).unwrap();
        rejects.judge(10, 8, &kept).unwrap();
        // A null text is no bad row.
        let told = rejects.judge(9, 7, &kept).unwrap_err().to_string();
        assert_eq!(told, "1 of 9 rows are bad, --max-bad allows 10 %: 1 broken JSON");
        let mut unread = super::tests::rejects(Policy::default());
        unread.add(HERE, Reason::Utf8(3), None).unwrap();
        assert!(remedy(unread.judge(1, 0, &kept)).contains("--input-format"));
    }

    #[test]
    fn limits_are_rows_or_shares() {
        assert_eq!("7".parse(), Ok(MaxBad::Rows(7)));
        assert_eq!("2.5%".parse(), Ok(MaxBad::Percent(2.5)));
        for wrong in ["", "-1", "101%", "x%", "1.5"] {
            assert!(wrong.parse::<MaxBad>().is_err(), "{wrong}");
        }
    }
}
