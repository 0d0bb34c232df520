//! Members: a file of records, compressed one by one or not at all, becomes bytes with offsets.
//!
//! A record of a crawl is one gzip member or one Zstandard frame, readable by its offset alone.
//! Damage in one member does not affect the next.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder;

use crate::sources::open::{Reader, WINDOW_LOG};

const GZIP: &[u8] = b"\x1f\x8b\x08";
const ZSTANDARD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Begins the frame that holds the dictionary of all others, as the format has it.
const DICTIONARY: &[u8] = b"\x5d\x2a\x4d\x18";

/// Bytes of the largest dictionary, unpacked.
const LARGEST_DICTIONARY: u64 = 16 << 20;

/// Bytes that are unpacked at once.
const BUFFER: usize = 1 << 16;

/// Why there are no more bytes.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The file cannot be read on.
    Io(io::Error),
    /// The member is damaged; the next one may be whole.
    Damaged(String),
}

/// The bytes of a file, member by member.
pub(super) trait Unpack: Send {
    /// Returns the offset of the next byte in a plain file, else that of its member.
    fn offset(&self) -> u64;

    /// Returns the next `wanted` bytes of the member, fewer at its end.
    fn fill(&mut self, wanted: usize) -> Result<&[u8], Trouble>;

    /// Skips bytes that were filled.
    fn pass(&mut self, bytes: usize);

    /// Continues with the next member if this one has ended; false at the end of the file.
    fn next(&mut self) -> Result<bool, Trouble>;
}

/// Unpacks the members one after another.
pub(super) struct Members {
    state: State,
    form: Form,
    dictionary: Option<Vec<u8>>,
    buffer: Vec<u8>,
    at: usize,
    /// Where the member begins.
    start: u64,
}

/// Compression of a file, detected from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Gzip,
    Zstandard,
}

enum State {
    /// Between two members.
    Between(Input),
    Plain(Input),
    Gzip(Box<GzDecoder<Input>>),
    Zstandard(Box<Decoder<'static, Input>>),
    /// While a member is opened or closed.
    Moving,
}

/// Counts the bytes read from a file, and returns inspected bytes to it.
struct Input {
    reader: Reader,
    front: Vec<u8>,
    taken: u64,
}

impl Input {
    /// Puts bytes that were just taken in front again.
    fn put_back(&mut self, bytes: &[u8]) {
        self.taken -= bytes.len() as u64;
        self.front = [bytes, &self.front].concat();
    }

    /// Returns true if there is another byte.
    fn goes_on(&mut self) -> io::Result<bool> {
        loop {
            match self.fill_buf() {
                Ok(bytes) => return Ok(!bytes.is_empty()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(to)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.front.is_empty() { self.reader.fill_buf() } else { Ok(&self.front) }
    }

    fn consume(&mut self, amount: usize) {
        self.taken += amount as u64;
        if self.front.is_empty() {
            self.reader.consume(amount);
        } else {
            self.front.drain(..amount.min(self.front.len()));
        }
    }
}

impl Members {
    /// The state before the first member.
    pub(super) fn new(reader: Reader) -> io::Result<Self> {
        let mut input = Input { reader, front: Vec::new(), taken: 0 };
        let mut head = Vec::new();
        (&mut input).take(ZSTANDARD.len() as u64).read_to_end(&mut head)?;
        input.put_back(&head);
        let form = if head.starts_with(GZIP) {
            Form::Gzip
        } else if head.starts_with(ZSTANDARD) || head.starts_with(DICTIONARY) {
            Form::Zstandard
        } else {
            Form::Plain
        };
        Ok(Self::between(input, form, None))
    }

    /// The state at an offset, before a member or within one to be skipped.
    pub(super) fn at(reader: Reader, offset: u64, form: Form, dictionary: Option<Vec<u8>>) -> Self {
        Self::between(Input { reader, front: Vec::new(), taken: offset }, form, dictionary)
    }

    fn between(input: Input, form: Form, dictionary: Option<Vec<u8>>) -> Self {
        let start = input.taken;
        Self { state: State::Between(input), form, dictionary, buffer: Vec::new(), at: 0, start }
    }

    /// Returns how a file is compressed, and the dictionary at its beginning.
    ///
    /// Returns `None` without compression, and if the dictionary cannot be read.
    pub(super) fn packing(mut self) -> Option<(Form, Option<Vec<u8>>)> {
        match (self.form, self.leave()) {
            (Form::Gzip, _) => {}
            (Form::Zstandard, State::Between(mut input)) => self.learn(&mut input).ok()?,
            _ => return None,
        }
        Some((self.form, self.dictionary))
    }

    /// Skips at least a byte, up to what looks like the beginning of a member.
    pub(super) fn skip(&mut self) -> io::Result<()> {
        let State::Between(mut input) = self.leave() else { return Ok(()) };
        let found = self.look_on(&mut input);
        self.state = State::Between(input);
        found
    }
}

impl Unpack for Members {
    fn offset(&self) -> u64 {
        match &self.state {
            State::Plain(input) => input.taken - (self.buffer.len() - self.at) as u64,
            State::Between(_) | State::Gzip(_) | State::Zstandard(_) | State::Moving => self.start,
        }
    }

    fn fill(&mut self, wanted: usize) -> Result<&[u8], Trouble> {
        while self.buffer.len() - self.at < wanted {
            if self.at > 0 {
                self.buffer.drain(..self.at);
                self.at = 0;
            }
            let had = self.buffer.len();
            self.buffer.resize(had + BUFFER, 0);
            let to = self.buffer.get_mut(had..).unwrap_or_default();
            let read = match &mut self.state {
                State::Between(_) | State::Moving => Ok(0),
                State::Plain(input) => input.read(to),
                State::Gzip(decoder) => decoder.read(to),
                State::Zstandard(decoder) => decoder.read(to),
            };
            self.buffer.truncate(had + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.clear();
                    return Err(self.trouble(error));
                }
            }
        }
        Ok(self.buffer.get(self.at..).unwrap_or_default())
    }

    fn pass(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.buffer.len());
    }

    fn next(&mut self) -> Result<bool, Trouble> {
        let mut input = match self.leave() {
            State::Plain(input) => {
                self.state = State::Plain(input);
                return Ok(false);
            }
            State::Gzip(decoder) => decoder.into_inner(),
            State::Zstandard(decoder) => decoder.finish(),
            State::Between(input) => input,
            State::Moving => return Ok(false),
        };
        self.start = input.taken;
        match input.goes_on() {
            Ok(false) => {
                self.state = State::Between(input);
                return Ok(false);
            }
            Ok(true) => {}
            Err(error) => {
                self.state = State::Between(input);
                return Err(Trouble::Io(error));
            }
        }
        match self.open(input) {
            Ok(state) => {
                self.state = state;
                Ok(true)
            }
            Err((input, error)) => {
                self.state = State::Between(input);
                Err(self.trouble(error))
            }
        }
    }
}

impl Members {
    fn leave(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Moving)
    }

