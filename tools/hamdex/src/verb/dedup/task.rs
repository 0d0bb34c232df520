//! A deduplication from its inputs to its results.
//!
//! The documents are read and decided on, their rows are read again and copied, and the decisions are
//! written and reported. Results get their names last, and together.

use std::sync::Arc;
use std::time::Instant;

use hamdex::dedup::DedupOptions;
use hamdex::join::Linkage;
use hamdex::{Fingerprint, Index, IndexOptions};
use hamdex_io::host::Host;

use super::DedupArgs;
use super::crowds::{Crowd, Samples};
use super::dry::{Drawn, Spent};
use super::files::{self, Files, publish};
use super::page::Page;
use super::parts::Cutting;
use super::pass;
use super::report::{Report, Settings};
use super::sources::Account;
use super::state::Shard;
use super::write::Members;
use crate::advise::{self, Resolved};
use crate::failure::{Failure, Result};
use crate::input::{Ids, Inputs, Policy, Reading, Rejects, Totals, Wanted};
use crate::job::{Against, Choice, Documents, Purpose};
use crate::output::Output;
use crate::session::Session;

/// What is deduplicated, by which settings, and where its results go.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) args: &'a DedupArgs,
    pub(super) session: &'a Session,
    pub(super) inputs: &'a Arc<Inputs>,
    pub(super) resolved: &'a Resolved,
    pub(super) files: &'a Files,
}

/// The documents of the first reading, and the decisions on them.
struct Decided<F: Fingerprint> {
    choice: Choice<F>,
    totals: Totals,
    rejects: Rejects,
    documents: u64,
    /// Bytes of evidence.
    evidence: u64,
    /// Rows to leave, if there is such a target.
    wanted: Option<u64>,
}

