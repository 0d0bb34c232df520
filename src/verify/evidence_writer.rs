//! Evidence writer: takes the evidence of one document after another.
//!
//! Copies of one text are written once, as long as the hashes of all texts fit the memory. What
//! does not fit is written again; whether two documents have equal evidence never depends on it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Evidence;
use super::evidence_file::{EvidenceFile, Length};
use super::long_texts::LongTexts;
use super::piece::{Piece, Summary};
use super::prepared::{EvidencePreparer, PreparedEvidence};
use super::spilled::{Hashes, SpillingBytes};
use super::words::WordCounter;
use crate::error::{Error, Result};

/// Most bytes of evidence held in memory.
const HELD: usize = 8 << 20;

/// Most bytes of long texts that are cached.
const LONG_BYTES: usize = 4 << 20;

/// Bytes of memory of a known hash while the table grows.
const PER_HASH: usize = 88;

/// Collects evidence, document by document, in memory and unnamed temporary files.
///
/// Takes up to 8 MiB of memory for evidence, 4 MiB for cached long texts, 32 bytes per document,
/// 46 more per text and 72 more per set of phrases, and up to 58 bytes per distinct piece while it
/// is written. [`memory`](Self::memory) limits that.
///
/// ```
/// use hamdex::verify::{Evidence, EvidenceWriter, Verification};
///
/// let mut writer = EvidenceWriter::new(Evidence::Text, None)?;
/// for text in ["sunny days", "sunny day", "sunny days"] {
///     writer.push(text.as_bytes())?;
/// }
/// let evidence = writer.finish()?;
/// assert_eq!(evidence.check(Verification::Edit(0.9), 3, 0, 1)?, Some(0.9));
/// assert_eq!(evidence.digest(0)?, evidence.digest(2)?);
/// assert_eq!(evidence.read(1)?, b"sunny day");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct EvidenceWriter {
    preparer: EvidencePreparer,
    directory: Option<PathBuf>,
    memory: usize,
    /// The pieces one after another, each before the record of its words if they are counted.
    bytes: SpillingBytes,
    /// A [`Piece`] per document.
    records: SpillingBytes,
    record: Vec<u8>,
    documents: u64,
    lengths: Vec<Length>,
    short: u64,
    /// Start of each distinct piece by its hash, up to the memory.
    known: HashMap<[u64; 2], u64>,
    /// `None` if no word is boilerplate.
    words: Option<WordCounter>,
    /// Texts that are perhaps copies, whose words are not counted yet.
    uncounted: Option<Hashes>,
}

impl EvidenceWriter {
    /// Creates a writer with unnamed files; `None` is the system's directory.
    ///
    /// `kind` is what will be pushed; texts and phrases get outlines, so that fewer are read.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be created.
    pub fn new(kind: Evidence, directory: Option<&Path>) -> Result<Self> {
        Ok(Self {
            preparer: EvidencePreparer { kind, seed: new_seed(), cutter: None },
            directory: directory.map(Path::to_path_buf),
            memory: usize::MAX,
            bytes: SpillingBytes::new(directory, HELD)?,
            records: SpillingBytes::new(directory, usize::MAX)?,
            record: Vec::new(),
            documents: 0,
            lengths: Vec::new(),
            short: 0,
            known: HashMap::new(),
            words: None,
            uncounted: None,
        })
    }

