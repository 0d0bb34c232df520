//! Unpacking ahead: several threads unpack the members of one file, which are taken in order.
//!
//! Each thread takes every n-th range of the file and unpacks the members that begin in it. The
//! bytes alone do not tell where a member begins: a crawl of a crawl holds members within members.
//! So what was unpacked counts only if it begins where the range before ended. The members of other
//! ranges are unpacked when their turn comes, and so are damaged and large ones.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::vec;

use super::MAGIC;
use super::members::{Form, Members, Trouble, Unpack};
use crate::sources::open::{Meter, buffered};

/// Packed bytes of a range.
pub(super) const RANGE: u64 = 1 << 19;

/// Bytes that are unpacked of a range ahead.
const MOST: usize = 8 << 20;

/// Takes the members that other threads unpack.
pub(super) struct Ahead {
    file: Arc<Packed>,
    /// What each thread unpacked.
    threads: Vec<Receiver<Option<Unpacked>>>,
    /// Ranges that were taken so far, and the end of the last one.
    taken: usize,
    end: u64,
    /// Members of the last range that are left, and where the one behind them begins.
    members: vec::IntoIter<Member>,
    next: u64,
    member: Member,
    /// Bytes of the member that were passed.
    at: usize,
    /// Reads the rest of the last range.
    in_order: Option<Members>,
}

#[derive(Default)]
struct Member {
    start: u64,
    bytes: Vec<u8>,
}

/// The first members of a range.
struct Unpacked {
    begins: u64,
    members: Vec<Member>,
    /// Where the member behind them begins.
    end: u64,
}

impl Ahead {
    /// Begins to unpack a file, by `threads` threads and in ranges of `range` bytes.
    ///
    /// Returns `None` for a file without compression, and for one of a single range.
    pub(super) fn new(
        path: &Path,
        threads: usize,
        range: u64,
        meter: &Meter,
    ) -> io::Result<Option<Self>> {
        if threads < 2 {
            return Ok(None);
        }
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        if length <= range {
            return Ok(None);
        }
        let Some((form, dictionary)) = Members::new(buffered(file))?.packing() else {
            return Ok(None);
        };
        let end = |at: u64| length.min((at + 1) * range);
        let ranges = (0..length.div_ceil(range)).map(|at| at * range..end(at)).collect();
        let path = path.to_path_buf();
        let file = Arc::new(Packed { path, form, dictionary, ranges, meter: meter.clone() });
        let thread = |first| {
            let (sender, receiver) = sync_channel(1);
            let file = Arc::clone(&file);
            let thread = std::thread::Builder::new().name("unpacking".to_owned());
            thread.spawn(move || file.unpack(first, threads, &sender)).map(|_| receiver)
        };
        let threads = (0..threads).map(thread).collect::<io::Result<_>>()?;
        let members = Vec::new().into_iter();
        let (member, in_order) = (Member::default(), None);
        Ok(Some(Self {
            file,
            threads,
            taken: 0,
            end: 0,
            members,
            next: 0,
            member,
            at: 0,
            in_order,
        }))
    }
}

impl Unpack for Ahead {
    fn offset(&self) -> u64 {
        self.in_order.as_ref().map_or(self.member.start, Members::offset)
    }

    fn fill(&mut self, wanted: usize) -> Result<&[u8], Trouble> {
        match &mut self.in_order {
            Some(members) => members.fill(wanted),
            None => Ok(self.member.bytes.get(self.at..).unwrap_or_default()),
        }
    }

    fn pass(&mut self, bytes: usize) {
        match &mut self.in_order {
            Some(members) => members.pass(bytes),
            None => self.at = (self.at + bytes).min(self.member.bytes.len()),
        }
    }

    fn next(&mut self) -> Result<bool, Trouble> {
        loop {
            if let Some(members) = &mut self.in_order {
                if !members.next()? {
                    return Ok(false);
                }
                if members.offset() < self.end {
                    return Ok(true);
                }
                self.next = members.offset();
                self.in_order = None;
            }
            if let Some(member) = self.members.next() {
                (self.member, self.at) = (member, 0);
                return Ok(true);
            }
            if self.next < self.end {
                self.in_order = Some(self.file.members(self.next).map_err(Trouble::Io)?);
            } else {
                self.take_range();
            }
        }
    }
}

impl Ahead {
    fn take_range(&mut self) {
        let Some(range) = self.file.ranges.get(self.taken) else {
            // The end of the file, or what was appended to it.
            self.end = u64::MAX;
            return;
        };
        self.end = range.end;
        let thread = self.threads.get(self.taken % self.threads.len());
        let unpacked = thread.and_then(|thread| thread.recv().ok()).flatten();
        self.taken += 1;
        if let Some(Unpacked { begins, members, end }) = unpacked
            && begins == self.next
        {
            (self.members, self.next) = (members.into_iter(), end);
        }
    }
}

/// A file of members.
struct Packed {
    path: PathBuf,
    form: Form,
    dictionary: Option<Vec<u8>>,
    ranges: Vec<Range<u64>>,
    meter: Meter,
}

impl Packed {
    /// Unpacks every `step`-th range until no more are taken.
    fn unpack(&self, first: usize, step: usize, sender: &SyncSender<Option<Unpacked>>) {
        for range in self.ranges.iter().skip(first).step_by(step) {
            // A failure will be met again in order.
            let unpacked = self.range(range).ok().flatten();
            self.meter.add(range.end - range.start);
            if sender.send(unpacked).is_err() {
                return;
            }
        }
    }

    fn range(&self, range: &Range<u64>) -> Result<Option<Unpacked>, Trouble> {
        let mut members = self.members(range.start.saturating_sub(1)).map_err(Trouble::Io)?;
        if range.start > 0 {
            members.skip().map_err(Trouble::Io)?;
        }
        let is_record = members.next()? && members.fill(MAGIC.len())?.starts_with(MAGIC);
        let begins = members.offset();
        if !is_record || begins >= range.end {
            return Ok(None);
        }
        let mut unpacked = Unpacked { begins, members: Vec::new(), end: begins };
        let mut left = MOST;
        while unpacked.end < range.end {
            let mut bytes = Vec::new();
            loop {
                let Ok(found) = members.fill(1) else { return Ok(Some(unpacked)) };
                let len = found.len();
                if len == 0 {
                    break;
                }
                if len > left {
                    return Ok(Some(unpacked));
                }
                left -= len;
                bytes.extend_from_slice(found);
                members.pass(len);
            }
            unpacked.members.push(Member { start: unpacked.end, bytes });
            let more = members.next();
            unpacked.end = members.offset();
            if !matches!(more, Ok(true)) {
                break;
            }
        }
        Ok(Some(unpacked))
    }

    /// Reads members in order from where one begins.
    fn members(&self, start: u64) -> io::Result<Members> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(start))?;
        Ok(Members::at(buffered(file), start, self.form, self.dictionary.clone()))
    }
}
