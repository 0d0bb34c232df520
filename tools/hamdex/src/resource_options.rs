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

/// Most bytes of a secret's file; what is longer was named by mistake.
const LONGEST_SEED: u64 = 4096;

/// The caller's own tables for texts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fingerprints")]
pub(crate) struct ResourceArgs {
    /// Words that are no features: none, builtin (Chinese and English), or a file of one a line
    #[arg(long, value_name = "none|builtin|FILE")]
    stop_words: Option<StopWordsArg>,
    /// Words for the Chinese dictionary: a file of lines 'word [frequency [tag]]'
    #[arg(long, value_name = "FILE")]
    dictionary: Option<PathBuf>,
    /// Rarity of words for tfidf and levels: jieba, learn (from the inputs), or a file of --save-idf
    #[arg(long, value_name = "jieba|learn|FILE")]
    idf: Option<IdfArg>,
    /// What each bit is compared with: none (a half), learn (its usual share in the inputs, which
    /// balances the bits), or a file of --save-centre
    #[arg(long, value_name = "none|learn|FILE")]
    centre: Option<CentreArg>,
    #[command(flatten)]
    pub(crate) seed: SeedArg,
}

/// The secret that keys the hash of features.
#[derive(Debug, Clone, Args)]
pub(crate) struct SeedArg {
    /// Secret for the hash of features, so that nobody else can aim texts at a fingerprint: a file
    /// of 16 bytes at least, hexadecimal or raw. An index made with it takes and finds texts only
    /// with it; fingerprints given ready-made stay as they are
    #[arg(long, value_name = "FILE", help_heading = "Fingerprints")]
    seed_file: Option<PathBuf>,
}

impl SeedArg {
    /// Tells whether a secret is asked for.
    pub(crate) fn given(&self) -> bool {
        self.seed_file.is_some()
    }

    /// Reads the secret, if one is asked for.
    pub(crate) fn secret(&self) -> Result<Option<Secret>> {
        let Some(path) = &self.seed_file else { return Ok(None) };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|e| Failure::io(path, e))?;
        warn_of_readers(path, &file);
        file.take(LONGEST_SEED + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(path, e))?;
        if bytes.len() as u64 > LONGEST_SEED {
            return Err(Failure::file(
                path,
                "is longer than 4096 bytes, so it is no secret; 'openssl rand -hex 32' makes one",
            ));
        }
        match Secret::from_bytes(&bytes) {
            Ok(secret) => Ok(Some(secret)),
            Err(Error::InvalidOption { reason, .. }) => Err(Failure::file(
                path,
                format!("is no secret: {reason}; 'openssl rand -hex 32' makes one"),
            )),
            Err(error) => Err(error.into()),
        }
    }
}

/// Tells, once, of a secret that others on this machine can read.
fn warn_of_readers(path: &Path, file: &std::fs::File) {
    use std::os::unix::fs::PermissionsExt;
    static TOLD: std::sync::Once = std::sync::Once::new();
    let mode = file.metadata().map_or(0, |found| found.permissions().mode());
    if mode & 0o077 != 0 {
        TOLD.call_once(|| {
            let path = path.display();
            console::warn(&format!(
                "{path}: others can read this secret; 'chmod 600 {path}' stops them"
            ));
        });
    }
}

/// Which stop words are asked for.
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

/// Where the rarity of words comes from.
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

/// Where the centre of the bits comes from.
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

/// Which centre fingerprints are to have.
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
            Err(_) => Err("none of uniform, tf, tfidf, levels, and no file of lines \
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

    /// Puts the table where a descriptor names it.
    pub(crate) fn insert(&self, resources: &mut Resources) -> Result<()> {
        if let Self::File(path) = self {
            let weights = table(path, WeightTable::parse)?;
            resources.insert("weights", weights.as_str().as_bytes())?;
        }
        Ok(())
    }
}

impl ResourceArgs {
    /// Tells whether any table is asked for.
    pub(crate) fn given(&self) -> bool {
        self.stop_words.is_some() || self.dictionary.is_some() || self.idf.is_some()
    }

    /// Tells whether a word that is no file is among the options.
    pub(crate) fn words_given(&self) -> bool {
        let words = !matches!(self.stop_words, None | Some(StopWordsArg::File(_)));
        words || !matches!(self.idf, None | Some(IdfArg::File(_)))
    }

    /// Tells whether the rarity of words is to be learnt from the inputs.
    pub(crate) fn learns(&self) -> bool {
        self.idf == Some(IdfArg::Learn)
    }

    /// Returns true if nothing is said of a centre.
    pub(crate) fn centre_open(&self) -> bool {
        self.centre.is_none()
    }

    /// Returns true if a centre is asked for by a word, which a descriptor leaves no room for.
    pub(crate) fn centre_by_word(&self) -> bool {
        matches!(self.centre, Some(CentreArg::None | CentreArg::Learn))
    }

    /// Returns true if the usual shares of the bits are to be learnt from the inputs.
    pub(crate) fn learns_centre(&self) -> bool {
        self.centre == Some(CentreArg::Learn)
    }

    /// Sets every table but those that are still to be learnt.
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

    /// Returns what is said of a centre.
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

/// Reads a table of lines, in whatever encoding it was written.
fn table<T>(path: &Path, parse: impl Fn(&str) -> hamdex::Result<T>) -> Result<T> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io(path, e))?;
    if text::looks_binary(&bytes) {
        return Err(Failure::file(path, "is no text file; give lines of text"));
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

/// Reads what an option `--save-...` has written.
fn saved<T>(path: &Path, name: &str, read: impl FnOnce(&[u8]) -> hamdex::Result<T>) -> Result<T> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io(path, e))?;
    read(&bytes).map_err(|error| {
        let why = if let Error::Corrupt { detail, .. } = &error { detail } else { "unreadable" };
        Failure::file(path, format!("is not of 'hamdex fingerprint --save-{name}': {why}"))
    })
}
