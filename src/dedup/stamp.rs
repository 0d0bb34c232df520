//! Stamps order the values of a column, such as dates and versions, the newest last.
//!
//! JSON, CSV, Parquet and Arrow write one date or version in different ways. Stamps compare the
//! value, not its spelling.

use std::cmp::Ordering;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};

/// A date or version by which documents are ordered.
///
/// The order is: missing, then texts, numbers and times. All input formats use this order to keep
/// the newest document of a group. A text that spells a number or a time is equal to it; see
/// [`Stamp::from_text`].
///
/// ```
/// use hamdex::dedup::Stamp;
///
/// assert!(Stamp::from_text("9") < Stamp::from_text("10"));
/// assert_eq!(Stamp::from_text("10"), Stamp::from(10_i64));
/// // 10:00 in Tokyo is 01:00 UTC.
/// let tokyo = Stamp::from_text("2024-05-06T10:00:00+09:00");
/// assert!(tokyo < Stamp::from_text("2024-05-06T05:00:00Z"));
/// assert!(Stamp::Missing < Stamp::from_text("draft"));
/// ```
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stamp {
    /// No value; below every other stamp.
    #[default]
    Missing,
    /// A text that is neither a number nor a time; ordered by code points.
    Text(Box<str>),
    /// A number of any size, compared without loss.
    Number(Number),
    /// An instant since 1970-01-01T00:00:00Z.
    Time {
        /// Whole seconds.
        seconds: i64,
        /// Nanoseconds after those; values from 1,000,000,000 are in a leap second.
        nanos: u32,
    },
}

impl Stamp {
    /// Parses a stamp from the text of a cell or field.
    ///
    /// Surrounding whitespace is ignored, and a blank text is [`Stamp::Missing`]. Integers and
    /// decimals, with or without an exponent, are numbers. Times are RFC 3339 or ISO 8601:
    /// `2024-05-06`, `2024-05-06T10:00`, `2024-05-06 10:00:00.25`, each time of day with `Z`,
    /// `+09:00`, `+0900`, `+09` or no offset. A date without a time is its midnight; a time without
    /// an offset is UTC. Any other text is compared by code points.
    ///
    /// ```
    /// use hamdex::dedup::Stamp;
    ///
    /// assert_eq!(Stamp::from_text(" 2.50 "), Stamp::from(2.5));
    /// assert_eq!(Stamp::from_text("2024-05-06"), Stamp::from_text("2024-05-06 00:00:00+0000"));
    /// assert_eq!(Stamp::from_text("v2"), Stamp::Text("v2".into()));
    /// assert_eq!(Stamp::from_text(" "), Stamp::Missing);
    /// ```
    pub fn from_text(text: &str) -> Self {
        let value = text.trim();
        if value.is_empty() {
            return Self::Missing;
        }
        if let Some(number) = Number::parse(value) {
            return Self::Number(number);
        }
        time(value).map_or_else(
            || Self::Text(text.into()),
            |time| Self::Time { seconds: time.timestamp(), nanos: time.timestamp_subsec_nanos() },
        )
    }

    /// Returns true if there is no value.
    ///
    /// ```
    /// use hamdex::dedup::Stamp;
    ///
    /// assert!(Stamp::from(f64::NAN).is_missing());
    /// assert!(!Stamp::from(0_u64).is_missing());
    /// ```
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Encodes the stamp for stores and shuffles that sort by bytes.
    ///
    /// Keys compare bytewise as their stamps do. A key has at most 11 bytes more than the text or
    /// the digits of the stamp.
    ///
    /// ```
    /// use hamdex::dedup::Stamp;
    ///
    /// let key = |text| Stamp::from_text(text).to_key();
    /// assert!(key("9") < key("10") && key("-10") < key("-9"));
    /// assert!(key("10") < key("2024-05-06"));
    /// assert_eq!(key("10"), key("1e1"));
    /// ```
    pub fn to_key(&self) -> Vec<u8> {
        match self {
            Self::Missing => vec![0],
            Self::Text(text) => [&[1], text.as_bytes()].concat(),
            Self::Number(number) => [vec![2], number.to_key()].concat(),
            Self::Time { seconds, nanos } => {
                [&[3][..], &rising(*seconds), &nanos.to_be_bytes()].concat()
            }
        }
    }
}

