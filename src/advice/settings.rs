//! Settings: pipeline, distance and verification for each kind of texts, as measured.

use super::kind::Kind;
use crate::error::Result;
use crate::text::{Clean, PipelineOptions};
use crate::verify::{BOILERPLATE_DOCUMENTS, Evidence, Verification};

/// Width at which the distances were measured.
const MEASURED_BITS: u32 = 64;

/// The evidence that is available to a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Support {
    /// The texts are available.
    Texts,
    /// Feature sets are stored with the documents.
    Features,
    /// Only fingerprints are available.
    Nothing,
}

/// A distance and a verification that were measured together.
///
/// ```
/// use hamdex::verify::Verification;
/// use hamdex::advice::{Kind, Settings, Support};
///
/// let settings = Settings::of(Kind::Post, 64, Support::Texts);
/// assert_eq!((settings.distance, settings.verification), (14, Verification::Edit(0.8)));
/// assert_eq!(Settings::of(Kind::Post, 128, Support::Nothing).distance, 18);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Kind of texts for these settings.
    pub kind: Kind,
    /// Maximum distance of near-duplicates, in bits.
    pub distance: u32,
    /// Check that pairs within the distance must pass.
    pub verification: Verification,
}

/// The best settings measured for one kind, at 64 bits.
struct Measured {
    /// Distance with verification.
    verified: u32,
    /// Distance without verification.
    alone: u32,
    edit: Verification,
    jaccard: f64,
}

impl Kind {
    fn measured(self) -> Measured {
        let edit = Verification::Edit;
        match self {
            Self::Text => Measured {
                verified: 16,
                alone: 8,
                edit: Verification::EditByLength {
                    short: 0.78,
                    long: 0.88,
                    boilerplate: Some(BOILERPLATE_DOCUMENTS),
                },
                jaccard: 0.78,
            },
            Self::Post => Measured { verified: 14, alone: 9, edit: edit(0.8), jaccard: 0.66 },
            Self::Page => Measured { verified: 12, alone: 8, edit: edit(0.88), jaccard: 0.78 },
            Self::Mixed => Measured { verified: 12, alone: 8, edit: edit(0.85), jaccard: 0.72 },
            Self::Code => Measured { verified: 6, alone: 6, edit: edit(0.9), jaccard: 0.8 },
            Self::Fingerprints => Measured { verified: 3, alone: 3, edit: edit(0.9), jaccard: 0.8 },
        }
    }
}

impl Settings {
    /// Returns the best settings measured for a kind of texts.
    ///
    /// The distance is scaled from 64 bits to `bits`, up to a quarter of `bits`. Without evidence,
    /// or for fingerprints, it is smaller, because no verification follows.
    pub fn of(kind: Kind, bits: u32, support: Support) -> Self {
        let Measured { verified, alone, edit, jaccard } = kind.measured();
        let verification = match (kind, support) {
            (Kind::Fingerprints, _) | (_, Support::Nothing) => Verification::None,
            // Reformatted code has many edits but the same words.
            (Kind::Code, Support::Texts) | (_, Support::Features) => Verification::Jaccard(jaccard),
            (_, Support::Texts) => edit,
        };
        let distance = if verification == Verification::None { alone } else { verified };
        Self { kind, distance: scaled(distance, bits), verification }
    }

    /// Returns these settings with another verification and the distance for it.
    ///
    /// The distance is larger with a verification than without.
    ///
    /// ```
    /// use hamdex::verify::Verification;
    /// use hamdex::advice::{Kind, Settings, Support};
    ///
    /// let settings = Settings::of(Kind::Page, 64, Support::Texts);
    /// let alone = settings.verified_by(Verification::None, 64);
    /// assert_eq!((settings.distance, alone.distance), (12, 8));
    /// ```
    #[must_use]
    pub fn verified_by(self, verification: Verification, bits: u32) -> Self {
        let Measured { verified, alone, .. } = self.kind.measured();
        let distance = if verification.needs() == Evidence::Nothing { alone } else { verified };
        Self { distance: scaled(distance, bits), verification, ..self }
    }
}

/// Scales a distance from the measured width to another.
fn scaled(distance: u32, bits: u32) -> u32 {
    (distance * bits / MEASURED_BITS).clamp(1, (bits / 4).max(1))
}

/// The choice of a pipeline from a sample of texts.
///
/// ```
/// use hamdex::Pipeline;
/// use hamdex::advice::{Choice, Kind};
///
/// let choice = Choice { html: true, ..Choice::of(Kind::Text) };
/// let pipeline = Pipeline::new(&choice.options()?)?;
/// assert!(pipeline.descriptor().contains("html=reader"));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Kind of texts, whose preset is used.
    pub kind: Kind,
    /// Whether texts are web pages, reduced to their main content.
    pub html: bool,
    /// Noise to remove from short texts, by the habits in the sample.
    pub short_clean: Clean,
}

/// The choices of noise, by habit.
pub(super) const HABITS: [Clean; 3] =
    [Clean::NONE, Clean::LINKS, Clean { links: true, ..Clean::WEIBO }];

impl Choice {
    /// Chooses the preset of a kind without changes.
    pub fn of(kind: Kind) -> Self {
        Self { kind, html: false, short_clean: Clean::NONE }
    }

    /// Returns the options of the pipeline.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`](crate::Error::InvalidOption) if the preset is unknown.
    pub fn options(self) -> Result<PipelineOptions> {
        let preset = PipelineOptions::preset(self.kind.preset().unwrap_or("text"))?;
        let cleaned = if self.short_clean == Clean::NONE {
            preset
        } else {
            preset.short_clean(self.short_clean)
        };
        Ok(cleaned.html(self.html))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 6] =
        [Kind::Text, Kind::Post, Kind::Page, Kind::Mixed, Kind::Code, Kind::Fingerprints];

    #[test]
    fn distances_scale_with_the_width_and_stay_searchable() {
        let distance = |kind, bits| Settings::of(kind, bits, Support::Texts).distance;
        assert_eq!([32, 64, 128].map(|bits| distance(Kind::Post, bits)), [7, 14, 28]);
        assert_eq!([32, 64, 128].map(|bits| distance(Kind::Page, bits)), [6, 12, 24]);
        for kind in KINDS {
            for bits in [32, 64, 128] {
                assert!((1..=bits / 4).contains(&distance(kind, bits)), "{kind} {bits}");
            }
        }
    }

    #[test]
    fn the_verification_needs_only_available_evidence() {
        for kind in KINDS {
            let needs = |support| Settings::of(kind, 64, support).verification.needs();
            assert_eq!(needs(Support::Nothing), Evidence::Nothing);
            assert_ne!(needs(Support::Features), Evidence::Text);
            let alone = Settings::of(kind, 64, Support::Nothing).distance;
            assert!(alone <= Settings::of(kind, 64, Support::Texts).distance, "{kind}");
        }
        assert_eq!(Settings::of(Kind::Fingerprints, 64, Support::Texts).distance, 3);
    }

    #[test]
    fn a_passed_verification_sets_its_distance() {
        let alone = Settings::of(Kind::Post, 64, Support::Nothing);
        let verified = alone.verified_by(Verification::Jaccard(0.5), 64);
        assert_eq!((verified.distance, verified.verification), (14, Verification::Jaccard(0.5)));
        assert_eq!(verified.verified_by(Verification::None, 64), alone);
    }
}
