//! `dedup`: documents become the kept ones, the duplicates and the groups they form.
//!
//! Two passes read the inputs. The first collects a fingerprint and an origin of each document, the
//! second copies the kept rows, byte for byte. Only one batch of texts is in memory.

mod crowds;
mod dry;
mod files;
mod form;
mod page;
mod parts;
mod pass;
mod report;
mod row;
mod sources;
mod state;
mod task;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use hamdex::inspect::Header;
use hamdex::join::Linkage;
use hamdex::verify::Verification;
use hamdex::{dedup, for_width};
use hamdex_io::host::Host;

use self::files::{Files, Place};
use self::form::Form;
pub(super) use self::page::difference;
use self::page::{PageFile, Summary};
use self::parts::PartsArgs;
use self::report::Report;
use self::task::Task;
use crate::advise::{self, Overrides, Resolved};
use crate::costs;
use crate::failure::{Failure, Result};
use crate::input::{Inputs, Names};
use crate::job::{Keep, To};
use crate::options::verification::{LinkageArg, VerifyArg};
use crate::options::{DistanceArg, MemoryArg, PipelineArgs, RowArgs, TmpArg, WidthArg};
use crate::session::Session;
use crate::settings;
use crate::size::Count;
use crate::stored;

const AFTER_HELP: &str = r#"Files in DIR:
  kept.jsonl        the kept rows; kept.parquet, .csv or .tsv with --format
  duplicates.jsonl  {"id","at","kept_id","kept_at","distance","similarity","cluster"} for every
                    removed row; at and kept_at are file and row
  clusters.jsonl    {"cluster","size","ids","diameter"}, the largest first
  rejects.jsonl     {"file","line","reason","row"} for every bad row
  report.json       counts, settings, advice, warnings and the largest groups
  boilerplate.jsonl {"documents","variants","text"} for all that --unit cuts

A name in .jsonl, .csv or .tsv, optionally followed by .gz or .zst, or in .parquet is a file with
the kept rows only; - is standard output.

