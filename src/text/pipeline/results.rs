//! Results: what a pipeline returns for a text.

/// A fingerprint and the number of features it was computed from.
///
/// ```
/// use hamdex::text::Sketch;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::new())?;
/// let sketch: Sketch<u64> = pipeline.fingerprint("rainy").expect("has letters");
/// assert_eq!(sketch.features, 3);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sketch<F> {
    /// The signature of the features.
    pub fingerprint: F,
    /// Number of features; with fewer than about ten, a single word can dominate.
    ///
    /// Repeats count, except under [`Weights::Uniform`](crate::text::Weights::Uniform) and
    /// [`Weights::Levels`](crate::text::Weights::Levels).
    pub features: usize,
}

/// One feature of a text, with its weight in the fingerprint.
///
/// ```
/// use hamdex::text::Feature;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
/// let features: Vec<Feature> = pipeline.features("papapa");
/// assert_eq!((&features[0].text[..], features[0].weight), ("apa", 2));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feature {
    /// The token, or the tokens of an n-gram with spaces between words.
    pub text: String,
    /// The weight in the bit sums.
    pub weight: i64,
}
