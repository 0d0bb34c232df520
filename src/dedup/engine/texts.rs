//! Texts: fingerprints and evidence of many, made on all threads and pushed in order.

use rayon::prelude::*;

use super::Dedup;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::text::Pipeline;

/// Texts whose fingerprints and evidence are computed together, on all threads, and held in memory.
const BATCH: usize = 1024;

impl<F: Fingerprint> Dedup<F> {
    /// Adds texts, on all threads, and returns the position of each.
    ///
    /// The position is `None` for a text without features: it has no fingerprint and is not added.
    ///
    /// # Errors
    ///
    /// Those of [`push`](Self::push); the texts before the one that failed are added.
    ///
    /// ```
    /// use hamdex::dedup::{Dedup, DedupOptions};
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
    /// let positions = dedup.push_texts(&pipeline, &["rain tonight", " ", "rain tonight"])?;
    /// assert_eq!(positions, [Some(0), None, Some(1)]);
    /// assert_eq!(dedup.finish(&())?.kept(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn push_texts<T: AsRef<str> + Sync>(
        &mut self,
        pipeline: &Pipeline,
        texts: &[T],
    ) -> Result<Vec<Option<u32>>> {
        let (verification, preparer) = (self.settings.verification, self.preparer());
        let mut positions = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let make = |text: &T| {
                let text = text.as_ref();
                let Some(made) = verification.fingerprint_and_evidence(pipeline, text) else {
                    return Ok(None);
                };
                let (sketch, evidence) = made;
                let prepared = preparer.as_ref().map(|preparer| preparer.prepare(evidence));
                Ok(Some((sketch.fingerprint, prepared.transpose()?)))
            };
            let made: Vec<Result<Option<(F, _)>>> = batch.par_iter().map(make).collect();
            for made in made {
                positions.push(match made? {
                    Some((fingerprint, evidence)) => {
                        Some(self.push_prepared(fingerprint, evidence, ())?)
                    }
                    None => None,
                });
            }
        }
        Ok(positions)
    }
}
