//! Evidence: what verifications compare of every document, on disk, by position.
//!
//! Memory holds a number for each document and a place for each distinct piece of evidence;
//! copies of one text are written once.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::Path;

use hamdex::Verification;
use hamdex::sketch::feature_hash;
use hamdex::verify::Evidence as Needs;

use crate::failure::{Failure, Result};
use crate::input::{Proofs, Wanted};

/// Collects evidence, document by document.
#[derive(Debug)]
pub(crate) struct EvidenceWriter {
    file: BufWriter<File>,
    name: String,
    known: HashMap<u128, u32>,
    seed: u64,
    evidence: Places,
}

/// Where every document's evidence stands in the file.
#[derive(Debug, Default)]
struct Places {
    /// Offset and end of each distinct piece.
    pieces: Vec<(u64, u64)>,
    /// The piece of every document.
    of: Vec<u32>,
}

/// Evidence of all documents, to be read in any order and from many threads.
#[derive(Debug)]
pub(crate) struct Evidence {
    #[cfg(unix)]
    file: File,
    #[cfg(not(unix))]
    file: std::sync::Mutex<File>,
    name: String,
    places: Places,
}

impl EvidenceWriter {
    /// Makes an unnamed file in the directory for temporary files.
    pub(crate) fn new(directory: Option<&Path>) -> Result<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|e| Failure::io(&directory, e))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 18, file),
            name: format!("temporary file in {}", directory.display()),
            known: HashMap::new(),
            // Nobody can prepare texts that collide under a seed that is not known.
            seed: RandomState::new().hash_one(0),
            evidence: Places::default(),
        })
    }

    /// Appends the next document's evidence; empty for one that has none.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let Places { pieces, of } = &mut self.evidence;
        let next = u32::try_from(pieces.len()).map_err(|_| {
            Failure::Usage(format!(
                "more than {} different documents are too many; leave --verify out",
                u32::MAX
            ))
        })?;
        let hash = feature_hash::<u128>(bytes, self.seed);
        let piece = *self.known.entry(hash).or_insert(next);
        if piece == next {
            let start = pieces.last().map_or(0, |&(_, end)| end);
            self.file.write_all(bytes).map_err(|e| Failure::io(&self.name, e))?;
            pieces.push((start, start + bytes.len() as u64));
        }
        of.push(piece);
        Ok(())
    }

    /// Ends the writing.
    pub(crate) fn finish(self) -> Result<Evidence> {
        let file = self.file.into_inner().map_err(|e| Failure::io(&self.name, e.into_error()))?;
        Ok(Evidence {
            #[cfg(unix)]
            file,
            #[cfg(not(unix))]
            file: std::sync::Mutex::new(file),
            name: self.name,
            places: self.evidence,
        })
    }
}

impl Evidence {
    /// Returns a number that two documents share if and only if their evidence is equal.
    pub(crate) fn piece(&self, position: usize) -> u32 {
        self.places.of.get(position).copied().unwrap_or(u32::MAX)
    }

    /// Keeps the documents for which the test holds.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut positions = 0..;
        self.places.of.retain(|_| positions.next().is_some_and(&keep));
    }

    /// Reads the evidence of a document.
    pub(crate) fn read(&self, position: usize) -> hamdex::Result<Vec<u8>> {
        let piece = self.places.pieces.get(self.piece(position) as usize);
        let (start, end) = piece.copied().unwrap_or_default();
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
        self.read_at(&mut bytes, start)
            .map_err(|source| hamdex::Error::Io { path: (&self.name).into(), source })?;
        Ok(bytes)
    }

    #[cfg(unix)]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, bytes, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    /// Returns the similarity of two documents that pass, `None` for two that do not.
    ///
    /// A document without evidence passes with its like alone: with equal fingerprints.
    pub(crate) fn check(
        &self,
        verification: Verification,
        distance: u32,
        a: usize,
        b: usize,
    ) -> hamdex::Result<Option<f64>> {
        let ours = self.read(a)?;
        if self.piece(a) == self.piece(b) {
            if ours.is_empty() {
                return Ok((distance == 0).then_some(1.0));
            }
            return verification.check(distance, &ours, &ours);
        }
        let theirs = self.read(b)?;
        if ours.is_empty() || theirs.is_empty() {
            return Ok(None);
        }
        verification.check(distance, &ours, &theirs)
    }
}

/// Collects the kinds of evidence that are wanted.
#[derive(Debug)]
pub(crate) struct Keeper {
    features: Option<EvidenceWriter>,
    texts: Option<EvidenceWriter>,
    kept: Kept,
}

/// Evidence of all documents, by kind.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) features: Option<Evidence>,
    pub(crate) texts: Option<Evidence>,
    /// Documents that brought a fingerprint and no text.
    pub(crate) without: u64,
}

impl Keeper {
    pub(crate) fn new(wanted: Wanted, directory: Option<&Path>) -> Result<Self> {
        let writer = |wanted: bool| wanted.then(|| EvidenceWriter::new(directory)).transpose();
        Ok(Self {
            features: writer(wanted.features)?,
            texts: writer(wanted.text)?,
            kept: Kept::default(),
        })
    }

    /// Appends the next document's evidence.
    pub(crate) fn push(&mut self, proofs: &Proofs) -> Result<()> {
        for (writer, proof) in
            [(&mut self.features, &proofs.features), (&mut self.texts, &proofs.text)]
        {
            writer.as_mut().map_or(Ok(()), |writer| writer.push(proof))?;
        }
        if self.features.is_some() || self.texts.is_some() {
            self.kept.without += u64::from(proofs.features.is_empty() && proofs.text.is_empty());
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Kept> {
        Ok(Kept {
            features: self.features.map(EvidenceWriter::finish).transpose()?,
            texts: self.texts.map(EvidenceWriter::finish).transpose()?,
            ..self.kept
        })
    }
}

impl Kept {
    /// The evidence that a verification compares; `None` where it compares nothing.
    pub(crate) fn of(&self, verification: Verification) -> Option<&Evidence> {
        match verification.needs() {
            Needs::Nothing => None,
            Needs::Features => self.features.as_ref(),
            Needs::Text => self.texts.as_ref(),
        }
    }

    /// Keeps the documents for which the test holds.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        for evidence in [&mut self.features, &mut self.texts].into_iter().flatten() {
            evidence.retain(&keep);
        }
    }
}

/// The same verification with a threshold that every pair passes: it measures only.
pub(crate) fn measuring(verification: Verification) -> Verification {
    match verification {
        Verification::None => Verification::None,
        Verification::Jaccard(_) => Verification::Jaccard(0.0),
        Verification::Zhou { k, .. } => Verification::Zhou { k, threshold: 0.0 },
        Verification::Edit(_) => Verification::Edit(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(texts: &[&str]) -> Evidence {
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
    }

    #[test]
    fn what_is_left_out_moves_the_others_up() {
        let mut evidence = evidence(&["one", "two", "three"]);
        evidence.retain(|position| position != 1);
        assert_eq!(evidence.read(1).unwrap(), b"three");
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
