//! Query tables: builds tables over a batch of queries and looks up every stored fingerprint.
#![expect(
    clippy::indexing_slicing,
    reason = "queries are numbered here; one that slips must panic, not lose matches"
)]

use rayon::prelude::*;

use super::batch::assign;
use super::deltas::Deltas;
use super::parts::Parts;
use super::reader::Reader;
use super::search::Found;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::Costs;
use crate::resident::ResidentTables;

/// Stored fingerprints looked up together.
const TOGETHER: usize = 1 << 10;

/// Returns the expected time of the scan on one thread, in nanoseconds.
pub(super) fn nanos<F: Fingerprint>(
    costs: &Costs,
    distance: u32,
    entries: u64,
    queries: usize,
) -> f64 {
    let look_up = ResidentTables::<F>::expected_nanos(queries, distance, costs);
    costs.scan_nanos(entries) + entries as f64 * look_up + queries as f64 * costs.build_ns
}

/// Finds the fingerprints near each query, each list sorted like search results.
pub(super) fn find<F: Fingerprint>(
    reader: &Reader<F>,
    queries: &[F],
    distance: u32,
) -> Result<Vec<Vec<Found<F>>>> {
    let mut askers: Vec<(F, u32)> = queries.iter().copied().zip(0..).collect();
    askers.par_sort_unstable();
    let mut distinct: Vec<F> = askers.iter().map(|&(fingerprint, _)| fingerprint).collect();
    distinct.dedup();
    let tables = ResidentTables::<F>::MOST_TABLES;
    let tables = ResidentTables::of_distinct(&distinct, tables, reader.core().costs)?;
    let deltas = Deltas::of_first(reader.snapshot(), reader.plan().tables())?;
    let stored = Parts::new(reader, 0, &deltas, &()).divided();
    let permutation = stored.table().permutation();
    let parts = stored.each(TOGETHER, |hits: &mut Vec<_>, members| {
        permutation.invert_all(members);
        tables.sweep(members, distance, |hit| {
            let member = members[hit.query];
            let first = askers.partition_point(|&(asker, _)| asker < hit.fingerprint);
            let same = askers[first..].iter().take_while(|&&(asker, _)| asker == hit.fingerprint);
            hits.extend(same.map(|&(_, query)| (query, (hit.distance, member))));
        })
    })?;
    let parts: Vec<Vec<_>> = parts.into_iter().map(|(hits, _)| hits).collect();
    Ok(assign(parts.concat(), queries.len()))
}
