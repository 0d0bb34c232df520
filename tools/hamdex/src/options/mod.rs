//! Options that several verbs share: groups of arguments become settings of the library.

pub(crate) mod resources;
pub(crate) mod verification;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use hamdex::advice::{Choice, Kind, SAMPLE};
use hamdex::inspect::Header;
use hamdex::sketch::SketchKind;
use hamdex::text::{
    Centre, Clean, Encoding, IdfLearner, IdfTable, Pipeline, PipelineOptions, Segment,
};
use hamdex_io::host::Host;
use hamdex_io::tables::WeightsArg;

use self::resources::{ResourceArgs, SeedArg, Wanted};
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{self, Bring, Format, Inputs, MaxBad, Names, Policy, Rejects, Walking, WarcId};
use crate::session::Session;
use crate::settings;
use crate::size::Size;

/// How to read rows and what to do with bad ones.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows")]
pub(crate) struct RowArgs {
    /// Field with the id of a row: a name, or a path such as meta.id [default: id]
    #[arg(long, value_name = "NAME")]
    pub(crate) id_field: Option<String>,
    /// Field with the text: a name, a path such as data.text, or several separated by commas
    ///
    /// Several fields are joined by line ends, and so are the texts of a list: messages.content are
    /// the texts of a conversation. The default is `text`, else the first of `content`, `body`,
    /// `raw_content`, `document`, `markdown`, `article`, `正文`, `内容`, `文本`, `本文`,
    /// `messages.content` and `conversations.value` that has a text in the first 1,000 rows, in
    /// capitals too. Other rows of JSON that lack this field have the text of the first that they
    /// have.
    #[arg(long, value_name = "NAME,...")]
    pub(crate) text_field: Option<String>,
    /// Format of all inputs [default: detected from the name, else from the content]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&Format::ALL))]
    pub(crate) input_format: Option<Format>,
    /// Read every file as one document, data files too
    #[arg(long, conflicts_with = "input_format")]
    pub(crate) as_documents: bool,
    /// Read the names of more inputs from this file, one a line or separated by zero bytes; - is
    /// standard input
    #[arg(long, value_name = "FILE", id = "files_from")]
    pub(crate) files_from: Option<PathBuf>,
    /// Also read files and directories whose names begin with a dot
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Separator of CSV cells: one character, or tab [default: detected from the header]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// Encoding of text, HTML and CSV files: auto, or a label such as gb18030, big5, utf-16le
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    pub(crate) encoding: Encoding,
    /// Id of a page of a WARC file: its address, or the id of its record
    #[arg(
        long,
        value_name = "uri|record",
        value_parser = one_of(&WarcId::ALL),
        default_value = "uri",
        hide_possible_values = true
    )]
    pub(crate) warc_id: WarcId,
    /// Write bad rows to this file, as JSON Lines with file, line and reason
    #[arg(long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
    /// Stop at the first bad row instead of skipping it
    #[arg(long)]
    pub(crate) strict: bool,
    /// Fail once more than this number or share of rows is bad, such as 100 or 5%
    #[arg(long, value_name = "N|N%", default_value = "10%")]
    pub(crate) max_bad: MaxBad,
}

/// Parses one of some values by its name; the help shows what each means.
fn one_of<T: Copy + Send + Sync>(
    all: &'static [(&'static str, T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).try_map(|name| {
        let found = all.iter().find(|(known, ..)| *known == name);
        found.map(|(_, value, _)| *value).ok_or("unknown name")
    })
}

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match (text, text.as_bytes()) {
        ("\\t" | "tab", _) => Ok(b'\t'),
        (_, &[byte]) if byte.is_ascii() && byte != b'"' => Ok(byte),
        _ => Err("expected one character, or tab"),
    }
}

impl RowArgs {
    pub(crate) fn names(&self) -> Names {
        Names {
            id: self.id_field.clone(),
            text: self.text_field.clone(),
            encoding: self.encoding,
            warc_id: self.warc_id,
            delimiter: self.delimiter,
            ..Names::default()
        }
    }

