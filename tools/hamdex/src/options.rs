//! Options that several verbs share: groups of arguments become settings of the library.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use hamdex::Header;
use hamdex::advice::{Choice, Kind, SAMPLE};
use hamdex::sketch::SketchKind;
use hamdex::text::{
    Centre, Clean, Encoding, IdfLearner, IdfTable, Pipeline, PipelineOptions, Segment,
};

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{self, Bring, Format, Inputs, MaxBad, Names, Policy, Rejects, Walking, WarcId};
use crate::resource_options::{ResourceArgs, SeedArg, Wanted, WeightsArg};
use crate::session::Session;
use crate::size::Size;

/// How rows are read and what happens to bad ones.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows")]
pub(crate) struct RowArgs {
    /// Field of a row that holds its id: a name, or a path such as meta.id [default: id]
    #[arg(long, value_name = "NAME")]
    pub(crate) id_field: Option<String>,
    /// Field that holds the text: a name, a path such as data.text, or several with commas between
    ///
    /// Several are joined by a line end. By default it is `text`, else the first of `content`, `body`,
    /// `raw_content`, `document`, `markdown` and `article` that a row among the first 1,000 has.
    #[arg(long, value_name = "NAME,...")]
    pub(crate) text_field: Option<String>,
    /// Format of every input [default: by name, else by content]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) input_format: Option<Format>,
    /// Read every file as one document, data files too
    #[arg(long, conflicts_with = "input_format")]
    pub(crate) as_documents: bool,
    /// Read the names of further inputs from this file, one a line or separated by zero bytes; -
    /// is standard input
    #[arg(long, value_name = "FILE", id = "files_from")]
    pub(crate) files_from: Option<PathBuf>,
    /// Read files and directories whose names begin with a dot, too
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Character between the cells of CSV [default: by the header]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// Encoding of text, HTML and CSV files: auto, or a label such as gb18030, big5, utf-16le
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    pub(crate) encoding: Encoding,
    /// What identifies pages of a WARC file: their address, or each capture by its record
    #[arg(
        long,
        value_name = "uri|record",
        value_enum,
        default_value = "uri",
        hide_possible_values = true
    )]
    pub(crate) warc_id: WarcId,
    /// Write bad rows there, as JSON Lines with file, line and reason
    #[arg(long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
    /// Stop at the first bad row instead of skipping it
    #[arg(long)]
    pub(crate) strict: bool,
    /// Fail if more rows are bad: a number, or a share such as 5%
    #[arg(long, value_name = "N|N%", default_value = "10%")]
    pub(crate) max_bad: MaxBad,
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
            stamp: None,
            unique: None,
            source: None,
            encoding: self.encoding,
            warc_id: self.warc_id,
            delimiter: self.delimiter,
        }
    }

    /// Looks at the inputs that are named, here or in a file.
    pub(crate) fn resolve(
        &self,
        paths: &[PathBuf],
        names: Names,
        console: &Console,
    ) -> Result<Inputs> {
        let mut paths = paths.to_vec();
        if let Some(list) = &self.files_from {
            paths.extend(files_from(list)?);
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

/// Reads names of files, separated by zero bytes if there are any, else by line ends.
fn files_from(list: &Path) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = if list.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(list).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|e| Failure::io(list, e))?;
    let separator = if bytes.contains(&0) { 0 } else { b'\n' };
    let names = bytes.split(|&byte| byte == separator);
    let names = names.map(|name| name.strip_suffix(b"\r").unwrap_or(name));
    Ok(names.filter(|name| !name.is_empty()).map(path_of).collect())
}

fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(name).into()
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

/// Last field of a descriptor, which names the digest of a centre.
const CENTRE: &str = ";centre=";

/// How text becomes a fingerprint.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fingerprints")]
pub(crate) struct PipelineArgs {
    /// Text pipeline: text, auto, page, post, code, or a descriptor as 'hamdex stats' shows it
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
    /// How text is cut into tokens; auto finds the words of every script
    #[arg(long, value_name = "auto|jieba|words|chars|grams|mixed|raw")]
    segment: Option<Segment>,
    /// Tokens in one feature
    #[arg(long, value_name = "N")]
    ngram: Option<u32>,
    /// How features are weighed: by a kind of weights, or a file of lines 'word<TAB>weight'
    #[arg(long, value_name = "uniform|tf|tfidf|levels|FILE")]
    weights: Option<WeightsArg>,
    /// What is cut away first: web, weibo, links, several with commas between, or none
    #[arg(long, value_name = "web,weibo,links|none")]
    clean: Option<Clean>,
    /// Take every text for HTML
    #[arg(long)]
    html: bool,
    /// Count traditional Chinese as simplified
    #[arg(long)]
    simplified: bool,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Kind of signature: simhash, minhash (1 bit each), or longest:N, the N longest sentences
    #[arg(long, value_name = "KIND")]
    pub(crate) sketch: Option<SketchKind>,
}

