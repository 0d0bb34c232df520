//! Formatting of numbers for readers.

/// Formats three significant digits, with commas between thousands.
pub(crate) fn plain(value: f64) -> String {
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else if value.abs() >= 1.0 {
        2
    } else {
        3
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(w, r)| (w, r));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.is_empty() { grouped } else { format!("{grouped}.{rest}") }
}

/// Formats a figure, or a dash if it is missing.
pub(crate) fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), plain)
}

/// Formats a count, such as 10,000 or 1 million.
pub(crate) fn size(n: u64) -> String {
    match n {
        1_000_000.. if n.is_multiple_of(1_000_000) => format!("{} million", n / 1_000_000),
        1000.. if n.is_multiple_of(1000) => format!("{},000", n / 1000),
        _ => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, size};

    #[test]
    fn numbers_have_three_digits_and_commas() {
        let texts = [0.01234, 1.234, 12.34, 123.4, 1234.5, 1_234_567.0].map(plain);
        assert_eq!(texts, ["0.012", "1.23", "12.3", "123", "1,234", "1,234,567"]);
    }

    #[test]
    fn sizes_are_words() {
        assert_eq!([500, 10_000, 2_000_000].map(size), ["500", "10,000", "2 million"]);
    }
}
