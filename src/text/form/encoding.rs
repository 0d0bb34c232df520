//! Encodings: detects the encoding of a file's bytes and decodes them.
//!
//! Signs of an encoding, the most reliable first: a byte order mark, valid UTF-8, the pattern of
//! UTF-16, the declaration in a page, and the statistics of `chardetng` (GB18030, Big5,
//! `Shift_JIS`, EUC-KR, EUC-JP and the single-byte encodings of the web).

mod declared;
mod utf16;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};

use crate::error::Error;

/// Maximum number of bytes that the statistics read.
const SAMPLE: usize = 1 << 16;

/// Maximum number of bytes outside ASCII that the statistics read.
///
/// A thousand characters of Chinese are enough, and reading more takes longer than decoding.
const SAMPLE_MARKS: usize = 1 << 11;

/// Bytes of context before the first byte outside ASCII; the letters beside it are evidence.
const CONTEXT: usize = 16;

/// Minimum number of valid characters per malformed one in damaged UTF-8.
const VALID_PER_MALFORMED: usize = 10;

/// Minimum number of bytes per control character in text.
const BYTES_PER_CONTROL: usize = 50;

/// The encoding of a file, named or to be detected.
///
/// Parsed from `auto` or a label of the [Encoding Standard](https://encoding.spec.whatwg.org):
/// `utf-8`, `gbk`, `gb18030`, `big5`, `utf-16le`, `windows-1252`, ...
///
/// ```
/// use hamdex::text::Encoding;
///
/// let big5: Encoding = "big5".parse()?;
/// assert_eq!(big5.decode(b"\xa4\xa4\xa4\xe5").text, "中文");
/// assert_eq!(Encoding::AUTO.decode("中文".as_bytes()).encoding, "UTF-8");
/// assert!("klingon".parse::<Encoding>().is_err());
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Encoding(Option<&'static encoding_rs::Encoding>);

/// A text and the encoding it was decoded from.
///
/// ```
/// use hamdex::text::{Decoded, decode};
///
/// let Decoded { text, encoding, replaced, .. } = decode("晴天".as_bytes());
/// assert_eq!((&*text, encoding, replaced), ("晴天", "UTF-8", 0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decoded<'a> {
    /// The text, without a byte order mark; borrowed if the bytes are valid UTF-8.
    pub text: Cow<'a, str>,
    /// Name of the encoding, as the Encoding Standard spells it.
    pub encoding: &'static str,
    /// Number of malformed sequences; each one is a U+FFFD in the text.
    pub replaced: usize,
}

/// Decodes bytes of an unknown encoding; never fails.
///
/// ```
/// use hamdex::text::decode;
///
/// assert_eq!(decode("晴天".as_bytes()).text, "晴天");
/// assert_eq!(decode(b"\xff\xfe\x74\x66").text, "晴");
/// let damaged = decode(b"\xef\xbb\xbfa\xffb");
/// assert_eq!((damaged.text.as_ref(), damaged.replaced), ("a\u{fffd}b", 1));
/// ```
pub fn decode(bytes: &[u8]) -> Decoded<'_> {
    Encoding::AUTO.decode(bytes)
}

/// Returns true if the bytes are not text in any encoding.
///
/// Valid UTF-8 without a NUL is text, and so is UTF-16. Other bytes are text if they have no NUL
/// and at most one control character in 50 bytes.
///
/// ```
/// use hamdex::text::looks_binary;
///
/// assert!(looks_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"));
/// assert!(!looks_binary(b"h\0i\0 \0y\0o\0u\0"));
/// assert!(!looks_binary(b""));
/// ```
pub fn looks_binary(bytes: &[u8]) -> bool {
    if encoding_rs::Encoding::for_bom(bytes).is_some_and(|(found, _)| found != UTF_8) {
        return false;
    }
    let nul = bytes.contains(&0);
    if !nul && std::str::from_utf8(bytes).is_ok() {
        return false;
    }
    if utf16::detect(bytes).is_some() {
        return false;
    }
    let control = |&&byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127);
    nul || bytes.iter().filter(control).count() * BYTES_PER_CONTROL > bytes.len()
}

impl Encoding {
    /// Detects the encoding from the bytes.
    pub const AUTO: Self = Self(None);

