//! Pipelines: built from presets, descriptors and parts.

use hamdex::advice::{Choice, Kind};
use hamdex::sketch::SketchKind;
use hamdex::text::{Clean, IdfTable, Resources, Segment};
use hamdex::{Error, PipelineOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};
use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::interrupt::detached;
use crate::tables::{Seed, Tables};

/// The steps from a text to its fingerprint.
///
/// name: a preset ("auto", "post", "page" or "code"), or a descriptor.
/// segment, ngram, weights, clean, sketch, html: the parts, as for the command line. segment is
///     "auto" (words of every script), "jieba", "words", "chars", "grams", "mixed" or "raw".
/// simplified: treat traditional Chinese as simplified.
/// `stop_words`: words to ignore: "none", "builtin" or a file with one word per line.
/// dictionary: words for the Chinese dictionary: a file of lines 'word [frequency [tag]]'.
/// weights: a kind of weights, or a file of lines 'word<TAB>weight'.
/// idf: inverse document frequency: "jieba" or a file of `hamdex fingerprint --save-idf`.
/// `seed_file`: file with a secret of at least 16 bytes that keys the hash of features.
///
/// A pickled pipeline contains its tables and its secret.
///
/// >>> import hamdex
/// >>> plain = hamdex.Pipeline("page")
/// >>> sparse = hamdex.Pipeline("page", stop_words="builtin")
/// >>> len(plain.features("a cat and a dog")) > len(sparse.features("a cat and a dog"))
/// True
#[pyclass(frozen, module = "hamdex")]
#[derive(Debug)]
pub(crate) struct Pipeline {
    inner: hamdex::Pipeline,
    /// The secret whose digest is in the descriptor.
    seed: Option<Seed>,
}

/// The pipeline that a call requests.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// None, or only a secret; the texts determine the rest.
    Open(Option<Seed>),
    Preset(Kind, Option<Seed>),
    Own(hamdex::Pipeline),
    /// Complete except for an IDF table, which is learned from the texts of the call.
    Learning(PipelineOptions),
}

/// Learns an IDF table from texts that a pipeline segments.
pub(crate) type Learn<'a> = &'a dyn Fn(&hamdex::Pipeline) -> Result<IdfTable>;

impl Asked {
    /// Parses `None`, the name of a preset, a descriptor or a pipeline, and additional tables.
    pub(crate) fn of(asked: Option<&Bound<'_, PyAny>>, tables: &Tables) -> Result<Self> {
        if let Some(pipeline) = asked.and_then(|asked| asked.cast::<Pipeline>().ok()) {
            if tables.given() || tables.seed_file.is_some() {
                return Err(Failure::usage(
                    "a Pipeline is complete; pass its tables and its secret to the constructor",
                ));
            }
            return Ok(Self::Own(pipeline.get().inner.clone()));
        }
        let name = asked.map(|asked| {
            let kind = || asked.get_type().name().map(|name| name.to_string());
            let Ok(name) = asked.cast::<PyString>() else {
                let kind = kind()?;
                return Err(Failure::usage(format!(
                    "pipeline must be a str or a Pipeline, not {kind}"
                )));
            };
            Ok(name.to_str()?.to_owned())
        });
        let name = name.transpose()?;
        if let Some(descriptor) = name.as_deref().filter(|name| name.contains(';')) {
            return Ok(Self::Own(described(descriptor, tables)?.0));
        }
        let seed = tables.seed()?;
        if tables.given() {
            let options = options(name.as_deref().unwrap_or("auto"), tables, seed.as_ref())?;
            return Ok(if tables.learns() {
                Self::Learning(options)
            } else {
                Self::Own(hamdex::Pipeline::new(&options)?)
            });
        }
        let Some(name) = name else { return Ok(Self::Open(seed)) };
        match Kind::of_preset(&name) {
            Some(kind) => Ok(Self::Preset(kind, seed)),
            None => Err(no_preset(&name).into()),
        }
    }