    /// Opens the inputs that are named, here or in a file.
    pub(crate) fn resolve(
        &self,
        paths: &[PathBuf],
        names: Names,
        console: &Console,
    ) -> Result<Inputs> {
        let mut paths = paths.to_vec();
        if let Some(list) = &self.files_from {
            paths.extend(input::files_from(list)?);
        }
        let reading = Walking {
            format: self.input_format,
            as_documents: self.as_documents,
            hidden: self.hidden,
        };
        Inputs::resolve(&paths, &input::Options { names, reading }, console)
    }

    pub(crate) fn inputs(&self, paths: &[PathBuf], console: &Console) -> Result<Arc<Inputs>> {
        self.resolve(paths, self.names(), console).map(Arc::new)
    }

    pub(crate) fn rejects(&self, session: &Session) -> Result<Rejects> {
        let policy = Policy { overwrite: session.overwrite, ..self.policy() };
        Rejects::new(policy, &session.console)
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
    /// Bits of a fingerprint [default: those of the index or of the raw inputs, else 64]
    #[arg(long, value_name = "32|64|128", value_parser = bits, help_heading = "Fingerprints")]
    pub(crate) bits: Option<u32>,
}

fn bits(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        "128" => Ok(128),
        _ => Err("expected 32, 64 or 128".to_owned()),
    }
}

/// Last field of a descriptor, which names the digest of a centre.
const CENTRE: &str = ";centre=";

/// How text becomes a fingerprint.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fingerprints")]
pub(crate) struct PipelineArgs {
    /// Text pipeline: text, auto, page, post, code, or a descriptor as 'hamdex index stats' prints
    /// it
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
    /// How to cut text into tokens; auto handles every script
    #[arg(long, value_name = "auto|jieba|words|chars|grams|mixed|raw")]
    segment: Option<Segment>,
    /// Number of tokens in a feature
    #[arg(long, value_name = "N")]
    ngram: Option<u32>,
    /// Weights of features: a kind, or a file of lines 'word<TAB>weight'
    #[arg(long, value_name = "uniform|tf|tfidf|levels|FILE")]
    weights: Option<WeightsArg>,
    /// Noise to remove first: web, weibo, links, several separated by commas, or none
    #[arg(long, value_name = "web,weibo,links|none")]
    clean: Option<Clean>,
    /// Treat every text as HTML
    #[arg(long)]
    html: bool,
    /// Treat traditional Chinese characters as simplified ones
    #[arg(long)]
    simplified: bool,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Kind of signature: simhash, minhash (1 bit each), or longest:N (the N longest sentences)
    #[arg(long, value_name = "KIND")]
    pub(crate) sketch: Option<SketchKind>,
}

/// Settings suggested by a sample of the texts, used if the user passes no pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    pub(crate) choice: Choice,
    /// Takes precedence over the user's option.
    pub(crate) sketch: Option<SketchKind>,
}

impl Default for Base {
    fn default() -> Self {
        Self { choice: Choice::of(Kind::Text), sketch: None }
    }
}

impl PipelineArgs {
    /// Returns true if any option is about the pipeline.
    pub(crate) fn given(&self) -> bool {
        self.pipeline.is_some()
            || self.parts_given()
            || self.weights.is_some()
            || self.resources.given()
    }

    fn parts_given(&self) -> bool {
        self.segment.is_some()
            || self.ngram.is_some()
            || self.weights.as_ref().is_some_and(|weights| !weights.is_file())
            || self.clean.is_some()
            || self.html
            || self.simplified
            || self.resources.words_given()
    }

    /// Returns true if no option names a centre.
    pub(crate) fn centre_open(&self) -> bool {
        self.resources.centre_open()
    }

    /// Returns the option of the secret.
    pub(crate) fn seed(&self) -> &SeedArg {
        &self.resources.seed
    }