    /// Decodes bytes; each malformed sequence becomes U+FFFD and is counted.
    ///
    /// A byte order mark takes precedence over a named encoding.
    pub fn decode(self, bytes: &[u8]) -> Decoded<'_> {
        if let Some((marked, len)) = encoding_rs::Encoding::for_bom(bytes) {
            return decoded(marked, bytes.split_at(len).1);
        }
        if let Some(named) = self.0 {
            return decoded(named, bytes);
        }
        match std::str::from_utf8(bytes) {
            // UTF-16 of alphabets is valid UTF-8, with control characters for its high bytes.
            Ok(_) if bytes.contains(&0) => decoded(utf16::detect(bytes).unwrap_or(UTF_8), bytes),
            Ok(text) => Decoded { text: Cow::Borrowed(text), encoding: UTF_8.name(), replaced: 0 },
            Err(_) => decoded(detect(bytes), bytes),
        }
    }

    /// Decodes bytes; returns `None` if they are not text.
    ///
    /// Bytes are not text if [`looks_binary`] returns true. For a named encoding that does not
    /// contain ASCII, such as UTF-16, they are not text if they decode to a NUL or to more than one
    /// malformed sequence in ten bytes of text.
    ///
    /// ```
    /// use hamdex::text::Encoding;
    ///
    /// assert_eq!(Encoding::AUTO.decode_text(b"plain").unwrap().text, "plain");
    /// assert!(Encoding::AUTO.decode_text(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").is_none());
    /// ```
    pub fn decode_text(self, bytes: &[u8]) -> Option<Decoded<'_>> {
        // Fast path for nearly every file: valid UTF-8, checked once.
        if self == Self::AUTO
            && !bytes.contains(&0)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            let text = Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text));
            return Some(Decoded { text, encoding: UTF_8.name(), replaced: 0 });
        }
        if self.0.is_none_or(encoding_rs::Encoding::is_ascii_compatible) {
            return (!looks_binary(bytes)).then(|| self.decode(bytes));
        }
        let decoded = self.decode(bytes);
        let few = decoded.replaced * VALID_PER_MALFORMED <= decoded.text.len();
        (few && !decoded.text.contains('\0')).then_some(decoded)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or("auto", encoding_rs::Encoding::name))
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "auto" {
            return Ok(Self::AUTO);
        }
        match encoding_rs::Encoding::for_label_no_replacement(text.as_bytes()) {
            Some(found) => Ok(Self(Some(found))),
            None => Err(Error::InvalidOption {
                name: "encoding",
                reason: format!(
                    "unknown encoding \"{text}\"; use auto or a label of the Encoding Standard, \
                     such as utf-8, gb18030, big5, utf-16le or windows-1252"
                ),
            }),
        }
    }
}

/// Guesses the encoding of bytes that are not valid UTF-8 and have no byte order mark.
fn detect(bytes: &[u8]) -> &'static encoding_rs::Encoding {
    if let Some(found) = utf16::detect(bytes) {
        return found;
    }
    if is_damaged_utf8(bytes) {
        return UTF_8;
    }
    // A declaration of Unicode is wrong here: the bytes are neither UTF-8 nor UTF-16.
    if let Some(found) = declared::encoding(bytes)
        && ![UTF_8, UTF_16LE, UTF_16BE].contains(&found)
    {
        return found;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let (sample, whole) = sample(bytes);
    detector.feed(sample, whole);
    detector.guess(None, Utf8Detection::Deny)
}

/// Returns the bytes for the statistics, and whether they reach the end.
fn sample(bytes: &[u8]) -> (&[u8], bool) {
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let (_, rest) = bytes.split_at(first.saturating_sub(CONTEXT));
    let mut marks = 0;
    let enough = rest.iter().take(SAMPLE).position(|byte| {
        marks += usize::from(!byte.is_ascii());
        marks == SAMPLE_MARKS
    });
    let sample = rest.get(..enough.unwrap_or(SAMPLE)).unwrap_or(rest);
    (sample, sample.len() == rest.len())
}

/// Returns true if nearly all characters outside ASCII are valid UTF-8.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut malformed) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        malformed += usize::from(!chunk.invalid().is_empty());
    }
    valid > 0 && malformed * VALID_PER_MALFORMED <= valid
}

fn decoded<'a>(from: &'static encoding_rs::Encoding, bytes: &'a [u8]) -> Decoded<'a> {
    let (text, malformed) = from.decode_without_bom_handling(bytes);
    let replaced = if malformed { text.matches('\u{fffd}').count() } else { 0 };
    Decoded { text, encoding: from.name(), replaced }
}

#[cfg(test)]
mod tests;