    /// Builds the pipeline; an open one uses the preset for texts of any kind.
    pub(crate) fn pipeline(&self, learn: Learn<'_>) -> Result<hamdex::Pipeline> {
        match self {
            Self::Own(pipeline) => Ok(pipeline.clone()),
            Self::Open(seed) => preset(Choice::of(Kind::Text), seed.as_ref()),
            Self::Preset(kind, seed) => preset(Choice::of(*kind), seed.as_ref()),
            Self::Learning(options) => learnt(options, learn),
        }
    }
}

/// Builds the preset of a kind of texts.
pub(crate) fn preset(choice: Choice, seed: Option<&Seed>) -> Result<hamdex::Pipeline> {
    Ok(hamdex::Pipeline::new(&with_secret(choice.options()?, seed))?)
}

/// Builds a pipeline with a learned IDF table.
pub(crate) fn learnt(options: &PipelineOptions, learn: Learn<'_>) -> Result<hamdex::Pipeline> {
    let table = learn(&hamdex::Pipeline::new(options)?)?;
    Ok(hamdex::Pipeline::new(&options.clone().idf(table))?)
}

/// Returns an error, because there are no texts to learn from.
pub(crate) fn no_texts(_: &hamdex::Pipeline) -> Result<IdfTable> {
    Err(Failure::usage(
        "idf=\"learn\" needs texts to learn from, as in dedup and Index.build; save a table \
         with 'hamdex fingerprint --save-idf' and pass its file",
    ))
}

fn options(name: &str, tables: &Tables, seed: Option<&Seed>) -> Result<PipelineOptions> {
    Ok(with_secret(tables.apply(PipelineOptions::preset(name)?)?, seed))
}

fn with_secret(options: PipelineOptions, seed: Option<&Seed>) -> PipelineOptions {
    match seed {
        Some(seed) => options.secret(seed.secret),
        None => options,
    }
}

/// Builds the pipeline of a descriptor, with the files of the tables that it names.
fn described(descriptor: &str, tables: &Tables) -> Result<(hamdex::Pipeline, Option<Seed>)> {
    let (mut resources, seed) = (tables.resources()?, tables.seed()?);
    if let Some(seed) = &seed {
        resources = resources.with_secret(seed.secret);
    }
    Ok((hamdex::Pipeline::from_descriptor_with(descriptor, &resources)?, seed))
}

fn no_preset(name: &str) -> Error {
    PipelineOptions::preset(name).err().unwrap_or(Error::InvalidOption {
        name: "pipeline",
        reason: format!("\"{name}\" is not a preset"),
    })
}

/// Parses a keyword with the library's error.
fn parsed<T: std::str::FromStr<Err = Error>>(word: Option<&str>) -> Result<Option<T>> {
    Ok(word.map(str::parse).transpose()?)
}

