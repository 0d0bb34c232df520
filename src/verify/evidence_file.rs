//! Evidence files: what verifications compare of many documents, on disk, by position.
//!
//! Memory holds a number for each document and a place for each distinct piece of evidence;
//! copies of one text are written once.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{Verification, by_length};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::sketch::feature_hash;

/// Collects evidence, document by document, in an unnamed temporary file.
///
/// Memory is 4 bytes a document, and up to 90 for each distinct piece while it is written.
///
/// ```
/// use hamdex::Verification;
/// use hamdex::verify::EvidenceWriter;
///
/// let mut writer = EvidenceWriter::new(None)?;
/// for text in ["sunny days", "sunny day", "sunny days"] {
///     writer.push(text.as_bytes())?;
/// }
/// let evidence = writer.finish()?;
/// assert_eq!(evidence.check(Verification::Edit(0.9), 3, 0, 1)?, Some(0.9));
/// assert_eq!(evidence.piece(0), evidence.piece(2));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct EvidenceWriter {
    file: BufWriter<File>,
    /// Names the file in errors.
    name: PathBuf,
    known: HashMap<u128, u32>,
    seed: u64,
    places: Places,
}

/// Where every document's evidence stands in the file.
#[derive(Debug, Default)]
struct Places {
    /// Offset and end of each distinct piece.
    pieces: Vec<(u64, u64)>,
    /// The piece of every document.
    of: Vec<u32>,
}

/// Evidence of many documents, to be read in any order and from many threads.
///
/// The file has no name and goes when this is dropped. See [`EvidenceWriter`].
#[derive(Debug)]
pub struct EvidenceFile {
    file: File,
    name: PathBuf,
    places: Places,
}

impl EvidenceWriter {
    /// Makes an unnamed file in a directory; without one, in that for temporary files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where no file can be made.
    pub fn new(directory: Option<&Path>) -> Result<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|e| Error::io(&directory, e))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 18, file),
            name: format!("temporary file in {}", directory.display()).into(),
            known: HashMap::new(),
            // Nobody can prepare texts that collide under a seed that is not known.
            seed: RandomState::new().hash_one(0),
            places: Places::default(),
        })
    }

    /// Appends the next document's evidence; empty for one that has none.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] where the disk does not take it.
    /// - [`Error::InvalidOption`] for more than `u32::MAX` different pieces.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let Places { pieces, of } = &mut self.places;
        let next = u32::try_from(pieces.len()).map_err(|_| Error::InvalidOption {
            name: "documents",
            reason: format!("more than {} different ones are too many", u32::MAX),
        })?;
        let hash = feature_hash::<u128>(bytes, self.seed);
        let piece = *self.known.entry(hash).or_insert(next);
        if piece == next {
            let start = pieces.last().map_or(0, |&(_, end)| end);
            self.file.write_all(bytes).map_err(|e| Error::io(&self.name, e))?;
            pieces.push((start, start + bytes.len() as u64));
        }
        of.push(piece);
        Ok(())
    }

    /// Ends the writing; what was written can be read now.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the disk does not take the rest.
    pub fn finish(self) -> Result<EvidenceFile> {
        let file = self.file.into_inner().map_err(|e| Error::io(&self.name, e.into_error()))?;
        Ok(EvidenceFile { file, name: self.name, places: self.places })
    }
}

impl EvidenceFile {
    /// Returns a number that two documents share if and only if their evidence is equal.
    ///
    /// `u32::MAX` beyond the last document.
    pub fn piece(&self, position: usize) -> u32 {
        self.places.of.get(position).copied().unwrap_or(u32::MAX)
    }

    /// Reads the evidence of a document; empty beyond the last one.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the file cannot be read.
    pub fn read(&self, position: usize) -> Result<Vec<u8>> {
        let piece = self.places.pieces.get(self.piece(position) as usize);
        let (start, end) = piece.copied().unwrap_or_default();
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
        self.read_at(&mut bytes, start).map_err(|e| Error::io(&self.name, e))?;
        Ok(bytes)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, bytes, offset)
    }

    /// Returns the similarity of two documents that pass, `None` for two that do not.
    ///
    /// As [`Verification::check`]; a document without evidence passes with its like alone, with
    /// equal fingerprints, and its similarity is 1 then.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the file cannot be read; [`Error::Corrupt`] for evidence that is of
    /// another verification.
    pub fn check(
        &self,
        verification: Verification,
        distance: u32,
        a: usize,
        b: usize,
    ) -> Result<Option<f64>> {
        self.check_while(verification, (distance, a, b), &())
    }

    /// Returns the step of the threshold by length of two documents whose evidence is text.
    pub(crate) fn step_by_length(&self, a: usize, b: usize) -> Result<usize> {
        let (a, b) = (self.read(a)?, self.read(b)?);
        Ok(by_length::step(super::utf8(&a)?, super::utf8(&b)?))
    }

    /// Does what [`check`](Self::check) does to a distance and two positions, and can be cancelled.
    ///
    /// The progress sink is asked between the pieces of long texts, at least once a second.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check); [`Error::Cancelled`] once the sink asks to stop.
    ///
    /// ```
    /// use hamdex::Verification;
    /// use hamdex::verify::EvidenceWriter;
    ///
    /// let mut writer = EvidenceWriter::new(None)?;
    /// for text in ["sunny days", "sunny day"] {
    ///     writer.push(text.as_bytes())?;
    /// }
    /// let evidence = writer.finish()?;
    /// assert_eq!(evidence.check_while(Verification::Edit(0.9), (3, 0, 1), &())?, Some(0.9));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn check_while(
        &self,
        verification: Verification,
        (distance, a, b): (u32, usize, usize),
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        let ours = self.read(a)?;
        if self.piece(a) == self.piece(b) {
            if ours.is_empty() {
                return Ok((distance == 0).then_some(1.0));
            }
            return verification.check_while(distance, &ours, &ours, progress);
        }
        let theirs = self.read(b)?;
        if ours.is_empty() || theirs.is_empty() {
            return Ok(None);
        }
        verification.check_while(distance, &ours, &theirs, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(texts: &[&str]) -> EvidenceFile {
        let mut writer = EvidenceWriter::new(None).unwrap();
        for text in texts {
            writer.push(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn every_document_reads_back_and_copies_are_kept_once() {
        let evidence = evidence(&["one", "two", "", "one", "three"]);
        for (position, text) in ["one", "two", "", "one", "three"].iter().enumerate() {
            assert_eq!(evidence.read(position).unwrap(), text.as_bytes());
        }
        assert_eq!([0, 1, 2, 3, 4].map(|at| evidence.piece(at)), [0, 1, 2, 0, 3]);
        assert_eq!(evidence.places.pieces.last(), Some(&(6, 11)));
        assert_eq!((evidence.piece(5), evidence.read(5).unwrap()), (u32::MAX, Vec::new()));
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
    fn a_directory_that_is_not_there_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let refused = EvidenceWriter::new(Some(&absent)).unwrap_err();
        assert!(matches!(refused, Error::Io { path, .. } if path == absent));
    }
}