    /// Returns the preset that is named without other options; `None` for any other pipeline.
    pub(crate) fn preset(&self) -> Option<&str> {
        let name = self.pipeline.as_deref().filter(|name| !name.contains(';'));
        let as_it_is = self.segment.is_none()
            && self.ngram.is_none()
            && self.weights.is_none()
            && self.clean.is_none()
            && !self.simplified
            && !self.resources.given();
        name.filter(|_| as_it_is)
    }

    /// Builds the pipeline that the options describe, without tables that are still to be learnt.
    fn pipeline(&self, base: Base) -> Result<Pipeline> {
        // Presets are single words; descriptors name every field.
        let descriptor = self.pipeline.as_deref().filter(|name| name.contains(';'));
        let Some(name) = descriptor else { return Ok(Pipeline::new(&self.options(base)?)?) };
        self.refuse_parts_of_descriptor()?;
        let mut resources = self.resources.resources()?;
        if let Some(weights) = &self.weights {
            weights.insert(&mut resources)?;
        }
        Ok(Pipeline::from_descriptor_with(name, &resources)?)
    }

    /// Refuses options that a complete descriptor already fixes.
    fn refuse_parts_of_descriptor(&self) -> Result<()> {
        let is_descriptor = self.pipeline.as_deref().is_some_and(|name| name.contains(';'));
        let parts = self.parts_given() || self.sketch.is_some() || self.resources.centre_by_word();
        if is_descriptor && parts {
            return Err(Failure::Usage(
                "a --pipeline descriptor is complete; drop the other text options, except for \
                    the files that it names"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Returns the options over a preset, without tables that are still to be learnt.
    fn options(&self, base: Base) -> Result<PipelineOptions> {
        let preset = match self.pipeline.as_deref() {
            Some(name) => PipelineOptions::preset(name)?,
            None if self.given() => PipelineOptions::preset("auto")?,
            None => base.choice.options()?,
        };
        let mut options = preset.simplified(self.simplified);
        if let Some(sketch) = base.sketch.or(self.sketch) {
            options = options.sketch(sketch);
        }
        if let Some(weights) = &self.weights {
            options = weights.apply(options)?;
        }
        // Weights of words choose words; an explicit segment is then refused, not replaced.
        if let Some(segment) = self.segment {
            options = options.segment(segment);
        }
        if let Some(clean) = self.clean {
            options = options.clean(clean);
        }
        if self.html {
            options = options.html(true);
        }
        options = self.resources.apply(options)?;
        // Last, because other parts set their usual length.
        if let Some(tokens) = self.ngram {
            options = options.ngram(tokens);
        }
        Ok(options)
    }

    /// Returns the pipeline for new fingerprints; `None` if the inputs have fingerprints.
    pub(crate) fn fresh(
        &self,
        inputs: &Arc<Inputs>,
        console: &Console,
    ) -> Result<Option<Pipeline>> {
        if !self.given() && inputs.bring() == Bring::Fingerprints {
            self.refuse_centre()?;
            return Ok(None);
        }
        self.over(Base::default(), inputs, console).map(Some)
    }

    /// Returns the pipeline over the suggested settings, and learns the requested tables.
    pub(crate) fn over(
        &self,
        base: Base,
        inputs: &Arc<Inputs>,
        console: &Console,
    ) -> Result<Pipeline> {
        let resources = &self.resources;
        if !resources.learns() && !resources.learns_centre() {
            return self.pipeline(base);
        }
        self.refuse_parts_of_descriptor()?;
        let mut options = self.options(base)?;
        if resources.learns() {
            // Weights that take no account of rarity are refused before anything is read.
            Pipeline::new(&options.clone().idf(IdfLearner::new().finish()))?;
            let table = input::learn(inputs, &Pipeline::new(&options)?, console)?;
            options = options.idf(table);
        }
        if resources.learns_centre() {
            input::readable_twice(inputs, "--centre learn")?;
            let texts = inputs.sample(SAMPLE)?;
            match Centre::learn(&Pipeline::new(&options)?, &texts)? {
                Some(centre) => options = options.centre(centre),
                None => console.warn(
                    "too few different texts to learn a centre, so none is used: every bit is \
                        compared with a half",
                ),
            }
        }
        Ok(Pipeline::new(&options)?)
    }

    /// Refuses a centre that is none for fingerprints that are there.
    pub(crate) fn refuse_centre(&self) -> Result<()> {
        if self.centre_open() {
            return Ok(());
        }
        Err(Failure::Usage(
            "--centre needs texts, but the inputs have only fingerprints; drop it".to_owned(),
        ))
    }

    /// Refuses another centre than the one that an index was made with.
    pub(crate) fn require_centre(&self, header: &Header) -> Result<()> {
        let stored = header.pipeline.as_str();
        let (open, centre) = stored.split_at(stored.find(CENTRE).unwrap_or(stored.len()));
        let wanted = match self.resources.centre()? {
            Wanted::Open => return Ok(()),
            Wanted::Learnt if !centre.is_empty() => return Ok(()),
            Wanted::Learnt => format!("{open}{CENTRE}learnt"),
            Wanted::None => open.to_owned(),
            Wanted::Given(given) => {
                let pipeline = Pipeline::new(&PipelineOptions::new().centre(given))?;
                let descriptor = pipeline.descriptor();
                let at = descriptor.find(CENTRE).unwrap_or(descriptor.len());
                format!("{open}{}", descriptor.get(at..).unwrap_or_default())
            }
        };
        if wanted == stored {
            return Ok(());
        }
        let stored = stored.to_owned();
        Err(hamdex::Error::HeaderMismatch { what: "pipeline", stored, wanted }.into())
    }

    /// Returns the requested pipeline, if an index was made with it.
    pub(crate) fn stored(&self, header: &Header, index: &Path) -> Result<Option<Pipeline>> {
        let wanted = if self.resources.learns() || self.resources.learns_centre() {
            // Learnt tables of an index do not change.
            let mut options = self.options(Base::default())?;
            let stored = stored_pipeline(header, index, &self.resources.seed)?;
            for (name, bytes) in stored.iter().flat_map(|stored| stored.resources().parts()) {
                match name {
                    "idf" if self.resources.learns() => {
                        options = options.idf(IdfTable::from_bytes(&bytes)?);
                    }
                    "centre" if self.resources.learns_centre() => {
                        options = options.centre(Centre::from_bytes(&bytes)?);
                    }
                    _ => {}
                }
            }
            Pipeline::new(&options)?
        } else {
            self.pipeline(Base::default())?
        };
        settings::require_pipeline(&wanted, header).map(Some)
    }
}

/// Returns the pipeline of an index; `None` if it was built from fingerprints only.
pub(crate) fn stored_pipeline(
    header: &Header,
    index: &Path,
    seed: &SeedArg,
) -> Result<Option<Pipeline>> {
    if header.pipeline.is_empty() {
        return Ok(None);
    }
    Ok(Header::read_pipeline_with(index, seed.secret()?)?)
}

/// The distance of searches, joins and groups.
#[derive(Debug, Args)]
pub(crate) struct DistanceArg {
    /// Number of bits that near-duplicates may differ in [default: that of the index, else chosen
    /// from the texts, else 3]
    #[arg(short = 'k', long, value_name = "N", help_heading = "Fingerprints")]
    pub(crate) distance: Option<u32>,
}

/// The table plan.
#[derive(Debug, Args)]
pub(crate) struct PlanArg {
    /// Table plan: auto, 4, 10, 16, 20 or <blocks>x<lead>[r<radius>] [default: 4]
    #[arg(long, value_name = "PLAN", help_heading = "Fingerprints")]
    pub(crate) plan: Option<String>,
}

/// Limits of the work.
#[derive(Debug, Args)]
#[command(next_help_heading = "Resources")]
pub(crate) struct MemoryArg {
    /// Memory budget, such as 512M or 2G
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    pub(crate) memory: Size,
}

/// Directory of temporary files.
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

/// Which row to store of those with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnRepeat {
    First,
    Last,
}
