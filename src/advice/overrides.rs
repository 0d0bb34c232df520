//! Overrides: the caller's settings, which take precedence over those chosen from the texts.

use super::kind::Kind;
use super::settings::{Settings, Support};
use crate::sketch::SketchKind;
use crate::verify::Verification;

/// The caller's overrides; all other settings are chosen from the texts.
///
/// Settings that you pass are never changed. If you pass only a distance, pairs are verified as
/// recommended for the kind of texts; [`Verification::None`] turns verification off. If you pass
/// only a verification, the distance is the one measured with it.
///
/// ```
/// use hamdex::verify::Verification;
/// use hamdex::advice::{Kind, Overrides};
///
/// let overrides = Overrides::new().distance(6);
/// let settings = overrides.settings(Kind::Post);
/// assert_eq!((settings.distance, settings.verification), (6, Verification::Edit(0.8)));
/// let alone = overrides.verify(Verification::None).settings(Kind::Post);
/// assert_eq!((alone.distance, alone.verification), (6, Verification::None));
/// assert_eq!(Overrides::new().bits(128).settings(Kind::Post).distance, 28);
///
/// use hamdex::advice::Support;
///
/// let overrides = Overrides::new().kind(Kind::Page).support(Support::Nothing).centre(false);
/// assert_eq!((overrides.kind, overrides.centre), (Some(Kind::Page), false));
/// assert_eq!(overrides.settings(Kind::Page).verification, Verification::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Overrides {
    /// Kind of texts, whose preset is the pipeline; `None` chooses it from the texts.
    pub kind: Option<Kind>,
    /// Maximum distance of near-duplicates in bits; `None` chooses it by the kind of texts.
    pub distance: Option<u32>,
    /// Check of pairs within the distance; `None` chooses it by the kind of texts,
    /// `Some(Verification::None)` turns it off.
    pub verification: Option<Verification>,
    /// Kind of signature; `None` is SimHash.
    pub sketch: Option<SketchKind>,
    /// Evidence that will be available to a verification.
    pub support: Support,
    /// Width of the fingerprints: 32, 64 or 128.
    pub bits: u32,
    /// Whether the preset `text` gets a centre learnt from the sample.
    pub centre: bool,
}

impl Default for Overrides {
    fn default() -> Self {
        Self {
            kind: None,
            distance: None,
            verification: None,
            sketch: None,
            support: Support::Texts,
            bits: 64,
            centre: true,
        }
    }
}

impl Overrides {
    /// Overrides nothing, for available texts and fingerprints of 64 bits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the kind of texts, and with it the pipeline.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Sets the maximum distance in bits; does not change the verification.
    pub fn distance(mut self, bits: u32) -> Self {
        self.distance = Some(bits);
        self
    }

    /// Sets the verification, and the distance measured with it unless you set one.
    pub fn verify(mut self, verification: Verification) -> Self {
        self.verification = Some(verification);
        self
    }

    /// Sets the width of the fingerprints in bits. Default: 64.
    pub fn bits(mut self, bits: u32) -> Self {
        self.bits = bits;
        self
    }

    /// Sets whether the preset `text` gets a centre. Default: true.
    ///
    /// Fingerprints with a learnt centre cannot be compared with those of another corpus.
    pub fn centre(mut self, learnt: bool) -> Self {
        self.centre = learnt;
        self
    }

    /// Sets the evidence that is available to a verification. Default: [`Support::Texts`].
    pub fn support(mut self, support: Support) -> Self {
        self.support = support;
        self
    }

    /// Returns the settings for a kind of texts, with these overrides.
    pub fn settings(&self, kind: Kind) -> Settings {
        let mut measured = Settings::of(kind, self.bits, self.support);
        if let Some(SketchKind::Longest(_)) = self.sketch {
            // Signatures of the longest sentences are equal or unrelated.
            measured = Settings { distance: 0, verification: Verification::None, kind };
            if self.distance.is_none() {
                let verification = self.verification.unwrap_or(Verification::None);
                return Settings { verification, ..measured };
            }
        }
        match (self.distance, self.verification) {
            (None, None) => measured,
            (None, Some(verification)) => measured.verified_by(verification, self.bits),
            (Some(distance), verification) => Settings {
                distance,
                verification: verification.unwrap_or(measured.verification),
                ..measured
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_take_precedence_over_measured_settings() {
        let resolved = |overrides: Overrides| {
            let settings = overrides.settings(Kind::Post);
            (settings.distance, settings.verification)
        };
        let (open, jaccard) = (Overrides::new(), Verification::Jaccard(0.5));
        assert_eq!(resolved(open), (14, Verification::Edit(0.8)));
        assert_eq!(resolved(open.distance(3)), (3, Verification::Edit(0.8)));
        assert_eq!(resolved(open.verify(Verification::None).distance(3)), (3, Verification::None));
        assert_eq!(resolved(open.verify(jaccard)), (14, jaccard));
        assert_eq!(resolved(open.verify(Verification::None)), (9, Verification::None));
        assert_eq!(resolved(open.verify(jaccard).distance(3)), (3, jaccard));
        assert_eq!(resolved(open.support(Support::Nothing).bits(128)).0, 18);
    }

    #[test]
    fn a_distance_is_verified_with_the_available_evidence() {
        let verification = |kind, support| {
            Overrides::new().distance(5).support(support).settings(kind).verification
        };
        assert_eq!(verification(Kind::Page, Support::Texts), Verification::Edit(0.88));
        assert_eq!(verification(Kind::Page, Support::Features), Verification::Jaccard(0.78));
        assert_eq!(verification(Kind::Page, Support::Nothing), Verification::None);
        assert_eq!(verification(Kind::Fingerprints, Support::Texts), Verification::None);
    }

    #[test]
    fn longest_sentences_are_searched_at_distance_zero() {
        let overrides = Overrides { sketch: Some(SketchKind::Longest(3)), ..Overrides::new() };
        let settings = |overrides: Overrides| {
            let settings = overrides.settings(Kind::Page);
            (settings.distance, settings.verification)
        };
        assert_eq!(settings(overrides), (0, Verification::None));
        assert_eq!(
            settings(overrides.verify(Verification::Edit(0.9))),
            (0, Verification::Edit(0.9))
        );
        assert_eq!(settings(overrides.distance(2)), (2, Verification::None));
    }
}
