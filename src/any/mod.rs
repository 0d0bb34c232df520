//! Handles of any width: a path or a number of bits decides between 32, 64 and 128.
//!
//! Fingerprints are numbers of 128 bits here, with zeros on the left of a narrower one. The list of
//! the widths is in this file alone: another one would be a line of `__widths`.

mod index;

use std::path::Path;

use crate::bulk::{Abandoned, BuildOptions, BuildReport, Builder};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{AsDocument, Header, Index, IndexOptions, Match, NewDocument, Query, Reader};
use crate::progress::Progress;
use crate::text::{Pipeline, Sketch};

/// Calls a macro with every width: its variant, its bits and its type.
#[doc(hidden)]
#[macro_export]
macro_rules! __widths {
    ($then:ident $arguments:tt) => {
        $crate::$then! { $arguments [Bits32 32 u32] [Bits64 64 u64] [Bits128 128 u128] }
    };
}

/// Runs an expression with a name for the fingerprint type of that many bits.
///
/// The expression is a [`Result`], whose error an [`enum@crate::Error`] converts into: other
/// numbers than 32, 64 and 128 give [`Error::InvalidOption`](crate::Error::InvalidOption).
///
/// ```
/// use hamdex::{Error, Fingerprint, for_width};
///
/// fn digits(bits: u32) -> Result<usize, Error> {
///     for_width!(bits, F => Ok(F::ZERO.hex().to_string().len()))
/// }
/// assert_eq!(digits(32)?, 8);
/// assert!(digits(48).is_err());
/// # Ok::<(), Error>(())
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! for_width {
    ($bits:expr, $F:ident => $body:expr) => {
        $crate::__widths!(__for_width ($bits, $F => $body))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __for_width {
    (($bits:expr, $F:ident => $body:expr) $([$variant:ident $width:literal $int:ty])*) => {
        match $bits {
            $($width => {
                type $F = $int;
                $body
            })*
            bits => ::core::result::Result::Err(::core::convert::From::from(
                $crate::Error::InvalidOption {
                    name: "bits",
                    reason: ::std::format!("{bits} bits: supported are 32, 64 and 128"),
                },
            )),
        }
    };
}

/// Runs an expression with the handle of one width that a handle of any width holds.
///
/// The first word is [`AnyIndex`], [`AnyReader`] or [`AnyBuilder`].
///
/// ```
/// use hamdex::any::AnyIndex;
/// use hamdex::{IndexOptions, each_width};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let index = AnyIndex::create(directory.path(), 32, &IndexOptions::new())?;
/// let tables = each_width!(AnyIndex, &index, index => index.plan().tables().len());
/// assert_eq!(tables, 4);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! each_width {
    ($any:ident, $handle:expr, $inner:ident => $body:expr) => {
        $crate::__widths!(__each_width ($any, $handle, $inner => $body))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __each_width {
    (($any:ident, $handle:expr, $inner:ident => $body:expr)
        $([$variant:ident $width:literal $int:ty])*) => {
        match $handle {
            $($crate::any::$any::$variant($inner) => $body,)*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __any_handles {
    (() $([$variant:ident $width:literal $int:ty])*) => {
        /// An open index of any width.
        ///
        /// It does what an [`Index`] does, with fingerprints of 128 bits that have to fit the
        /// width. Code that is generic over the width gets at the [`Index`] by [`each_width!`].
        ///
        /// ```
        /// use hamdex::any::AnyIndex;
        /// use hamdex::{IndexOptions, Query};
        ///
        /// # let directory = tempfile::tempdir().unwrap();
        /// # let path = directory.path().join("pages");
        /// AnyIndex::create(&path, 32, &IndexOptions::new())?.insert(b"page", 0xff)?;
        /// let index = AnyIndex::open(&path)?;
        /// assert_eq!(index.bits(), 32);
        /// assert_eq!(index.search(Query::new(0xfe))?[0].key, b"page");
        /// assert!(index.insert(b"other", 1 << 32).is_err());
        /// # Ok::<(), hamdex::Error>(())
        /// ```
        #[derive(Debug)]
        pub enum AnyIndex {
            $(#[doc = concat!("An index of ", $width, " bits.")] $variant(Index<$int>),)*
        }

        /// A frozen state of an index of any width.
        ///
        /// ```
        /// use hamdex::any::AnyIndex;
        /// use hamdex::{IndexOptions, Query};
        ///
        /// # let directory = tempfile::tempdir().unwrap();
        /// let index = AnyIndex::create(directory.path(), 128, &IndexOptions::new())?;
        /// let before = index.reader()?;
        /// index.insert(b"page", 0xff)?;
        /// assert!(before.search(Query::new(0xff))?.is_empty());
        /// assert_eq!(index.reader()?.get(b"page")?, Some(0xff));
        /// assert_eq!((before.header().bits, before.len(), before.is_empty()), (128, 0, true));
        /// let reader = index.reader()?;
        /// assert_eq!(reader.features(b"page")?, None);
        /// assert_eq!(reader.search_batch([Query::new(0xfe)])?[0][0].key, b"page");
        /// let documents: Vec<_> = reader.documents()?.collect::<Result<_, _>>()?;
        /// assert_eq!(documents, [(b"page".to_vec(), 0xff)]);
        /// # Ok::<(), hamdex::Error>(())
        /// ```
        #[derive(Debug, Clone)]
        pub enum AnyReader {
            $(#[doc = concat!("A reader of ", $width, " bits.")] $variant(Reader<$int>),)*
        }

        /// An offline build of an index of any width.
        ///
        /// ```
        /// use hamdex::build::BuildOptions;
        /// use hamdex::any::{AnyBuilder, AnyIndex};
        /// use hamdex::IndexOptions;
        ///
        /// # let directory = tempfile::tempdir().unwrap();
        /// # let path = directory.path().join("pages");
        /// let (options, build) = (IndexOptions::new(), BuildOptions::new());
        /// let mut builder = AnyBuilder::create(&path, 64, &options, &build)?;
        /// builder.push(b"page", 0xff, 0)?;
        /// assert_eq!(builder.finish(&(), &mut |_, _| ())?.documents, 1);
        /// assert_eq!(AnyIndex::open(&path)?.get(b"page")?, Some(0xff));
        /// # Ok::<(), hamdex::Error>(())
        /// ```
        #[derive(Debug)]
        pub enum AnyBuilder {
            $(#[doc = concat!("A build of ", $width, " bits.")] $variant(Builder<$int>),)*
        }

        $(
            impl From<Index<$int>> for AnyIndex {
                fn from(index: Index<$int>) -> Self {
                    Self::$variant(index)
                }
            }

            impl From<Reader<$int>> for AnyReader {
                fn from(reader: Reader<$int>) -> Self {
                    Self::$variant(reader)
                }
            }

            impl From<Builder<$int>> for AnyBuilder {
                fn from(builder: Builder<$int>) -> Self {
                    Self::$variant(builder)
                }
            }
        )*
    };
}

__widths!(__any_handles());

/// The documents of a reader by rising key, with wide fingerprints.
///
/// ```
/// use hamdex::IndexOptions;
/// use hamdex::any::{AnyDocuments, AnyIndex};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let index = AnyIndex::create(directory.path(), 32, &IndexOptions::new())?;
/// index.insert(b"page", 0xff)?;
/// let mut documents: AnyDocuments = index.reader()?.documents()?;
/// assert_eq!(documents.next().transpose()?, Some((b"page".to_vec(), 0xff)));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub type AnyDocuments = Box<dyn Iterator<Item = Result<(Vec<u8>, u128)>> + Send>;

impl AnyReader {
    /// Returns what was chosen when the index was created.
    pub fn header(&self) -> &Header {
        each_width!(AnyReader, self, reader => reader.header())
    }

    /// Returns the number of stored documents.
    pub fn len(&self) -> u64 {
        each_width!(AnyReader, self, reader => reader.len())
    }

    /// Returns true if no document is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the fingerprint of a document, `None` if it is not stored.
    ///
    /// # Errors
    ///
    /// As [`Reader::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<u128>> {
        each_width!(AnyReader, self, reader => Ok(reader.get(key)?.map(Fingerprint::widen)))
    }

    /// Returns the encoded feature set of a document, `None` if none is stored.
    ///
    /// # Errors
    ///
    /// As [`Reader::features`].
    pub fn features(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        each_width!(AnyReader, self, reader => reader.features(key))
    }

    /// Returns every document within the distance, nearest first, then by key.
    ///
    /// # Errors
    ///
    /// As [`Reader::search`], and [`Error::InvalidFingerprint`](crate::Error::InvalidFingerprint)
    /// for a query that is too wide.
    pub fn search(&self, query: Query<u128>) -> Result<Vec<Match<u128>>> {
        each_width!(AnyReader, self, reader => {
            Ok(reader.search(query.narrow()?)?.into_iter().map(widen).collect())
        })
    }

    /// Answers many queries on all threads, in their order.
    ///
    /// # Errors
    ///
    /// As [`AnyReader::search`].
    pub fn search_batch(
        &self,
        queries: impl IntoIterator<Item = Query<u128>>,
    ) -> Result<Vec<Vec<Match<u128>>>> {
        each_width!(AnyReader, self, reader => {
            let queries = queries.into_iter().map(Query::narrow).collect::<Result<Vec<_>>>()?;
            let answers = reader.search_batch(&queries)?.into_iter();
            Ok(answers.map(|found| found.into_iter().map(widen).collect()).collect())
        })
    }

    /// Iterates over all documents by rising key.
    ///
    /// # Errors
    ///
    /// As [`Reader::documents`].
    pub fn documents(&self) -> Result<AnyDocuments> {
        each_width!(AnyReader, self, reader => {
            let documents = reader.documents()?;
            Ok(Box::new(documents.map(|document| {
                document.map(|(key, fingerprint)| (key, fingerprint.widen()))
            })))
        })
    }
}

impl AnyBuilder {
    /// Begins a build of a new index of that many bits, or one that merges into an index.
    ///
    /// # Errors
    ///
    /// As [`Builder::create`], and [`Error::InvalidOption`](crate::Error::InvalidOption) for a
    /// width that is not supported.
    pub fn create(
        path: impl AsRef<Path>,
        bits: u32,
        options: &IndexOptions,
        build: &BuildOptions,
    ) -> Result<Self> {
        for_width!(bits, F => Ok(Builder::<F>::create(path, options, build)?.into()))
    }

    /// Continues a build that was killed or dropped.
    ///
    /// ```
    /// use hamdex::any::{AnyBuilder, AnyIndex};
    /// use hamdex::build::BuildOptions;
    /// use hamdex::{IndexOptions, NewDocument};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let build = BuildOptions::new();
    /// drop(AnyBuilder::create(&path, 64, &IndexOptions::new(), &build)?);
    /// let mut builder = AnyBuilder::resume(&path, &build)?;
    /// assert_eq!(builder.resume_after(), None);
    /// builder.push_document(&NewDocument::new(b"page", 0xff), 0)?;
    /// builder.finish(&(), &mut |_, _| ())?;
    /// assert_eq!(AnyIndex::open(&path)?.len()?, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Builder::resume`], except for the width.
    pub fn resume(path: impl AsRef<Path>, build: &BuildOptions) -> Result<Self> {
        let path = path.as_ref();
        for_width!(Header::read(path)?.bits, F => Ok(Builder::<F>::resume(path, build)?.into()))
    }

    /// Drops an unfinished build; the index is then as it was before it.
    ///
    /// ```
    /// use hamdex::any::{AnyBuilder, AnyIndex};
    /// # use hamdex::{IndexOptions, build::BuildOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(AnyBuilder::create(&path, 64, &IndexOptions::new(), &BuildOptions::new())?);
    /// AnyBuilder::abandon(&path)?;
    /// assert!(AnyIndex::open(&path)?.is_empty()?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Builder::abandon`], except for the width.
    pub fn abandon(path: impl AsRef<Path>) -> Result<Abandoned> {
        let path = path.as_ref();
        for_width!(Header::read(path)?.bits, F => Builder::<F>::abandon(path))
    }

    /// Returns the origin of the last document that need not be pushed again.
    pub fn resume_after(&self) -> Option<u64> {
        each_width!(AnyBuilder, self, builder => builder.resume_after())
    }

    /// Adds a document, as [`Builder::push`].
    ///
    /// # Errors
    ///
    /// As [`Builder::push`], and [`Error::InvalidFingerprint`](crate::Error::InvalidFingerprint)
    /// for one that is too wide.
    pub fn push(&mut self, key: &[u8], fingerprint: u128, origin: u64) -> Result<()> {
        self.push_document(&NewDocument::new(key, fingerprint), origin)
    }

    /// Adds a document with its features, as [`Builder::push_document`].
    ///
    /// # Errors
    ///
    /// As [`Builder::push_document`], and
    /// [`Error::InvalidFingerprint`](crate::Error::InvalidFingerprint) for one that is too wide.
    pub fn push_document(&mut self, document: &NewDocument<'_, u128>, origin: u64) -> Result<()> {
        each_width!(AnyBuilder, self, builder => {
            builder.push_document(&narrow_document(*document)?, origin)
        })
    }

    /// Sorts, writes all families and makes the result live, as [`Builder::finish`].
    ///
    /// # Errors
    ///
    /// As [`Builder::finish`].
    pub fn finish(
        self,
        progress: &dyn Progress,
        duplicate: &mut dyn FnMut(&[u8], u64),
    ) -> Result<BuildReport> {
        each_width!(AnyBuilder, self, builder => builder.finish(progress, duplicate))
    }
}

impl Pipeline {
    /// Fingerprints a text with that many bits, as [`Pipeline::fingerprint`] does.
    ///
    /// ```
    /// use hamdex::{Fingerprint, Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    /// let text = "it will rain tomorrow";
    /// let wide = pipeline.fingerprint_of_bits(text, 64)?.expect("has words");
    /// let narrow = pipeline.fingerprint::<u64>(text).expect("has words");
    /// assert_eq!(wide.fingerprint, narrow.fingerprint.widen());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) for a width that is not supported.
    pub fn fingerprint_of_bits(&self, text: &str, bits: u32) -> Result<Option<Sketch<u128>>> {
        for_width!(bits, F => {
            let sketch = self.fingerprint::<F>(text);
            Ok(sketch.map(|Sketch { fingerprint, features }| {
                Sketch { fingerprint: fingerprint.widen(), features }
            }))
        })
    }
}

fn narrow_document<F: Fingerprint>(
    NewDocument { key, fingerprint, features }: NewDocument<'_, u128>,
) -> Result<NewDocument<'_, F>> {
    Ok(NewDocument { key, fingerprint: F::narrow(fingerprint)?, features })
}

fn narrow_documents<F: Fingerprint, D: AsDocument<u128>>(
    documents: &[D],
) -> Result<Vec<NewDocument<'_, F>>> {
    documents.iter().map(|document| narrow_document(document.as_document())).collect()
}

fn widen<F: Fingerprint>(found: Match<F>) -> Match<u128> {
    let Match { key, fingerprint, distance, similarity } = found;
    Match { key, fingerprint: fingerprint.widen(), distance, similarity }
}

impl Query<u128> {
    fn narrow<F: Fingerprint>(self) -> Result<Query<F>> {
        let Self { fingerprint, distance, limit, path, verification, evidence } = self;
        let fingerprint = F::narrow(fingerprint)?;
        Ok(Query { fingerprint, distance, limit, path, verification, evidence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::index::Durability;

    #[test]
    fn an_index_of_every_width_opens_by_its_header() {
        for bits in [32, 64, 128] {
            let directory = tempfile::tempdir().unwrap();
            let index = AnyIndex::create(directory.path(), bits, &IndexOptions::new()).unwrap();
            index.insert(b"a", 1 << (bits - 1)).unwrap();
            drop(index);
            let index = AnyIndex::open(directory.path()).unwrap();
            assert_eq!((index.bits(), index.len().unwrap()), (bits, 1));
            let found = index.search_batch([Query::new(0), Query::new(7)]).unwrap();
            assert_eq!(found[0][0].fingerprint, 1 << (bits - 1));
            assert!(found[1].is_empty(), "the distance is 4");
        }
    }

    #[test]
    fn fingerprints_that_are_too_wide_are_refused_and_nothing_is_stored() {
        let directory = tempfile::tempdir().unwrap();
        let index = AnyIndex::create(directory.path(), 32, &IndexOptions::new()).unwrap();
        let batch = [(b"a", 1), (b"b", 1 << 32)];
        let refused = index.insert_batch(&batch, Durability::Synced).unwrap_err();
        assert!(matches!(refused, Error::InvalidFingerprint { bits: 32, .. }), "{refused}");
        assert!(matches!(index.search(Query::new(1 << 40)), Err(Error::InvalidFingerprint { .. })));
        assert!(index.is_empty().unwrap());
        assert!(index.of_width::<u32>().is_ok());
        assert!(matches!(index.of_width::<u64>(), Err(Error::WidthMismatch { stored: 32, .. })));
    }

    #[test]
    fn other_widths_are_refused_by_number() {
        let directory = tempfile::tempdir().unwrap();
        let refused = AnyIndex::create(directory.path(), 48, &IndexOptions::new()).unwrap_err();
        assert_eq!(refused.to_string(), "option bits: 48 bits: supported are 32, 64 and 128");
    }
}
