//! Evidence files: the evidence of many documents, by position.
//!
//! The first pieces stay in memory, the others go to disk, as do the records that say where each
//! document's piece is. A record has the outline of its piece, and outlines reject most pairs
//! before any piece is read.

use std::cell::Cell;

use super::edit::{self, LongText};
use super::length_class::{Brackets, LengthClass};
use super::long_texts::LongTexts;
use super::outline::{BigramOutline, Outline};
use super::piece::{LONGEST, Piece};
use super::spilled::SpilledBytes;
use super::words::OwnWordsCache;
use super::{Evidence, Extent, Verification, by_length};
use crate::error::{Error, Result};
use crate::progress::{self, Progress};

/// The length of a text, in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    /// The step of the threshold by length.
    step: u8,
    class: LengthClass,
}

impl Length {
    pub(super) fn of(outline: &Outline) -> Self {
        Self { step: outline.step(), class: LengthClass::of(outline.chars) }
    }

    /// Returns the step of two texts: it rises with the length, so that of the longer one decides.
    fn step_with(self, other: Self) -> usize {
        usize::from(self.step.max(other.step))
    }
}

/// The pieces of two documents that are compared.
struct Two {
    ours: Piece,
    theirs: Piece,
}

impl Two {
    fn are_copies(&self) -> bool {
        self.ours.hash == self.theirs.hash
    }

    fn outlines(&self) -> Option<(&Outline, &Outline)> {
        self.ours.outline().zip(self.theirs.outline())
    }

    /// Returns true if the two certainly do not pass.
    fn rejects(&self, verification: Verification) -> bool {
        if let Verification::Contains(threshold) = verification {
            let outlines = self.ours.phrases().zip(self.theirs.phrases());
            return !self.are_copies() && outlines.is_some_and(|(a, b)| a.rejects(b, threshold));
        }
        self.outlines().is_some_and(|(a, b)| a.rejects(b, verification))
    }

    /// Returns the threshold of two texts that are compared by chunks.
    fn long_threshold(&self, verification: Verification) -> Option<f64> {
        let (ours, theirs) = self.outlines()?;
        let is_long = |outline: &Outline| outline.chars as usize > edit::EXACT_CHARS;
        if !(is_long(ours) || is_long(theirs)) {
            return None;
        }
        verification.edit_threshold(|| ours.step_by_length(theirs))
    }
}

/// Evidence of many documents, readable in any order and from many threads.
///
/// Its files have no names and are removed when this is dropped.
///
/// ```
/// use hamdex::verify::{Evidence, EvidenceFile, EvidenceWriter, Verification};
///
/// let mut writer = EvidenceWriter::new(Evidence::Text, None)?;
/// for text in ["sunny days", "sunny day", "sunny days"] {
///     writer.push(text.as_bytes())?;
/// }
/// let evidence: EvidenceFile = writer.finish()?;
/// assert_eq!(evidence.check(Verification::Edit(0.9), 3, 0, 1)?, Some(0.9));
/// assert_eq!(evidence.digest(0)?, evidence.digest(2)?);
/// assert_eq!(evidence.read(1)?, b"sunny day");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct EvidenceFile {
    pub(super) kind: Evidence,
    pub(super) bytes: SpilledBytes,
    /// A [`Piece`] per document.
    pub(super) records: SpilledBytes,
    pub(super) documents: u64,
    /// The length of each text; none of other evidence.
    pub(super) lengths: Vec<Length>,
    /// Documents with a short text.
    pub(super) short: u64,
    /// `None` if no word is boilerplate.
    pub(super) own: Option<OwnWordsCache>,
    pub(super) long: LongTexts,
}

impl EvidenceFile {
    /// Returns a hash of a document's evidence.
    ///
    /// Equal evidence has equal hashes, and other evidence has another one, except with
    /// probability 2^-64. A position out of range has a hash, too.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read.
    pub fn digest(&self, position: usize) -> Result<u64> {
        Ok(self.piece(position)?.digest())
    }

    /// Reads the evidence of a document; empty if out of range.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read.
    pub fn read(&self, position: usize) -> Result<Vec<u8>> {
        self.read_piece(&self.piece(position)?)
    }

    fn piece(&self, position: usize) -> Result<Piece> {
        if position as u64 >= self.documents {
            return Ok(Piece::NOWHERE);
        }
        let len = Piece::bytes(self.kind);
        let start = position as u64 * len as u64;
        let decode = |record| Piece::decode(record, self.kind).expect("the record has all bytes");
        if let Some(record) = self.records.held(start, len) {
            return Ok(decode(record));
        }
        let mut record = [0; LONGEST];
        let record = record.get_mut(..len).expect("records of phrases are the longest");
        self.records.read(start, record)?;
        Ok(decode(record))
    }

    fn two(&self, a: usize, b: usize) -> Result<Two> {
        Ok(Two { ours: self.piece(a)?, theirs: self.piece(b)? })
    }

