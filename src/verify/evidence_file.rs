//! Evidence files: the evidence of many documents, by position.
//!
//! The first pieces stay in memory, the others go to disk. Memory also holds a number per document,
//! and an offset and an outline per distinct piece. Outlines reject most pairs before anything is
//! read. Copies of one text are written once.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};

use super::boilerplate::{self, LineCounts, Own, OwnTexts};
use super::edit;
use super::long_texts::LongTexts;
use super::outline::Outline;
use super::phrase_set::PhraseOutline;
use super::{Evidence, Extent, Verification};
use crate::error::{Error, Result};
use crate::progress::{self, Progress};
use crate::sketch::feature_hash;

/// Bytes of evidence held in memory.
const HELD: usize = 8 << 20;

/// Bytes of long texts that are cached.
const LONG_BYTES: usize = 10 << 20;

/// Collects evidence, document by document, in memory and an unnamed temporary file.
///
/// Takes 8 MiB of memory for evidence, 10 MiB for cached long texts, and 4 bytes per document. Each
/// distinct piece takes up to 90 bytes while it is written, each distinct text 44 more, and each
/// distinct set of phrases 72 more.
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
/// assert_eq!(evidence.piece(0), evidence.piece(2));
/// assert_eq!(evidence.read(1)?, b"sunny day");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct EvidenceWriter {
    kind: Evidence,
    held: Vec<u8>,
    file: BufWriter<File>,
    /// Name of the file in errors.
    name: PathBuf,
    known: HashMap<u128, u32>,
    seed: u64,
    places: Places,
    /// `None` if no line is boilerplate.
    lines: Option<LineCounts>,
}

/// Where the evidence of every document is stored.
#[derive(Debug, Default)]
struct Places {
    /// Start and end of each distinct piece: first those in memory, then those in the file.
    pieces: Vec<(u64, u64)>,
    /// Outlines of the pieces, if they are texts.
    outlines: Vec<Outline>,
    /// Outlines of the pieces, if they are phrases.
    phrases: Vec<PhraseOutline>,
    /// The piece of every document.
    of: Vec<u32>,
}

/// Evidence of many documents, readable in any order and from many threads.
///
/// The file has no name and is removed when this is dropped. See [`EvidenceWriter`] for an example.
#[derive(Debug)]
pub struct EvidenceFile {
    held: Vec<u8>,
    file: File,
    name: PathBuf,
    places: Places,
    /// `None` if no line is boilerplate.
    own: Option<OwnTexts>,
    long: LongTexts,
}

