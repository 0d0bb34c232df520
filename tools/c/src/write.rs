//! Writing: inserts and removals, each call all or nothing.

use std::mem::MaybeUninit;

use hamdex::Durability;

use crate::border::{Result, give, guard, required};
use crate::error::HamdexError;
use crate::fingerprint::HamdexFingerprint;
use crate::index::HamdexIndex;
use crate::search::HamdexMatches;
use crate::slices::{HamdexBytes, HamdexDocument, HamdexDocuments};

/// What a batch of inserts did.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct HamdexBatchReport {
    /// Documents whose key was not stored before.
    pub inserted: u64,
    /// Documents that took the place of an older one.
    pub replaced: u64,
}

fn durability(synced: bool) -> Durability {
    if synced { Durability::Synced } else { Durability::Buffered }
}

/// Reads documents of an array, in order.
pub(crate) fn documents(array: &[HamdexDocument]) -> Result<Vec<(&[u8], u128)>> {
    array
        .iter()
        .map(|document| Ok((document.key.get("a key")?, document.fingerprint.value())))
        .collect()
}

/// Stores a document, or replaces the one with the same key.
///
/// With `synced` it survives a loss of power when the call returns, else the end of the process.
/// `*replaced` tells whether there was an older one; it may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_insert(
    index: Option<&HamdexIndex>,
    key: HamdexBytes,
    fingerprint: HamdexFingerprint,
    synced: bool,
    replaced: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let (index, key) = (required(index, "index")?, key.get("key")?);
        let report = index.0.insert_batch(&[(key, fingerprint.value())], durability(synced))?;
        give(replaced, report.replaced > 0);
        Ok(())
    })
}

/// Stores many documents at once: all of them or, on an error, none.
///
/// Of documents with equal keys the last one counts. `report` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_insert_batch(
    index: Option<&HamdexIndex>,
    documents: HamdexDocuments,
    synced: bool,
    report: Option<&mut MaybeUninit<HamdexBatchReport>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let (index, array) = (required(index, "index")?, documents.get()?);
        let done = index.0.insert_batch(&self::documents(array)?, durability(synced))?;
        give(report, HamdexBatchReport { inserted: done.inserted, replaced: done.replaced });
        Ok(())
    })
}

/// Stores a document unless a near-duplicate of it is stored already, in one step.
///
/// `*near` holds no match when it was stored, else the nearest document that kept it out; it is
/// the caller's to free. An older document of the same key does not count; it is replaced.
/// `distance` may be `HAMDEX_OWN_DISTANCE`. `*near` is NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_insert_if_new(
    index: Option<&HamdexIndex>,
    key: HamdexBytes,
    fingerprint: HamdexFingerprint,
    distance: u32,
    synced: bool,
    near: Option<&mut MaybeUninit<Option<Box<HamdexMatches>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(near, "near")?.write(None);
        let (index, key) = (required(index, "index")?, key.get("key")?);
        let distance = crate::search::own(distance).unwrap_or_else(|| index.0.distance());
        let fingerprint = fingerprint.value();
        let near = index.0.insert_if_new(key, fingerprint, distance, durability(synced))?;
        *out = Some(Box::new(HamdexMatches::of(near.into_iter().collect())));
        Ok(())
    })
}

/// Removes a document.
///
/// `*removed` is false where none was stored under the key; it may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_remove(
    index: Option<&HamdexIndex>,
    key: HamdexBytes,
    synced: bool,
    removed: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let (index, key) = (required(index, "index")?, key.get("key")?);
        let count = index.0.remove_batch(&[key], durability(synced))?;
        give(removed, count > 0);
        Ok(())
    })
}