    fn read_piece(&self, piece: &Piece) -> Result<Vec<u8>> {
        let mut buffer = vec![0; Self::len(piece)];
        self.bytes.read(piece.start, &mut buffer)?;
        Ok(buffer)
    }

    /// Borrows evidence held in memory, or reads it into the buffer.
    fn bytes<'a>(&'a self, piece: &Piece, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.bytes.get(piece.start, Self::len(piece), buffer)
    }

    fn len(piece: &Piece) -> usize {
        usize::try_from(piece.len()).unwrap_or(usize::MAX)
    }

    /// Returns true if most documents have a short text, whose bigrams reject most pairs.
    pub(crate) fn is_of_short_texts(&self) -> bool {
        self.short > self.documents / 2
    }

    /// Returns the length and the bigrams of a document's text.
    pub(crate) fn bigrams(&self, position: usize) -> Result<BigramOutline> {
        let piece = self.piece(position)?;
        let outline = piece.outline().copied().unwrap_or_else(|| Outline::new(""));
        BigramOutline::new(&outline, || self.text(&piece))
    }

    /// Returns the extent of a document; zero without phrases.
    pub(crate) fn extent(&self, position: usize) -> Result<Extent> {
        Ok(self.piece(position)?.phrases().map_or(Extent::default(), |outline| outline.extent))
    }

    /// Returns the similarity of two documents if they pass.
    ///
    /// Works like [`Verification::check`]. A document without evidence passes only with another one
    /// of an equal fingerprint, with similarity 1.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read; [`Error::Corrupt`] if evidence is of another
    /// verification.
    pub fn check(
        &self,
        verification: Verification,
        distance: u32,
        a: usize,
        b: usize,
    ) -> Result<Option<f64>> {
        self.check_while(verification, (distance, a, b), &())
    }

    /// Returns the step of the threshold by length of two documents; 0 without texts.
    pub(crate) fn step_by_length(&self, a: usize, b: usize) -> usize {
        let lengths = self.lengths.get(a).zip(self.lengths.get(b));
        lengths.map_or(0, |(a, b)| a.step_with(*b))
    }

    /// Returns the bracket of a document's length, for joins.
    ///
    /// Documents pass only if their brackets are equal or neighbours. `None` if no edits are compared.
    pub(crate) fn brackets(&self, verification: Verification) -> Option<impl Fn(usize) -> u8> {
        let ends = [0, by_length::STEPS].map(|step| verification.edit_threshold(|| step));
        let brackets = Brackets::new(ends.into_iter().flatten().reduce(f64::min)?);
        Some(move |position: usize| {
            self.lengths.get(position).map_or(0, |length| brackets.of(length.class))
        })
    }

    /// Returns true if two documents are too far apart, or too different in length, to pass.
    ///
    /// Reads nothing.
    pub(crate) fn rejects(
        &self,
        verification: Verification,
        within: u32,
        (distance, a, b): (u32, usize, usize),
    ) -> bool {
        let Some((a, b)) = self.lengths.get(a).zip(self.lengths.get(b)) else {
            return distance > within;
        };
        let step = a.step_with(*b);
        let threshold = verification.edit_threshold(|| step);
        distance > verification.reach(within, step)
            || threshold.is_some_and(|threshold| a.class.rejects(b.class, threshold))
    }

    /// Does what [`check_while`](Self::check_while) does, up to a distance.
    ///
    /// Returns `None` if `distance` exceeds `within`. With [`Verification::EditByLength`], `within`
    /// applies to short texts, and long texts must be nearer.
    ///
    /// # Errors
    ///
    /// Those of [`check_while`](Self::check_while), which has an example.
    pub fn check_within(
        &self,
        verification: Verification,
        within: u32,
        (distance, a, b): (u32, usize, usize),
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        if self.rejects(verification, within, (distance, a, b)) {
            return Ok(None);
        }
        self.check_two(verification, distance, &self.two(a, b)?, progress)
    }

    /// Does what [`check`](Self::check) does, and can be cancelled.
    ///
    /// Asks the progress sink between pieces of long texts, at least once a second.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check); [`Error::Cancelled`] once the sink asks to stop.
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter, Verification};
    ///
    /// let mut writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// for text in ["sunny days", "sunny day"] {
    ///     writer.push(text.as_bytes())?;
    /// }
    /// let evidence = writer.finish()?;
    /// let check = Verification::Edit(0.9);
    /// assert_eq!(evidence.check_while(check, (3, 0, 1), &())?, Some(0.9));
    /// assert_eq!(evidence.check_within(check, 2, (3, 0, 1), &())?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn check_while(
        &self,
        verification: Verification,
        (distance, a, b): (u32, usize, usize),
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        self.check_two(verification, distance, &self.two(a, b)?, progress)
    }

    fn check_two(
        &self,
        verification: Verification,
        distance: u32,
        two: &Two,
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        if two.rejects(verification) {
            return Ok(None);
        }
        if verification.boilerplate().is_some() && self.differ_in_own(two)? {
            return Ok(None);
        }
        if let Some(threshold) = two.long_threshold(verification) {
            if two.are_copies() {
                return Ok(Some(1.0));
            }
            if two.ours.is_empty() || two.theirs.is_empty() {
                return Ok(None);
            }
            let text = |piece: &Piece| {
                self.long.get(piece.digest(), || Ok(LongText::new(self.text(piece)?)))
            };
            let (ours, theirs) = (text(&two.ours)?, text(&two.theirs)?);
            let check_cancelled = || progress::check(progress);
            return edit::similarity_of_long(&ours, &theirs, threshold, &check_cancelled);
        }
        let mut buffers = BUFFERS.take();
        let found = self.check_read(verification, distance, two, &mut buffers, progress);
        BUFFERS.set(buffers);
        found
    }

    /// Checks two documents by reading them.
    fn check_read(
        &self,
        verification: Verification,
        distance: u32,
        two: &Two,
        [ours, theirs]: &mut [Vec<u8>; 2],
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        let copies = two.are_copies();
        // Equal texts pass any threshold and need not be read.
        if copies && verification.needs() == Evidence::Text && !two.ours.is_empty() {
            return Ok(Some(1.0));
        }
        let ours = self.bytes(&two.ours, ours)?;
        if copies {
            if ours.is_empty() {
                return Ok((distance == 0).then_some(1.0));
            }
            return verification.check_while(distance, ours, ours, progress);
        }
        let theirs = self.bytes(&two.theirs, theirs)?;
        if ours.is_empty() || theirs.is_empty() {
            return Ok(None);
        }
        verification.check_while(distance, ours, theirs, progress)
    }

    /// Returns true if two texts are similar only in boilerplate.
    pub(crate) fn is_by_boilerplate(&self, a: usize, b: usize) -> Result<bool> {
        self.differ_in_own(&self.two(a, b)?)
    }

    /// Returns true if the own words of two documents differ.
    fn differ_in_own(&self, two: &Two) -> Result<bool> {
        // Only texts have a record of their words.
        let compares = two.outlines().is_some() && !two.are_copies();
        let Some(own) = self.own.as_ref().filter(|_| compares) else { return Ok(false) };
        let words = |piece: &Piece| own.get(piece.digest(), &self.bytes, piece.end);
        Ok(words(&two.ours)?.differ(&*words(&two.theirs)?))
    }

    fn text(&self, piece: &Piece) -> Result<String> {
        let text = String::from_utf8(self.read_piece(piece)?);
        text.map_err(|error| Error::corrupt("evidence", error.to_string()))
    }
}

