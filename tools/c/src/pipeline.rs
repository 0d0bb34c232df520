//! Pipelines: compute the fingerprints of texts.

use std::mem::MaybeUninit;

use hamdex::{Pipeline, PipelineOptions};

use crate::border::{free, guard, guard_or, required};
use crate::error::HamdexError;
use crate::fingerprint::{HamdexFingerprint, supported};
use crate::index::HamdexIndex;
use crate::slices::HamdexBytes;

/// Computes fingerprints of texts.
///
/// Any number of threads may use a pipeline at the same time. Owned by the caller; free with
/// `hamdex_pipeline_free` when no thread uses it any more. An index keeps no pointer to it.
#[derive(Debug)]
pub struct HamdexPipeline(pub(crate) Pipeline);

/// Creates a pipeline by the name of a preset, such as "page" or "post".
///
/// `*pipeline` is NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_pipeline_preset(
    name: HamdexBytes,
    pipeline: Option<&mut MaybeUninit<Option<Box<HamdexPipeline>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(pipeline, "pipeline")?.write(None);
        let options = PipelineOptions::preset(name.text("name")?)?;
        *out = Some(Box::new(HamdexPipeline(Pipeline::new(&options)?)));
        Ok(())
    })
}

/// Creates the pipeline of a descriptor, as `hamdex_pipeline_descriptor` returns it.
///
/// A pipeline with custom tables can only be read from an index that stores these; see
/// `hamdex_index_pipeline`. `*pipeline` is NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_pipeline_parse(
    descriptor: HamdexBytes,
    pipeline: Option<&mut MaybeUninit<Option<Box<HamdexPipeline>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(pipeline, "pipeline")?.write(None);
        let made = Pipeline::from_descriptor(descriptor.text("descriptor")?)?;
        *out = Some(Box::new(HamdexPipeline(made)));
        Ok(())
    })
}

/// Returns the pipeline of an index; NULL if it has none.
///
/// Owned by the caller; it outlives the index. `*pipeline` is NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_pipeline(
    index: Option<&HamdexIndex>,
    pipeline: Option<&mut MaybeUninit<Option<Box<HamdexPipeline>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(pipeline, "pipeline")?.write(None);
        let made = required(index, "index")?.0.pipeline_with(None)?;
        *out = made.map(|pipeline| Box::new(HamdexPipeline(pipeline)));
        Ok(())
    })
}

/// Returns the descriptor of the pipeline, which owns it; empty for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_pipeline_descriptor(pipeline: Option<&HamdexPipeline>) -> HamdexBytes {
    guard_or(HamdexBytes::NONE, || {
        pipeline.map_or(HamdexBytes::NONE, |pipeline| {
            HamdexBytes::of(pipeline.0.descriptor().as_bytes())
        })
    })
}

/// Computes the fingerprint of a UTF-8 text.
///
/// `*features` is the number of features of the text; below about ten, a single word decides. A
/// text without features has no fingerprint: `*features` and `*fingerprint` are 0, and the
/// fingerprint must not be stored.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_pipeline_fingerprint(
    pipeline: Option<&HamdexPipeline>,
    text: HamdexBytes,
    bits: u32,
    fingerprint: Option<&mut MaybeUninit<HamdexFingerprint>>,
    features: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(fingerprint, "fingerprint")?.write(HamdexFingerprint::default());
        // Required, because it identifies a text without features.
        let count = required(features, "features")?.write(0);
        let (pipeline, text) = (&required(pipeline, "pipeline")?.0, text.text("text")?);
        if let Some(sketch) = pipeline.fingerprint_of_bits(text, supported(bits)?)? {
            *out = HamdexFingerprint::of(sketch.fingerprint);
            *count = sketch.features;
        }
        Ok(())
    })
}

/// Frees a pipeline; does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_pipeline_free(pipeline: Option<Box<HamdexPipeline>>) {
    free(pipeline);
}
