//! Tally: the documents and labels of a run, counted by the library.

use hamdex::Fingerprint;
pub(super) use hamdex::evaluate::{Count, Tally};

use crate::evidence::Kept;
use crate::failure::Result;
use crate::session::Session;
use crate::verb::labels::Judged;

/// Counts all pairs within the largest distance, and of the labelled ones those found.
pub(super) fn measure<F: Fingerprint>(
    session: &Session,
    fingerprints: &[F],
    evidence: &Kept,
    judged: &Judged,
    largest: u32,
) -> Result<Tally> {
    let Kept { features, texts, .. } = evidence;
    let labels = &judged.labels;
    let (features, texts) = (features.as_ref(), texts.as_ref());
    let tally = Tally::measure(fingerprints, features, texts, labels, largest, &session.console)?;
    session.console.end_phase();
    Ok(tally)
}
