//! Tables for texts: files that a caller names, or a first pass over the inputs, become parts of a
//! pipeline.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use hamdex::Error;
use hamdex::text::{
    self, Centre, Dictionary, IdfLearner, IdfTable, Pipeline, PipelineOptions, Resources, Secret,
    StopWords, WeightTable, Weights,
};

use super::make::content;
use crate::face::failure::{Failure, Result};
use crate::face::host::Host;
use crate::formats::chunk::{Body, Chunk, Line, Rows, Text};
use crate::formats::fields::Fields;
use crate::formats::flow::for_each_made;
use crate::formats::row;
use crate::sources::inputs::Inputs;

/// Most bytes of a secret's file; longer files were named by mistake.
const LONGEST_SECRET: u64 = 4096;

/// The tables that a caller names, besides weights.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub stop_words: Option<StopWordsArg>,
    pub dictionary: Option<PathBuf>,
    pub idf: Option<IdfArg>,
    pub centre: Option<CentreArg>,
}

impl Tables {
    /// Returns true if an option has a word instead of a file.
    pub fn words_given(&self) -> bool {
        let words = !matches!(self.stop_words, None | Some(StopWordsArg::File(_)));
        words || !matches!(self.idf, None | Some(IdfArg::File(_)))
    }

    /// Sets every table except those that are still to be learnt.
    pub fn apply(&self, mut options: PipelineOptions) -> Result<PipelineOptions> {
        options = match &self.stop_words {
            None => options,
            Some(StopWordsArg::None) => options.stop_words(StopWords::none()),
            Some(StopWordsArg::Builtin) => options.stop_words(StopWords::builtin()),
            Some(StopWordsArg::File(path)) => options.stop_words(table(path, StopWords::parse)?),
        };
        if let Some(path) = &self.dictionary {
            options = options.dictionary(table(path, Dictionary::parse)?);
        }
        if let Some(IdfArg::File(path)) = &self.idf {
            options = options.idf(idf(path)?);
        }
        if let Some(CentreArg::File(path)) = &self.centre {
            options = options.centre(centre(path)?);
        }
        Ok(options)
    }

    /// Reads the files that a descriptor names by digest.
    pub fn resources(&self) -> Result<Resources> {
        let mut resources = Resources::default();
        if let Some(StopWordsArg::File(path)) = &self.stop_words {
            let words = table(path, StopWords::parse)?;
            resources.insert("stop-words", words.own().unwrap_or_default().as_bytes())?;
        }
        if let Some(path) = &self.dictionary {
            let words = table(path, Dictionary::parse)?;
            resources.insert("dictionary", words.as_str().as_bytes())?;
        }
        if let Some(IdfArg::File(path)) = &self.idf {
            resources.insert("idf", &idf(path)?.to_bytes())?;
        }
        if let Some(CentreArg::File(path)) = &self.centre {
            resources.insert("centre", &centre(path)?.to_bytes())?;
        }
        Ok(resources)
    }
}

/// The requested stop words.
#[derive(Debug, Clone)]
pub enum StopWordsArg {
    None,
    Builtin,
    File(PathBuf),
}

impl From<&str> for StopWordsArg {
    fn from(text: &str) -> Self {
        match text {
            "none" => Self::None,
            "builtin" => Self::Builtin,
            path => Self::File(path.into()),
        }
    }
}

/// Source of the rarity of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdfArg {
    Jieba,
    Learn,
    File(PathBuf),
}

impl From<&str> for IdfArg {
    fn from(text: &str) -> Self {
        match text {
            "jieba" => Self::Jieba,
            "learn" => Self::Learn,
            path => Self::File(path.into()),
        }
    }
}

/// Source of the centre of the bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CentreArg {
    None,
    Learn,
    File(PathBuf),
}

impl From<&str> for CentreArg {
    fn from(text: &str) -> Self {
        match text {
            "none" => Self::None,
            "learn" => Self::Learn,
            path => Self::File(path.into()),
        }
    }
}

/// How features are weighed: by a kind of weights, or by a table in a file.
#[derive(Debug, Clone)]
pub enum WeightsArg {
    Kind(Weights),
    File(PathBuf),
}

impl FromStr for WeightsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(kind) => Ok(Self::Kind(kind)),
            Err(_) if Path::new(text).is_file() => Ok(Self::File(text.into())),
            Err(_) => Err("expected uniform, tf, tfidf, levels, or a file of lines \
                           'word<TAB>weight'"
                .to_owned()),
        }
    }
}

impl WeightsArg {
    pub fn apply(&self, options: PipelineOptions) -> Result<PipelineOptions> {
        Ok(match self {
            Self::Kind(kind) => options.weights(*kind),
            Self::File(path) => options.weight_table(table(path, WeightTable::parse)?),
        })
    }

    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Adds the table under the name that a descriptor has.
    pub fn insert(&self, resources: &mut Resources) -> Result<()> {
        if let Self::File(path) = self {
            let weights = table(path, WeightTable::parse)?;
            resources.insert("weights", weights.as_str().as_bytes())?;
        }
        Ok(())
    }
}

