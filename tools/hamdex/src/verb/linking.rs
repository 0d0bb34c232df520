//! Linking: fingerprints and their evidence become groups, by chains or by representatives.

use hamdex::Fingerprint;
use hamdex::dedup::{self, Settings};
use hamdex::join::Linkage;

use crate::advise::Settled;
use crate::evidence::Kept;
use crate::failure::Result;
use crate::session::Session;

/// Returns for every position the position that names its group, the first of it.
pub(super) fn labels<F: Fingerprint>(
    session: &Session,
    fingerprints: &[F],
    evidence: &Kept,
    settled: &Settled,
    linkage: Linkage,
) -> Result<Vec<u32>> {
    let settings = Settings::new(settled.distance).verify(settled.verification).linkage(linkage);
    let evidence = evidence.of(settled.verification);
    let labels = dedup::labels(fingerprints, evidence, &settings, None, &session.console)?;
    session.console.end_phase();
    Ok(labels)
}
