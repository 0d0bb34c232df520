//! Seen: the second pass counts lengths, and catches the texts of the groups that are shown; notes
//! count how near the removed documents are to the kept ones.

use std::borrow::Cow;
use std::collections::HashMap;

use hamdex::Fingerprint;
use hamdex::dedup::Decision;
use hamdex::text::Pipeline;

use super::super::row::{Label, Row};
use crate::failure::Result;
use crate::input;

/// Characters of a text that are held and compared; what follows is left out.
pub(super) const MOST: usize = 30_000;

/// The rows that the second pass saw.
#[derive(Debug, Default)]
pub(in super::super) struct Seen {
    /// Whether every text is treated as HTML.
    html: bool,
    lengths: Vec<Lengths>,
    /// By the position of the document.
    caught: HashMap<u32, Option<Caught>>,
}

/// Documents of about one length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) kept: u64,
    pub(super) removed: u64,
}

/// A document that is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Caught {
    pub(super) id: String,
    /// Its text up to [`MOST`]; `None` where it brought a fingerprint.
    pub(super) text: Option<String>,
    /// Characters of the whole text.
    pub(super) length: usize,
}

impl Caught {
    /// Cuts off what is not shown of a text.
    pub(super) fn of(id: String, text: Option<Cow<'_, str>>) -> Self {
        let length = text.as_ref().map_or(0, |text| text.chars().count());
        Self { id, text: text.map(|text| text.chars().take(MOST).collect()), length }
    }
}

impl Seen {
    /// Sees nothing yet, and waits for the documents at these positions.
    pub(super) fn new(pipeline: Option<&Pipeline>, wanted: impl Iterator<Item = u32>) -> Self {
        Self {
            html: pipeline.is_some_and(input::takes_html),
            lengths: Vec::new(),
            caught: wanted.map(|position| (position, None)).collect(),
        }
    }

    /// Takes numbers of kept and of removed documents by length, and documents by position.
    pub(super) fn of(
        lengths: &[(usize, u64, u64)],
        caught: impl IntoIterator<Item = (u32, Caught)>,
    ) -> Self {
        let caught = caught.into_iter().map(|(position, caught)| (position, Some(caught)));
        let mut seen = Self { caught: caught.collect(), ..Self::default() };
        for &(length, kept, removed) in lengths {
            seen.count(length, Lengths { kept, removed });
        }
        seen
    }

    /// Records a document's row.
    pub(in super::super) fn row<F: Fingerprint>(
        &mut self,
        row: &Row<'_, F>,
        decision: Decision<'_>,
        position: u32,
    ) -> Result<()> {
        let text = row.text();
        if let Some(text) = &text {
            let kept = matches!(decision, Decision::Kept { .. });
            let lengths = Lengths { kept: kept.into(), removed: (!kept).into() };
            self.count(text.chars().count(), lengths);
        }
        let Some(slot) = self.caught.get_mut(&position) else {
            return Ok(());
        };
        let page = self.html || matches!(row, Row::Text { text, .. } if text.is_html());
        let text = text.map(|text| if page { hamdex::text::main_text(&text).into() } else { text });
        *slot = Some(Caught::of(Label::of(row.label()?.as_bytes()).to_string(), text));
        Ok(())
    }

    fn count(&mut self, length: usize, more: Lengths) {
        let at = bin(length);
        if self.lengths.len() <= at {
            self.lengths.resize(at + 1, Lengths::default());
        }
        if let Some(lengths) = self.lengths.get_mut(at) {
            lengths.kept += more.kept;
            lengths.removed += more.removed;
        }
    }

    /// Counts by bin of length, each with the shortest length that belongs to it.
    pub(super) fn lengths(&self) -> impl Iterator<Item = (usize, Lengths)> {
        self.lengths.iter().enumerate().map(|(at, &lengths)| (shortest(at), lengths))
    }

    pub(super) fn get(&self, position: u32) -> Option<&Caught> {
        self.caught.get(&position)?.as_ref()
    }
}

/// Returns the bin of a length: two for each doubling.
fn bin(length: usize) -> usize {
    let doublings = length.max(1).ilog2() as usize;
    2 * doublings + usize::from(length >= shortest(2 * doublings + 1))
}

/// Returns the shortest length of a bin.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // far below 2^53
pub(super) fn shortest(bin: usize) -> usize {
    2_f64.powf(bin as f64 / 2.0).ceil() as usize
}

/// Steps of similarity from 0 to 1.
pub(super) const STEPS: usize = 50;

/// Removed documents by distance and by similarity.
#[derive(Debug, Default)]
pub(in super::super) struct Notes {
    distances: Vec<u64>,
    similarities: Vec<u64>,
}

impl Notes {
    /// Takes numbers of removed documents by distance and by similarity.
    pub(super) fn of(distances: &[(u32, u64)], similarities: &[(f64, u64)]) -> Self {
        let mut notes = Self::default();
        for &(distance, many) in distances {
            count(&mut notes.distances, distance as usize, many);
        }
        for &(similarity, many) in similarities {
            count(&mut notes.similarities, step(similarity), many);
        }
        notes
    }

    /// Counts a removed document.
    pub(in super::super) fn note(&mut self, distance: u32, similarity: Option<f64>) {
        count(&mut self.distances, distance as usize, 1);
        if let Some(similarity) = similarity {
            count(&mut self.similarities, step(similarity), 1);
        }
    }

    /// Counts by distance, from 0.
    pub(super) fn distances(&self) -> &[u64] {
        &self.distances
    }

    /// Counts by step of similarity, from 0; empty where nothing was verified.
    pub(super) fn similarities(&self) -> &[u64] {
        &self.similarities
    }
}

/// Returns the step of a similarity; 1 itself belongs to the last one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn step(similarity: f64) -> usize {
    // The small term undoes what rounding took.
    ((similarity * STEPS as f64 + 1e-6) as usize).min(STEPS - 1)
}

fn count(counts: &mut Vec<u64>, at: usize, many: u64) {
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    if let Some(count) = counts.get_mut(at) {
        *count += many;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_of_length_follow_one_another() {
        let mut before = 0;
        for length in 1..5000 {
            let at = bin(length);
            assert!(at == before || shortest(at) == length, "{length} in {at}");
            assert!(shortest(at) <= length && length < shortest(at + 1).max(2), "{length} in {at}");
            before = at;
        }
        assert_eq!([0, 1, 2, 3, 4, 128].map(bin), [0, 0, 2, 3, 4, 14]);
    }

    #[test]
    fn removed_documents_are_counted_by_distance_and_similarity() {
        let mut notes = Notes::default();
        notes.note(3, Some(0.82));
        notes.note(0, Some(1.0));
        notes.note(3, None);
        assert_eq!(notes.distances(), [1, 0, 0, 2]);
        assert_eq!((notes.similarities()[41], notes.similarities()[49]), (1, 1));
        assert_eq!(notes.similarities().iter().sum::<u64>(), 2);
    }
}
