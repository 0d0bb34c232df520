//! WARC: the records of a web crawl become pages, each named by the address it came from.
//!
//! Pages are the `response` records of status 200 with text in them, `resource` records and the
//! `conversion` records of WET files. Each record is separate: a fault in one is reported with its
//! number and offset, and reading continues with the next.

mod ahead;
mod http;
mod members;
mod page;
#[cfg(test)]
mod tests;

use std::path::Path;

use self::ahead::Ahead;
use self::http::Head;
use self::members::{Members, Trouble, Unpack};
pub(crate) use self::page::Page;
use super::chunk::MAX_ROW;
use crate::documents::reject::Reason;
use crate::sources::open::{self, Meter, Reader};

/// Begins every record.
const MAGIC: &[u8] = b"WARC/";

/// Bytes of the fields of a record.
const LONGEST_HEAD: usize = 1 << 18;

/// Which of its two names identifies a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WarcId {
    /// The address it came from, WARC-Target-URI.
    #[default]
    Uri,
    /// The record, WARC-Record-ID.
    Record,
}

impl WarcId {
    /// Both by their names, with their meanings.
    pub const ALL: [(&'static str, Self, &'static str); 2] = [
        ("uri", Self::Uri, "The address it came from, WARC-Target-URI"),
        ("record", Self::Record, "The record, WARC-Record-ID"),
    ];
}

/// One record.
#[derive(Debug)]
pub(crate) struct Record {
    /// Position among all records, from 0.
    pub(crate) ordinal: u64,
    pub(crate) offset: u64,
    /// `None` for records that never hold a page, such as requests.
    pub(crate) page: Option<Result<(Page, Vec<u8>), Reason>>,
}

/// Reads records one after another.
pub(crate) struct Records {
    members: Box<dyn Unpack>,
    count: u64,
}

/// Why a record is none.
enum Fault {
    Io(std::io::Error),
    /// Only this record is unreadable; the reader is behind it.
    Bad(Reason),
    /// The reader has lost its place.
    Lost(Reason),
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Io(error) => Self::Io(error),
            Trouble::Damaged(reason) => Self::Lost(Reason::Record(format!("damaged: {reason}"))),
        }
    }
}

impl Records {
    pub(crate) fn new(reader: Reader) -> std::io::Result<Self> {
        Ok(Self { members: Box::new(Members::new(reader)?), count: 0 })
    }

    /// Opens a file whose members that many threads unpack.
    pub(crate) fn open(path: &Path, threads: usize, meter: &Meter) -> std::io::Result<Self> {
        Self::open_in_ranges(path, threads, ahead::RANGE, meter)
    }

    fn open_in_ranges(
        path: &Path,
        threads: usize,
        range: u64,
        meter: &Meter,
    ) -> std::io::Result<Self> {
        Ok(match Ahead::new(path, threads, range, meter)? {
            Some(ahead) => Self { members: Box::new(ahead), count: 0 },
            None => Self::new(open::as_it_is(path, meter)?)?,
        })
    }

