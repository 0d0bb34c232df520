//! Tables for texts: files that a caller names become parts of a pipeline.

use std::path::PathBuf;
use std::sync::Once;

use clap::Args;
use hamdex::text::{Centre, PipelineOptions, Resources, Secret};
use hamdex_io::tables::{self, CentreArg, IdfArg, StopWordsArg, Tables};

use crate::console;
use crate::failure::Result;

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
        static TOLD: Once = Once::new();
        let Some(path) = &self.secret_file else { return Ok(None) };
        let (secret, _) = tables::secret(path, |line| TOLD.call_once(|| console::warn(line)))?;
        Ok(Some(secret))
    }
}

/// The centre that new fingerprints have.
pub(crate) enum Wanted {
    Open,
    None,
    Learnt,
    Given(Centre),
}

impl ResourceArgs {
    /// Returns true if any table is requested.
    pub(crate) fn given(&self) -> bool {
        self.stop_words.is_some() || self.dictionary.is_some() || self.idf.is_some()
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

    /// Returns the centre that the option names.
    pub(crate) fn centre(&self) -> Result<Wanted> {
        Ok(match &self.centre {
            None => Wanted::Open,
            Some(CentreArg::None) => Wanted::None,
            Some(CentreArg::Learn) => Wanted::Learnt,
            Some(CentreArg::File(path)) => Wanted::Given(tables::centre(path)?),
        })
    }

    fn tables(&self) -> Tables {
        Tables {
            stop_words: self.stop_words.clone(),
            dictionary: self.dictionary.clone(),
            idf: self.idf.clone(),
            centre: self.centre.clone(),
        }
    }

    /// Returns true if an option has a word instead of a file.
    pub(crate) fn words_given(&self) -> bool {
        self.tables().words_given()
    }

    /// Sets every table except those that are still to be learnt.
    pub(crate) fn apply(&self, options: PipelineOptions) -> Result<PipelineOptions> {
        let options = self.tables().apply(options)?;
        Ok(match self.seed.secret()? {
            Some(secret) => options.secret(secret),
            None => options,
        })
    }

    /// Reads the files that a descriptor names by digest.
    pub(crate) fn resources(&self) -> Result<Resources> {
        let resources = self.tables().resources()?;
        Ok(match self.seed.secret()? {
            Some(secret) => resources.with_secret(secret),
            None => resources,
        })
    }
}