thread_local! {
    /// Buffers of this thread, so that a check does not allocate.
    static BUFFERS: Cell<[Vec<u8>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::EvidenceWriter;

    fn evidence(texts: &[&str]) -> EvidenceFile {
        let mut writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
        for text in texts {
            writer.push(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn every_document_reads_back_and_copies_are_stored_once() {
        let evidence = evidence(&["one", "two", "", "one", "three"]);
        for (position, text) in ["one", "two", "", "one", "three"].iter().enumerate() {
            assert_eq!(evidence.read(position).unwrap(), text.as_bytes());
        }
        let digest = |at| evidence.digest(at).unwrap();
        assert!(digest(0) == digest(3) && digest(0) != digest(1) && digest(2) != digest(4));
        assert_eq!((evidence.piece(3).unwrap().start, evidence.piece(4).unwrap().end), (0, 11));
        assert_eq!(evidence.read(5).unwrap(), b"");
    }

    #[test]
    fn evidence_not_in_memory_is_read_from_the_file() {
        let mut writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
        let long = "long ".repeat((8 << 20) / 5);
        let texts = ["0123456789", long.as_str(), "012345678x", "short"];
        for text in texts {
            writer.push(text.as_bytes()).unwrap();
        }
        let evidence = writer.finish().unwrap();
        for (position, text) in texts.iter().enumerate() {
            assert!(evidence.read(position).unwrap() == text.as_bytes(), "{position}");
        }
        let check = |a, b| evidence.check(Verification::Edit(0.9), 5, a, b).unwrap();
        assert_eq!((check(0, 2), check(2, 3), check(2, 2)), (Some(0.9), None, Some(1.0)));
    }

    #[test]
    fn documents_pass_by_their_evidence() {
        let evidence = evidence(&["0123456789", "012345678x", "", "0123456789", ""]);
        let check =
            |a, b, distance| evidence.check(Verification::Edit(0.9), distance, a, b).unwrap();
        assert_eq!((check(0, 1, 5), check(0, 3, 5)), (Some(0.9), Some(1.0)));
        assert_eq!((check(0, 2, 0), check(2, 4, 0), check(2, 4, 1)), (None, Some(1.0), None));
    }
}
