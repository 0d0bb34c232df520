//! Bars: counts become histograms of block characters, as wide as the terminal is.

use std::io::{self, IsTerminal, Write};

use console::{Color, Style, Term};

use crate::size;

/// Columns where standard output is no terminal.
const USUAL: usize = 80;

/// The longest bar: longer ones are no easier to compare.
const LONGEST: usize = 60;

/// Eighths of a column across, and of a line up.
const ACROSS: [char; 8] = [
    '\u{258f}', '\u{258e}', '\u{258d}', '\u{258c}', '\u{258b}', '\u{258a}', '\u{2589}', '\u{2588}',
];
const UP: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];

/// What histograms are drawn with.
#[derive(Debug)]
pub(crate) struct Pen {
    width: usize,
    style: Style,
}

impl Pen {
    /// Fits standard output; colour is for terminals, and for none with `NO_COLOR`.
    pub(crate) fn stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        let width = Term::stdout().size_checked().map_or(USUAL, |(_, columns)| columns.into());
        let style = if terminal && console::colors_enabled() {
            Style::new().fg(Color::Cyan).force_styling(true)
        } else {
            Style::new().force_styling(false)
        };
        Self { width: if terminal { width } else { USUAL }, style }
    }

    #[cfg(test)]
    fn plain(width: usize) -> Self {
        Self { width, style: Style::new().force_styling(false) }
    }

    /// Writes a line for each count: name, figure, and a bar in proportion to the largest.
    pub(crate) fn histogram(
        &self,
        out: &mut dyn Write,
        title: &str,
        rows: &[(String, u64)],
    ) -> io::Result<()> {
        let most = rows.iter().map(|&(_, count)| count).max().unwrap_or(0);
        if most == 0 {
            return Ok(());
        }
        let longest = |text: &dyn Fn(&(String, u64)) -> String| {
            rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0)
        };
        let names = longest(&|row| row.0.clone());
        let figures = longest(&|row| size::thousands(row.1));
        let room = self.width.saturating_sub(names + figures + 6).clamp(4, LONGEST);
        writeln!(out, "\n{title}")?;
        for (name, count) in rows {
            let bar = bar(*count as f64 / most as f64, room);
            let figure = size::thousands(*count);
            let line =
                format!("  {name:>names$}  {figure:>figures$}  {}", self.style.apply_to(bar));
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes shares from 0 to 1 as columns one line high, with the number of the first in front.
    pub(crate) fn columns(
        &self,
        out: &mut dyn Write,
        title: &str,
        shares: &[f64],
    ) -> io::Result<()> {
        if shares.is_empty() {
            return Ok(());
        }
        let digits = shares.len().to_string().len();
        // Eights, so that a person finds a bit.
        let room = (self.width.saturating_sub(digits + 4) / 8).clamp(1, 8) * 8;
        writeln!(out, "\n{title}")?;
        for (line, shares) in shares.chunks(room).enumerate() {
            let columns: String = shares.iter().map(|&share| column(share)).collect();
            let first = line * room;
            writeln!(out, "  {first:>digits$}  {}", self.style.apply_to(columns))?;
        }
        Ok(())
    }
}

/// Draws a bar of that share of the room; a share above 0 is never empty.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some columns
fn bar(share: f64, room: usize) -> String {
    let eighths = (share * room as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let full = ACROSS.last().copied().unwrap_or('#');
    let rest = (eighths % 8).checked_sub(1).and_then(|at| ACROSS.get(at));
    std::iter::repeat_n(full, eighths / 8).chain(rest.copied()).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an eighth
fn column(share: f64) -> char {
    UP.get((share * 8.0) as usize).or(UP.last()).copied().unwrap_or('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(width: usize, rows: &[(&str, u64)]) -> String {
        let rows: Vec<_> = rows.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let mut out = Vec::new();
        Pen::plain(width).histogram(&mut out, "sizes", &rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bars_are_in_proportion_and_fit_the_width() {
        let drawn = histogram(30, &[("1", 1000), ("2 to 3", 500), ("4 to 7", 1), ("8", 0)]);
        let wanted = "\nsizes\n       1  1,000  \u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\
                      \u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\n  \
                      2 to 3    500  \u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\u{258c}\n  \
                      4 to 7      1  \u{258f}\n       8      0\n";
        assert_eq!(drawn, wanted);
        assert!(drawn.lines().all(|line| line.chars().count() <= 30));
        assert_eq!(histogram(30, &[("1", 0)]), "", "nothing is not drawn");
        let narrow = histogram(3, &[("a name", 7)]);
        assert!(narrow.ends_with("\u{2588}\u{2588}\u{2588}\u{2588}\n"), "{narrow}");
    }

    #[test]
    fn columns_break_at_eights() {
        let mut out = Vec::new();
        let shares = [[0.5; 16], [1.0; 16]].concat();
        Pen::plain(30).columns(&mut out, "bits", &shares).unwrap();
        let drawn = String::from_utf8(out).unwrap();
        let column = |share: f64| super::column(share).to_string();
        let last = format!("  24  {}\n", column(1.0).repeat(8));
        let wanted = [
            "\nbits\n",
            &format!("   0  {}{}\n", column(0.5).repeat(16), column(1.0).repeat(8)),
            &last,
        ]
        .concat();
        assert_eq!(drawn, wanted);
    }
}
