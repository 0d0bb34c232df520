//! Bulk builds: create an index from arrays, much faster than inserts.

use std::mem::MaybeUninit;

use hamdex::any::AnyBuilder;
use hamdex::build::BuildOptions;
use hamdex::{Fingerprint, Result, for_width};

use crate::border::{guard, write_to};
use crate::error::HamdexError;
use crate::fingerprint::supported;
use crate::index::{HamdexOptions, hamdex_options_default, path};
use crate::slices::{HamdexBytes, HamdexDocuments};
use crate::write::documents;

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
        let fit: Result<()> = for_width!(supported(options.bits)?, F => {
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
