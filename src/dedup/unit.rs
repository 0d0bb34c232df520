//! Units: a text becomes lines or paragraphs, and what is left of it once some are cut.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::text::letters;

/// Letters that a run of boilerplate needs to be cut.
///
/// Headings, closing braces and words such as "Example" are shorter, and stay where they are.
const LEAST_LETTERS: usize = 24;

/// A part of a document that is boilerplate or not.
///
/// ```
/// use hamdex::dedup::Unit;
///
/// let text = "Home\nContact\n\nSunny days\nare here again.\n";
/// let of = |unit: Unit| unit.ranges(text).into_iter().map(|at| &text[at]).collect::<Vec<_>>();
/// assert_eq!(of(Unit::Line), ["Home", "Contact", "Sunny days", "are here again."]);
/// assert_eq!(of(Unit::Paragraph), ["Home\nContact", "Sunny days\nare here again."]);
/// assert_eq!("line".parse::<Unit>()?, Unit::Line);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A line that is not blank.
    Line,
    /// Lines up to the next blank one.
    Paragraph,
}

impl Unit {
    /// Returns the bytes of every unit, without white space around it.
    pub fn ranges(self, text: &str) -> Vec<Range<usize>> {
        self.pieces(text).into_iter().map(|piece| piece.unit).collect()
    }

    fn pieces(self, text: &str) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut at, mut within) = (0, false);
        for line in text.split_inclusive('\n') {
            let content = line.trim();
            let start = at + line.len() - line.trim_start().len();
            let end = start + content.len();
            match pieces.last_mut() {
                _ if content.is_empty() => {}
                Some(piece) if within && self == Self::Paragraph => piece.unit.end = end,
                _ => pieces.push(Piece { begin: at, unit: start..end }),
            }
            within = !content.is_empty();
            at += line.len();
        }
        pieces
    }

    /// Cuts runs of units that `is_boilerplate` holds for, as [`Boilerplate::cut`] says.
    ///
    /// [`Boilerplate::cut`]: super::Boilerplate::cut
    pub(super) fn cut<'t>(self, text: &'t str, is_boilerplate: &dyn Fn(&str) -> bool) -> Cut<'t> {
        let pieces = self.pieces(text);
        let of = |piece: &Piece| text.get(piece.unit.clone()).unwrap_or_default();
        let marks: Vec<Mark> = pieces
            .iter()
            .map(|piece| match of(piece) {
                unit if !says_something(unit) => Mark::Empty,
                unit if is_boilerplate(unit) => Mark::Boilerplate(letters(unit)),
                _ => Mark::Own,
            })
            .collect();
        let runs = runs(&marks);
        let total = pieces.iter().map(|piece| letters(of(piece))).sum();
        let mut cut = Cut { text: Cow::Borrowed(text), units: 0, letters: total, left: total };
        if runs.is_empty() {
            return cut;
        }
        let end = |at: usize| pieces.get(at).map_or(text.len(), |piece| piece.begin);
        let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
        for run in runs {
            kept.push_str(text.get(from..end(run.start)).unwrap_or_default());
            from = end(run.end);
            let gone = pieces.get(run.clone()).unwrap_or_default();
            cut.units += run.len();
            cut.left -= gone.iter().map(|piece| letters(of(piece))).sum::<usize>();
        }
        if from == text.len() {
            // What stood before the last run does not separate anything any more.
            kept.truncate(kept.trim_end().len());
        }
        kept.push_str(text.get(from..).unwrap_or_default());
        cut.text = Cow::Owned(kept);
        cut
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "line",
            Self::Paragraph => "paragraph",
        })
    }
}

impl FromStr for Unit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "line" => Ok(Self::Line),
            "paragraph" => Ok(Self::Paragraph),
            _ => Err(Error::InvalidOption {
                name: "unit",
                reason: format!("\"{text}\" is neither line nor paragraph"),
            }),
        }
    }
}

/// Returns true if a unit has a letter or a digit; others are never boilerplate by themselves.
pub(super) fn says_something(unit: &str) -> bool {
    unit.chars().any(char::is_alphanumeric)
}

/// A unit within its text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// Begin of its first line. What follows up to the next piece is cut with it.
    begin: usize,
    unit: Range<usize>,
}

/// What a unit is to the runs around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Own,
    /// Letters of a unit that many documents have.
    Boilerplate(usize),
    /// Neither begins nor ends a run.
    Empty,
}

/// Returns the runs of boilerplate that have enough letters.
fn runs(marks: &[Mark]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut current: Option<(Range<usize>, usize)> = None;
    let mut close = |run: Option<(Range<usize>, usize)>| {
        runs.extend(run.filter(|&(_, letters)| letters >= LEAST_LETTERS).map(|(run, _)| run));
    };
    for (&mark, at) in marks.iter().zip(0..) {
        match (mark, &mut current) {
            (Mark::Own, _) => close(current.take()),
            (Mark::Empty, _) => {}
            (Mark::Boilerplate(letters), Some((run, all))) => {
                run.end = at + 1;
                *all += letters;
            }
            (Mark::Boilerplate(letters), None) => current = Some((at..at + 1, letters)),
        }
    }
    close(current);
    runs
}