/// What a look at the texts suggests; it counts where the user says nothing about the pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    pub(crate) choice: Choice,
    /// Goes before the user's own.
    pub(crate) sketch: Option<SketchKind>,
}

impl Default for Base {
    fn default() -> Self {
        Self { choice: Choice::of(Kind::Text), sketch: None }
    }
}

impl PipelineArgs {
    /// Returns whether any option says something about the pipeline.
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

    /// Returns true if nothing is said of a centre.
    pub(crate) fn centre_open(&self) -> bool {
        self.resources.centre_open()
    }

    /// The secret that is asked for.
    pub(crate) fn seed(&self) -> &SeedArg {
        &self.resources.seed
    }

    /// The preset that is named and left as it is; `None` for any other pipeline.
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

    /// Builds the pipeline that the options describe, but for a table that is still to be learnt.
    fn pipeline(&self, base: Base) -> Result<Pipeline> {
        // Presets are single words, descriptors name every field.
        let descriptor = self.pipeline.as_deref().filter(|name| name.contains(';'));
        let Some(name) = descriptor else { return Ok(Pipeline::new(&self.options(base)?)?) };
        self.refuse_parts_of_descriptor()?;
        let mut resources = self.resources.resources()?;
        if let Some(weights) = &self.weights {
            weights.insert(&mut resources)?;
        }
        Ok(Pipeline::from_descriptor_with(name, &resources)?)
    }

    /// A descriptor says all there is to say.
    fn refuse_parts_of_descriptor(&self) -> Result<()> {
        let is_descriptor = self.pipeline.as_deref().is_some_and(|name| name.contains(';'));
        let parts = self.parts_given() || self.sketch.is_some() || self.resources.centre_by_word();
        if is_descriptor && parts {
            return Err(Failure::Usage(
                "a --pipeline descriptor is complete: leave out all that says how text is read, \
                 but for the files of tables that it names"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// The options over a preset, but for tables that are still to be learnt.
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
        // Weights of words choose words; what is asked for by name is then refused, not replaced.
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
        // Last, for other parts bring the length that is usual for them.
        if let Some(tokens) = self.ngram {
            options = options.ngram(tokens);
        }
        Ok(options)
    }

    /// The pipeline for new fingerprints; `None` when the inputs bring their own.
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

    /// The pipeline over what a look at the texts suggests, its tables learnt where that is asked.
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
                    "too few of the texts differ to learn a centre from, so there is none: every \
                     bit is compared with a half",
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
            "--centre is for texts, but the inputs bring fingerprints only; leave it out"
                .to_owned(),
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

    /// The pipeline that is asked for, if an index was made with it.
    pub(crate) fn stored(&self, header: &Header, index: &Path) -> Result<Option<Pipeline>> {
        let wanted = if self.resources.learns() || self.resources.learns_centre() {
            // What was learnt for an index stays as it is.
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
        // What was made with an earlier version of a step goes on with it.
        let wanted = wanted.with_versions_of(&header.pipeline)?;
        if wanted.descriptor() == header.pipeline {
            return Ok(Some(wanted));
        }
        let (stored, wanted) = (header.pipeline.as_str(), wanted.descriptor());
        let secrets = (secret_of(stored), secret_of(wanted));
        let (what, (stored, wanted)) = if secrets.0 == secrets.1 {
            ("pipeline", (stored, wanted))
        } else {
            ("secret", secrets)
        };
        let (stored, wanted) = (stored.to_owned(), wanted.to_owned());
        Err(hamdex::Error::HeaderMismatch { what, stored, wanted }.into())
    }
}

/// What a descriptor says of a secret.
fn secret_of(descriptor: &str) -> &str {
    let (_, secret) = descriptor.split_once(";secret=").unwrap_or((descriptor, "none"));
    secret.split(';').next().unwrap_or(secret)
}

/// The pipeline of an index; `None` when it was built from fingerprints only.
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
    /// Bits that near-duplicates may differ in [default: that of the index, else by the texts,
    /// else 3]
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
