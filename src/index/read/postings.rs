//! Postings: the documents of a fingerprint, from memory or from the store.

use super::query::Match;
use super::ranges::OfPacks;
use super::search::Found;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::store::{Postings, View, keys};

/// Fingerprints whose postings are read ahead together.
const AHEAD: usize = 64;

/// Calls `visit` with each document key of a fingerprint, ascending, until it returns false.
///
/// `packs` are those of the snapshot that `postings` read.
pub(in crate::index) fn each_document<F: Fingerprint>(
    postings: &mut Postings,
    packs: Option<OfPacks<'_, F>>,
    fingerprint: F,
    mut visit: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    postings.with(|cursor| {
        if let Some(packs) = packs
            && cursor.has_packs()
            && packs.each_document(cursor, fingerprint, &mut visit)?
        {
            return Ok(());
        }
        cursor.seek(fingerprint.to_bytes().as_ref());
        while let Some((key, _)) = cursor.entry()? {
            let (owner, document) = keys::split_posting::<F>(key)?;
            if owner != fingerprint || !visit(document) {
                break;
            }
            cursor.next();
        }
        Ok(())
    })
}

/// Returns the documents of fingerprints, nearest first, then by key, up to the limit.
///
/// `ahead` may read the postings of some fingerprints, which are needed next. `check` returns `None` for a
/// document that fails, else its similarity if known.
pub(super) fn expand<F: Fingerprint>(
    view: &mut View,
    found: &[Found<F>],
    limit: Option<usize>,
    packs: Option<OfPacks<'_, F>>,
    ahead: impl Fn(&[Found<F>]),
    check: impl Fn(&[u8], u32) -> Result<Option<Option<f64>>>,
) -> Result<Vec<Match<F>>> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut matches: Vec<Match<F>> = Vec::new();
    for group in found.chunk_by(|a, b| a.0 == b.0) {
        let room = limit - matches.len();
        if room == 0 {
            break;
        }
        let first = matches.len();
        for next in group.chunks(AHEAD) {
            ahead(next.get(..room).unwrap_or(next));
            for (distance, fingerprint) in next {
                let mut taken = 0;
                let mut failed = None;
                let visit = |key: &[u8]| match check(key, *distance) {
                    Ok(None) => true,
                    Ok(Some(similarity)) => {
                        matches.push(Match {
                            key: key.to_vec(),
                            fingerprint: *fingerprint,
                            distance: *distance,
                            similarity,
                        });
                        taken += 1;
                        taken < room
                    }
                    Err(error) => {
                        failed = Some(error);
                        false
                    }
                };
                each_document(view.postings(), packs, *fingerprint, visit)?;
                if let Some(error) = failed {
                    return Err(error);
                }
            }
        }
        let (_, tail) = matches.split_at_mut(first);
        tail.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        matches.truncate(limit);
    }
    Ok(matches)
}
