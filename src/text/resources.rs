//! Resources: the tables that a caller gave a pipeline, as they are stored with an index.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::centre::Centre;
use super::dictionary::Dictionary;
use super::idf_table::IdfTable;
use super::options::PipelineOptions;
use super::secret::Secret;
use super::stop_words::StopWords;
use super::weight_table::WeightTable;
use crate::error::{Error, Result};

/// What a pipeline needs beside its descriptor: the tables that came from the caller.
///
/// An index keeps them, so that its texts can be searched where their files are not.
///
/// ```
/// use hamdex::text::{Pipeline, StopWords};
/// use hamdex::PipelineOptions;
///
/// let options = PipelineOptions::new().stop_words(StopWords::parse("the\n")?);
/// let pipeline = Pipeline::new(&options)?;
/// let resources = pipeline.resources();
/// assert_eq!(resources.parts().count(), 1);
///
/// let same = Pipeline::from_descriptor_with(pipeline.descriptor(), resources)?;
/// assert_eq!(same.features("the saucer").len(), 1);
/// assert!(Pipeline::from_descriptor(pipeline.descriptor()).is_err());
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    pub(super) dictionary: Option<Dictionary>,
    pub(super) stop_words: Option<StopWords>,
    pub(super) idf: Option<IdfTable>,
    pub(super) weights: Option<WeightTable>,
    pub(super) centre: Option<Centre>,
    /// Never stored.
    pub(super) secret: Option<Secret>,
}

impl Resources {
    /// Names of all kinds of resources.
    pub const NAMES: [&str; 5] = ["dictionary", "stop-words", "idf", "weights", "centre"];

    /// The resources that the options hold.
    pub(super) fn of(options: &PipelineOptions) -> Self {
        let own = options.stop_words.own().map(|_| options.stop_words.clone());
        Self {
            dictionary: options.dictionary.clone(),
            stop_words: own,
            idf: options.idf.clone(),
            weights: options.weight_table.clone(),
            centre: options.centre.clone(),
            secret: options.secret,
        }
    }

    /// Returns true when the descriptor says all there is to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns name and bytes of each resource there is.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, Cow<'_, [u8]>)> {
        Self::NAMES.into_iter().filter_map(|name| Some((name, self.bytes(name)?)))
    }

    /// Adds the secret that a descriptor names by its digest; it is never stored.
    #[must_use]
    pub fn with_secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Puts a resource in by its name, from the bytes that [`Resources::parts`] gave.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for an unknown name and for bytes that are none of such a resource.
    pub fn insert(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let damaged = |detail: String| Error::corrupt(format!("resource {name}"), detail);
        let text = || std::str::from_utf8(bytes).map_err(|e| damaged(e.to_string()));
        match name {
            "dictionary" => self.dictionary = Some(Dictionary::stored(text()?)),
            "stop-words" => self.stop_words = Some(StopWords::stored(text()?)),
            "idf" => self.idf = Some(IdfTable::from_bytes(bytes)?),
            "weights" => self.weights = Some(WeightTable::stored(text()?)),
            "centre" => self.centre = Some(Centre::from_bytes(bytes)?),
            _ => return Err(damaged("is of no known kind".to_owned())),
        }
        Ok(())
    }

    fn bytes(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let text = match name {
            "dictionary" => self.dictionary.as_ref()?.as_str(),
            "stop-words" => self.stop_words.as_ref()?.own()?,
            "weights" => self.weights.as_ref()?.as_str(),
            "centre" => return self.centre.as_ref().map(|centre| Cow::Owned(centre.to_bytes())),
            _ => return self.idf.as_ref().map(|table| Cow::Owned(table.to_bytes())),
        };
        Some(Cow::Borrowed(text.as_bytes()))
    }

    /// Returns the digest of a resource as a descriptor names it; `None` where there is none.
    pub(super) fn digest(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|bytes| format!("{:016x}", xxh3_64(&bytes)))
    }
}