/// What is left of a text.
///
/// ```
/// use hamdex::dedup::{BoilerplateFinder, BoilerplateOptions, Cut, DedupOptions, Unit};
/// # use hamdex::{Pipeline, PipelineOptions};
///
/// # let pipeline = Pipeline::new(&PipelineOptions::preset("text")?)?;
/// let options = BoilerplateOptions::new(Unit::Line, DedupOptions::new(3)).documents(1);
/// let mut finder = BoilerplateFinder::<u64>::new(&options)?;
/// let texts = ["All rights are reserved.\nSun", "All rights are reserved.\nRain"];
/// finder.push_texts(&pipeline, &texts)?;
/// let boilerplate = finder.finish(&pipeline, &())?;
/// let Cut { text, units, .. } = boilerplate.cut(&pipeline, texts[0]);
/// assert_eq!((&*text, units), ("Sun", 1));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut<'t> {
    /// The text without its boilerplate, the bytes in between unchanged.
    pub text: Cow<'t, str>,
    /// Units that were cut.
    pub units: usize,
    /// Letters of the text; those of dense scripts, such as Chinese, count twice.
    pub letters: usize,
    /// Letters that are left of them.
    pub left: usize,
}

impl Cut<'_> {
    /// Returns the share of the letters that is left; 1 for a text without any.
    ///
    /// ```
    /// # use hamdex::dedup::{BoilerplateFinder, BoilerplateOptions, DedupOptions, Unit};
    /// # use hamdex::{Pipeline, PipelineOptions};
    /// # let pipeline = Pipeline::new(&PipelineOptions::preset("auto")?)?;
    /// # let options = BoilerplateOptions::new(Unit::Line, DedupOptions::new(3));
    /// # let boilerplate = BoilerplateFinder::<u64>::new(&options)?.finish(&pipeline, &())?;
    /// assert_eq!(boilerplate.cut(&pipeline, "sunny days").share_left(), 1.0);
    /// assert_eq!(boilerplate.cut(&pipeline, "sunny days").units, 0);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn share_left(&self) -> f64 {
        if self.letters == 0 { 1.0 } else { self.left as f64 / self.letters as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MENU: &str = "Home of the Daily Post\nSubscribe to our newsletter";

    /// Treats lines and paragraphs of these words as boilerplate.
    fn cut(unit: Unit, text: &str) -> Cut<'_> {
        unit.cut(text, &|unit| {
            ["Home", "Subscribe", "See also", "Reserved"].iter().any(|word| unit.starts_with(word))
        })
    }

    #[test]
    fn lines_are_cut_and_the_rest_keeps_its_bytes() {
        let text = format!(
            "{MENU}\r\n\n  Sunny days\r\n\tare here.\n\nReserved by the Daily Post, 2024\n"
        );
        let left = cut(Unit::Line, &text);
        assert_eq!(left.text, "  Sunny days\r\n\tare here.");
        assert_eq!((left.units, left.letters, left.left), (3, 22 + 27 + 10 + 9 + 32, 19));
        let whole = cut(Unit::Line, "  Sunny days\n\n");
        assert_eq!((whole.text, whole.units), (Cow::Borrowed("  Sunny days\n\n"), 0));
    }

    #[test]
    fn paragraphs_end_at_blank_lines() {
        let text = format!("One line\nand another\n \n{MENU}\n\nThe last one");
        assert_eq!(Unit::Paragraph.ranges(&text).len(), 3);
        let left = cut(Unit::Paragraph, &text);
        assert_eq!((&*left.text, left.units), ("One line\nand another\n \nThe last one", 1));
        assert!(Unit::Paragraph.ranges(" \n\n").is_empty() && Unit::Line.ranges("").is_empty());
    }

    #[test]
    fn a_short_line_is_cut_only_among_others() {
        assert_eq!(cut(Unit::Line, "See also\nsunny days").units, 0);
        let text = format!("See also\n---\n{MENU}\nsunny days\nSee also\n***");
        let left = cut(Unit::Line, &text);
        assert_eq!((&*left.text, left.units), ("sunny days\nSee also\n***", 4));
        assert_eq!(cut(Unit::Line, "---\n***").units, 0);
    }

    #[test]
    fn nothing_is_left_of_boilerplate_alone() {
        let left = cut(Unit::Line, MENU);
        assert_eq!((&*left.text, left.left), ("", 0));
        assert!(left.share_left() <= 0.0);
        assert!(cut(Unit::Line, "").share_left() >= 1.0);
    }

    #[test]
    fn pieces_cover_a_text_for_both_units() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..2000 {
            let signs = ["\n", "\n", " ", "a", "晴", "\r\n", "\t", "Home of the Daily Post abc"];
            let text: String = (0..rng.usize(0..14)).map(|_| signs[rng.usize(..8)]).collect();
            for unit in [Unit::Line, Unit::Paragraph] {
                let ranges = unit.ranges(&text);
                let blank: String = text.split_whitespace().collect();
                let units: String = ranges.iter().map(|at| &text[at.clone()]).collect();
                let units: String = units.split_whitespace().collect();
                assert_eq!(units, blank, "{text:?}");
                let left = cut(unit, &text);
                assert!(left.left <= left.letters);
                assert_eq!(left.units == 0, left.text == text, "{text:?}");
            }
        }
    }
}