impl<'a> Task<'a> {
    /// Does the work, and calls `done` when everything is written.
    pub(super) fn run<F: Fingerprint>(
        self,
        mut page: Option<Page>,
        drawn: Option<Drawn>,
        shard: Option<&mut Shard<'_, F>>,
        done: &mut dyn FnMut(&Report<'_>) -> Result<()>,
    ) -> Result<()> {
        let started = Instant::now();
        let Self { args, session, inputs, resolved, files } = self;
        let distance = resolved.distance;
        if distance > F::MAX_DISTANCE {
            let (bits, max) = (F::BITS, F::MAX_DISTANCE);
            return Err(hamdex::Error::InvalidDistance { distance, bits, max }.into());
        }
        let near = args.near(distance, resolved.verification)?;
        let Decided { choice, totals, rejects, documents, evidence, wanted } =
            self.decide::<F>(&near, shard.as_deref())?;
        let pipeline = resolved.pipeline.as_ref();
        let of_units = (pipeline, &near, args.memory.memory.0);
        let cutting = args.parts.find(&session.console, inputs, (&choice, &totals), of_units)?;
        let mut samples = Samples::of(&choice.decisions, documents);
        let (rows, kept) = {
            let seen = page.as_mut().map(|page| page.choose(&choice.decisions, pipeline));
            let (decided, shown) = ((&choice, &totals), (seen, &mut samples));
            pass::run(session, inputs, files, decided, shown, (cutting.as_ref(), &near))?
        };
        let members = Members {
            choice: &choice,
            kept: &kept,
            inputs,
            origins: &totals.origins,
            unique_by: args.unique_by.as_deref(),
        };
        let mut written = self.write(&members, cutting.as_ref(), page.as_mut())?;
        let mut report = self.report(&members, &totals, samples.crowds(), (documents, wanted))?;
        report.rejects = rejects.count();
        report.seconds = started.elapsed().as_secs_f64();
        let (removed, seconds) = (report.removed, report.seconds);
        let (fingerprint, limit) = (F::BYTES, near.memory);
        let spent = Spent { documents, removed, evidence, fingerprint, limit, seconds };
        report.sample = drawn.map(|drawn| drawn.whole(&spent));
        for warning in &report.warnings {
            session.console.warn(warning);
        }
        let mut file = self.open(files::REPORT)?;
        if let Some(file) = &mut file {
            report.write(file)?;
        }
        let page = page.map(|page| page.write(&report, &members.sizes())).transpose()?;
        written.extend([file, page, rejects.finish()?].into_iter().flatten());
        written.extend(rows.close(inputs, files, &session.console)?);
        publish(written, &files.stale(cutting.is_some()))?;
        if let Some(shard) = shard {
            shard.commit(&members, &session.console)?;
        }
        done(&report)?;
        match wanted {
            Some(wanted) if report.kept > wanted => {
                Err(Failure::Unreached { left: report.kept, wanted })
            }
            _ => Ok(()),
        }
    }

    /// Reads the documents and decides which are kept.
    fn decide<F: Fingerprint>(
        self,
        near: &DedupOptions,
        shard: Option<&Shard<'_, F>>,
    ) -> Result<Decided<F>> {
        let Self { args, session, inputs, resolved, .. } = self;
        let reading = Reading {
            inputs,
            pipeline: resolved.pipeline.as_ref(),
            console: &session.console,
            ids: Ids::Labels,
            keep_blank: !args.drop_empty,
            after: None,
            wanted: Wanted::by(resolved.verification),
        };
        let policy = Policy { overwrite: session.overwrite, ..args.rows.policy() };
        let mut rejects = Rejects::new(policy, &session.console)?;
        rejects.write_to(self.open(files::REJECTS)?);
        if let Some(shard) = shard {
            rejects.name(shard.place(files::REJECTS));
        }
        let mut documents = Documents::<F>::new(&Purpose {
            keep: &args.prefer,
            near,
            unique: args.unique_by.is_some(),
            against: args.against.is_some(),
            sourced: args.source_field.is_some(),
        })?;
        let totals = reading.run::<F>(&mut rejects, &mut documents)?;
        documents.require_fields(&args.prefer, args.source_field.as_deref())?;
        advise::say_unverified(&session.console, documents.without());
        let index = args.against.as_ref().map(|index| {
            let memory = args.memory.memory.0;
            Index::open_with(index, &IndexOptions::new().read_only(true).memory(memory))
        });
        let index = index.transpose()?;
        let against = match (shard, &index) {
            (Some(shard), _) => Against::State(&*shard.state),
            (None, Some(index)) => Against::Index(index),
            (None, None) => Against::Nothing,
        };
        let (rows, evidence) = (documents.rows(), documents.evidence());
        let wanted = args.to.map(|to| to.rows(rows));
        let choice = documents.decide(against, wanted, &session.console)?;
        session.console.end_phase();
        Ok(Decided { choice, totals, rejects, documents: rows, evidence, wanted })
    }

    /// Opens a result that has no name yet; `None` if only the kept rows are written.
    fn open(self, name: &str) -> Result<Option<Output>> {
        let path = self.files.beside(name);
        path.map(|path| Output::file(&path, self.files.overwrite)).transpose()
    }

    /// Writes the decisions, complete but without names yet.
    fn write<F: Fingerprint>(
        self,
        members: &Members<'_, F>,
        cutting: Option<&Cutting<'_>>,
        mut page: Option<&mut Page>,
    ) -> Result<Vec<Output>> {
        let mut duplicates = self.open(files::DUPLICATES)?;
        members.write_duplicates(duplicates.as_mut(), &mut |distance, similarity| {
            if let Some(page) = &mut page {
                page.notes.note(distance, similarity);
            }
        })?;
        let mut clusters = self.open(files::CLUSTERS)?;
        if let Some(clusters) = &mut clusters {
            members.write_clusters(clusters)?;
        }
        let mut boilerplate = None;
        if let Some(cutting) = cutting {
            boilerplate = self.open(files::BOILERPLATE)?;
            if let Some(file) = &mut boilerplate {
                cutting.write(file)?;
            }
        }
        Ok([duplicates, clusters, boilerplate].into_iter().flatten().collect())
    }

    /// Reports the decisions; rejects, seconds and the sample are not known yet.
    fn report<'r, F: Fingerprint>(
        self,
        members: &Members<'r, F>,
        totals: &Totals,
        crowds: Vec<Crowd>,
        (documents, wanted): (u64, Option<u64>),
    ) -> Result<Report<'r>>
    where
        'a: 'r,
    {
        let Self { args, inputs, resolved, .. } = self;
        let (choice, kept) = (members.choice, members.kept);
        let pipeline = resolved.pipeline.as_ref();
        let account = Account::of(members)?;
        let mut report = Report {
            rows: totals.rows,
            documents,
            kept: kept.count,
            removed: documents - kept.count,
            removed_against_index: choice.decisions.near_stored() as u64,
            removed_unique_by: choice.repeats.len() as u64,
            removed_boilerplate: kept.parts.as_ref().map(|parts| parts.removed),
            not_compared: totals.blank.clone(),
            clusters: choice.decisions.clusters().len() as u64,
            rejects: 0,
            skipped_binary: totals.binary,
            skipped_status: totals.passed.status,
            skipped_type: totals.passed.kind,
            seconds: 0.0,
            sample: None,
            parts: kept.parts.as_ref(),
            settings: Settings {
                inputs: inputs.sources.iter().map(|source| source.name.as_str()).collect(),
                bits: F::BITS,
                distance: resolved.distance,
                verification: resolved.verification.to_string(),
                verified_with_kept: args.linkage(resolved.verification) == Linkage::Representative,
                pipeline: pipeline.map_or("", |pipeline| pipeline.descriptor()),
                keep: args.prefer.to_string(),
                to: wanted,
                unique_by: args.unique_by.as_deref(),
                against: args.against.as_ref().map(|index| index.display().to_string()),
                state: args.state.as_ref().map(|index| index.display().to_string()),
            },
            advice: resolved.advice.as_ref(),
            largest: members.largest()?,
            crowds,
            sources: account.rows,
            gone: account.gone,
            warnings: Vec::new(),
        };
        report.warnings = [report.crowd_warnings(), account.warnings].concat();
        Ok(report)
    }
}