/// Returns big-endian bytes that sort like the value.
fn rising(value: i64) -> [u8; 8] {
    (value ^ i64::MIN).to_be_bytes()
}

impl From<i64> for Stamp {
    fn from(value: i64) -> Self {
        Self::Number(Number(Repr::Integer(value)))
    }
}

impl From<u64> for Stamp {
    fn from(value: u64) -> Self {
        match i64::try_from(value) {
            Ok(value) => value.into(),
            Err(_) => Self::from_text(&value.to_string()),
        }
    }
}

/// Converts a float: NaN is missing, and an infinity is beyond every number.
///
/// A float with a fraction becomes the shortest decimal that parses to it, so that 0.1 in a binary
/// column equals 0.1 in a text. Any other float becomes the exact integer.
impl From<f64> for Stamp {
    fn from(value: f64) -> Self {
        if value.is_nan() {
            Self::Missing
        } else if value.is_infinite() {
            let decimal = Decimal { exponent: i64::MAX, digits: "1".into() };
            Self::Number(Number(Repr::Decimal { negative: value < 0.0, decimal: decimal.into() }))
        } else if value.fract() == 0.0 {
            // The exponent form would round integers above 2^53.
            Self::from_text(&format!("{value:.0}"))
        } else {
            Self::from_text(&format!("{value:e}"))
        }
    }
}

/// An integer or decimal of any size, compared without loss.
///
/// It is a value of a [`Stamp`].
///
/// ```
/// use hamdex::dedup::Stamp;
///
/// // Both integers are the same 64-bit float.
/// assert!(Stamp::from_text("9007199254740992") < Stamp::from_text("9007199254740993"));
/// assert!(Stamp::from(9_007_199_254_740_992.0) < Stamp::from(9_007_199_254_740_993_i64));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number(Repr);

/// Each value has one representation: an integer if it fits into 64 bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Repr {
    Integer(i64),
    Decimal { negative: bool, decimal: Box<Decimal> },
}

/// The value `0.digits * 10^exponent`; `digits` neither begins nor ends with a zero.
///
/// The greater exponent makes the greater value, so the derived order is the order of values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Decimal {
    exponent: i64,
    digits: Box<str>,
}

