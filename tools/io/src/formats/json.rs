//! JSON documents: an array of objects, or objects over several lines, become one row a line.
//!
//! The bytes of a value do not change, except for line ends, which become spaces.

use std::io::{self, BufRead};

use super::chunk::MAX_ROW;
use crate::sources::open::{self, Pieces, Reader};

/// Reads each value as a line.
pub(crate) fn lines(reader: Reader) -> Reader {
    open::joined(Values { reader })
}

struct Values {
    reader: Reader,
}

/// Where the reader is within a value.
#[derive(Debug, Default)]
struct Place {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The value is a number or a word, which has no closing byte.
    bare: bool,
}

impl Place {
    /// Takes the next byte of a value; true if the value ends with it.
    fn closes(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.depth == 0 && !self.in_string && !self.bare
    }
}

impl Pieces for Values {
    fn next_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Some(first) = self.first()? else { return Ok(false) };
        let mut place = Place { bare: !matches!(first, b'{' | b'"'), ..Place::default() };
        loop {
            let bytes = self.reader.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let mut used = 0;
            let mut ends = false;
            for &byte in bytes {
                // An array within the array is one value, which is no row.
                if place.bare && place.depth == 0 && matches!(byte, b',' | b']' | b'\n') {
                    ends = true;
                    break;
                }
                used += 1;
                // What is cut off here is reported as broken JSON.
                if (buffer.len() as u64) < MAX_ROW {
                    buffer.push(if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
                }
                if place.closes(byte) {
                    ends = true;
                    break;
                }
            }
            self.reader.consume(used);
            if ends {
                break;
            }
        }
        buffer.push(b'\n');
        Ok(true)
    }
}

impl Values {
    /// Skips what is between values; returns the first byte of the next one.
    fn first(&mut self) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.reader.fill_buf()?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let between = |byte: &u8| {
                byte.is_ascii_whitespace()
                    || matches!(byte, b',' | b'[' | b']' | 0xef | 0xbb | 0xbf)
            };
            let skipped = bytes.iter().take_while(|byte| between(byte)).count();
            let first = bytes.get(skipped).copied();
            self.reader.consume(skipped);
            if first.is_some() {
                return Ok(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn read(content: &str) -> String {
        let reader = open::buffered(io::Cursor::new(content.as_bytes().to_vec()));
        let mut read = String::new();
        lines(reader).read_to_string(&mut read).unwrap();
        read
    }

    #[test]
    fn values_become_lines_whatever_is_between() {
        assert_eq!(read("[{\"a\":1},\n {\"b\":[{}]}]\n"), "{\"a\":1}\n{\"b\":[{}]}\n");
        assert_eq!(read("{\n\"a\":\"x}\\\"{\"\n}\n{}"), "{ \"a\":\"x}\\\"{\" }\n{}\n");
        assert_eq!(read("[1, \"two\", {}]"), "1\n\"two\"\n{}\n");
        assert_eq!(read(""), "");
        assert_eq!(read("[]"), "");
        assert_eq!(read("[{\"a\":"), "{\"a\":\n");
    }
}
