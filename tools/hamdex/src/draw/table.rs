//! Tables for people: rows of cells become aligned columns, figures to the right.

use std::fmt::Display;
use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::visible::visible;

/// Rows under one heading, or name and value pairs without one.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns that are aligned to the right: figures.
    right: std::ops::Range<usize>,
}

impl Table {
    /// Returns a table with a heading; every column but the first is aligned to the right.
    pub(crate) fn with_heading(heading: &[&str]) -> Self {
        let rows = vec![heading.iter().map(ToString::to_string).collect()];
        Self { rows, right: 1..heading.len() }
    }

    /// Aligns the last column to the left: words.
    pub(crate) fn words_last(mut self) -> Self {
        self.right.end = self.right.end.saturating_sub(1);
        self
    }

    /// Returns a list of names and values.
    pub(crate) fn list() -> Self {
        Self::default()
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) -> &mut Self {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell).into_owned()).collect());
        self
    }

    pub(crate) fn pair(&mut self, name: &str, value: impl Display) -> &mut Self {
        self.row([name.to_owned(), value.to_string()])
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width - cell.width());
                let (before, after) = if self.right.contains(&column) {
                    (padding.as_str(), "")
                } else {
                    ("", padding.as_str())
                };
                line.extend([before, cell, after, "  "]);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::with_heading(&["plan", "tables"]);
        table.row(["4x1".to_owned(), "4".to_owned()]);
        assert_eq!(text(&table), "plan  tables\n4x1        4\n");
        assert_eq!(text(&table.words_last()), "plan  tables\n4x1   4\n");
        assert_eq!(
            text(Table::list().pair("documents", 3).pair("k", 2)),
            "documents  3\nk          2\n"
        );
        assert_eq!(text(&Table::list()), "");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::with_heading(&["id", "distance"]);
        table.row(["\u{7f8e}\u{56fd}".to_owned(), "3".to_owned()]);
        assert_eq!(text(&table), "id    distance\n\u{7f8e}\u{56fd}         3\n");
    }

    #[test]
    fn cells_stay_on_their_line() {
        let mut table = Table::list();
        table.pair("a\n\u{202e}", "\u{1b}[2J");
        assert_eq!(text(&table), "a\\n\\u{202e}  \\u{1b}[2J\n");
    }
}