    fn open(&mut self, mut input: Input) -> Result<State, (Input, io::Error)> {
        match self.form {
            Form::Plain => Ok(State::Plain(input)),
            Form::Gzip => Ok(State::Gzip(Box::new(GzDecoder::new(input)))),
            Form::Zstandard => {
                if self.start == 0
                    && let Err(error) = self.learn(&mut input)
                {
                    return Err((input, error));
                }
                let decoder = match &self.dictionary {
                    Some(dictionary) => Decoder::try_with_dictionary(input, dictionary),
                    None => Decoder::try_with_buffer(input),
                };
                let mut decoder = decoder?.single_frame();
                match decoder.window_log_max(WINDOW_LOG) {
                    Ok(()) => Ok(State::Zstandard(Box::new(decoder))),
                    Err(error) => Err((decoder.finish(), error)),
                }
            }
        }
    }

    /// Takes the dictionary that stands before all frames, if there is one.
    fn learn(&mut self, input: &mut Input) -> io::Result<()> {
        if !input.fill_buf()?.starts_with(DICTIONARY) {
            return Ok(());
        }
        let mut head = [0; 8];
        input.read_exact(&mut head)?;
        let [_, _, _, _, length @ ..] = head;
        let length = length.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let mut bytes = Vec::new();
        input.take(length.min(LARGEST_DICTIONARY + 1)).read_to_end(&mut bytes)?;
        if bytes.starts_with(ZSTANDARD) {
            let mut packed = Decoder::with_buffer(&bytes[..])?;
            packed.window_log_max(WINDOW_LOG)?;
            let mut plain = Vec::new();
            packed.take(LARGEST_DICTIONARY + 1).read_to_end(&mut plain)?;
            bytes = plain;
        }
        if bytes.len() as u64 > LARGEST_DICTIONARY {
            return Err(io::Error::other("a dictionary above 16 MiB"));
        }
        self.dictionary = Some(bytes);
        Ok(())
    }

    /// Distinguishes damage from an unreadable file; after damage the next member is searched.
    fn trouble(&mut self, error: io::Error) -> Trouble {
        if error.raw_os_error().is_some() || self.form == Form::Plain {
            return Trouble::Io(error);
        }
        let mut input = match self.leave() {
            State::Plain(input) | State::Between(input) => input,
            State::Gzip(decoder) => decoder.into_inner(),
            State::Zstandard(decoder) => decoder.into_inner(),
            State::Moving => return Trouble::Io(error),
        };
        let found = self.look_on(&mut input);
        self.state = State::Between(input);
        match found {
            Ok(()) => Trouble::Damaged(error.to_string()),
            Err(error) => Trouble::Io(error),
        }
    }

    /// Skips bytes up to what looks like the beginning of a member.
    fn look_on(&self, input: &mut Input) -> io::Result<()> {
        let magic = if self.form == Form::Gzip { GZIP } else { ZSTANDARD };
        if input.taken == self.start && input.goes_on()? {
            input.consume(1);
        }
        // No part of either number is the beginning of it, so a mismatch begins anew.
        let mut matched = 0;
        while input.goes_on()? {
            let bytes = input.fill_buf()?;
            let mut taken = 0;
            for byte in bytes {
                taken += 1;
                matched = if magic.get(matched) == Some(byte) {
                    matched + 1
                } else {
                    usize::from(magic.first() == Some(byte))
                };
                if matched == magic.len() {
                    break;
                }
            }
            input.consume(taken);
            if matched == magic.len() {
                input.put_back(magic);
                return Ok(());
            }
        }
        Ok(())
    }
}