#[pymethods]
impl Pipeline {
    #[new]
    #[pyo3(signature = (
        name = "auto", *, segment = None, ngram = None, weights = None, clean = None,
        sketch = None, html = false, simplified = false, stop_words = None, dictionary = None,
        idf = None, seed_file = None,
    ))]
    #[allow(clippy::too_many_arguments)] // keywords of a Python call
    fn new(
        name: &str,
        segment: Option<&str>,
        ngram: Option<u32>,
        weights: Option<PathBuf>,
        clean: Option<&str>,
        sketch: Option<&str>,
        html: bool,
        simplified: bool,
        stop_words: Option<PathBuf>,
        dictionary: Option<PathBuf>,
        idf: Option<PathBuf>,
        seed_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        let tables = Tables { simplified, stop_words, dictionary, weights, idf, seed_file };
        let make = || -> Result<Self> {
            if name.contains(';') {
                if segment.or(clean).or(sketch).is_some() || ngram.is_some() || html {
                    return Err(Failure::usage("a descriptor is complete; do not pass parts"));
                }
                let (inner, seed) = described(name, &tables)?;
                return Ok(Self { inner, seed });
            }
            let seed = tables.seed()?;
            let mut options = PipelineOptions::preset(name)?;
            if let Some(sketch) = parsed::<SketchKind>(sketch)? {
                options = options.sketch(sketch);
            }
            options = with_secret(tables.apply(options)?, seed.as_ref());
            // A conflict between word weights and a segment is an error, so both are applied.
            if let Some(segment) = parsed::<Segment>(segment)? {
                options = options.segment(segment);
            }
            if let Some(clean) = parsed::<Clean>(clean)? {
                options = options.clean(clean);
            }
            if html {
                options = options.html(true);
            }
            // Applied last, because other parts set their default length.
            if let Some(tokens) = ngram {
                options = options.ngram(tokens);
            }
            let inner = if tables.learns() {
                learnt(&options, &no_texts)?
            } else {
                hamdex::Pipeline::new(&options)?
            };
            Ok(Self { inner, seed })
        };
        Ok(make()?)
    }

    #[getter]
    fn descriptor(&self) -> &str {
        self.inner.descriptor()
    }

    /// Returns the fingerprint of a text; `None` if the text has no features.
    #[pyo3(signature = (text, *, bits = 64))]
    fn fingerprint(&self, py: Python<'_>, text: &str, bits: u32) -> PyResult<Option<u128>> {
        let found = detached(py, || crate::fingerprints::sketch(&self.inner, text, bits));
        Ok(found?)
    }

    /// Returns the features of a text and their weights.
    fn features(&self, py: Python<'_>, text: &str) -> PyResult<Vec<(String, i64)>> {
        let features = detached(py, || Ok(self.inner.features(text)))?.into_iter();
        Ok(features.map(|feature| (feature.text, feature.weight)).collect())
    }

    /// Returns the text as `edit:T` compares it.
    fn cleaned(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        Ok(detached(py, || Ok(self.inner.cleaned(text)))?)
    }

    /// Returns the recommended verification for texts of this pipeline.
    fn _verification(&self, bits: u32) -> PyResult<String> {
        let advised = crate::resolve::advised(&self.inner, bits)?;
        Ok(advised.to_string())
    }

    /// Pickles the pipeline with its tables and its secret, which a worker needs.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let (py, this) = (slf.py(), slf.get());
        let tables = this.inner.resources().parts();
        let tables =
            tables.map(|(name, bytes)| (name.to_owned(), PyBytes::new(py, &bytes))).collect();
        let secret = this.seed.as_ref().map(|seed| PyBytes::new(py, &seed.bytes));
        let make = py.get_type::<Self>().getattr("_of_parts")?;
        Ok((make, (this.inner.descriptor().to_owned(), tables, secret)))
    }

    /// Unpickles a pipeline.
    #[classmethod]
    #[allow(clippy::needless_pass_by_value)] // extracted from a list of Python
    fn _of_parts(
        _: &Bound<'_, PyType>,
        descriptor: &str,
        tables: Vec<(String, Bound<'_, PyBytes>)>,
        secret: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let make = || -> Result<Self> {
            let mut resources = Resources::default();
            for (name, bytes) in &tables {
                resources.insert(name, bytes.as_bytes())?;
            }
            let seed = secret.map(Seed::of).transpose()?;
            if let Some(seed) = &seed {
                resources = resources.with_secret(seed.secret);
            }
            let inner = hamdex::Pipeline::from_descriptor_with(descriptor, &resources)?;
            Ok(Self { inner, seed })
        };
        Ok(make()?)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner.descriptor() == other.inner.descriptor()
    }

    fn __hash__(&self) -> u64 {
        hamdex::sketch::feature_hash(self.inner.descriptor().as_bytes(), 0)
    }

    fn __repr__(&self) -> String {
        format!("hamdex.Pipeline({:?})", self.inner.descriptor())
    }
}

/// Descriptor, tables and secret.
type Parts<'py> = (String, Vec<(String, Bound<'py, PyBytes>)>, Option<Bound<'py, PyBytes>>);