    /// Returns the next record; `None` at the end.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Record>> {
        let found = match self.begins() {
            Ok(true) => Ok(self.members.offset()),
            Ok(false) => return Ok(None),
            Err(fault) => Err(fault),
        };
        let offset = *found.as_ref().unwrap_or(&self.members.offset());
        let page = match found.and_then(|_| self.record()) {
            Ok(page) => page.map(Ok),
            Err(Fault::Bad(reason)) => Some(Err(reason)),
            Err(Fault::Lost(reason)) => {
                self.look_on()?;
                Some(Err(reason))
            }
            Err(Fault::Io(error)) => return Err(error),
        };
        let ordinal = self.count;
        self.count += 1;
        Ok(Some(Record { ordinal, offset, page }))
    }

    /// Skips what is between records; returns false at the end of the file.
    fn begins(&mut self) -> Result<bool, Fault> {
        loop {
            let bytes = self.members.fill(1)?;
            let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if blank < bytes.len() {
                self.members.pass(blank);
                return Ok(true);
            }
            self.members.pass(blank);
            if blank == 0 && !self.members.next()? {
                return Ok(false);
            }
        }
    }

    fn record(&mut self) -> Result<Option<(Page, Vec<u8>)>, Fault> {
        let lost = |what: &str| Fault::Lost(Reason::Record(what.to_owned()));
        if !self.members.fill(MAGIC.len())?.starts_with(MAGIC) {
            return Err(lost("no record begins here"));
        }
        let bytes = self.head()?;
        let (head, _) =
            Head::cut(&bytes, bytes.len()).ok_or_else(|| lost("the fields do not end"))?;
        let Some(length) = head.get("Content-Length") else {
            return Err(lost("no Content-Length"));
        };
        let Ok(length) = length.parse::<u64>() else {
            return Err(lost("Content-Length is no number of bytes"));
        };
        let kind = page::RecordKind::of(&head);
        if kind.is_none() || length > MAX_ROW {
            let left = self.take(length, None)?;
            self.ends(length, left)?;
            return kind.map_or(Ok(None), |_| Err(Fault::Bad(Reason::TooLong(MAX_ROW))));
        }
        let mut block = Vec::new();
        let left = self.take(length, Some(&mut block))?;
        self.ends(length, left)?;
        kind.map(|kind| Page::read(kind, &head, block)).transpose().map_err(Fault::Bad)
    }

    /// Takes the lines up to an empty one, and that one.
    fn head(&mut self) -> Result<Vec<u8>, Fault> {
        let mut head = Vec::new();
        while head.len() < LONGEST_HEAD {
            let bytes = self.members.fill(1)?;
            if bytes.is_empty() {
                if !self.goes_on()? {
                    break;
                }
                continue;
            }
            let end = bytes.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
            let taken = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            let taken = taken.get(..LONGEST_HEAD).unwrap_or(taken);
            head.extend_from_slice(taken);
            let len = taken.len();
            self.members.pass(len);
            if head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n") {
                break;
            }
        }
        Ok(head)
    }

    /// Takes `length` bytes, to keep or to skip; returns how many were missing.
    fn take(&mut self, bytes: u64, mut to: Option<&mut Vec<u8>>) -> Result<u64, Fault> {
        let mut left = bytes;
        while left > 0 {
            let found = self.members.fill(1)?;
            if found.is_empty() {
                if !self.goes_on()? {
                    break;
                }
                continue;
            }
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(found.len());
            if let Some(to) = &mut to {
                to.extend_from_slice(found.get(..len).unwrap_or_default());
            }
            self.members.pass(len);
            left -= len as u64;
        }
        Ok(left)
    }

    /// Continues in the next member, unless a record begins here or there is none.
    fn goes_on(&mut self) -> Result<bool, Fault> {
        Ok(self.members.next()? && !self.members.fill(MAGIC.len())?.starts_with(MAGIC))
    }

    /// Refuses a length that is not the one of the block.
    fn ends(&mut self, length: u64, left: u64) -> Result<(), Fault> {
        if left > 0 {
            let reason = format!("ends {left} bytes before its Content-Length of {length}");
            return Err(Fault::Bad(Reason::Record(reason)));
        }
        match self.members.fill(1)?.first() {
            None | Some(b'\r' | b'\n') => Ok(()),
            Some(_) => {
                let reason = format!("goes on behind its Content-Length of {length}");
                Err(Fault::Lost(Reason::Record(reason)))
            }
        }
    }

    /// Skips everything up to a line that begins a record.
    fn look_on(&mut self) -> std::io::Result<()> {
        let mut begins_line = true;
        loop {
            let (len, line, found) = match self.members.fill(MAGIC.len()) {
                Ok(bytes) => {
                    let line = bytes.iter().position(|&byte| byte == b'\n');
                    (bytes.len(), line, bytes.starts_with(MAGIC))
                }
                Err(Trouble::Io(error)) => return Err(error),
                // It is part of the skipped bytes.
                Err(Trouble::Damaged(_)) => (0, None, false),
            };
            if begins_line && found {
                return Ok(());
            }
            if len > 0 {
                self.members.pass(line.map_or(len, |at| at + 1));
                begins_line = line.is_some();
                continue;
            }
            match self.members.next() {
                Ok(true) => begins_line = true,
                Ok(false) => return Ok(()),
                Err(Trouble::Io(error)) => return Err(error),
                Err(Trouble::Damaged(_)) => {}
            }
        }
    }
}
