//! Kinds of texts, and the preset for each.

use std::fmt;

use super::profile::Profile;
use super::settings::{Choice, HABITS};
use crate::error::Result;
use crate::text::{self, Pipeline};

/// A kind of documents with its own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Texts of any kind and length.
    Text,
    /// Microblog posts and other short texts.
    Post,
    /// Articles and web pages.
    Page,
    /// Short and long texts together, or texts of an unknown kind.
    Mixed,
    /// Source code.
    Code,
    /// Fingerprints without their texts.
    Fingerprints,
}

impl Kind {
    const PRESETS: [(Self, &'static str); 5] = [
        (Self::Text, "text"),
        (Self::Post, "post"),
        (Self::Page, "page"),
        (Self::Mixed, "auto"),
        (Self::Code, "code"),
    ];

    /// Returns the name of the preset for these texts; `None` for fingerprints.
    pub fn preset(self) -> Option<&'static str> {
        Self::PRESETS.iter().find(|(kind, _)| *kind == self).map(|&(_, name)| name)
    }

    /// Returns the kind of texts that a preset is for.
    ///
    /// ```
    /// use hamdex::advice::Kind;
    ///
    /// assert_eq!(Kind::of_preset("post"), Some(Kind::Post));
    /// assert_eq!(Kind::Post.preset(), Some("post"));
    /// assert_eq!(Kind::of_preset("tweet"), None);
    /// ```
    pub fn of_preset(name: &str) -> Option<Self> {
        Self::PRESETS.iter().find(|(_, preset)| *preset == name).map(|&(kind, _)| kind)
    }

    /// Returns the kind whose preset the pipeline is, if it is one.
    ///
    /// HTML and the cleaning of short texts do not change the kind.
    ///
    /// ```
    /// use hamdex::advice::Kind;
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let page = PipelineOptions::preset("page")?;
    /// assert_eq!(Kind::of_pipeline(&Pipeline::new(&page)?)?, Some(Kind::Page));
    /// assert_eq!(Kind::of_pipeline(&Pipeline::new(&page.ngram(7))?)?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`](crate::Error::InvalidOption) if a preset cannot be created.
    pub fn of_pipeline(pipeline: &Pipeline) -> Result<Option<Self>> {
        Self::of_descriptor(pipeline.descriptor())
    }

    /// Returns the kind whose preset a descriptor names, if it names one.
    ///
    /// As [`Kind::of_pipeline`]. A secret and a centre do not change the kind either.
    ///
    /// ```
    /// use hamdex::advice::Kind;
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let code = Pipeline::new(&PipelineOptions::preset("code")?)?;
    /// assert_eq!(Kind::of_descriptor(code.descriptor())?, Some(Kind::Code));
    /// assert_eq!(Kind::of_descriptor("simhash by us, v2")?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kind::of_pipeline`].
    pub fn of_descriptor(descriptor: &str) -> Result<Option<Self>> {
        let open = text::without_keys(descriptor);
        let renewed = text::renewed(open);
        let open = renewed.as_deref().unwrap_or(open);
        for (kind, _) in Self::PRESETS {
            let choices = HABITS.into_iter().flat_map(|short_clean| {
                [false, true].map(|html| Choice { kind, html, short_clean })
            });
            for choice in choices {
                let preset = Pipeline::new(&choice.options()?)?;
                if preset.descriptor() == open {
                    return Ok(Some(kind));
                }
            }
        }
        Ok(None)
    }

    /// Describes the texts of a profile in one clause.
    ///
    /// ```
    /// use hamdex::advice::{Kind, Profile};
    ///
    /// let reason = Kind::Text.reason(&Profile::of(&["good morning", "good evening"]));
    /// let expected = "100 % of 2 texts are shorter than 200 characters, the median has 12";
    /// assert_eq!(reason, expected);
    /// ```
    pub fn reason(self, profile: &Profile) -> String {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let Profile { texts, short, median_length, .. } = profile;
        match self {
            _ if *texts == 0 => "there are no texts".to_owned(),
            Self::Fingerprints => "the inputs are fingerprints without texts".to_owned(),
            Self::Text | Self::Post | Self::Page | Self::Mixed | Self::Code => format!(
                "{} of {texts} texts are shorter than {} characters, the median has {median_length}",
                percent(*short),
                super::SHORT_TEXT,
            ),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "texts",
            Self::Post => "posts",
            Self::Page => "pages",
            Self::Mixed => "short and long texts",
            Self::Code => "source code",
            Self::Fingerprints => "fingerprints",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{PipelineOptions, Secret};

    #[test]
    fn every_preset_has_its_kind_and_back() {
        for name in PipelineOptions::PRESETS {
            let kind = Kind::of_preset(name).unwrap();
            assert_eq!(kind.preset(), Some(name));
            let options = PipelineOptions::preset(name).unwrap();
            for html in [false, true] {
                let pipeline = Pipeline::new(&options.clone().html(html)).unwrap();
                assert_eq!(Kind::of_pipeline(&pipeline).unwrap(), Some(kind), "{name}");
                let secret = Secret::from_bytes(b"a secret of many letters").unwrap();
                let keyed = Pipeline::new(&options.clone().html(html).secret(secret)).unwrap();
                assert_eq!(Kind::of_pipeline(&keyed).unwrap(), Some(kind), "{name}");
            }
        }
        let own = Pipeline::new(&PipelineOptions::new().seed(1)).unwrap();
        assert_eq!(Kind::of_pipeline(&own).unwrap(), None);
        assert_eq!(Kind::Fingerprints.preset(), None);
    }

    #[test]
    fn reasons_hold_the_figures() {
        let profile = Profile::of(&["good morning", "today"]);
        let reason = Kind::Post.reason(&profile);
        assert!(
            reason.contains("100 % of 2 texts") && reason.contains("median has 12"),
            "{reason}"
        );
        assert!(Kind::Mixed.reason(&Profile::of::<&str>(&[])).contains("no text"));
    }
}
