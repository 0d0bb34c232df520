//! Pipelines: texts become fingerprints.

use std::mem::MaybeUninit;

use hamdex::{Pipeline, PipelineOptions};

use crate::border::{end, guard, guard_or, required};
use crate::error::HamdexError;
use crate::fingerprint::{HamdexFingerprint, supported};
use crate::index::HamdexIndex;
use crate::slices::HamdexBytes;

/// The way from a text to its fingerprint.
///
/// Any number of threads may use one at a time. Owned by the caller, who ends it with
/// `hamdex_pipeline_free` when no thread uses it any more; an index keeps no pointer to it.
#[derive(Debug)]
pub struct HamdexPipeline(pub(crate) Pipeline);

/// Makes a pipeline by the name of a preset, such as "page" or "post".
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

/// Makes the pipeline that a descriptor names, as `hamdex_pipeline_descriptor` tells it.
///
/// Pipelines with tables of the caller's come from the index that holds these; see
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

/// Makes the pipeline that an index was made with; NULL where it was made with none.
///
/// It is the caller's to free and outlives the index. `*pipeline` is NULL after an error.
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

/// Returns the words that name the pipeline; they belong to it. Empty for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_pipeline_descriptor(pipeline: Option<&HamdexPipeline>) -> HamdexBytes {
    guard_or(HamdexBytes::NONE, || {
        pipeline.map_or(HamdexBytes::NONE, |pipeline| {
            HamdexBytes::of(pipeline.0.descriptor().as_bytes())
        })
    })
}

/// Makes the fingerprint of a text in UTF-8.
///
/// `*features` tells how many features stand behind it; below some ten a single word decides. A
/// text without any has no fingerprint: then it is 0, and so is `*fingerprint`, which must not be
/// stored.
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
        // Without it a text without features could not be told from any other.
        let count = required(features, "features")?.write(0);
        let (pipeline, text) = (&required(pipeline, "pipeline")?.0, text.text("text")?);
        if let Some(sketch) = pipeline.fingerprint_of_bits(text, supported(bits)?)? {
            *out = HamdexFingerprint::of(sketch.fingerprint);
            *count = sketch.features;
        }
        Ok(())
    })
}

/// Ends a pipeline; nothing happens for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_pipeline_free(pipeline: Option<Box<HamdexPipeline>>) {
    end(pipeline);
}
