//! Signing: from hashes of features, keyed by a secret if there is one, to what callers get.

use std::marker::PhantomData;

use crate::fingerprint::Fingerprint;
use crate::sketch::Signature;
use crate::text::features::{self, Visit};
use crate::text::secret::Secret;

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

/// A visitor that adds features to a signature and counts them.
pub(super) struct Signing<'s, F, S> {
    pub(super) signer: &'s mut S,
    pub(super) features: &'s mut usize,
    pub(super) seed: u64,
    pub(super) secret: Option<Secret>,
    pub(super) width: PhantomData<F>,
}

impl<F: Fingerprint, S: Signature<F>> Visit for Signing<'_, F, S> {
    const BYTES: bool = false;

    #[inline]
    fn feature(&mut self, feature: features::Feature<'_>) {
        *self.features += 1;
        let hash = match self.secret {
            None => feature.widened(self.seed),
            Some(secret) if F::BITS > u64::BITS => secret.keyed_wide(feature.widened(self.seed)),
            Some(secret) => F::truncate(u128::from(secret.keyed(feature.hash))),
        };
        self.signer.add(hash, feature.weight);
    }

    fn hashes(&mut self, hashes: &[u64]) {
        *self.features += hashes.len();
        if let Some(secret) = self.secret {
            let keyed = hashes.iter().map(|&hash| F::truncate(u128::from(secret.keyed(hash))));
            return self.signer.add_all(keyed);
        }
        self.signer.add_all(hashes.iter().map(|&hash| F::truncate(u128::from(hash))));
    }

    fn weighted(&mut self, hashes: &[u64], weights: &[u32]) {
        *self.features += hashes.len();
        if let Some(secret) = self.secret {
            let keyed = |(&hash, &weight)| (F::truncate(u128::from(secret.keyed(hash))), weight);
            return self.signer.add_weighted(hashes.iter().zip(weights).map(keyed));
        }
        let feature = |(&hash, &weight)| (F::truncate(u128::from(hash)), weight);
        self.signer.add_weighted(hashes.iter().zip(weights).map(feature));
    }
}
