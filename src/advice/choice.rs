//! Choice: what a look at the texts says of the pipeline, where the caller leaves it open.

use super::kind::Kind;
use crate::error::Result;
use crate::text::{Clean, PipelineOptions};

/// What a look at a sample says of the pipeline.
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
    /// Sort of texts, whose preset is taken.
    pub kind: Kind,
    /// Whether texts are web pages, of which only the main content counts.
    pub html: bool,
    /// Noise of short texts, as the habits of posts show in the sample.
    pub short_clean: Clean,
}

/// What may be cleaned away by habit.
pub(super) const HABITS: [Clean; 3] =
    [Clean::NONE, Clean::LINKS, Clean { links: true, ..Clean::WEIBO }];

impl Choice {
    /// Takes the preset of a kind as it is.
    pub fn of(kind: Kind) -> Self {
        Self { kind, html: false, short_clean: Clean::NONE }
    }

    /// Returns the options of the pipeline.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) if the preset cannot be made here.
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
