//! Writing: inserts and removals, each call atomic, and bulk builds, which are much faster.

use std::mem::MaybeUninit;

use hamdex::any::AnyBuilder;
use hamdex::build::BuildOptions;
use hamdex::{Durability, Fingerprint, for_width};

use crate::error::{HamdexError, Result, guard, required, write_to};
use crate::index::{HamdexIndex, HamdexOptions, hamdex_options_default, path};
use crate::pipeline::{HamdexFingerprint, supported};
use crate::search::HamdexMatches;
use crate::slices::{HamdexBytes, HamdexDocument, HamdexDocuments};

/// The result of a batch of inserts.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct HamdexBatchReport {
    /// Documents whose key was not stored before.
    pub inserted: u64,
    /// Documents that replaced a stored one.
    pub replaced: u64,
}

fn durability(synced: bool) -> Durability {
    if synced { Durability::Synced } else { Durability::Buffered }
}

/// Reads documents of an array, in order.
fn documents(array: &[HamdexDocument]) -> Result<Vec<(&[u8], u128)>> {
    array
        .iter()
        .map(|document| Ok((document.key.get("a key")?, document.fingerprint.value())))
        .collect()
}

/// Inserts a document, or replaces the one with the same key.
///
/// If `synced` is true, the document survives a power loss once the call returned; otherwise it
/// survives the end of the process. `*replaced` is true if the key was stored before; it may be
/// NULL.
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
        write_to(replaced, report.replaced > 0);
        Ok(())
    })
}

/// Inserts many documents atomically: all of them or, on an error, none.
///
/// If keys are repeated, the last document is stored. `report` may be NULL.
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
        write_to(report, HamdexBatchReport { inserted: done.inserted, replaced: done.replaced });
        Ok(())
    })
}

/// Inserts a document unless a near-duplicate is stored, in one atomic step.
///
/// `*near` has no match if the document was inserted. Otherwise its match is the nearest stored
/// document, which rejected the new one. A stored document with the same key is not compared; it is
/// replaced. `distance` may be `HAMDEX_OWN_DISTANCE`. `*near` is owned by the caller, and NULL
/// after an error.
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
        let distance = crate::search::distance_of(distance).unwrap_or_else(|| index.0.distance());
        let fingerprint = fingerprint.value();
        let near = index.0.insert_if_new(key, fingerprint, distance, durability(synced))?;
        *out = Some(Box::new(HamdexMatches::of(near.into_iter().collect())));
        Ok(())
    })
}

/// Removes a document.
///
/// `*removed` is false if the key is not stored; it may be NULL.
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
        write_to(removed, count > 0);
        Ok(())
    })
}

/// The result of a bulk build.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexBuildReport {
    /// Documents in the index.
    pub documents: u64,
    /// Distinct fingerprints in the index.
    pub fingerprints: u64,
    /// Documents of the array that were dropped because an earlier one has their key.
    pub duplicates: u64,
    /// Stored documents that were replaced.
    pub replaced: u64,
}

/// Builds an index from an array of documents, or adds them to an existing index.
///
/// The index must not be open. `options` are those of a new index, and must match an existing one;
/// NULL means the defaults. On an error an existing index does not change, and a new one is left
/// empty. `report` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_build(
    path: HamdexBytes,
    options: Option<&HamdexOptions<'_>>,
    documents: HamdexDocuments,
    report: Option<&mut MaybeUninit<HamdexBuildReport>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let options = options.copied().unwrap_or_else(|| hamdex_options_default());
        let (path, settings) = (self::path(&path)?, options.settings()?);
        let documents = self::documents(documents.get()?)?;
        // Before anything is made.
        let fit: hamdex::Result<()> = for_width!(supported(options.bits)?, F => {
            documents.iter().try_for_each(|(_, wide)| F::narrow(*wide).map(drop))
        });
        fit?;
        let build = BuildOptions::new().memory(options.memory);
        let mut builder = AnyBuilder::create(&path, options.bits, &settings, &build)?;
        let mut pushed = documents.iter().zip(0..);
        let filled =
            pushed.try_for_each(|((key, fingerprint), row)| builder.push(key, *fingerprint, row));
        match filled.and_then(|()| builder.finish(&(), &mut |_, _| ())) {
            Ok(built) => {
                write_to(
                    report,
                    HamdexBuildReport {
                        documents: built.documents,
                        fingerprints: built.fingerprints,
                        duplicates: built.duplicates,
                        replaced: built.replaced,
                    },
                );
                Ok(())
            }
            Err(error) => {
                // What was told first is worth more than what giving up may meet.
                let _ = AnyBuilder::abandon(&path);
                Err(error.into())
            }
        }
    })
}
