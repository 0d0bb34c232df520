//! `dedup`: documents become the ones to keep, the duplicates and the groups they form.
//!
//! Two passes over the inputs. The first keeps a fingerprint and an origin of each document, the
//! second copies the rows to keep, byte for byte. Texts are never held beyond a batch.

mod cells;
mod collect;
mod files;
mod form;
mod page;
mod pass;
mod report;
mod row;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use hamdex::advice::{self, Kind, Support};
use hamdex::join::Linkage;
use hamdex::{Fingerprint, Header, Index, OpenOptions, Verification, dedup};

use self::collect::Collected;
use self::files::Files;
use self::form::Form;
use self::page::{Page, PageFile, Summary};
use self::report::{Report, Settings};
use self::write::Members;
use crate::advise::{self, Settled, Wishes};
use crate::failure::{Failure, Result};
use crate::input::{Inputs, Policy, Reading, Rejects, Wanted};
use crate::options::{DistanceArg, MemoryArg, PipelineArgs, RowArgs, TmpArg, WidthArg};
use crate::output::{self, Output};
use crate::session::Session;
use crate::stored;
use crate::verify_options::{RepresentativeArg, VerifyArg};
use crate::width::{self, for_width};

const AFTER_HELP: &str = r#"Files in DIR:
  kept.jsonl        the rows to keep; kept.parquet, .csv or .tsv with --format
  duplicates.jsonl  {"id","kept_id","distance","similarity","cluster"} for every row removed
  clusters.jsonl    {"cluster","size","ids","diameter"}, the largest first
  rejects.jsonl     {"file","line","reason","row"} for every bad row
  report.json       counts, settings, advice and the largest groups

A name that ends in .jsonl, .parquet, .csv or .tsv is a file, which takes the rows to keep alone.

Example:
  hamdex dedup posts.jsonl -o out
  hamdex dedup crawl-*.jsonl.gz -o clean -k 3 --keep longest
  hamdex dedup shard-*.parquet -o clean --text-field content --format parquet
  hamdex dedup posts.csv -o posts-clean.csv
  hamdex dedup CC-MAIN-*.warc.gz -o clean --keep newest:date --warc-id record
  hamdex dedup pages/ -o clean --report clean/report.html"#;

/// Remove near-duplicates from documents
///
/// A look at the texts chooses pipeline, distance and verification, unless they are given: -k
/// alone means Hamming distance only. Pairs within k bits that pass the verification form groups;
/// of each, one document is kept, and what is removed has passed the verification with the kept
/// one. Without a verification, everything that chains of pairs connect is one group. The results
/// appear in DIR when all is done; rows to keep are copied unchanged. A verification writes the
/// cleaned texts or their feature sets to the directory for temporary files meanwhile.
///
/// A kill leaves the results of an earlier run as they were, but for the last moment, in which
/// the new files get their names one after another. The same command again begins anew, and
/// clears what the killed one left in DIR.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct DedupArgs {
    /// Documents: .jsonl, .parquet, .csv, .tsv, .warc, .txt, .html, directories, raw .u64, - for stdin
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Directory for the results, or a file for the rows to keep
    #[arg(short, long, value_name = "DIR|FILE")]
    output: PathBuf,
    /// Drop also what is near a document of this index
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// Which document of a group to keep: first, longest or newest:FIELD
    #[arg(long, value_name = "WHICH", default_value = "first")]
    keep: Keep,
    /// Form of the kept rows in a directory [default: jsonl]
    #[arg(long, value_name = "FORM", value_enum)]
    format: Option<Form>,
    /// Write also a page to look at: figures as charts, the largest groups side by side (.html)
    #[arg(long, value_name = "FILE")]
    report: Option<PageFile>,
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
    representative: RepresentativeArg,
    /// Remove also what only a chain of pairs connects with the kept document
    #[arg(long, conflicts_with = "verify_representative", help_heading = "Verification")]
    verify_chain: bool,
}

/// Which document of a group is kept; among equals the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Keep {
    First,
    Longest,
    /// The one with the largest value of this field.
    Newest(String),
}