    /// Limits the memory for evidence, in bytes. Default = unlimited.
    ///
    /// What exceeds it is in temporary files. The answers are the same.
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter};
    ///
    /// let mut writer = EvidenceWriter::new(Evidence::Text, None)?.memory(1 << 20);
    /// writer.push(b"sunny days")?;
    /// assert_eq!(writer.finish()?.read(0)?, b"sunny days");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self.bytes.limit(HELD.min(bytes / 16));
        self.records.limit(bytes / 4);
        self
    }

    /// Counts the words of texts, for a check that excludes boilerplate.
    ///
    /// A word that at least `documents` different texts repeat is boilerplate. Default = `None`:
    /// no word is. Takes 32 MiB of memory for counts, up to 8 MiB for the words of documents, and
    /// 4 bytes behind a text for every word and pair that it repeats. See
    /// [`Verification::boilerplate`].
    ///
    /// [`Verification::boilerplate`]: super::Verification::boilerplate
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter, Verification};
    ///
    /// let check: Verification = "edit:0.6,0.6,3".parse()?;
    /// let writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// let mut writer = writer.boilerplate(check.boilerplate());
    /// for page in ["rain, and more rain", "frost, and more frost", "hail, and more hail"] {
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
        self.words = documents.map(WordCounter::new);
        // What an earlier preparer makes lacks the words, and is refused.
        self.preparer.seed = new_seed();
        self.preparer.cutter = self.words.as_ref().map(|words| Arc::clone(words.cutter()));
        self
    }

    /// Returns what prepares evidence for this writer on other threads.
    ///
    /// What it prepares goes to [`push_prepared`](Self::push_prepared).
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter};
    ///
    /// let mut writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// let prepared = writer.preparer().prepare(b"sunny days".as_slice())?;
    /// writer.push_prepared(prepared)?;
    /// assert_eq!(writer.finish()?.read(0)?, b"sunny days");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn preparer(&self) -> EvidencePreparer {
        self.preparer.clone()
    }

    /// Appends the evidence of the next document; empty if it has none.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if a file cannot be written.
    /// - [`Error::InvalidOption`] if there are more than `u32::MAX` documents.
    /// - [`Error::Corrupt`] if a text is not UTF-8 or phrases do not decode.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.push_prepared(self.preparer.prepare(bytes)?)
    }

    /// Appends the evidence of the next document, which this writer's preparer has prepared.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if a file cannot be written.
    /// - [`Error::InvalidOption`] if it was prepared for another writer, or if there are more than
    ///   `u32::MAX` documents.
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter};
    ///
    /// let mut writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// let prepared = writer.preparer().prepare(b"sunny days".as_slice())?;
    /// writer.push_prepared(prepared)?;
    /// assert_eq!(writer.finish()?.read(0)?, b"sunny days");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn push_prepared(&mut self, evidence: PreparedEvidence<'_>) -> Result<()> {
        let refused = |name, reason| Error::InvalidOption { name, reason };
        if evidence.seed != self.preparer.seed {
            return Err(refused("evidence", "was prepared for another writer".to_owned()));
        }
        let number = u32::try_from(self.documents)
            .map_err(|_| refused("documents", format!("at most {} are supported", u32::MAX)))?;
        let start = self.start(&evidence, number)?;
        let PreparedEvidence { bytes, hash, summary, .. } = evidence;
        if let Summary::Text(outline) = &summary {
            self.lengths.push(Length::of(outline));
            self.short += u64::from(outline.is_short());
        }
        let piece = Piece { hash, start, end: start + bytes.len() as u64, summary };
        piece.encode(&mut self.record);
        self.records.push(&self.record)?;
        self.documents += 1;
        Ok(())
    }

    /// Returns the offset of a piece, which is appended unless it is known.
    fn start(&mut self, evidence: &PreparedEvidence<'_>, number: u32) -> Result<u64> {
        let key = halves(evidence.hash);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let start = self.bytes.push(&evidence.bytes)?;
        let fits = self.known.len() < self.memory / 4 / PER_HASH;
        if fits {
            self.known.insert(key, start);
        }
        if let Some((words, terms)) = self.words.as_mut().zip(evidence.terms.as_ref()) {
            if fits {
                words.add(terms);
            } else {
                if self.uncounted.is_none() {
                    self.uncounted = Some(Hashes::new(self.directory.as_deref())?);
                }
                if let Some(uncounted) = &mut self.uncounted {
                    uncounted.push(evidence.hash, number)?;
                }
            }
            self.bytes.push(words.record(terms))?;
        }
        Ok(start)
    }

    /// Finishes writing and makes the evidence readable.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the rest cannot be written or words cannot be counted.
    pub fn finish(self) -> Result<EvidenceFile> {
        let Self { preparer, memory, bytes, records, documents, short, .. } = self;
        let Self { lengths, known, words, uncounted, .. } = self;
        drop(known);
        let long = LongTexts::new(LONG_BYTES.min(memory / 16));
        let (bytes, records) = (bytes.finish()?, records.finish()?);
        let (kind, own) = (preparer.kind, None);
        let mut file = EvidenceFile { kind, bytes, records, documents, lengths, short, own, long };
        if let Some(mut words) = words {
            if let Some(uncounted) = uncounted {
                let cutter = Arc::clone(words.cutter());
                for position in uncounted.firsts()?.iter() {
                    words.add(&cutter.cut(super::utf8(&file.read(position as usize)?)?));
                }
            }
            file.own = Some(words.finish(memory / 4));
        }
        Ok(file)
    }
}

/// Returns an unknown seed, under which nobody can prepare texts that collide.
fn new_seed() -> u64 {
    RandomState::new().hash_one(0)
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of a hash")]
fn halves(hash: u128) -> [u64; 2] {
    [(hash >> 64) as u64, hash as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Verification;

    #[test]
    fn evidence_answers_the_same_for_any_memory() {
        let check: Verification = "edit:0.6,0.7,5".parse().unwrap();
        let seed = 5;
        let mut rng = fastrand::Rng::with_seed(seed);
        let word = |rng: &mut fastrand::Rng| format!("word{}", rng.u32(0..40));
        let texts: Vec<String> = (0..300)
            .map(|at| {
                let own: Vec<String> = (0..rng.usize(1..12)).map(|_| word(&mut rng)).collect();
                let site = "home and search of this site\nlicence and contact\n";
                format!("{}{}", if at % 3 == 0 { site } else { "" }, own.join(" "))
            })
            .collect();
        let texts: Vec<&String> =
            (0..900).map(|_| rng.choice(&texts).expect("there are some")).collect();
        let evidence = |memory: usize| {
            let writer = EvidenceWriter::new(Evidence::Text, None).unwrap().memory(memory);
            let mut writer = writer.boilerplate(check.boilerplate());
            for text in &texts {
                writer.push(text.as_bytes()).unwrap();
            }
            writer.finish().unwrap()
        };
        let all = evidence(usize::MAX);
        for memory in [0, 1 << 10, 1 << 14] {
            let few = evidence(memory);
            let mut passed = 0;
            for (a, text) in texts.iter().enumerate() {
                assert_eq!(few.read(a).unwrap(), text.as_bytes(), "seed {seed}: {memory}");
                for b in (0..texts.len()).step_by(7) {
                    let found = few.check(check, 3, a, b).unwrap();
                    assert_eq!(found, all.check(check, 3, a, b).unwrap(), "seed {seed}: {a} {b}");
                    passed += u32::from(found.is_some());
                    let alike =
                        |file: &EvidenceFile| file.digest(a).unwrap() == file.digest(b).unwrap();
                    assert_eq!(alike(&few), text == &texts[b], "seed {seed}: {a} {b}");
                    assert_eq!(alike(&all), alike(&few));
                }
            }
            assert!(passed > 1000, "{passed}");
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_when_pushed() {
        let mut writer = EvidenceWriter::new(Evidence::Text, None).unwrap();
        assert!(matches!(writer.push(&[0xff]), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn an_absent_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let refused = EvidenceWriter::new(Evidence::Text, Some(&absent)).unwrap_err();
        assert!(matches!(refused, Error::Io { path, .. } if path == absent));
    }
}
