//! Pipeline: computes the fingerprint of a text in the steps that the options set.
//!
//! Equal texts under equal descriptors get equal fingerprints, on every thread and machine.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::descriptor;
use super::features::ngrams::SEPARATOR;
use super::features::{self, Visit};
use super::form::clean::{Clean, Mentions};
use super::form::letter::is_letter;
use super::form::{casefold, clean, html, normalise, simplified};
use super::lexicon::Lexicon;
use super::options::{Html, NormalForm, PipelineOptions};
use super::rarity::centre::Centre;
use super::rarity::idf_table::word_hash;
use super::resources::Resources;
use super::tokens::segment;
use super::tokens::segment::Segment;
use super::tokens::words::{for_each_single, is_part};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::sketch::{BitSums, Longest, MinHash, Signature, SketchKind};

mod scratch;
mod signing;

pub(super) use self::scratch::{Scratch, release};
use self::signing::Signing;
pub use self::signing::{Feature, Sketch};

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// A pipeline from texts to fingerprints, cheap to clone and thread-safe.
///
/// ```
/// use hamdex::text::Pipeline;
/// use hamdex::{Fingerprint, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
/// let a = pipeline.fingerprint::<u64>("你妈妈喊你回家吃饭哦,回家罗回家罗").expect("has words");
/// let b = pipeline.fingerprint::<u64>("你妈妈叫你回家吃饭啦,回家罗回家罗").expect("has words");
/// assert!(a.fingerprint.distance(b.fingerprint) <= 12);
/// assert_eq!(pipeline.fingerprint::<u64>("……"), None);
///
/// let same = Pipeline::from_descriptor(pipeline.descriptor())?;
/// assert_eq!(same.descriptor(), pipeline.descriptor());
/// assert!(same.resources().is_empty(), "no table is the caller's");
/// assert_eq!(pipeline.features("rainy").len(), 3); // rai, ain and iny
/// assert_eq!(pipeline.word_hashes("rainy").len(), 5); // tokens of this pipeline are letters
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) options: PipelineOptions,
    pub(super) ngram: usize,
    pub(super) lexicon: Lexicon,
    descriptor: String,
    resources: Resources,
}

impl Pipeline {
    /// Creates a pipeline and loads the tables that its options need.
    ///
    /// The first pipeline that needs the Chinese dictionary loads it; all pipelines of the process
    /// share it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if the n-gram length is out of range, or if two options
    /// exclude each other.
    pub fn new(options: &PipelineOptions) -> Result<Self> {
        options.validate()?;
        let resources = Resources::of(options);
        Ok(Self {
            inner: Arc::new(Inner {
                ngram: usize::try_from(options.ngram).unwrap_or(usize::MAX),
                lexicon: Lexicon::load(options),
                descriptor: descriptor::describe(options, &resources),
                options: options.clone(),
                resources,
            }),
        })
    }

    /// Rebuilds the pipeline that a descriptor names.
    ///
    /// # Errors
    ///
    /// Returns [`Error::HeaderMismatch`] if this library cannot compute the same fingerprints: the
    /// descriptor has another version, names other tables, or is not a descriptor.
    pub fn from_descriptor(descriptor: &str) -> Result<Self> {
        Self::from_descriptor_with(descriptor, &Resources::default())
    }

    /// Rebuilds the pipeline of a descriptor with the tables it names.
    ///
    /// ```
    /// use hamdex::text::{Pipeline, StopWords};
    /// use hamdex::PipelineOptions;
    ///
    /// let options = PipelineOptions::new().stop_words(StopWords::parse("the\n")?);
    /// let pipeline = Pipeline::new(&options)?;
    /// let same = Pipeline::from_descriptor_with(pipeline.descriptor(), pipeline.resources())?;
    /// assert_eq!(same.descriptor(), pipeline.descriptor());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Pipeline::from_descriptor`], also if a table is missing or its digest differs. If the
    /// secret is missing, differs, or is not named by the descriptor, `what` is `secret`.
    pub fn from_descriptor_with(descriptor: &str, resources: &Resources) -> Result<Self> {
        let mismatch = |wanted: String| Error::HeaderMismatch {
            what: "pipeline",
            stored: descriptor.to_owned(),
            wanted,
        };
        let digest = resources.secret.map(|secret| secret.digest());
        let named = descriptor::secret_digest(descriptor);
        if named != digest.as_deref() {
            return Err(Error::HeaderMismatch {
                what: "secret",
                stored: named.unwrap_or("none").to_owned(),
                wanted: digest.unwrap_or_else(|| "none".to_owned()),
            });
        }
        let options = descriptor::options(descriptor, resources)
            .ok_or_else(|| mismatch(format!("{};...", descriptor::HEAD)))?;
        let pipeline = Self::new(&options)?;
        if pipeline.descriptor() == descriptor {
            Ok(pipeline)
        } else {
            Err(mismatch(pipeline.descriptor().to_owned()))
        }
    }

