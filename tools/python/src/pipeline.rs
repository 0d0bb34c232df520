//! Pipelines: names, descriptors and parts become what turns a text into a fingerprint.

use hamdex::advice::Kind;
use hamdex::sketch::SketchKind;
use hamdex::text::{Clean, Segment, Weights};
use hamdex::{Error, PipelineOptions};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::failure::{Failure, Result};
use crate::interrupt::detached;

/// How a text becomes a fingerprint.
#[pyclass(frozen, module = "hamdex")]
#[derive(Debug)]
pub(crate) struct Pipeline {
    inner: hamdex::Pipeline,
}

/// What a caller says about the pipeline.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    Open,
    Preset(Kind),
    Own(hamdex::Pipeline),
}

impl Asked {
    /// Takes nothing, the name of a preset, a descriptor or a pipeline.
    pub(crate) fn of(asked: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let Some(asked) = asked else { return Ok(Self::Open) };
        if let Ok(pipeline) = asked.cast::<Pipeline>() {
            return Ok(Self::Own(pipeline.get().inner.clone()));
        }
        let Ok(name) = asked.cast::<PyString>() else {
            let kind = asked.get_type().name()?;
            return Err(Failure::usage(format!("pipeline is a str or a Pipeline, not {kind}")));
        };
        let name = name.to_str()?;
        if name.contains(';') {
            return Ok(Self::Own(hamdex::Pipeline::from_descriptor(name)?));
        }
        match Kind::of_preset(name) {
            Some(kind) => Ok(Self::Preset(kind)),
            None => Err(Failure::Library(no_preset(name))),
        }
    }

    /// Makes the pipeline; what is left open is for texts of any kind.
    pub(crate) fn pipeline(&self) -> Result<hamdex::Pipeline> {
        let name = match self {
            Self::Own(pipeline) => return Ok(pipeline.clone()),
            Self::Open => "auto",
            Self::Preset(kind) => kind.preset().unwrap_or("auto"),
        };
        Ok(hamdex::Pipeline::new(&PipelineOptions::preset(name)?)?)
    }
}

fn no_preset(name: &str) -> Error {
    PipelineOptions::preset(name).err().unwrap_or(Error::InvalidOption {
        name: "pipeline",
        reason: format!("\"{name}\" suits no kind of texts"),
    })
}

/// Parses a word of the caller's, with an error of the library's.
fn parsed<T: std::str::FromStr<Err = Error>>(word: Option<&str>) -> Result<Option<T>> {
    Ok(word.map(str::parse).transpose()?)
}

#[pymethods]
impl Pipeline {
    #[new]
    #[pyo3(signature = (
        name = "auto", *, segment = None, ngram = None, weights = None, clean = None,
        sketch = None, html = false, simplified = false,
    ))]
    #[allow(clippy::too_many_arguments)] // keywords of a Python call
    fn new(
        name: &str,
        segment: Option<&str>,
        ngram: Option<u32>,
        weights: Option<&str>,
        clean: Option<&str>,
        sketch: Option<&str>,
        html: bool,
        simplified: bool,
    ) -> PyResult<Self> {
        let parts = segment.or(weights).or(clean).or(sketch).is_some()
            || ngram.is_some()
            || html
            || simplified;
        if name.contains(';') {
            if parts {
                return Err(Failure::usage("a descriptor is complete: leave the parts out").into());
            }
            let inner = hamdex::Pipeline::from_descriptor(name).map_err(Failure::from)?;
            return Ok(Self { inner });
        }
        let make = || -> Result<hamdex::Pipeline> {
            let mut options = PipelineOptions::preset(name)?.simplified(simplified);
            if let Some(sketch) = parsed::<SketchKind>(sketch)? {
                options = options.sketch(sketch);
            }
            if let Some(weights) = parsed::<Weights>(weights)? {
                options = options.weights(weights);
            }
            if let Some(segment) = parsed::<Segment>(segment)? {
                options = options.segment(segment);
            }
            if let Some(clean) = parsed::<Clean>(clean)? {
                options = options.clean(clean);
            }
            if html {
                options = options.html(true);
            }
            // Last, for other parts bring the length that is usual for them.
            if let Some(tokens) = ngram {
                options = options.ngram(tokens);
            }
            Ok(hamdex::Pipeline::new(&options)?)
        };
        Ok(Self { inner: make()? })
    }

    #[getter]
    fn descriptor(&self) -> &str {
        self.inner.descriptor()
    }

    /// Returns the fingerprint of a text; `None` when nothing in it is a feature.
    #[pyo3(signature = (text, *, bits = 64))]
    fn fingerprint(&self, py: Python<'_>, text: &str, bits: u32) -> PyResult<Option<u128>> {
        let found = detached(py, || crate::fingerprints::sketch(&self.inner, text, bits));
        Ok(found?)
    }

    /// Returns the features of a text and their weights.
    fn features(&self, text: &str) -> Vec<(String, i64)> {
        let features = self.inner.features(text).into_iter();
        features.map(|feature| (feature.text, feature.weight)).collect()
    }

    /// Returns a text as `edit:T` compares it.
    fn cleaned(&self, text: &str) -> String {
        self.inner.cleaned(text)
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
