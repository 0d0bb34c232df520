//! Bulk builds: an index out of arrays, far faster than by inserts.

use std::mem::MaybeUninit;

use hamdex::build::BuildOptions;
use hamdex::{AnyBuilder, Fingerprint, Result, for_width};

use crate::border::{give, guard};
use crate::error::HamdexError;
use crate::fingerprint::supported;
use crate::index::{HamdexOptions, hamdex_options_default, path};
use crate::slices::{HamdexBytes, HamdexDocuments};
use crate::write::documents;

/// What a bulk build did.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexBuildReport {
    /// Documents in the index now.
    pub documents: u64,
    /// Distinct fingerprints among them.
    pub fingerprints: u64,
    /// Documents of the array that were dropped because an earlier one had their key.
    pub duplicates: u64,
    /// Documents of the index that one of the array took the place of.
    pub replaced: u64,
}

/// Makes an index of an array of documents, or adds them to the one that is there.
///
/// Nobody may have it open meanwhile. `options` are those of a new index, and have to fit one that
/// is there; NULL stands for the defaults. On an error an index that was there has not changed, and
/// one that was to be made stays behind empty. `report` may be NULL.
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
                give(
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