    /// Returns the pipeline in the versions of a stored descriptor.
    ///
    /// Options select the newest version of a step such as [`Segment::Auto`]; stored fingerprints
    /// may have an earlier one. Steps that the descriptor does not have are unchanged.
    ///
    /// ```
    /// use hamdex::text::{Pipeline, Segment};
    /// use hamdex::PipelineOptions;
    ///
    /// let today = Pipeline::new(&PipelineOptions::new().segment(Segment::Words))?;
    /// assert!(today.descriptor().contains(";segment=words-2,"));
    /// let code = Pipeline::new(&PipelineOptions::preset("code")?)?; // has the first version
    /// let first = today.with_versions_of(code.descriptor())?;
    /// assert!(first.descriptor().contains(";segment=words;"));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Pipeline::new`].
    pub fn with_versions_of(&self, descriptor: &str) -> Result<Self> {
        let options = descriptor::in_versions_of(&self.inner.options, descriptor);
        if options == self.inner.options { Ok(self.clone()) } else { Self::new(&options) }
    }

    /// Returns the same pipeline with `centre`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if the sketch has no bit sums.
    pub(crate) fn with_centre(&self, centre: Centre) -> Result<Self> {
        Self::new(&self.inner.options.clone().centre(centre))
    }

    /// Returns true if bits are compared with a centre instead of a half.
    pub(crate) fn has_centre(&self) -> bool {
        self.inner.options.centre.is_some()
    }

    #[cfg(test)]
    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(super) fn options(&self) -> &PipelineOptions {
        &self.inner.options
    }

    /// Returns the line that names everything its fingerprints depend on.
    pub fn descriptor(&self) -> &str {
        &self.inner.descriptor
    }

    /// Returns the caller's tables, which the descriptor names by digest.
    pub fn resources(&self) -> &Resources {
        &self.inner.resources
    }

