//! Prepared evidence: what a writer would compute of a document, computed by any thread.

use std::borrow::Cow;
use std::sync::Arc;

use super::Evidence;
use super::outline::Outline;
use super::phrase_set::PhraseOutline;
use super::piece::Summary;
use super::words::{TermCutter, TextTerms};
use crate::error::Result;
use crate::sketch::feature_hash;

/// Prepares evidence for one writer, on any number of threads.
///
/// What a writer does with the evidence of a document takes about as long as its fingerprint, and
/// most of it depends on that document only. [`EvidenceWriter::preparer`] and [`Dedup::preparer`]
/// return one; copies of it are cheap.
///
/// [`EvidenceWriter::preparer`]: super::EvidenceWriter::preparer
/// [`Dedup::preparer`]: crate::dedup::Dedup::preparer
///
/// ```
/// use std::thread;
///
/// use hamdex::verify::{Evidence, EvidenceWriter, Verification};
///
/// let mut writer = EvidenceWriter::new(Evidence::Text, None)?;
/// let preparer = writer.preparer();
/// let prepared = thread::scope(|scope| {
///     let threads = ["sunny days", "sunny day"]
///         .map(|text| scope.spawn(|| preparer.prepare(text.as_bytes())));
///     threads.map(|thread| thread.join().unwrap())
/// });
/// for evidence in prepared {
///     writer.push_prepared(evidence?)?;
/// }
/// assert_eq!(writer.finish()?.check(Verification::Edit(0.9), 3, 0, 1)?, Some(0.9));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct EvidencePreparer {
    pub(super) kind: Evidence,
    /// Of the hashes of pieces, and different for every writer.
    pub(super) seed: u64,
    /// `None` if no words are counted.
    pub(super) cutter: Option<Arc<TermCutter>>,
}

impl EvidencePreparer {
    /// Returns the kind of evidence that its writer takes.
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter};
    ///
    /// let writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// assert_eq!(writer.preparer().kind(), Evidence::Text);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn kind(&self) -> Evidence {
        self.kind
    }

    /// Prepares the evidence of a document; empty if it has none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a text is not UTF-8 or phrases do not decode.
    pub fn prepare<'a>(&self, bytes: impl Into<Cow<'a, [u8]>>) -> Result<PreparedEvidence<'a>> {
        let bytes = bytes.into();
        let (summary, terms) = match self.kind {
            Evidence::Text => self.of_text(super::utf8(&bytes)?),
            Evidence::Phrases if bytes.is_empty() => {
                (Summary::Phrases(PhraseOutline::NOTHING), None)
            }
            Evidence::Phrases => (Summary::Phrases(PhraseOutline::of_encoded(&bytes)?), None),
            Evidence::Nothing | Evidence::Features => (Summary::Nothing, None),
        };
        Ok(self.with_hash(bytes, summary, terms))
    }

    /// Prepares evidence that is known to be UTF-8, so that nothing is validated.
    ///
    /// For a writer of [`Evidence::Text`]; for any other, the same as [`prepare`](Self::prepare).
    ///
    /// # Errors
    ///
    /// Those of [`prepare`](Self::prepare); none for a text.
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter};
    ///
    /// let writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// let prepared = writer.preparer().prepare_text("sunny days")?;
    /// assert_eq!(prepared.evidence(), b"sunny days");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn prepare_text<'a>(&self, text: impl Into<Cow<'a, str>>) -> Result<PreparedEvidence<'a>> {
        let text = text.into();
        let found = (self.kind == Evidence::Text).then(|| self.of_text(&text));
        let bytes: Cow<'a, [u8]> = match text {
            Cow::Borrowed(text) => text.as_bytes().into(),
            Cow::Owned(text) => text.into_bytes().into(),
        };
        match found {
            Some((summary, terms)) => Ok(self.with_hash(bytes, summary, terms)),
            None => self.prepare(bytes),
        }
    }

    fn of_text(&self, text: &str) -> (Summary, Option<TextTerms>) {
        let terms = self.cutter.as_ref().map(|cutter| cutter.cut(text));
        (Summary::Text(Outline::new(text)), terms)
    }

    fn with_hash<'a>(
        &self,
        bytes: Cow<'a, [u8]>,
        summary: Summary,
        terms: Option<TextTerms>,
    ) -> PreparedEvidence<'a> {
        let hash = feature_hash::<u128>(&bytes, self.seed);
        PreparedEvidence { bytes, seed: self.seed, hash, summary, terms }
    }
}

/// The evidence of one document, for the writer whose preparer made it.
///
/// ```
/// use hamdex::verify::{Evidence, EvidenceWriter, PreparedEvidence};
///
/// let writer = EvidenceWriter::new(Evidence::Text, None)?;
/// let prepared: PreparedEvidence<'_> = writer.preparer().prepare(b"sunny days".as_slice())?;
/// assert_eq!(prepared.evidence(), b"sunny days");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct PreparedEvidence<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) seed: u64,
    pub(super) hash: u128,
    pub(super) summary: Summary,
    /// `None` if the preparer counted no words.
    pub(super) terms: Option<TextTerms>,
}

