//! Options that several verbs share: groups of arguments become settings of the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use hamdex::Header;
use hamdex::text::{Clean, Pipeline, PipelineOptions, Segment, Weights};

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Bring, Fields, Inputs, Policy, Rejects};
use crate::size::Size;

/// How rows are read and what happens to bad ones.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows")]
pub(crate) struct RowArgs {
    /// Field of a JSON row that holds its id
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub(crate) id_field: String,
    /// Field of a JSON row that holds its text
    #[arg(long, value_name = "NAME", default_value = "text")]
    pub(crate) text_field: String,
    /// Write bad rows there, as JSON Lines with file, line and reason
    #[arg(long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
    /// Stop at the first bad row instead of skipping it
    #[arg(long)]
    pub(crate) strict: bool,
    /// Stop when more than so many rows are bad
    #[arg(long, value_name = "N")]
    pub(crate) max_bad: Option<u64>,
}

impl RowArgs {
    pub(crate) fn fields(&self) -> Fields {
        Fields { id: self.id_field.clone(), text: self.text_field.clone(), stamp: None }
    }

    pub(crate) fn inputs(&self, paths: &[PathBuf]) -> Result<Arc<Inputs>> {
        Inputs::resolve(paths, self.fields()).map(Arc::new)
    }

    pub(crate) fn rejects(&self, console: &Console) -> Result<Rejects> {
        Rejects::new(self.policy(), console)
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy {
            file: self.rejects.clone(),
            strict: self.strict,
            max_bad: self.max_bad,
            ..Policy::default()
        }
    }
}

/// Fingerprint width.
#[derive(Debug, Args)]
pub(crate) struct WidthArg {
    /// Bits of a fingerprint [default: those of the index or of raw inputs, else 64]
    #[arg(long, value_name = "32|64|128", value_parser = bits, help_heading = "Fingerprints")]
    pub(crate) bits: Option<u32>,
}

fn bits(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        "128" => Ok(128),
        _ => Err("supported are 32, 64 and 128".to_owned()),
    }
}

/// How text becomes a fingerprint.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fingerprints")]
pub(crate) struct PipelineArgs {
    /// Text pipeline: auto, page, post, code, or a descriptor as 'hamdex stats' shows it
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
    /// How text is cut into tokens
    #[arg(long, value_name = "auto|jieba|words|chars")]
    segment: Option<Segment>,
    /// Tokens in one feature
    #[arg(long, value_name = "N")]
    ngram: Option<u32>,
    /// How features are weighed
    #[arg(long, value_name = "uniform|tf|tfidf|levels")]
    weights: Option<Weights>,
    /// What is cut away first: web, weibo, both with a comma between, or none
    #[arg(long, value_name = "web,weibo|none")]
    clean: Option<Clean>,
    /// Take every text for HTML
    #[arg(long)]
    html: bool,
    /// Kind of signature
    #[arg(long, value_name = "KIND", value_parser = ["simhash"], hide = true)]
    sketch: Option<String>,
}

impl PipelineArgs {
    /// Tells whether any option says something about the pipeline.
    pub(crate) fn given(&self) -> bool {
        self.pipeline.is_some() || self.parts_given()
    }

    fn parts_given(&self) -> bool {
        self.segment.is_some()
            || self.ngram.is_some()
            || self.weights.is_some()
            || self.clean.is_some()
            || self.html
    }

    /// Builds the pipeline that the options describe.
    fn pipeline(&self) -> Result<Pipeline> {
        let name = self.pipeline.as_deref().unwrap_or("auto");
        // Presets are single words, descriptors name every field.
        if name.contains(';') {
            if self.parts_given() {
                return Err(Failure::Usage(
                    "a --pipeline descriptor is complete: leave out --segment, --ngram, --weights, \
                     --clean and --html"
                        .to_owned(),
                ));
            }
            return Ok(Pipeline::from_descriptor(name)?);
        }
        let mut options = PipelineOptions::preset(name)?;
        if let Some(segment) = self.segment {
            options = options.segment(segment);
        }
        if let Some(tokens) = self.ngram {
            options = options.ngram(tokens);
        }
        if let Some(weights) = self.weights {
            options = options.weights(weights);
        }
        if let Some(clean) = self.clean {
            options = options.clean(clean);
        }
        if self.html {
            options = options.html(true);
        }
        Ok(Pipeline::new(&options)?)
    }

    /// The pipeline for new fingerprints; `None` when the inputs bring their own.
    pub(crate) fn fresh(&self, inputs: &Inputs) -> Result<Option<Pipeline>> {
        if !self.given() && inputs.bring()? == Bring::Fingerprints {
            return Ok(None);
        }
        self.pipeline().map(Some)
    }

    /// The pipeline that is asked for, if an index was made with it.
    pub(crate) fn stored(&self, header: &Header) -> Result<Option<Pipeline>> {
        let wanted = self.pipeline()?;
        if wanted.descriptor() == header.pipeline {
            return Ok(Some(wanted));
        }
        Err(hamdex::Error::HeaderMismatch {
            what: "pipeline",
            stored: header.pipeline.clone(),
            wanted: wanted.descriptor().to_owned(),
        }
        .into())
    }
}

/// The pipeline of an index; `None` when it was built from fingerprints only.
pub(crate) fn stored_pipeline(header: &Header) -> Result<Option<Pipeline>> {
    if header.pipeline.is_empty() {
        return Ok(None);
    }
    Ok(Some(Pipeline::from_descriptor(&header.pipeline)?))
}

/// The distance of searches, joins and groups.
#[derive(Debug, Args)]
pub(crate) struct DistanceArg {
    /// Bits that near-duplicates may differ in [default: that of the index, else 3]
    #[arg(short = 'k', long, value_name = "N", help_heading = "Fingerprints")]
    pub(crate) distance: Option<u32>,
}

/// Distance when nothing says otherwise.
pub(crate) const DISTANCE: u32 = 3;

/// The table plan.
#[derive(Debug, Args)]
pub(crate) struct PlanArg {
    /// Tables: auto, 4, 10, 16, 20 or <blocks>x<lead>[r<radius>] [default: 4]
    #[arg(long, value_name = "PLAN", help_heading = "Fingerprints")]
    pub(crate) plan: Option<String>,
}

/// What the work may use.
#[derive(Debug, Args)]
#[command(next_help_heading = "Resources")]
pub(crate) struct MemoryArg {
    /// Memory budget, such as 512M or 2G
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    pub(crate) memory: Size,
}

/// Where temporary files go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Resources")]
pub(crate) struct TmpArg {
    /// Directory for temporary files
    #[arg(long, value_name = "DIR")]
    pub(crate) tmp: Option<PathBuf>,
}

impl TmpArg {
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.tmp.as_deref()
    }
}
