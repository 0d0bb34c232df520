//! Choice: the pipeline that suits the texts, if the caller passes none.

use super::kind::Kind;
use crate::error::Result;
use crate::text::{Clean, PipelineOptions};

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