impl PreparedEvidence<'_> {
    /// Returns the evidence that was prepared; see [`PreparedEvidence`] for an example.
    pub fn evidence(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the memory that this takes in bytes, with the evidence.
    ///
    /// ```
    /// use hamdex::verify::{Evidence, EvidenceWriter};
    ///
    /// let writer = EvidenceWriter::new(Evidence::Text, None)?;
    /// let prepared = writer.preparer().prepare(b"sunny days".as_slice())?;
    /// assert_eq!(prepared.evidence(), b"sunny days");
    /// assert!(prepared.memory_usage() > 10);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.terms.as_ref().map_or(0, TextTerms::bytes)
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use crate::Error;
    use crate::dedup::{Dedup, DedupOptions};
    use crate::text::{Pipeline, PipelineOptions};
    use crate::verify::{Evidence, EvidenceFile, EvidenceWriter, Verification};

    fn writer(check: Verification) -> EvidenceWriter {
        EvidenceWriter::new(check.needs(), None).unwrap().boilerplate(check.boilerplate())
    }

    fn answers(file: &EvidenceFile, check: Verification, count: usize) -> Vec<Option<f64>> {
        let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.map(|(a, b)| file.check(check, 3, a, b).unwrap()).collect()
    }

    #[test]
    fn evidence_prepared_on_many_threads_answers_as_if_pushed() {
        let seed = 11;
        let mut rng = fastrand::Rng::with_seed(seed);
        let names = ["rain", "snow", "hail", "fog", "wind", "frost", "thunder", "drought"];
        let texts: Vec<String> = (0..120)
            .map(|at| {
                // Some texts are copies, and some are empty.
                let name = names[at / 3 % names.len()];
                let lines = "home and search of this site, licence and contact. ".repeat(at % 3);
                let own = format!("{name} with {} and more {name}", rng.choice(names).unwrap());
                if at % 50 == 49 { String::new() } else { lines + &own }
            })
            .collect();
        let pipeline = Pipeline::new(&PipelineOptions::preset("post").unwrap()).unwrap();
        let checks = ["edit:0.5,0.6", "edit:0.5,0.6,60", "contains:0.6", "jaccard:0.5"];
        let passing = checks.map(|check| {
            let check: Verification = check.parse().unwrap();
            let evidence: Vec<Vec<u8>> =
                texts.iter().map(|text| check.evidence(&pipeline, text)).collect();
            let (mut one, mut many) = (writer(check), writer(check));
            for bytes in &evidence {
                one.push(bytes).unwrap();
            }
            for part in evidence.chunks(50) {
                let preparer = many.preparer();
                let prepare = |bytes: &Vec<u8>| match str::from_utf8(bytes) {
                    Ok(text) => preparer.prepare_text(text.to_owned()).unwrap(),
                    Err(_) => preparer.prepare(bytes.clone()).unwrap(),
                };
                let prepared: Vec<_> = part.par_iter().map(prepare).collect();
                for (evidence, bytes) in prepared.into_iter().zip(part) {
                    assert_eq!(evidence.evidence(), bytes);
                    assert!(evidence.memory_usage() > bytes.len());
                    many.push_prepared(evidence).unwrap();
                }
            }
            let [one, many] =
                [one, many].map(|writer| answers(&writer.finish().unwrap(), check, texts.len()));
            assert_eq!(one, many, "seed {seed}: {check}");
            one.iter().filter(|answer| answer.is_some()).count()
        });
        let [all, without_boilerplate, ..] = passing;
        assert!(without_boilerplate < all && !passing.contains(&0), "seed {seed}: {passing:?}");
    }

    #[test]
    fn evidence_prepared_for_another_writer_is_refused() {
        let settings = DedupOptions::new(3).verify(Verification::Edit(0.9));
        let [mut one, other] = [(); 2].map(|()| Dedup::<u64>::new(&settings).unwrap());
        let foreign = || other.preparer().unwrap().prepare(b"rain".as_slice()).unwrap();
        let refused = one.push_prepared(7, Some(foreign()), ()).unwrap_err();
        assert!(matches!(refused, Error::InvalidOption { name: "evidence", .. }), "{refused}");
        assert_eq!((one.len(), one.unverifiable()), (0, 0));
        let before = EvidenceWriter::new(Evidence::Text, None).unwrap();
        let early = before.preparer().prepare(b"rain".as_slice()).unwrap();
        let refused = before.boilerplate(std::num::NonZeroU8::new(5)).push_prepared(early);
        assert!(matches!(refused, Err(Error::InvalidOption { name: "evidence", .. })));
        let mut unverified = Dedup::<u64>::new(&DedupOptions::new(3)).unwrap();
        assert!(unverified.preparer().is_none());
        let refused = unverified.push_prepared(7, Some(foreign()), ()).unwrap_err();
        assert!(matches!(refused, Error::InvalidOption { name: "evidence", .. }), "{refused}");
        // What follows has its own evidence.
        one.push(7, b"snow tonight", ()).unwrap();
        one.push_prepared(7, None, ()).unwrap();
        one.push(7, b"snow tonight", ()).unwrap();
        assert_eq!(one.unverifiable(), 1);
        assert_eq!(one.finish(&()).unwrap().kept(), 2);
    }
}