impl EvidenceWriter {
    /// Creates a writer with an unnamed file; `None` is the system's directory.
    ///
    /// `kind` is what will be pushed; texts and phrases get outlines, so that fewer are read.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be created.
    pub fn new(kind: Evidence, directory: Option<&Path>) -> Result<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|e| Error::io(&directory, e))?;
        Ok(Self {
            kind,
            held: Vec::new(),
            file: BufWriter::with_capacity(1 << 18, file),
            name: format!("temporary file in {}", directory.display()).into(),
            known: HashMap::new(),
            // Under an unknown seed, nobody can prepare texts that collide.
            seed: RandomState::new().hash_one(0),
            places: Places::default(),
            lines: None,
        })
    }

    /// Counts the lines of texts, for a check that excludes boilerplate.
    ///
    /// A line of at least `documents` different texts is boilerplate. Default = `None`: no line is.
    /// Takes 10 MiB, and about 100 bytes per text. See [`Verification::boilerplate`].
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter, Verification};
    ///
    /// let check: Verification = "edit:0.6,0.6,3".parse()?;
    /// let writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// let mut writer = writer.boilerplate(check.boilerplate());
    /// for page in ["the first page is about rain", "a second one about frost", "more rain"] {
    ///     let text = format!("home\nsearch and contact of this site\nlicence\n{page}");
    ///     writer.push(text.as_bytes())?;
    /// }
    /// let evidence = writer.finish()?;
    /// assert!(evidence.check("edit:0.6,0.6".parse()?, 3, 0, 1)?.is_some());
    /// assert_eq!(evidence.check(check, 3, 0, 1)?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn boilerplate(mut self, documents: Option<NonZeroU8>) -> Self {
        self.lines = documents.map(LineCounts::new);
        self
    }

    /// Appends the evidence of the next document; empty if it has none.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if the file cannot be written.
    /// - [`Error::InvalidOption`] if there are more than `u32::MAX` distinct pieces.
    /// - [`Error::Corrupt`] if a text is not UTF-8 or phrases do not decode.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let Places { pieces, outlines, phrases, of } = &mut self.places;
        let next = u32::try_from(pieces.len()).map_err(|_| Error::InvalidOption {
            name: "documents",
            reason: format!("at most {} distinct ones are supported", u32::MAX),
        })?;
        let hash = feature_hash::<u128>(bytes, self.seed);
        let piece = *self.known.entry(hash).or_insert(next);
        if piece == next {
            let start = pieces.last().map_or(0, |&(_, end)| end);
            match self.kind {
                Evidence::Text => {
                    let text = super::utf8(bytes)?;
                    outlines.push(Outline::new(text));
                    if let Some(lines) = &mut self.lines {
                        lines.add(text);
                    }
                }
                Evidence::Phrases if bytes.is_empty() => phrases.push(PhraseOutline::NOTHING),
                Evidence::Phrases => phrases.push(PhraseOutline::of_encoded(bytes)?),
                Evidence::Nothing | Evidence::Features => {}
            }
            // Once a piece is in the file, all later ones go there too, so that offsets ascend.
            if start == self.held.len() as u64 && self.held.len() + bytes.len() <= HELD {
                self.held.extend_from_slice(bytes);
            } else {
                self.file.write_all(bytes).map_err(|e| Error::io(&self.name, e))?;
            }
            pieces.push((start, start + bytes.len() as u64));
        }
        of.push(piece);
        Ok(())
    }

    /// Finishes writing and makes the evidence readable.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the rest cannot be written.
    pub fn finish(self) -> Result<EvidenceFile> {
        let Self { held, file, name, places, lines, .. } = self;
        let file = file.into_inner().map_err(|e| Error::io(&name, e.into_error()))?;
        let own = lines.map(|lines| OwnTexts::new(lines, places.pieces.len()));
        Ok(EvidenceFile { held, file, name, places, own, long: LongTexts::new(LONG_BYTES) })
    }
}

impl EvidenceFile {
    /// Returns a number that only documents with equal evidence share.
    ///
    /// Returns `u32::MAX` if the position is out of range.
    pub fn piece(&self, position: usize) -> u32 {
        self.places.of.get(position).copied().unwrap_or(u32::MAX)
    }

    /// Reads the evidence of a document; empty if out of range.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read.
    pub fn read(&self, position: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        Ok(self.bytes(position, &mut buffer)?.to_vec())
    }