Example:
  hamdex dedup posts.jsonl -o out
  hamdex dedup shards/ -o clean --prefer longest
  hamdex dedup crawl-*.jsonl.gz -o clean.jsonl.zst --unique-by url
  hamdex dedup shard-*.parquet -o clean --text-field content --format parquet
  hamdex dedup posts.csv -o posts-clean.csv
  hamdex dedup crawl/*.jsonl.gz -o clean --state seen.idx   # tomorrow: the same command
  hamdex dedup CC-MAIN-*.warc.gz -o clean --prefer newest:date --warc-id record
  hamdex dedup pages/ -o clean --report clean/report.html
  hamdex dedup crawl/ -o trial --sample 20000               # before a run of a night
  hamdex dedup crawl/ -o clean --unit line                  # without menus and footers
  hamdex dedup posts.jsonl -o clean --to 80%"#;

/// Remove near-duplicates from documents
///
/// A sample of the texts chooses pipeline, distance and verification, unless you pass them. Pairs
/// within k bits that pass the verification form groups. dedup keeps one document of each group and
/// removes only documents that are near it and pass the verification with it. With --verify none,
/// documents connected by chains of pairs form one group.
///
/// A row is identified by its file and number; ids may repeat. Rows with nothing to compare, such
/// as empty texts, are kept and counted. Kept rows are copied unchanged. The results appear in DIR
/// when everything is done. Nothing is written if no row is usable or too many are bad.
///
/// A verification stores the cleaned texts or their feature sets in the directory for temporary
/// files. After a kill, the results of an earlier run are unchanged, unless the kill hits the last
/// step, which renames the new files one by one. The same command starts again.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
#[allow(clippy::struct_excessive_bools)] // options of which any may be given
pub(crate) struct DedupArgs {
    /// Documents: .jsonl, .parquet, .csv, .tsv, .warc, .txt, .html, directories, raw .u64, - for
    /// stdin
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Directory for the results, or a file for the kept rows; - is standard output
    #[arg(short, long, value_name = "DIR|FILE")]
    output: PathBuf,
    /// Also remove what is near a document of this index
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// Keep only what this index has not seen in earlier runs, and add it; made if absent
    ///
    /// Every input is a shard. It is compared with everything kept before, and its results appear
    /// together in DIR/NAME/, under the name of the input. After a kill, the same command
    /// continues. Finished inputs are skipped, so the next run may name old and new files; existing
    /// results are never replaced. The first run chooses pipeline, distance and verification; later
    /// runs with other ones are refused.
    #[arg(long, value_name = "INDEX", conflicts_with_all = [
        "against", "shards", "report", "unique_by", "rejects", "overwrite",
    ])]
    state: Option<PathBuf>,
    /// Only estimate what a run needs: settings, rows, memory, disk and time
    ///
    /// Nothing is written. hamdex counts the rows in the first 128 MB of up to 16 inputs, and
    /// deduplicates a sample of up to 2,000 texts.
    #[arg(long)]
    dry_run: bool,
    /// Do the whole work on N rows, drawn from all inputs with the same chance
    ///
    /// The results are those of the sample, and the report adds what all rows need. Equal inputs
    /// give the same sample, and settings are chosen as for all rows. Every input is read to its
    /// end. A sample shows fewer duplicates than there are, because both of a pair have to be drawn.
    #[arg(long, value_name = "N", conflicts_with_all = ["dry_run", "state"])]
    sample: Option<Count>,
    /// Remove only the closest duplicates, until this many rows, or this share of them, is left
    ///
    /// N is a number of rows, SHARE a share such as 0.8 or 80%. Duplicates are removed in the order
    /// of their similarity to a kept document, the most similar ones first, and of equal ones later
    /// rows first. Nothing else is removed: if the settings leave more rows, all results are written
    /// and the status is 3.
    #[arg(long, value_name = "N|SHARE", conflicts_with = "state")]
    to: Option<To>,
    /// Document of a group to keep: first, longest, newest:FIELD or best:FIELD
    ///
    /// newest and best keep the document with the largest value of a field, such as a date or a
    /// score. Numbers are compared by value, RFC 3339 and ISO 8601 dates as times. Numbers rank
    /// above other texts, dates above numbers, and a missing value ranks lowest. Among equal values
    /// the first document is kept. A field that no row has is an error. With --verify contains:T
    /// the longest document of a group is kept, and this option decides between equally long ones.
    #[arg(long, alias = "keep", value_name = "WHICH", default_value = "first")]
    prefer: Keep,
    /// Keep one of the rows that share a value of this field, before any other comparison
    #[arg(long, value_name = "FIELD")]
    unique_by: Option<String>,
    /// Count kept and removed rows by the values of this field, not by file, in the report
    #[arg(long, value_name = "FIELD")]
    source_field: Option<String>,
    /// Remove rows with nothing to compare: null and empty texts, texts without features
    #[arg(long)]
    drop_empty: bool,
    /// Write the kept rows of every input to a separate file in DIR, under the name of the input
    #[arg(long, conflicts_with = "format")]
    shards: bool,
    /// Format of the kept rows in a directory [default: jsonl]
    #[arg(long, value_name = "FORM", value_enum)]
    format: Option<Form>,
    /// Also write an HTML page: charts, and the largest groups side by side
    #[arg(long, value_name = "FILE")]
    report: Option<PageFile>,
    #[command(flatten)]
    parts: PartsArgs,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    pipeline: PipelineArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    tmp: TmpArg,
    #[command(flatten)]
    verify: VerifyArg,
    #[command(flatten)]
    linkage: LinkageArg,
}

impl DedupArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        if self.dry_run {
            let tmp = self.tmp.tmp.clone().unwrap_or_else(std::env::temp_dir);
            return self.dry(session, &mut |need| need.show(session, &self.output, &tmp));
        }
        if let Some(state) = &self.state {
            return self.by_shards(session, state)?.show(session, &self.output);
        }
        self.work(session, &mut |report| report.show(session, &self.output))
    }

    /// Does the work and returns the text of report.json.
    pub(crate) fn summary(&self, session: &Session) -> Result<String> {
        let mut summary = String::new();
        if self.dry_run {
            self.dry(session, &mut |need| {
                summary = need.json()?;
                Ok(())
            })?;
            return Ok(summary);
        }
        if let Some(state) = &self.state {
            return self.by_shards(session, state)?.json();
        }
        self.work(session, &mut |report| {
            summary = report.json()?;
            Ok(())
        })?;
        Ok(summary)
    }

    /// Does the work, and calls `done` when everything is written.
    fn work(
        &self,
        session: &Session,
        done: &mut dyn FnMut(&Report<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut files = Files::of(&self.output, self.format, session.overwrite)?;
        let mut inputs = self.rows.resolve(&self.inputs, self.names(), &session.console)?;
        if self.shards {
            files = files.shards(&self.output, &inputs)?;
        } else {
            files.form.require(&inputs)?;
        }
        self.parts.require(&inputs)?;
        files.check(&inputs, self.report.as_ref().map(PageFile::path))?;
        let header = self
            .against
            .as_deref()
            .map(|index| stored::require(index, self.width.bits))
            .transpose()?;
        let bits = settings::width(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        let place = Place::make(files.place())?;
        let page = self.report.as_ref().map(|page| page.open(session.overwrite)).transpose()?;
        inputs.spool(self.tmp.directory(), &session.console)?;
        let mut inputs = Arc::new(inputs);
        let resolved = self.resolve(session, &inputs, header.as_ref(), bits)?;
        resolved.say(&session.console);
        let drawn = self
            .sample
            .map(|Count(rows)| dry::draw(&mut inputs, rows, &session.console))
            .transpose()?;
        if let Verification::Contains(_) = resolved.verification
            && self.prefer != Keep::First
        {
            session.console.say(&format!(
                "--verify contains keeps the longest document of a group; --prefer {} decides \
                    between equally long ones",
                self.prefer
            ));
        }
        let (inputs, resolved, files) = (&inputs, &resolved, &files);
        let task = Task { args: self, session, inputs, resolved, files };
        for_width!(bits, F => task.run::<F>(page, drawn, None, done))?;
        place.keep();
        Ok(())
    }

    /// Returns the fields of a row that are read.
    fn names(&self) -> Names {
        let mut names = self.rows.names();
        if let Keep::Largest(field) = &self.prefer {
            names.stamp = Some(field.name.clone());
        }
        names.unique.clone_from(&self.unique_by);
        names.source.clone_from(&self.source_field);
        names
    }

    /// Resolves settings: from the index, which has them, or from the texts.
    fn resolve(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        header: Option<&Header>,
        bits: u32,
    ) -> Result<Resolved> {
        let (distance, verify) = (self.distance.distance, self.verify.verify);
        let (Some(header), Some(index)) = (header, &self.against) else {
            return advise::resolve(
                &session.console,
                inputs,
                &Overrides::over_texts(&self.pipeline, distance, verify, bits),
            );
        };
        self.verify.require_stored(header.keeps_features)?;
        let pipeline = stored::pipeline_for(&self.pipeline, header, index, inputs)?;
        settings::resolve_against(header, pipeline, distance, verify).map(Resolved::from)
    }

    /// Returns the settings that define near-duplicates.
    fn near(&self, distance: u32, verification: Verification) -> Result<dedup::DedupOptions> {
        let linkage = self.linkage(verification);
        let mut near = dedup::DedupOptions::new(distance).verify(verification).linkage(linkage);
        near.tmp.clone_from(&self.tmp.tmp);
        near.memory = self.memory.memory.0;
        Ok(near.costs(costs::kept()?))
    }

    /// Returns the linkage: by representative if pairs can be verified.
    fn linkage(&self, verification: Verification) -> Linkage {
        self.linkage.given().unwrap_or(if verification == Verification::None {
            Linkage::Chain
        } else {
            Linkage::Representative
        })
    }
}

/// Writes the page of a deduplication that another engine did, from its summary as JSON.
pub(crate) fn page_of(summary: &str, file: &str) -> Result<()> {
    let file: PageFile = file.parse().map_err(|reason| Failure::file(file, reason))?;
    Summary::read(summary)?.write(&file)
}
