//! Tables for texts: files that a caller names become parts of a pipeline.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use hamdex::Error;
use hamdex::text::{
    self, Centre, Dictionary, IdfTable, PipelineOptions, Resources, Secret, StopWords, WeightTable,
    Weights,
};

use crate::console;
use crate::failure::{Failure, Result};

/// Most bytes of a secret's file; longer files were named by mistake.
const LONGEST_SEED: u64 = 4096;

/// The user's tables for texts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fingerprints")]
pub(crate) struct ResourceArgs {
    /// Stop words, which become no features: none, builtin (Chinese and English), or a file with
    /// one a line
    #[arg(long, value_name = "none|builtin|FILE")]
    stop_words: Option<StopWordsArg>,
    /// Words to add to the Chinese dictionary: a file of lines 'word [frequency [tag]]'
    #[arg(long, value_name = "FILE")]
    dictionary: Option<PathBuf>,
    /// Rarity of words for tfidf and levels: jieba, learn (from the inputs), or a file that
    /// --save-idf wrote
    #[arg(long, value_name = "jieba|learn|FILE")]
    idf: Option<IdfArg>,
    /// Centre that each bit is compared with: none (a half), learn (its usual share in the inputs,
    /// which balances the bits), or a file that --save-centre wrote
    #[arg(long, value_name = "none|learn|FILE")]
    centre: Option<CentreArg>,
    #[command(flatten)]
    pub(crate) seed: SeedArg,
}

/// The secret that keys the hash of features.
#[derive(Debug, Clone, Args)]
pub(crate) struct SeedArg {
    /// Secret that keys the hash of features: a file of at least 16 bytes, hexadecimal or raw
    ///
    /// Without the secret nobody can craft a text that gets a chosen fingerprint. An index that was
    /// made with a secret needs it for texts; ready-made fingerprints need none.
    #[arg(long, alias = "seed-file", value_name = "FILE", help_heading = "Fingerprints")]
    secret_file: Option<PathBuf>,
}

impl SeedArg {
    /// Returns true if a secret is requested.
    pub(crate) fn given(&self) -> bool {
        self.secret_file.is_some()
    }

    /// Reads the requested secret; `None` without one.
    pub(crate) fn secret(&self) -> Result<Option<Secret>> {
        let Some(path) = &self.secret_file else { return Ok(None) };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|e| Failure::io(path, e))?;
        warn_of_readers(path, &file);
        file.take(LONGEST_SEED + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(path, e))?;
        if bytes.len() as u64 > LONGEST_SEED {
            return Err(Failure::file(
                path,
                "is longer than 4096 bytes, so it is not a secret; make one with 'openssl rand \
                    -hex 32'",
            ));
        }
        match Secret::from_bytes(&bytes) {
            Ok(secret) => Ok(Some(secret)),
            Err(Error::InvalidOption { reason, .. }) => Err(Failure::file(
                path,
                format!("is not a secret: {reason}; make one with 'openssl rand -hex 32'"),
            )),
            Err(error) => Err(error.into()),
        }
    }
}

/// Warns once of a secret that other users can read.
fn warn_of_readers(path: &Path, file: &std::fs::File) {
    use std::os::unix::fs::PermissionsExt;
    static TOLD: std::sync::Once = std::sync::Once::new();
    let mode = file.metadata().map_or(0, |found| found.permissions().mode());
    if mode & 0o077 != 0 {
        TOLD.call_once(|| {
            let path = path.display();
            console::warn(&format!(
                "{path}: other users can read this secret; run 'chmod 600 {path}'"
            ));
        });
    }
}

/// The requested stop words.
#[derive(Debug, Clone)]
enum StopWordsArg {
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
enum IdfArg {
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
enum CentreArg {
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

/// The centre that new fingerprints have.
pub(crate) enum Wanted {
    Open,
    None,
    Learnt,
    Given(Centre),
}

/// How features are weighed: by a kind of weights, or by a table in a file.
#[derive(Debug, Clone)]
pub(crate) enum WeightsArg {
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
    pub(crate) fn apply(&self, options: PipelineOptions) -> Result<PipelineOptions> {
        Ok(match self {
            Self::Kind(kind) => options.weights(*kind),
            Self::File(path) => options.weight_table(table(path, WeightTable::parse)?),
        })
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Adds the table under the name that a descriptor has.
    pub(crate) fn insert(&self, resources: &mut Resources) -> Result<()> {
        if let Self::File(path) = self {
            let weights = table(path, WeightTable::parse)?;
            resources.insert("weights", weights.as_str().as_bytes())?;
        }
        Ok(())
    }
}

impl ResourceArgs {
    /// Returns true if any table is requested.
    pub(crate) fn given(&self) -> bool {
        self.stop_words.is_some() || self.dictionary.is_some() || self.idf.is_some()
    }

    /// Returns true if an option has a word instead of a file.
    pub(crate) fn words_given(&self) -> bool {
        let words = !matches!(self.stop_words, None | Some(StopWordsArg::File(_)));
        words || !matches!(self.idf, None | Some(IdfArg::File(_)))
    }

    /// Returns true if the rarity of words is to be learnt from the inputs.
    pub(crate) fn learns(&self) -> bool {
        self.idf == Some(IdfArg::Learn)
    }

    /// Returns true if no option names a centre.
    pub(crate) fn centre_open(&self) -> bool {
        self.centre.is_none()
    }

    /// Returns true if a word names the centre, which a descriptor does not allow.
    pub(crate) fn centre_by_word(&self) -> bool {
        matches!(self.centre, Some(CentreArg::None | CentreArg::Learn))
    }

    /// Returns true if the usual shares of the bits are to be learnt from the inputs.
    pub(crate) fn learns_centre(&self) -> bool {
        self.centre == Some(CentreArg::Learn)
    }

    /// Sets every table except those that are still to be learnt.
    pub(crate) fn apply(&self, mut options: PipelineOptions) -> Result<PipelineOptions> {
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
        if let Some(secret) = self.seed.secret()? {
            options = options.secret(secret);
        }
        Ok(options)
    }

    /// Returns the centre that the option names.
    pub(crate) fn centre(&self) -> Result<Wanted> {
        Ok(match &self.centre {
            None => Wanted::Open,
            Some(CentreArg::None) => Wanted::None,
            Some(CentreArg::Learn) => Wanted::Learnt,
            Some(CentreArg::File(path)) => Wanted::Given(centre(path)?),
        })
    }

    /// Reads the files that a descriptor names by digest.
    pub(crate) fn resources(&self) -> Result<Resources> {
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
        if let Some(secret) = self.seed.secret()? {
            resources = resources.with_secret(secret);
        }
        Ok(resources)
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

fn centre(path: &Path) -> Result<Centre> {
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