    /// Borrows evidence held in memory, or reads it into the buffer.
    fn bytes<'a>(&'a self, position: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let piece = self.places.pieces.get(self.piece(position) as usize);
        let (start, end) = piece.copied().unwrap_or_default();
        let in_memory = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        if let Some(held) = self.held.get(in_memory(start)..in_memory(end)) {
            return Ok(held);
        }
        buffer.clear();
        buffer.resize(in_memory(end - start), 0);
        let offset = start - self.held.len() as u64;
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
            .map_err(|e| Error::io(&self.name, e))?;
        Ok(buffer)
    }

    fn is_empty(&self, position: usize) -> bool {
        let piece = self.places.pieces.get(self.piece(position) as usize);
        piece.is_none_or(|(start, end)| start == end)
    }

    fn outlines(&self, a: usize, b: usize) -> Option<(&Outline, &Outline)> {
        let outline = |at: usize| self.places.outlines.get(self.piece(at) as usize);
        outline(a).zip(outline(b))
    }

    /// Returns the extent of a document; zero without phrases.
    pub(crate) fn extent(&self, position: usize) -> Extent {
        self.phrases(position).map_or(Extent::default(), |outline| outline.extent)
    }

    fn phrases(&self, position: usize) -> Option<&PhraseOutline> {
        self.places.phrases.get(self.piece(position) as usize)
    }

    /// Returns true if two documents certainly do not pass, without reading them.
    fn rejects(&self, verification: Verification, a: usize, b: usize) -> bool {
        if let Verification::Contains(threshold) = verification {
            let outlines = self.phrases(a).zip(self.phrases(b));
            return self.piece(a) != self.piece(b)
                && outlines.is_some_and(|(a, b)| a.rejects(b, threshold));
        }
        self.outlines(a, b).is_some_and(|(a, b)| a.rejects(b, verification))
    }

    /// Returns the similarity of two documents if they pass.
    ///
    /// Works like [`Verification::check`]. A document without evidence passes only with another one
    /// of an equal fingerprint, with similarity 1.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read; [`Error::Corrupt`] if evidence is of another
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
        self.outlines(a, b).map_or(0, |(a, b)| a.step_by_length(b))
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
        if distance > verification.reach(within, self.step_by_length(a, b)) {
            return Ok(None);
        }
        self.check_while(verification, (distance, a, b), progress)
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
    /// assert_eq!(evidence.check(check, 3, 0, 1)?, Some(0.9));
    /// assert_ne!(evidence.piece(0), evidence.piece(1));
    /// assert_eq!(evidence.read(1)?, b"sunny day");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn check_while(
        &self,
        verification: Verification,
        (distance, a, b): (u32, usize, usize),
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        if self.rejects(verification, a, b) {
            return Ok(None);
        }
        let own = self.own(verification, a, b)?;
        if own == Own::Differ || (own == Own::Compare && !self.alike_in_own(a, b, progress)?) {
            return Ok(None);
        }
        if let Some(threshold) = self.long_threshold(verification, a, b) {
            if self.piece(a) == self.piece(b) {
                return Ok(Some(1.0));
            }
            if self.is_empty(a) || self.is_empty(b) {
                return Ok(None);
            }
            let text = |at| self.long.get(self.piece(at), || self.text(at));
            let check_cancelled = || progress::check(progress);
            return edit::similarity_of_long(&*text(a)?, &*text(b)?, threshold, &check_cancelled);
        }
        let mut buffers = BUFFERS.take();
        let found = self.check_read(verification, (distance, a, b), &mut buffers, progress);
        BUFFERS.set(buffers);
        found
    }

    /// Returns the threshold of two texts that are compared by chunks.
    fn long_threshold(&self, verification: Verification, a: usize, b: usize) -> Option<f64> {
        let (ours, theirs) = self.outlines(a, b)?;
        let is_long = |outline: &Outline| outline.chars as usize > edit::EXACT_CHARS;
        if !(is_long(ours) || is_long(theirs)) {
            return None;
        }
        verification.edit_threshold(|| ours.step_by_length(theirs))
    }

    /// Checks two documents by reading them.
    fn check_read(
        &self,
        verification: Verification,
        (distance, a, b): (u32, usize, usize),
        [ours, theirs]: &mut [Vec<u8>; 2],
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        let copies = self.piece(a) == self.piece(b);
        // Equal texts pass any threshold and need not be read.
        if copies && verification.needs() == Evidence::Text && !self.is_empty(a) {
            return Ok(Some(1.0));
        }
        let ours = self.bytes(a, ours)?;
        if copies {
            if ours.is_empty() {
                return Ok((distance == 0).then_some(1.0));
            }
            return verification.check_while(distance, ours, ours, progress);
        }
        let theirs = self.bytes(b, theirs)?;
        if ours.is_empty() || theirs.is_empty() {
            return Ok(None);
        }
        verification.check_while(distance, ours, theirs, progress)
    }

    /// Returns true if two texts are similar only in boilerplate.
    pub(crate) fn is_by_boilerplate(&self, a: usize, b: usize) -> Result<bool> {
        Ok(match self.own_of(a, b)? {
            Own::Skip => false,
            Own::Compare => !self.alike_in_own(a, b, &())?,
            Own::Differ => true,
        })
    }

    /// Returns whether a check must compare the own lines of two documents.
    fn own(&self, verification: Verification, a: usize, b: usize) -> Result<Own> {
        if verification.boilerplate().is_none() { Ok(Own::Skip) } else { self.own_of(a, b) }
    }

    fn own_of(&self, a: usize, b: usize) -> Result<Own> {
        let (ours, theirs) = (self.piece(a), self.piece(b));
        let Some(own) = self.own.as_ref().filter(|_| ours != theirs) else { return Ok(Own::Skip) };
        let bytes = |piece: u32| {
            let place = self.places.pieces.get(piece as usize);
            place.map_or(0, |(start, end)| end - start)
        };
        let lines = |position| own.lines(self.piece(position), || self.text(position));
        let Some((first, second)) = lines(a)?.zip(lines(b)?) else { return Ok(Own::Skip) };
        Ok(first.against(second, bytes(ours) + bytes(theirs)))
    }

    /// Returns true if the own lines of two documents are similar.
    fn alike_in_own(&self, a: usize, b: usize, progress: &dyn Progress) -> Result<bool> {
        let Some(own) = &self.own else { return Ok(true) };
        let text = |position| own.text(self.piece(position), || self.text(position));
        boilerplate::are_alike(&*text(a)?, &*text(b)?, &|| progress::check(progress))
    }

    fn text(&self, position: usize) -> Result<String> {
        let text = String::from_utf8(self.read(position)?);
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
        assert_eq!([0, 1, 2, 3, 4].map(|at| evidence.piece(at)), [0, 1, 2, 0, 3]);
        assert_eq!(evidence.places.pieces.last(), Some(&(6, 11)));
        assert_eq!((evidence.piece(5), evidence.read(5).unwrap()), (u32::MAX, Vec::new()));
    }

    #[test]
    fn evidence_not_in_memory_is_read_from_the_file() {
        let mut writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
        let long = "long ".repeat(HELD / 5);
        let texts = ["0123456789", long.as_str(), "012345678x", "short"];
        for text in texts {
            writer.push(text.as_bytes()).unwrap();
        }
        let evidence = writer.finish().unwrap();
        assert_eq!(evidence.held, b"0123456789");
        for (position, text) in texts.iter().enumerate() {
            assert!(evidence.read(position).unwrap() == text.as_bytes(), "{position}");
        }
        let check = |a, b| evidence.check(Verification::Edit(0.9), 5, a, b).unwrap();
        assert_eq!((check(0, 2), check(2, 3), check(2, 2)), (Some(0.9), None, Some(1.0)));
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_when_pushed() {
        let mut writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
        assert!(matches!(writer.push(&[0xff]), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn documents_pass_by_their_evidence() {
        let evidence = evidence(&["0123456789", "012345678x", "", "0123456789", ""]);
        let check =
            |a, b, distance| evidence.check(Verification::Edit(0.9), distance, a, b).unwrap();
        assert_eq!((check(0, 1, 5), check(0, 3, 5)), (Some(0.9), Some(1.0)));
        assert_eq!((check(0, 2, 0), check(2, 4, 0), check(2, 4, 1)), (None, Some(1.0), None));
    }

    #[test]
    fn an_absent_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let refused = EvidenceWriter::new(Evidence::Text, Some(&absent)).unwrap_err();
        assert!(matches!(refused, Error::Io { path, .. } if path == absent));
    }
}
