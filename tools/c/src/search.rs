//! Searching: matches as objects of the caller's, read by accessors.

use std::mem::MaybeUninit;

use hamdex::{Match, Query};

use crate::border::{end, guard, guard_or, required};
use crate::error::HamdexError;
use crate::fingerprint::HamdexFingerprint;
use crate::index::HamdexIndex;
use crate::slices::{HamdexBytes, HamdexFingerprints};

/// Asks a search for the distance that the index was made with.
pub const HAMDEX_OWN_DISTANCE: u32 = u32::MAX;

/// What a search found, nearest first, then by key.
///
/// It never changes, so that any number of threads may read it. Owned by the caller, who ends it
/// with `hamdex_matches_free`; it outlives the index.
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
    /// The document's key; it belongs to the matches and ends with them.
    pub key: HamdexBytes,
    /// Its stored fingerprint.
    pub fingerprint: HamdexFingerprint,
    /// How many bits it differs from the query.
    pub distance: u32,
}

/// What a batch of searches found, one list of matches for each query.
///
/// It never changes, so that any number of threads may read it. Owned by the caller, who ends it
/// with `hamdex_answers_free`; it outlives the index.
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

/// The distance that is asked for; `None` for the index's own.
pub(crate) fn own(distance: u32) -> Option<u32> {
    (distance != HAMDEX_OWN_DISTANCE).then_some(distance)
}

fn query(fingerprint: HamdexFingerprint, distance: u32, limit: usize) -> Query<u128> {
    let mut query = Query::new(fingerprint.value());
    if let Some(distance) = own(distance) {
        query = query.distance(distance);
    }
    if limit == 0 { query } else { query.limit(limit) }
}

/// Finds every document within the distance, nearest first, then by key.
///
/// `distance` goes from 0 to a quarter of the width, or is `HAMDEX_OWN_DISTANCE`. `limit` keeps so
/// many of the nearest; 0 keeps all. `*matches` is the caller's to free, and NULL after an error.
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

/// Answers many queries on all threads; answers come in the order of the queries.
///
/// `distance` and `limit` are those of every query, as for `hamdex_index_search`. `*answers` is
/// the caller's to free, and NULL after an error.
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

/// Returns how many matches there are; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_matches_len(matches: Option<&HamdexMatches>) -> usize {
    guard_or(0, || matches.map_or(0, |matches| matches.0.len()))
}

/// Returns a match by its number from 0.
///
/// Behind the last one, and for NULL, its key has no bytes and its distance is `UINT32_MAX`.
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

/// Ends matches that a search has given; nothing happens for NULL.
///
/// Not for those of a batch, which end with their answers.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_matches_free(matches: Option<Box<HamdexMatches>>) {
    end(matches);
}

/// Returns how many queries were answered; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_answers_len(answers: Option<&HamdexAnswers>) -> usize {
    guard_or(0, || answers.map_or(0, |answers| answers.0.len()))
}

/// Returns the matches of a query by its number from 0; they belong to the answers.
///
/// NULL behind the last one, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_answers_at(
    answers: Option<&HamdexAnswers>,
    at: usize,
) -> Option<&HamdexMatches> {
    guard_or(None, || answers.and_then(|answers| answers.0.get(at)))
}

/// Ends answers and the matches in them; nothing happens for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_answers_free(answers: Option<Box<HamdexAnswers>>) {
    end(answers);
}
