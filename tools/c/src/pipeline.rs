//! Pipelines: texts become fingerprints, of one type for all three widths.

use std::mem::MaybeUninit;

use hamdex::{Error, Fingerprint, Pipeline, PipelineOptions, for_width};

use crate::error::{Failure, HamdexError, Result, free, guard, guard_or, required};
use crate::index::HamdexIndex;
use crate::slices::HamdexBytes;

/// A fingerprint of 32, 64 or 128 bits, in the low bits of a 128-bit number.
///
/// Bits above the width are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct HamdexFingerprint {
    /// The upper 64 of 128 bits; 0 for narrower fingerprints.
    pub high: u64,
    /// The lower 64 bits.
    pub low: u64,
}

impl HamdexFingerprint {
    pub(crate) fn of(value: u128) -> Self {
        // The masks keep each half within its width.
        let half = |value: u128| u64::try_from(value & u128::from(u64::MAX)).unwrap_or_default();
        Self { high: half(value >> 64), low: half(value) }
    }

    /// The number; an index refuses one that has more bits than its width.
    pub(crate) fn value(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }
}

/// Returns the number of differing bits.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_distance(a: HamdexFingerprint, b: HamdexFingerprint) -> u32 {
    guard_or(u32::MAX, || a.value().distance(b.value()))
}

/// Refuses widths that there are not.
pub(crate) fn supported(bits: u32) -> Result<u32> {
    let unsupported =
        || Failure::Argument(format!("fingerprints have 32, 64 or 128 bits, not {bits}"));
    for_width!(bits, F => Ok::<_, Error>(F::BITS)).map_err(|_| unsupported())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_through_both_halves_and_back() {
        let wide = 0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        let made = HamdexFingerprint::of(wide);
        assert_eq!((made.high, made.low), (0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677));
        assert_eq!(made.value(), wide);
        assert_eq!(HamdexFingerprint::of(u128::from(u32::MAX)).low, 0xffff_ffff);
        assert_eq!(hamdex_distance(made, HamdexFingerprint::of(wide ^ (1 << 100 | 1))), 2);
    }
}