    /// Returns the fingerprint of a text; `None` if it has no features.
    ///
    /// ```
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("page")?)?;
    /// let sketch = pipeline.fingerprint::<u128>("one two").expect("has letters");
    /// assert_eq!(sketch.features, 4); // "one ", "ne t", "e tw", " two"
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn fingerprint<F: Fingerprint>(&self, text: &str) -> Option<Sketch<F>> {
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, Mentions::Dropped, scratch);
            let sketch = self.sketch(scratch);
            scratch.release_huge();
            sketch
        })
    }

    /// Returns the fingerprint of a text and its [`cleaned`](Self::cleaned) text.
    ///
    /// Takes two thirds of the time of two calls, because most texts are read once for both.
    ///
    /// ```
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("page")?)?;
    /// let (sketch, cleaned) = pipeline.fingerprint_and_cleaned::<u64>("Sunny  Days");
    /// assert_eq!(sketch, pipeline.fingerprint("Sunny  Days"));
    /// assert_eq!(cleaned, "sunny days");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn fingerprint_and_cleaned<F: Fingerprint>(
        &self,
        text: &str,
    ) -> (Option<Sketch<F>>, String) {
        let (sketch, cleaned) = SCRATCH.with_borrow_mut(|scratch| {
            let dropped_names = self.read(text, Mentions::Dropped, scratch);
            let cleaned = (!dropped_names).then(|| scratch.normal.clone());
            let sketch = self.sketch(scratch);
            scratch.release_huge();
            (sketch, cleaned)
        });
        (sketch, cleaned.unwrap_or_else(|| self.cleaned(text)))
    }

    /// Computes the signature of the text in the scratch.
    fn sketch<F: Fingerprint>(&self, scratch: &mut Scratch) -> Option<Sketch<F>> {
        let options = &self.inner.options;
        match options.sketch {
            SketchKind::SimHash => {
                self.sign(scratch, BitSums::<F>::new, |sums| match &options.centre {
                    None => sums.signature(),
                    Some(centre) => sums.signature_above(centre.offsets::<F>()),
                })
            }
            SketchKind::MinHash => self.sign(scratch, MinHash::<F>::new, MinHash::signature),
            SketchKind::Longest(sentences) => {
                let make = || Longest::<F>::new(sentences as usize);
                self.sign(scratch, make, Longest::signature)
            }
        }
    }

    /// Returns the share of a text's features that sets each bit of a width; see
    /// [`Centre`](super::Centre).
    ///
    /// `None` if the text has no features.
    pub(super) fn shares<F: Fingerprint>(&self, text: &str) -> Option<Vec<u16>> {
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, Mentions::Dropped, scratch);
            let shares = self.sign(scratch, BitSums::<F>::new, BitSums::shares);
            scratch.release_huge();
            shares.map(|sketch| sketch.fingerprint)
        })
    }

    /// Signs the text in the scratch with a signer that is reused from text to text.
    fn sign<F: Fingerprint, S: Signature<F> + 'static, T>(
        &self,
        scratch: &mut Scratch,
        make: impl Fn() -> S,
        finish: impl FnOnce(&mut S) -> Option<T>,
    ) -> Option<Sketch<T>> {
        let at = scratch.signers.iter().position(|signer| signer.is::<S>());
        let mut signer: Box<dyn Any> = match at {
            Some(at) => scratch.signers.swap_remove(at),
            None => Box::new(make()),
        };
        let mut sketch = None;
        if let Some(signer) = signer.downcast_mut::<S>() {
            // The stored signer may have been made with another limit.
            if matches!(self.inner.options.sketch, SketchKind::Longest(_)) {
                *signer = make();
            }
            signer.clear();
            let mut features = 0;
            let signing = Signing {
                signer: &mut *signer,
                features: &mut features,
                seed: self.inner.options.seed,
                secret: self.inner.options.secret,
                width: PhantomData,
            };
            if F::BITS > u64::BITS {
                let mut wide = signing;
                features::for_each(&self.inner, scratch, |feature: features::Feature<'_>| {
                    wide.feature(feature);
                });
            } else {
                features::for_each(&self.inner, scratch, signing);
            }
            sketch = finish(signer).map(|fingerprint| Sketch { fingerprint, features });
        }
        scratch.signers.push(signer);
        sketch
    }

    /// Returns the distinct features of a text, highest weight first.
    pub fn features(&self, text: &str) -> Vec<Feature> {
        let mut weights: HashMap<String, i64> = HashMap::new();
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, Mentions::Dropped, scratch);
            features::for_each(&self.inner, scratch, |feature: features::Feature<'_>| {
                let text = String::from_utf8_lossy(feature.bytes).replace(SEPARATOR, " ");
                let weight = weights.entry(text).or_default();
                *weight = weight.saturating_add(feature.weight);
            });
            scratch.release_huge();
        });
        let feature = |(text, weight)| Feature { text, weight };
        let mut features: Vec<Feature> = weights.into_iter().map(feature).collect();
        features.sort_unstable_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.text.cmp(&b.text)));
        features
    }

    /// Returns the 64-bit hashes of a text's distinct features, ascending.
    ///
    /// Two texts share the same part of their hashes as of their features; verification compares
    /// these. A text without features has none.
    ///
    /// ```
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("code")?)?;
    /// assert_eq!(pipeline.distinct_hashes("a b c d").len(), 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn distinct_hashes(&self, text: &str) -> Vec<u64> {
        let mut hashes = Vec::new();
        let secret = self.inner.options.secret;
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, Mentions::Dropped, scratch);
            features::for_each(&self.inner, scratch, |feature: features::Feature<'_>| {
                hashes.push(secret.map_or(feature.hash, |secret| secret.keyed(feature.hash)));
            });
            scratch.release_huge();
        });
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    /// Returns the 64-bit hashes of a text's distinct words, ascending.
    ///
    /// Words are the tokens of the segmentation, before n-grams are formed. See
    /// [`IdfLearner::add_words`](super::IdfLearner::add_words).
    pub fn word_hashes(&self, text: &str) -> Vec<u64> {
        let Inner { options, lexicon, .. } = &*self.inner;
        let jieba = || lexicon.jieba();
        let mut hashes = Vec::new();
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, Mentions::Dropped, scratch);
            segment::for_each_token(&scratch.normal, options.cutter(), &jieba, &mut |word| {
                hashes.push(word_hash(word));
            });
            scratch.release_huge();
        });
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    /// Returns the hashes of a cleaned text's words, in order.
    ///
    /// Words are those of Unicode for every segmentation, with dense characters as single words. A
    /// text without words has one hash, of the whole text. A hash is odd if its word is a single
    /// letter of a script without spaces.
    pub(crate) fn words_in_order(&self, text: &str) -> Vec<u64> {
        let secret = self.inner.options.secret;
        let hash = |word: &str| {
            let hash = word_hash(word);
            let hash = secret.map_or(hash, |secret| secret.keyed(hash));
            hash & !1 | u64::from(is_part(word))
        };
        let mut hashes = Vec::new();
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, Mentions::WithinSentences, scratch);
            for_each_single(&scratch.normal, &mut |word| hashes.push(hash(word)));
            if hashes.is_empty() && !scratch.normal.is_empty() {
                hashes.push(hash(&scratch.normal));
            }
            scratch.release_huge();
        });
        hashes
    }

    /// Returns the cleaned text: main content, in normal form, without noise.
    ///
    /// Features are cut from this text, except that fingerprints ignore names mentioned within a
    /// sentence. The cleaned text keeps them for verification.
    ///
    /// ```
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    /// assert_eq!(pipeline.cleaned("今天是晴天.//A:xxx//B:xxx"), "今天是晴天");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn cleaned(&self, text: &str) -> String {
        SCRATCH.with_borrow_mut(|scratch| {
            self.read(text, Mentions::WithinSentences, scratch);
            let cleaned = scratch.normal.clone();
            scratch.release_huge();
            cleaned
        })
    }

    /// Reads a text into the scratch: main content, in normal form, without noise.
    ///
    /// Returns true if the result may depend on `mentions`.
    fn read(&self, text: &str, mentions: Mentions, scratch: &mut Scratch) -> bool {
        let options = &self.inner.options;
        let Scratch { normal, cleaned, .. } = scratch;
        let content = match options.html {
            Html::None => text.into(),
            Html::Reader | Html::Reader1 => Cow::Owned(html::main_text(text)),
        };
        if options.segment == Segment::Raw {
            normal.clear();
            normal.push_str(&content);
            return false;
        }
        match options.normal {
            NormalForm::LowerFold => normalise::normalise_into(&content, normal),
            NormalForm::Casefold => casefold::casefold_into(&content, normal),
        }
        if options.simplified {
            simplified::simplify_into(normal, cleaned);
            std::mem::swap(normal, cleaned);
        }
        self.clean(normal, mentions, cleaned)
    }

    /// Cleans the text in place; a text of noise alone is unchanged.
    ///
    /// Returns true if the result may depend on `mentions`.
    fn clean(&self, normal: &mut String, mentions: Mentions, spare: &mut String) -> bool {
        let options = &self.inner.options;
        let is_short = clean::is_short(normal, options.short, options.short_clean);
        let mut keep_words = |clean: &dyn Fn(&str, &mut String)| {
            clean(normal, spare);
            if spare.contains(is_letter) {
                std::mem::swap(normal, spare);
            }
        };
        let asked =
            |set: fn(Clean) -> bool| set(options.clean) || (is_short && set(options.short_clean));
        if asked(|clean| clean.web) {
            keep_words(&clean::clean_page_into);
        }
        let (weibo, links) = (asked(|clean| clean.weibo), asked(|clean| clean.links));
        if weibo {
            keep_words(&|text, out| clean::clean_post_into(text, mentions, out));
        } else if links {
            keep_words(&|text, out| clean::clean_links_into(text, mentions, out));
        }
        weibo || links
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipeline").field(&self.inner.descriptor).finish()
    }
}

#[cfg(test)]
mod tests;