impl Number {
    /// Parses digits with an optional sign, point and exponent.
    fn parse(text: &str) -> Option<Self> {
        if let Ok(value) = text.parse() {
            return Some(Self(Repr::Integer(value)));
        }
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
            // Exponents near the 64-bit limit would overflow below; no date or version has one.
            Some((mantissa, power)) => (mantissa, i64::from(power.parse::<i32>().ok()?)),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let leading = digits.len() - digits.trim_start_matches('0').len();
        let exponent =
            i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(leading).ok()?)? + power;
        let digits = digits.trim_matches('0');
        Some(Self::of(negative, exponent, digits))
    }

    fn of(negative: bool, exponent: i64, digits: &str) -> Self {
        if digits.is_empty() {
            return Self(Repr::Integer(0));
        }
        // 19 digits are enough for every 64-bit integer.
        let integer = usize::try_from(exponent).ok().filter(|&len| digits.len() <= len && len < 20);
        if let Some(len) = integer {
            let sign = if negative { "-" } else { "" };
            if let Ok(value) = format!("{sign}{digits:0<len$}").parse() {
                return Self(Repr::Integer(value));
            }
        }
        let decimal = Decimal { exponent, digits: digits.into() };
        Self(Repr::Decimal { negative, decimal: decimal.into() })
    }

    /// Returns a byte for the sign, then the magnitude, inverted if the number is negative.
    fn to_key(&self) -> Vec<u8> {
        let (sign, size) = self.parts();
        let Some(Decimal { exponent, digits }) = size else { return vec![1] };
        let mut size = [&rising(exponent)[..], digits.as_bytes()].concat();
        if sign == Ordering::Greater {
            return [vec![2], size].concat();
        }
        // A terminator below every digit makes the magnitude 0.12 greater than 0.1.
        size.push(0);
        for byte in &mut size {
            *byte = !*byte;
        }
        [vec![0], size].concat()
    }

    /// Returns the sign, and the magnitude unless the number is zero.
    fn parts(&self) -> (Ordering, Option<Decimal>) {
        match &self.0 {
            Repr::Integer(value) => {
                let digits = value.unsigned_abs().to_string();
                let decimal = Decimal {
                    exponent: i64::try_from(digits.len())
                        .expect("a number of 64 bits has few digits"),
                    digits: digits.trim_end_matches('0').into(),
                };
                (value.cmp(&0), (*value != 0).then_some(decimal))
            }
            Repr::Decimal { negative, decimal } => {
                let sign = if *negative { Ordering::Less } else { Ordering::Greater };
                (sign, Some((**decimal).clone()))
            }
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Repr::Integer(a), Repr::Integer(b)) = (&self.0, &other.0) {
            return a.cmp(b);
        }
        let ((sign, size), (other_sign, other_size)) = (self.parts(), other.parts());
        sign.cmp(&other_sign).then_with(|| match sign {
            Ordering::Less => other_size.cmp(&size),
            Ordering::Equal | Ordering::Greater => size.cmp(&other_size),
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Parses an RFC 3339 or ISO 8601 time.
fn time(text: &str) -> Option<DateTime<Utc>> {
    // The parser alone would also accept `7-1-2` as a date.
    let (date, rest) = text.split_at_checked(10)?;
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    if !date.bytes().enumerate().all(shape) {
        return None;
    }
    let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    if rest.is_empty() {
        return Some(date.and_time(NaiveTime::MIN).and_utc());
    }
    let clock = rest.strip_prefix(['T', 't', ' '])?;
    if !clock.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    // ISO 8601 also allows a comma before the fraction.
    let clock = clock.replacen(',', ".", 1);
    let at = format!("{date}T{clock}");
    ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"].iter().find_map(|format| {
        NaiveDateTime::parse_from_str(&at, format).map(|time| time.and_utc()).ok().or_else(|| {
            DateTime::parse_from_str(&at, &format!("{format}%#z")).map(|time| time.to_utc()).ok()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rises(texts: &[&str]) {
        for pair in texts.windows(2) {
            assert!(Stamp::from_text(pair[0]) < Stamp::from_text(pair[1]), "{pair:?}");
        }
    }

    fn equal(texts: &[&str]) {
        for pair in texts.windows(2) {
            assert_eq!(Stamp::from_text(pair[0]), Stamp::from_text(pair[1]), "{pair:?}");
            assert_eq!(Stamp::from_text(pair[0]).cmp(&Stamp::from_text(pair[1])), Ordering::Equal);
        }
    }

    #[test]
    fn missing_comes_before_texts_numbers_and_times() {
        rises(&[" ", "\u{ff}", "-7", "0", "1e300", "0001-01-01", "2024-01-01"]);
        assert!(Stamp::from_text("").is_missing());
        assert!(Stamp::from(f64::NAN).is_missing());
    }

    #[test]
    fn numbers_are_ordered_by_value_and_not_by_spelling() {
        rises(&["-1e30", "-10", "-9.5", "-9", "-0.01", "-0.001", "0", "0.099", ".1", "9", "10"]);
        rises(&[
            "9.9",
            "10",
            "10.00000000000000000001",
            "10.1",
            "99",
            "100",
            "1e3",
            "1e20",
            "2e20",
        ]);
        equal(&["10", " 10 ", "+10", "10.", "10.0", "0010", "1e1", "100E-1", "0.1e+2"]);
        equal(&["0", "-0", "0.000", "0e9", "-0.0"]);
        equal(&["0.5", ".5", "5e-1", "00.50"]);
    }

    #[test]
    fn integers_beyond_the_precision_of_floats_stay_apart() {
        rises(&["9007199254740992", "9007199254740993", "9223372036854775807"]);
        rises(&["9223372036854775807", "9223372036854775808", "18446744073709551615"]);
        rises(&["-9223372036854775809", "-9223372036854775808", "-9223372036854775807"]);
        rises(&["123456789012345678901234567890", "123456789012345678901234567891"]);
        equal(&["9223372036854775807", "9223372036854775807.0", "0.9223372036854775807e19"]);
        assert_eq!(Stamp::from(u64::MAX), Stamp::from_text("18446744073709551615"));
        assert!(Stamp::from(u64::MAX - 1) < Stamp::from(u64::MAX));
        assert!(Stamp::from(i64::MAX) < Stamp::from(u64::MAX));
    }

    #[test]
    fn floats_and_integers_compare_by_value() {
        assert_eq!(Stamp::from(3.0), Stamp::from(3_i64));
        assert_eq!(Stamp::from(-0.0), Stamp::from(0_u64));
        assert_eq!(Stamp::from(0.1), Stamp::from_text("0.1"));
        assert_eq!(Stamp::from(9_223_372_036_854_775_808.0), Stamp::from(1_u64 << 63));
        assert!(Stamp::from(9_007_199_254_740_992.0) < Stamp::from(9_007_199_254_740_993_u64));
        let floats =
            [f64::NEG_INFINITY, f64::MIN, -1.5, -1e-300, 0.0, 5e-324, 0.3, 1.5, 1e22, f64::MAX];
        for pair in floats.windows(2) {
            assert!(Stamp::from(pair[0]) < Stamp::from(pair[1]), "{pair:?}");
        }
        assert!(Stamp::from(f64::MAX) < Stamp::from(f64::INFINITY));
    }

    #[test]
    fn times_are_ordered_across_offsets_and_spellings() {
        rises(&[
            "1969-12-31",
            "2024-05-06",
            "2024-05-06T10:00:00+09:00",
            "2024-05-06T05:00:00Z",
            "2024-05-06 05:00:00.000000001",
            "2024-05-06T01:00:00-0500",
            "2024-05-06T23:59:59.999999999Z",
            "2024-05-07",
        ]);
        equal(&[
            "2024-05-06",
            "2024-05-06T00:00",
            "2024-05-06T00:00:00",
            " 2024-05-06 00:00:00.0 ",
            "2024-05-06t00:00:00Z",
            "2024-05-06T00:00Z",
            "2024-05-06T09:00:00+09:00",
            "2024-05-06T09:00:00+0900",
            "2024-05-06 09:00:00 +09",
            "2024-05-05T19:00:00,000-05:00",
        ]);
        rises(&["2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"]);
    }

    #[test]
    fn keys_are_ordered_as_their_stamps() {
        let mut stamps: Vec<Stamp> = [
            "",
            " ",
            "a",
            "b",
            "ab",
            "\u{ffff}",
            "\u{10000}",
            "v10",
            "v9",
            "0",
            "1",
            "-1",
            "10",
            "12",
            "-12",
            "-10",
            "-0.1",
            "-0.12",
            "-0.001",
            "0.001",
            "0.0012",
            "1e300",
            "-1e300",
            "9.9",
            "99",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775809",
            "1969-12-31",
            "2024-05-06",
            "2024-05-06T00:00:00.5",
            "0001-01-01",
            "2016-12-31T23:59:60Z",
        ]
        .map(Stamp::from_text)
        .into();
        stamps.extend(
            [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 5e-324].map(Stamp::from),
        );
        for a in &stamps {
            for b in &stamps {
                assert_eq!(a.to_key().cmp(&b.to_key()), a.cmp(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn what_only_resembles_a_number_or_a_time_is_a_text() {
        for text in [
            "v2",
            "1,000",
            "0x10",
            "nan",
            "inf",
            "-",
            ".",
            "e5",
            "1e",
            "1 2",
            "1e99999999999",
            "٣",
            "7-1-2",
            "2024-13-01",
            "2024-02-30",
            "2024-5-6",
            "2024-05-06T",
            "2024-05-06X10:00",
            "2024-05-06T25:00:00",
            "2024-05-06T10:00:00+99:00:00",
            "2024-05-06T10:00:00 later",
            "2024-05-06T +1:00",
            "12024-05-06",
            "2024-05-\u{e9}6",
        ] {
            assert_eq!(Stamp::from_text(text), Stamp::Text(text.into()), "{text:?}");
        }
        rises(&["10:9", "9:10", "v10", "v9", "\u{ffff}", "\u{10000}"]);
    }
}
