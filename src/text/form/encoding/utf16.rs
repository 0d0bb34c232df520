//! UTF-16 without a byte order mark: detected by decoding in both byte orders.
//!
//! The wrong order turns spaces, line ends and the most common characters of Chinese into
//! characters that are rare or not assigned.

use encoding_rs::{UTF_16BE, UTF_16LE};

/// Maximum number of code units that are read.
const SAMPLE: usize = 1 << 12;

/// Minimum length in bytes at which an odd length is allowed.
const ODD: usize = 64;

/// Minimum percentage of characters from scripts in use today.
const PLAUSIBLE: usize = 97;

/// Minimum percentage of common characters.
const COMMON: usize = 12;

/// The most common characters of Chinese: at least a quarter of any text.
const HAN: &str = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之\
                   年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理\
                   這個們來為國說時會對於過發後經麼學現當沒動還進樣";

/// Returns UTF-16 in the byte order that the bytes probably have, or `None`.
///
/// The bytes must hold a NUL or not be valid UTF-8: any two ASCII letters are an ideograph in
/// UTF-16.
pub(super) fn detect(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    // An odd byte is damage, which is acceptable only in long data.
    if !bytes.len().is_multiple_of(2) && bytes.len() < ODD {
        return None;
    }
    let little = common_share(bytes, |[low, high]| u16::from_be_bytes([high, low]));
    let big = common_share(bytes, u16::from_be_bytes);
    match (little, big) {
        (None, None) => None,
        (little, big) if big > little => Some(UTF_16BE),
        _ => Some(UTF_16LE),
    }
}

/// Returns the percentage of common characters; `None` if the bytes are not text in this order.
fn common_share(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<usize> {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units = pairs.iter().take(SAMPLE).map(|&pair| unit(pair));
    let (mut all, mut plausible, mut common) = (0, 0, 0);
    let mut decoded = char::decode_utf16(units).peekable();
    while let Some(found) = decoded.next() {
        let c = match found {
            Ok(c) => c,
            // The sample may end within a pair.
            Err(_) if decoded.peek().is_none() && pairs.len() > SAMPLE => break,
            Err(_) => return None,
        };
        if matches!(c, '\0'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}') {
            return None;
        }
        all += 1;
        plausible += usize::from(is_plausible(c));
        common += usize::from(is_common(c));
    }
    let share = common * 100 / all.max(1);
    (plausible * 100 >= PLAUSIBLE * all && share >= COMMON).then_some(share)
}

/// Returns true for letters, punctuation and symbols of scripts in use; false for private use.
fn is_plausible(c: char) -> bool {
    matches!(c, '\t'..='\u{17f}' | '\u{300}'..='\u{6ff}' | '\u{900}'..='\u{97f}'
        | '\u{e00}'..='\u{e7f}' | '\u{1e00}'..='\u{1fff}' | '\u{2010}'..='\u{206f}'
        | '\u{20a0}'..='\u{22ff}' | '\u{2460}'..='\u{27bf}' | '\u{3000}'..='\u{33ff}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{fe30}'..='\u{fe4f}'
        | '\u{feff}' | '\u{ff00}'..='\u{ffef}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{2ffff}')
}

fn is_common(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{3001}' | '\u{3002}' | '\u{ff01}' | '\u{ff0c}'
        | '\u{201c}' | '\u{201d}' | '\u{3041}'..='\u{3093}')
        || HAN.contains(c)
}