/// Reads a table of lines, in any encoding.
fn table<T>(path: &Path, parse: impl Fn(&str) -> hamdex::Result<T>) -> Result<T> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io(path, e))?;
    if text::looks_binary(&bytes) {
        return Err(Failure::file(path, "is not a text file; give lines of text"));
    }
    parse(&text::decode(&bytes).text).map_err(|error| {
        if let Error::InvalidLine { line, reason, .. } = error {
            return Failure::file(format!("{}:{line}", path.display()), reason);
        }
        error.into()
    })
}

fn idf(path: &Path) -> Result<IdfTable> {
    saved(path, "idf", IdfTable::from_bytes)
}

pub fn centre(path: &Path) -> Result<Centre> {
    saved(path, "centre", Centre::from_bytes)
}

/// Reads a file that an option `--save-...` wrote.
fn saved<T>(path: &Path, name: &str, read: impl FnOnce(&[u8]) -> hamdex::Result<T>) -> Result<T> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io(path, e))?;
    read(&bytes).map_err(|error| {
        let why = if let Error::Corrupt { detail, .. } = &error { detail } else { "unreadable" };
        Failure::file(path, format!("was not written by 'hamdex fingerprint --save-{name}': {why}"))
    })
}

/// Reads a secret and returns its file's contents, too.
///
/// `warn` receives a warning if other users can read the file.
pub fn secret(path: &Path, warn: impl FnOnce(&str)) -> Result<(Secret, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt;
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    let mode = file.metadata().map_or(0, |found| found.permissions().mode());
    if mode & 0o077 != 0 {
        let path = path.display();
        warn(&format!("{path}: other users can read this secret; run 'chmod 600 {path}'"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_SECRET + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(path, e))?;
    if bytes.len() as u64 > LONGEST_SECRET {
        return Err(Failure::file(
            path,
            "is longer than 4096 bytes, so it is not a secret; make one with 'openssl rand -hex 32'",
        ));
    }
    match Secret::from_bytes(&bytes) {
        Ok(secret) => Ok((secret, bytes)),
        Err(Error::InvalidOption { reason, .. }) => Err(Failure::file(
            path,
            format!("is not a secret: {reason}; make one with 'openssl rand -hex 32'"),
        )),
        Err(error) => Err(error.into()),
    }
}

/// Refuses inputs that can be read only once.
pub fn readable_twice(inputs: &Inputs, option: &str) -> Result<()> {
    match inputs.sources.iter().find(|source| source.is_live()) {
        None => Ok(()),
        Some(source) => Err(Failure::Usage(format!(
            "{}: {option} reads the inputs twice; save them to a file and give the file",
            source.name
        ))),
    }
}

/// Counts words as the pipeline cuts them; bad rows are left to the pass that reports them.
pub fn learn(inputs: &Arc<Inputs>, pipeline: &Pipeline, console: &dyn Host) -> Result<IdfTable> {
    readable_twice(inputs, "--idf learn")?;
    console.begin_reading("learning", inputs.bytes());
    let mut learner = IdfLearner::new();
    let make = |chunk: Chunk| {
        let Some(source) = inputs.sources.get(chunk.source) else { return Ok((Vec::new(), 0)) };
        let words = words_of(&chunk, &source.fields, pipeline)?;
        let bytes = words.iter().map(|words| size_of_val(words.as_slice())).sum();
        Ok((words, bytes))
    };
    for_each_made(inputs, Rows::Needed, None, console, make, |_, _, documents| {
        for words in &documents {
            learner.add_words(words);
        }
        Ok(())
    })?;
    console.end_phase();
    Ok(learner.finish())
}

/// Returns the words of each document of a chunk, in their order.
fn words_of(chunk: &Chunk, fields: &Fields, pipeline: &Pipeline) -> Result<Vec<Vec<u64>>> {
    let words =
        |text: Option<Cow<'_, str>>| text.map_or_else(Vec::new, |text| pipeline.word_hashes(&text));
    Ok(match &chunk.body {
        Body::Lines { bytes, lines } => {
            let line = |line: &Line| {
                let line = bytes.get(line.bytes.clone()).unwrap_or_default();
                words(row::parse(fields, line).ok().and_then(|row| row.text))
            };
            lines.iter().map(line).collect()
        }
        Body::Table(batch) => {
            batch.each(fields, |_, row| words(row.ok().and_then(|row| row.text)))?
        }
        Body::Texts(texts) => {
            let text = |text: &Text| {
                let bytes = text.bytes.as_deref().unwrap_or_default();
                let decoded = text.encoding(fields).decode_text(bytes);
                words(
                    decoded
                        .as_ref()
                        .map(|text_of| content(pipeline, &text_of.text, text.is_html())),
                )
            };
            texts.iter().map(text).collect()
        }
        Body::Raw { .. } => Vec::new(),
    })
}
