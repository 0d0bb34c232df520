//! Wishes: what the caller says about the settings goes before what the texts suggest.

use super::kind::Kind;
use super::settings::{Settings, Support};
use crate::sketch::SketchKind;
use crate::verify::Verification;

/// What the caller says about the settings; the rest is settled by the texts.
///
/// Settings that are given are never changed. A distance alone leaves the verification on that
/// the kind of texts is advised; [`Verification::None`] turns it off. A verification alone brings
/// the distance that was measured with it.
///
/// ```
/// use hamdex::verify::Verification;
/// use hamdex::advice::{Kind, Wishes};
///
/// let wishes = Wishes::new().distance(6);
/// let settings = wishes.settings(Kind::Post);
/// assert_eq!((settings.distance, settings.verification), (6, Verification::Edit(0.8)));
/// let alone = wishes.verify(Verification::None).settings(Kind::Post);
/// assert_eq!((alone.distance, alone.verification), (6, Verification::None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct Wishes {
    /// Kind of texts whose preset is the pipeline; `None` leaves the pipeline open.
    pub kind: Option<Kind>,
    /// Bits that near-duplicates may differ in; `None` leaves it open.
    pub distance: Option<u32>,
    /// Check of pairs within the distance; `None` leaves it open, `Some(Verification::None)`
    /// turns it off.
    pub verification: Option<Verification>,
    /// Kind of signature; `None` is SimHash.
    pub sketch: Option<SketchKind>,
    /// What a verification will be able to stand on.
    pub support: Support,
    /// Width of the fingerprints: 32, 64 or 128.
    pub bits: u32,
    /// Whether the preset `text` gets a centre that is learnt from the sample.
    pub centre: bool,
}

impl Default for Wishes {
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

impl Wishes {
    /// Leaves everything open, for texts at hand and fingerprints of 64 bits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the kind of texts, and with it the pipeline.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Sets the distance and leaves the verification as it is.
    pub fn distance(mut self, bits: u32) -> Self {
        self.distance = Some(bits);
        self
    }

    /// Sets the check; the distance that was measured with it follows unless it is given.
    pub fn verify(mut self, verification: Verification) -> Self {
        self.verification = Some(verification);
        self
    }

    /// Sets the width of the fingerprints. Default = 64.
    pub fn bits(mut self, bits: u32) -> Self {
        self.bits = bits;
        self
    }

    /// Sets whether the preset `text` gets a centre. Default = true.
    ///
    /// Fingerprints with a centre of their own cannot be compared with those of another corpus.
    pub fn centre(mut self, learnt: bool) -> Self {
        self.centre = learnt;
        self
    }

    /// Sets what a verification can stand on. Default = texts.
    pub fn support(mut self, support: Support) -> Self {
        self.support = support;
        self
    }

    /// Returns the settings for texts of a kind, with what is given in its place.
    pub fn settings(&self, kind: Kind) -> Settings {
        let mut measured = Settings::of(kind, self.bits, self.support);
        if let Some(SketchKind::Longest(_)) = self.sketch {
            // The signature of the longest sentences is equal or it says nothing.
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
    fn what_is_given_goes_before_what_was_measured() {
        let settled = |wishes: Wishes| {
            let settings = wishes.settings(Kind::Post);
            (settings.distance, settings.verification)
        };
        let (open, jaccard) = (Wishes::new(), Verification::Jaccard(0.5));
        assert_eq!(settled(open), (14, Verification::Edit(0.8)));
        assert_eq!(settled(open.distance(3)), (3, Verification::Edit(0.8)));
        assert_eq!(settled(open.verify(Verification::None).distance(3)), (3, Verification::None));
        assert_eq!(settled(open.verify(jaccard)), (14, jaccard));
        assert_eq!(settled(open.verify(Verification::None)), (9, Verification::None));
        assert_eq!(settled(open.verify(jaccard).distance(3)), (3, jaccard));
        assert_eq!(settled(open.support(Support::Nothing).bits(128)).0, 18);
    }

    #[test]
    fn a_distance_is_verified_by_what_the_documents_have() {
        let verification =
            |kind, support| Wishes::new().distance(5).support(support).settings(kind).verification;
        assert_eq!(verification(Kind::Page, Support::Texts), Verification::Edit(0.88));
        assert_eq!(verification(Kind::Page, Support::Features), Verification::Jaccard(0.78));
        assert_eq!(verification(Kind::Page, Support::Nothing), Verification::None);
        assert_eq!(verification(Kind::Fingerprints, Support::Texts), Verification::None);
    }

    #[test]
    fn longest_sentences_are_equal_or_say_nothing() {
        let wishes = Wishes { sketch: Some(SketchKind::Longest(3)), ..Wishes::new() };
        let settings = |wishes: Wishes| {
            let settings = wishes.settings(Kind::Page);
            (settings.distance, settings.verification)
        };
        assert_eq!(settings(wishes), (0, Verification::None));
        assert_eq!(settings(wishes.verify(Verification::Edit(0.9))), (0, Verification::Edit(0.9)));
        assert_eq!(settings(wishes.distance(2)), (2, Verification::None));
    }
}
