//! The document model of a report: sections, tables and plots.
//!
//! Also formats numbers for readers: three digits, and a unit if needed.

/// The mark of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Plain,
    /// Our figure is worse than the peer's.
    Behind,
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) mark: Mark,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, mark: Mark::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&text| text.to_owned()).collect(), rows: Vec::new() }
    }
}

/// A plot and the name of its file.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) svg: String,
}

#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) text: Vec<String>,
    pub(crate) table: Table,
    pub(crate) plots: Vec<Plot>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>, text: &[&str], table: Table) -> Self {
        let text = text.iter().map(|&text| text.to_owned()).collect();
        Self { title: title.into(), text, table, plots: Vec::new() }
    }
}

/// Three significant digits, thousands apart.
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
    let mut apart = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            apart.push(',');
        }
        apart.push(digit);
    }
    if rest.is_empty() { apart } else { format!("{apart}.{rest}") }
}

/// A figure that may be missing.
pub(crate) fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), plain)
}

/// A count in words: 10 thousand, 1 million.
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