impl std::str::FromStr for Keep {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "first" => Ok(Self::First),
            "longest" => Ok(Self::Longest),
            _ => match text.strip_prefix("newest:") {
                Some(field) if !field.is_empty() => Ok(Self::Newest(field.to_owned())),
                _ => Err("supported are first, longest and newest:FIELD"),
            },
        }
    }
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Longest => f.write_str("longest"),
            Self::Newest(field) => write!(f, "newest:{field}"),
        }
    }
}

impl DedupArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        self.work(session, &mut |report| report.show(session, &self.output))
    }

    /// Does the work and returns what report.json says of it.
    pub(crate) fn summary(&self, session: &Session) -> Result<String> {
        let mut summary = String::new();
        self.work(session, &mut |report| {
            summary = report.json()?;
            Ok(())
        })?;
        Ok(summary)
    }

    /// Does the work; `told` is called when all is written.
    fn work(
        &self,
        session: &Session,
        told: &mut dyn FnMut(&Report<'_>) -> Result<()>,
    ) -> Result<()> {
        let files = Files::of(&self.output, self.format)?;
        let mut fields = self.rows.fields();
        if let Keep::Newest(field) = &self.keep {
            fields.stamp = Some(field.clone());
        }
        let mut inputs = Inputs::resolve(&self.inputs, fields)?;
        files.form.require(&inputs)?;
        let header = self
            .against
            .as_deref()
            .map(|index| stored::require(index, self.width.bits))
            .transpose()?;
        let bits = width::settle(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        std::fs::create_dir_all(files.place()).map_err(|e| Failure::io(files.place(), e))?;
        let page = self.report.as_ref().map(PageFile::open).transpose()?;
        inputs.spool(self.tmp.directory(), &session.console)?;
        let inputs = Arc::new(inputs);
        let settled = self.settle(session, &inputs, header.as_ref(), bits)?;
        settled.say(&session.console);
        for_width!(bits, F => self.dedup::<F>(session, &inputs, &settled, (&files, page), told))
    }

    /// Settles what is left open: by the index, which has its own settings, or by the texts.
    fn settle(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        header: Option<&Header>,
        bits: u32,
    ) -> Result<Settled> {
        let (distance, verify) = (self.distance.distance, self.verify.verify);
        let (Some(header), Some(index)) = (header, &self.against) else {
            return advise::settle(
                &session.console,
                inputs,
                &Wishes::over_texts(&self.pipeline, distance, verify, bits),
            );
        };
        self.verify.require_stored(header.keeps_features)?;
        let pipeline = stored::pipeline_for(&self.pipeline, header, index, inputs)?;
        let verification = match (&pipeline, distance, verify) {
            (_, _, Some(verification)) => verification,
            (Some(pipeline), None, None) if header.keeps_features => {
                let kind = Kind::of_pipeline(pipeline)?.unwrap_or(Kind::Mixed);
                advice::Settings::of(kind, bits, Support::Features).verification
            }
            _ => Verification::None,
        };
        let distance = distance.unwrap_or(header.distance);
        Ok(Settled { pipeline, distance, verification, advice: None })
    }

    fn dedup<F: Fingerprint>(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        settled: &Settled,
        (files, mut page): (&Files, Option<Page>),
        told: &mut dyn FnMut(&Report<'_>) -> Result<()>,
    ) -> Result<()> {
        let started = Instant::now();
        let Settled { distance, verification, .. } = *settled;
        if distance > F::MAX_DISTANCE {
            let (bits, max) = (F::BITS, F::MAX_DISTANCE);
            return Err(hamdex::Error::InvalidDistance { distance, bits, max }.into());
        }
        let pipeline = settled.pipeline.as_ref();
        let reading = Reading {
            inputs,
            pipeline,
            console: &session.console,
            unique: true,
            after: None,
            wanted: Wanted::by(verification),
        };
        let rejected = match files.beside("rejects.jsonl") {
            Some(path) => Some((output::temporary(files.place())?, path)),
            None => None,
        };
        let policy = match &rejected {
            Some((file, path)) => Policy {
                file: Some(file.path().to_path_buf()),
                shown: Some(path.clone()),
                ..self.rows.policy()
            },
            None => self.rows.policy(),
        };
        let mut rejects = Rejects::new(policy, &session.console)?;
        let near = dedup::Settings {
            linkage: Some(self.linkage(verification)),
            tmp: self.tmp.tmp.clone(),
            ..dedup::Settings::new(distance).verify(verification)
        };
        let read = collect::collect::<F>(&reading, &self.keep, &near, &mut rejects);
        if let (Some(file), Some((rejected, _))) = (&self.rows.rejects, &rejected) {
            rejects.flush()?;
            std::fs::copy(rejected.path(), file).map_err(|e| Failure::io(file, e))?;
        }
        let Collected { documents, binary, passed } = read?;
        let total = documents.len() as u64;
        let against = self.against.as_ref().map(|index| {
            let memory = self.memory.memory.0;
            Index::open_with(index, &OpenOptions::new().read_only(true).memory(memory))
        });
        advise::say_unverified(&session.console, documents.without());
        let choice = documents.decide(against.transpose()?.as_ref(), &session.console)?;
        session.console.end_phase();
        let seen = page.as_mut().map(|page| page.choose(&choice.decisions, inputs, pipeline));
        let kept = pass::run(session, inputs, files, &choice, seen)?;
        let members = Members::new(&choice.decisions, &kept.ids);
        let path = files.beside("duplicates.jsonl");
        let duplicates =
            members.write_duplicates(path.as_deref(), &mut |distance, similarity| {
                if let Some(page) = &mut page {
                    page.notes.note(distance, similarity);
                }
            })?;
        let mut written: Vec<Output> = duplicates.into_iter().collect();
        if let Some(path) = files.beside("clusters.jsonl") {
            written.push(members.write_clusters(&path)?);
        }
        let report = Report {
            documents: total,
            kept: kept.count,
            removed: total - kept.count,
            removed_against_index: choice.decisions.near_stored() as u64,
            clusters: choice.decisions.clusters().len() as u64,
            rejects: rejects.count(),
            skipped_binary: binary,
            skipped_status: passed.status,
            skipped_type: passed.kind,
            seconds: started.elapsed().as_secs_f64(),
            settings: Settings {
                inputs: inputs.sources.iter().map(|source| source.name.as_str()).collect(),
                bits: F::BITS,
                distance,
                verification: verification.to_string(),
                verified_with_kept: self.linkage(verification) == Linkage::Representative,
                pipeline: pipeline.map_or("", |pipeline| pipeline.descriptor()),
                keep: self.keep.to_string(),
                against: self.against.as_ref().map(|index| index.display().to_string()),
            },
            advice: settled.advice.as_ref(),
            largest: members.largest(),
        };
        if let Some(path) = files.beside("report.json") {
            written.push(report.file(&path)?);
        }
        if let Some(page) = page {
            written.push(page.write(&report, &members.sizes())?);
        }
        rejects.finish()?;
        let rows = kept.rows.close(inputs, files, &session.console)?;
        written.into_iter().try_for_each(Output::finish)?;
        rows.finish()?;
        if let Some((file, path)) = rejected {
            file.persist(&path).map_err(|e| Failure::io(&path, e.error))?;
        }
        told(&report)
    }

    /// What is removed is near the kept document itself wherever that can be verified.
    fn linkage(&self, verification: Verification) -> Linkage {
        if verification != Verification::None && !self.verify_chain {
            Linkage::Representative
        } else {
            self.representative.linkage()
        }
    }
}

/// Writes the page of a deduplication that another engine did, from its summary as JSON.
pub(crate) fn page_of(summary: &str, file: &str) -> Result<()> {
    let file: PageFile = file.parse().map_err(|reason| Failure::file(file, reason))?;
    Summary::read(summary)?.write(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_of_what_to_keep_parse_back() {
        for text in ["first", "longest", "newest:date"] {
            assert_eq!(text.parse::<Keep>().unwrap().to_string(), text);
        }
        for bad in ["", "newest", "newest:", "last"] {
            assert!(bad.parse::<Keep>().is_err(), "{bad}");
        }
    }
}
