//! Sizes and figures: `512M` becomes bytes, bytes and counts become words for people.

use std::time::Duration;

/// A number of bytes as given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub usize);

impl std::str::FromStr for Size {
    type Err = String;

    /// Parses a count with an optional K, M, G or T (powers of 1024; `MB` and `MiB` alike).
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a size such as 512M or 2G");
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let shift =
            match unit.trim().to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
                "" => 0,
                "K" => 10,
                "M" => 20,
                "G" => 30,
                "T" => 40,
                _ => return Err(wrong()),
            };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let bytes = number * f64::from(1 << (shift / 2)) * f64::from(1 << (shift / 2));
        // 2^53: beyond it the product is no longer exact, and no machine has that much.
        if !(1.0..=9e15).contains(&bytes) {
            return Err(wrong());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
        Ok(Self(bytes as usize))
    }
}

/// A number of things as given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

impl std::str::FromStr for Count {
    type Err = String;

    /// Parses digits, with `_` between them, an exponent, or K, M, G or T for powers of 1000.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a count such as 1000000, 1_000_000, 1e6 or 1M");
        let plain = text.replace('_', "");
        if let Ok(count) = plain.parse() {
            return Ok(Self(count));
        }
        let (number, scale) = match plain.char_indices().next_back() {
            Some((at, unit)) if unit.is_ascii_alphabetic() => {
                let scale = match unit.to_ascii_uppercase() {
                    'K' => 1e3,
                    'M' => 1e6,
                    'G' => 1e9,
                    'T' => 1e12,
                    _ => return Err(wrong()),
                };
                (plain.get(..at).unwrap_or_default(), scale)
            }
            _ => (plain.as_str(), 1.0),
        };
        let count: f64 = number.parse().map_err(|_| wrong())?;
        let count = count * scale;
        // 2^53: beyond it the product is no longer exact.
        if !(0.0..=9e15).contains(&count) || (count - count.round()).abs() > 1e-9 * count {
            return Err(wrong());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
        Ok(Self(count.round() as u64))
    }
}

/// Writes a count with thousands separators: `262,144`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes an estimate: whole from 10 up or when it is whole, else with one decimal.
pub fn estimate(value: f64) -> String {
    if value >= 9.95 || (value - value.round()).abs() < 1e-9 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
        thousands(value.round() as u64)
    } else if value >= 0.05 {
        format!("{value:.1}")
    } else {
        format!("{value:.0e}")
    }
}

/// Writes bytes in the largest binary unit that keeps the figure above one.
pub fn bytes(count: f64) -> String {
    let mut value = count;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            return if unit == "B" {
                format!("{value:.0} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} PiB")
}

/// Writes a duration with three figures and a fitting unit.
pub fn seconds(duration: Duration) -> String {
    let s = duration.as_secs_f64();
    if s >= 100.0 {
        format!("{s:.0} s")
    } else if s >= 1.0 {
        format!("{s:.2} s")
    } else if s >= 1e-3 {
        format!("{:.2} ms", s * 1e3)
    } else {
        format!("{:.2} us", s * 1e6)
    }
}

/// Writes the time left as `1:02:03` or `2:03`.
pub fn clock(duration: Duration) -> String {
    let s = duration.as_secs();
    if s >= 3600 {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    } else {
        format!("{}:{:02}", s / 60, s % 60)
    }
}

/// Rounds a similarity to the four digits that results have.
pub fn similarity(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_binary_units_in_either_case() {
        for (text, bytes) in
            [("512M", 512 << 20), ("2g", 2 << 30), ("1.5K", 1536), ("7", 7), ("1MiB", 1 << 20)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for bad in ["", "M", "-1M", "5X", "1e3", "0", "999999T"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_take_exponents_units_and_underscores() {
        for (text, count) in [
            ("0", 0),
            ("17179869184", 17_179_869_184),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("1.5M", 1_500_000),
            ("8g", 8_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Count(count)), "{text}");
        }
        for bad in ["", "M", "-1", "1.5", "1MB", "5X", "1e30", "nan", "inf", "many", "\u{661}"] {
            assert!(bad.parse::<Count>().is_err(), "{bad}");
        }
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(262_144), "262,144");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(estimate(8.0), "8");
        assert_eq!(estimate(0.25), "0.2");
        assert_eq!(estimate(262_144.2), "262,144");
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(seconds(Duration::from_micros(2)), "2.00 us");
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
    }
}
