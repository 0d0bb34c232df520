//! Bulk builds: create an index from arrays, much faster than inserts.

use std::mem::MaybeUninit;

use hamdex::build::{BuildOptions, Builder};

use crate::border::{guard, write_to};
use crate::error::HamdexError;
use crate::fingerprint::for_width;
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
        let array = documents.get()?;
        for_width!(options.bits, F => {
            let documents = self::documents::<F>(array)?;
            let build = BuildOptions::new().memory(options.memory);
            let mut builder = Builder::<F>::create(&path, &settings, &build)?;
            let mut pushed = documents.iter().zip(0..);
            let filled = pushed.try_for_each(|((key, fingerprint), row)| {
                builder.push(key, *fingerprint, row)
            });
            let built = filled.and_then(|()| builder.finish(&(), &mut |_, _| ()));
            match built {
                Ok(built) => {
                    write_to(report, HamdexBuildReport {
                        documents: built.documents,
                        fingerprints: built.fingerprints,
                        duplicates: built.duplicates,
                        replaced: built.replaced,
                    });
                    Ok(())
                }
                Err(error) => {
                    // The first error matters more than a failure to clean up.
                    let _ = Builder::<F>::abandon(&path);
                    Err(error.into())
                }
            }
        })
    })
}
