//! Document names: what a person or a JSON row calls a document becomes a stored key and back.
//!
//! A JSON string is stored as its UTF-8, a whole number from 0 to 2^61 - 1 as 8 bytes big-endian;
//! that is also the key of a raw fingerprint, whose name is its position. The two never meet: the
//! first byte of such a number is below 0x20, and no text id may begin with a control character.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::reject::Reason;
use crate::face::visible::unescaped;

/// Longest document key in bytes, as the library documents it.
pub const MAX_KEY: usize = 1024;

/// Bytes below this one are control characters; numbers begin with them, texts never do.
const FIRST_TEXT_BYTE: u8 = 0x20;

/// A stored key in printed form: number, text, or any other key of a library caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    Number(u64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Name<'a> {
    pub fn of(key: &'a [u8]) -> Self {
        if let Ok(number) = key.try_into().map(u64::from_be_bytes)
            && is_number(number)
        {
            return Self::Number(number);
        }
        match std::str::from_utf8(key) {
            Ok(text) if !text.starts_with(char::is_control) => Self::Text(text),
            _ => Self::Bytes(key),
        }
    }
}

impl fmt::Display for Name<'_> {
    /// Writes the name on one line: tabs and line ends are escaped, odd bytes are hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) if text.contains(['\t', '\n', '\r']) => {
                f.write_str(&text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
            }
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => write!(f, "0x{}", Hex(bytes)),
        }
    }
}

impl Serialize for Name<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("bytes", &Hex(bytes).to_string())?;
                map.end()
            }
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Returns the key of a whole number or of a raw fingerprint's position.
pub fn of_number(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn is_number(number: u64) -> bool {
    let [first, ..] = number.to_be_bytes();
    first < FIRST_TEXT_BYTE
}

/// Checks a text id and returns its key.
pub fn of_text(text: &str) -> Result<Vec<u8>, Reason> {
    if text.is_empty() {
        Err(Reason::Id("id is empty"))
    } else if text.starts_with(char::is_control) {
        Err(Reason::Id("id begins with a control character"))
    } else if text.len() > MAX_KEY {
        Err(Reason::LongId(text.len()))
    } else {
        Ok(text.as_bytes().to_vec())
    }
}

/// Returns the key of an id as a JSON row has it; `None` for null.
pub fn of_json(raw: &str) -> Result<Option<Vec<u8>>, Reason> {
    const WRONG: Reason = Reason::Id("id is neither a string nor a number");
    match raw.as_bytes() {
        [b'"', ..] => {
            let text: std::borrow::Cow<'_, str> = serde_json::from_str(raw).map_err(|_| WRONG)?;
            of_text(&text).map(Some)
        }
        [b'0'..=b'9' | b'-', ..] => match raw.parse::<u64>() {
            Ok(number) if is_number(number) => Ok(Some(of_number(number).to_vec())),
            _ => of_text(raw).map(Some),
        },
        [b'{', ..] => {
            #[derive(serde::Deserialize)]
            struct Bytes {
                bytes: String,
            }
            let Bytes { bytes } = serde_json::from_str(raw).map_err(|_| WRONG)?;
            let key = from_hex(&bytes).filter(|key| !key.is_empty()).ok_or(WRONG)?;
            if key.len() > MAX_KEY { Err(Reason::LongId(key.len())) } else { Ok(Some(key)) }
        }
        [b'n', ..] => Ok(None),
        _ => Err(WRONG),
    }
}

/// Returns the keys that a name typed by a person may mean, the likeliest first.
///
/// That is the text itself, then the number, then what a verb shows in this way: escapes as on a
/// terminal or in `pairs`, `0x` and hexadecimal digits, or JSON as in `export`.
pub fn spelled(name: &str) -> Vec<Vec<u8>> {
    let number = name.parse::<u64>().ok().filter(|&n| is_number(n) && n.to_string() == name);
    let bytes = name.strip_prefix("0x").and_then(from_hex).filter(|key| !key.is_empty());
    let mut keys = vec![name.as_bytes().to_vec()];
    keys.extend(number.map(|n| of_number(n).to_vec()));
    keys.extend(unescaped(name).map(String::into_bytes));
    keys.extend(bytes);
    if name.starts_with(['"', '{']) {
        keys.extend(of_json(name).ok().flatten());
    }
    keys.retain(|key| (1..=MAX_KEY).contains(&key.len()));
    keys
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| u8::try_from(high * 16 + low).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::visible::visible;

    fn json(key: &[u8]) -> String {
        serde_json::to_string(&Name::of(key)).unwrap()
    }

    #[test]
    fn every_name_survives_the_way_through_json() {
        let keys: [&[u8]; 8] = [
            b"a",
            b"12345678",
            "\u{7f8e}\u{56fd}".as_bytes(),
            &7_u64.to_be_bytes(),
            &[0; 8],
            &[0xff; 8],
            &[0; 3],
            b"a\tb",
        ];
        for key in keys {
            assert_eq!(of_json(&json(key)).unwrap().as_deref(), Some(key), "{}", json(key));
        }
    }

    #[test]
    fn numbers_and_texts_keep_apart() {
        assert_eq!(of_json("42").unwrap().unwrap(), 42_u64.to_be_bytes());
        assert_eq!(of_json("\"42\"").unwrap().unwrap(), b"42");
        assert_eq!(of_json("-5").unwrap().unwrap(), b"-5");
        assert_eq!(of_json("1.5").unwrap().unwrap(), b"1.5");
        let edge = (1_u64 << 61) - 1;
        assert_eq!(Name::of(&of_json(&edge.to_string()).unwrap().unwrap()), Name::Number(edge));
        assert_eq!(
            of_json(&(edge + 1).to_string()).unwrap().unwrap(),
            (edge + 1).to_string().as_bytes()
        );
        assert_eq!(of_json("null").unwrap(), None);
    }

    #[test]
    fn ids_that_cannot_be_keys_are_refused() {
        let long = format!("\"{}\"", "x".repeat(MAX_KEY + 1));
        for bad in [
            "\"\"",
            "\"\\u0000abcdefg\"",
            "true",
            "[1]",
            "{\"bytes\":\"0\"}",
            "{\"bytes\":\"\"}",
            &long,
        ] {
            assert!(of_json(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shown_names_stay_on_one_line_and_are_found_again() {
        assert_eq!(Name::of(b"a\tb").to_string(), "a\\tb");
        assert_eq!(Name::of(&[0xff, 0]).to_string(), "0xff00");
        assert_eq!(spelled("42"), vec![b"42".to_vec(), 42_u64.to_be_bytes().to_vec()]);
        assert_eq!(spelled("042"), vec![b"042".to_vec()]);
        assert!(spelled("0xff00").contains(&vec![0xff, 0]));
        assert!(spelled("").is_empty());
        let keys: [&[u8]; 6] =
            [b"a\tb", b"\xff\x00", b"a\\tb", "a\u{202e}b".as_bytes(), &[0; 8], b"\x01x"];
        for key in keys {
            let shown = Name::of(key).to_string();
            for spelling in [visible(&shown).into_owned(), shown, json(key)] {
                assert!(spelled(&spelling).iter().any(|found| found == key), "{spelling}");
            }
        }
    }
}
