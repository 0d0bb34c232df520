//! Signing: adds the hashes of features to a signature, keyed by a secret if there is one.

use std::marker::PhantomData;

use crate::fingerprint::Fingerprint;
use crate::sketch::Signature;
use crate::text::features::{Feature, Visit};
use crate::text::secret::Secret;

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
    fn feature(&mut self, feature: Feature<'_>) {
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
