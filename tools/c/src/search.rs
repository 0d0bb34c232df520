//! Searching: results are objects that are read through accessors.

use std::mem::MaybeUninit;

use hamdex::{Match, Query};

use crate::error::{HamdexError, free, guard, guard_or, required};
use crate::index::HamdexIndex;
use crate::pipeline::HamdexFingerprint;
use crate::slices::{HamdexBytes, HamdexFingerprints};

/// Selects the default distance of the index, or, without one, a distance chosen from the texts.
pub const HAMDEX_OWN_DISTANCE: u32 = u32::MAX;

/// The matches of a search, nearest first, then by key.
///
/// Immutable, so any number of threads may read it. Owned by the caller; free with
/// `hamdex_matches_free`. It outlives the index.
#[derive(Debug)]
pub struct HamdexMatches(Vec<Found>);

#[derive(Debug)]
struct Found {
    key: Vec<u8>,
    fingerprint: HamdexFingerprint,
    distance: u32,
}

/// A stored document within the distance of a query.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexMatch {
    /// The document's key, owned by the matches.
    pub key: HamdexBytes,
    /// The stored fingerprint.
    pub fingerprint: HamdexFingerprint,
    /// The number of bits that differ from the query.
    pub distance: u32,
}

/// The results of a batch: one list of matches per query.
///
/// Immutable, so any number of threads may read it. Owned by the caller; free with
/// `hamdex_answers_free`. It outlives the index.
#[derive(Debug)]
pub struct HamdexAnswers(Vec<HamdexMatches>);

impl HamdexMatches {
    pub(crate) fn of(matches: Vec<Match<u128>>) -> Self {
        let found = |found: Match<u128>| {
            let fingerprint = HamdexFingerprint::of(found.fingerprint);
            Found { key: found.key, fingerprint, distance: found.distance }
        };
        Self(matches.into_iter().map(found).collect())
    }
}

/// Returns the requested distance; `None` for the default of the index.
pub(crate) fn distance_of(distance: u32) -> Option<u32> {
    (distance != HAMDEX_OWN_DISTANCE).then_some(distance)
}

fn query(fingerprint: HamdexFingerprint, distance: u32, limit: usize) -> Query<u128> {
    let mut query = Query::new(fingerprint.value());
    if let Some(distance) = distance_of(distance) {
        query = query.distance(distance);
    }
    if limit == 0 { query } else { query.limit(limit) }
}

/// Returns every document within the distance, nearest first, then by key.
///
/// `distance` is at most a quarter of the width, or `HAMDEX_OWN_DISTANCE`. `limit` is the maximum
/// number of matches; 0 returns all. `*matches` is owned by the caller, and NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_search(
    index: Option<&HamdexIndex>,
    fingerprint: HamdexFingerprint,
    distance: u32,
    limit: usize,
    matches: Option<&mut MaybeUninit<Option<Box<HamdexMatches>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(matches, "matches")?.write(None);
        let found = required(index, "index")?.0.search(query(fingerprint, distance, limit))?;
        *out = Some(Box::new(HamdexMatches::of(found)));
        Ok(())
    })
}

/// Answers many queries on all threads; answers are in query order.
///
/// `distance` and `limit` apply to every query, as for `hamdex_index_search`. `*answers` is owned
/// by the caller, and NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_search_batch(
    index: Option<&HamdexIndex>,
    fingerprints: HamdexFingerprints,
    distance: u32,
    limit: usize,
    answers: Option<&mut MaybeUninit<Option<Box<HamdexAnswers>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(answers, "answers")?.write(None);
        let (index, asked) = (required(index, "index")?, fingerprints.get()?);
        let found = index.0.search_batch(asked.iter().map(|one| query(*one, distance, limit)))?;
        *out = Some(Box::new(HamdexAnswers(found.into_iter().map(HamdexMatches::of).collect())));
        Ok(())
    })
}

/// Returns the number of matches; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_matches_len(matches: Option<&HamdexMatches>) -> usize {
    guard_or(0, || matches.map_or(0, |matches| matches.0.len()))
}

/// Returns the match with an index, starting at 0.
///
/// For an index past the end, and for NULL, the key is empty and the distance is `UINT32_MAX`.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_matches_at(matches: Option<&HamdexMatches>, at: usize) -> HamdexMatch {
    let none = HamdexMatch {
        key: HamdexBytes::NONE,
        fingerprint: HamdexFingerprint::default(),
        distance: u32::MAX,
    };
    guard_or(none, || {
        let found = matches.and_then(|matches| matches.0.get(at));
        found.map_or(none, |found| HamdexMatch {
            key: HamdexBytes::of(&found.key),
            fingerprint: found.fingerprint,
            distance: found.distance,
        })
    })
}

/// Frees the matches of a search; does nothing for NULL.
///
/// Not for the matches of a batch, which `hamdex_answers_free` frees.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_matches_free(matches: Option<Box<HamdexMatches>>) {
    free(matches);
}

/// Returns the number of answered queries; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_answers_len(answers: Option<&HamdexAnswers>) -> usize {
    guard_or(0, || answers.map_or(0, |answers| answers.0.len()))
}

/// Returns the matches of the query with an index, starting at 0; owned by the answers.
///
/// NULL for an index past the end, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_answers_at(
    answers: Option<&HamdexAnswers>,
    at: usize,
) -> Option<&HamdexMatches> {
    guard_or(None, || answers.and_then(|answers| answers.0.get(at)))
}

/// Frees answers and all their matches; does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_answers_free(answers: Option<Box<HamdexAnswers>>) {
    free(answers);
}
