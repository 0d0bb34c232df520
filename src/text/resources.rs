//! Resources: the caller's tables of a pipeline, as stored with an index.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::options::PipelineOptions;
use super::rarity::centre::Centre;
use super::rarity::idf_table::IdfTable;
use super::rarity::weight_table::WeightTable;
use super::secret::Secret;
use super::tokens::dictionary::Dictionary;
use super::tokens::stop_words::StopWords;
use crate::error::{Error, Result};

/// The caller's tables, which a pipeline needs besides its descriptor.
///
/// An index stores them, so that it can be searched by text without the original files.
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
/// assert!(!resources.is_empty());
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

    /// Returns the resources of the options.
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

    /// Returns true if there are no tables and no secret.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the name and the bytes of each table.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, Cow<'_, [u8]>)> {
        Self::NAMES.into_iter().filter_map(|name| Some((name, self.bytes(name)?)))
    }

    /// Sets the secret, which is never stored.
    ///
    /// A descriptor names it by its digest.
    ///
    /// ```
    /// use hamdex::text::{Pipeline, Resources, Secret};
    /// use hamdex::PipelineOptions;
    ///
    /// let secret = Secret::from_bytes(b"000102030405060708090a0b0c0d0e0f")?;
    /// let keyed = Pipeline::new(&PipelineOptions::new().secret(secret))?;
    /// let resources = Resources::default().with_secret(secret);
    /// let same = Pipeline::from_descriptor_with(keyed.descriptor(), &resources)?;
    /// assert_eq!(same.fingerprint::<u64>("a text"), keyed.fingerprint("a text"));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    #[must_use]
    pub fn with_secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Adds a table from the name and bytes that [`Resources::parts`] returned.
    ///
    /// ```
    /// use hamdex::text::{Pipeline, Resources, StopWords};
    /// use hamdex::PipelineOptions;
    ///
    /// let options = PipelineOptions::new().stop_words(StopWords::parse("the\n")?);
    /// let pipeline = Pipeline::new(&options)?;
    /// let mut copy = Resources::default();
    /// for (name, bytes) in pipeline.resources().parts() {
    ///     copy.insert(name, &bytes)?;
    /// }
    /// assert_eq!(copy, *pipeline.resources());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if the name is unknown or the bytes do not decode.
    pub fn insert(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let damaged = |detail: String| Error::corrupt(format!("resource {name}"), detail);
        let text = || std::str::from_utf8(bytes).map_err(|e| damaged(e.to_string()));
        match name {
            "dictionary" => self.dictionary = Some(Dictionary::stored(text()?)),
            "stop-words" => self.stop_words = Some(StopWords::stored(text()?)),
            "idf" => self.idf = Some(IdfTable::from_bytes(bytes)?),
            "weights" => self.weights = Some(WeightTable::stored(text()?)),
            "centre" => self.centre = Some(Centre::from_bytes(bytes)?),
            _ => return Err(damaged("unknown kind".to_owned())),
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

    /// Returns the digest of a table, as in descriptors; `None` if there is no such table.
    pub(super) fn digest(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|bytes| format!("{:016x}", xxh3_64(&bytes)))
    }
}
