//! Verbs: each file holds the arguments of one verb and its work.

mod backup;
mod build;
mod check;
mod clusters;
pub(crate) mod dedup;
mod demo;
mod doctor;
mod evaluate;
mod explain;
mod export;
mod fingerprint;
mod gather;
mod index;
mod insert;
mod labels;
mod pairs;
mod plan;
mod query;
mod remove;
mod resident;
mod stats;

use clap::Subcommand;

use crate::cli::{CompletionsArgs, ManArgs};
use crate::failure::Result;
use crate::session::Session;

pub(crate) use index::IndexVerb;

/// Lists the verbs in the order in which the help shows them.
///
/// The hidden ones are the former names of the verbs below `index`; scripts still call them.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Dedup(Box<dedup::DedupArgs>),
    Pairs(pairs::PairsArgs),
    Clusters(clusters::ClustersArgs),
    Evaluate(evaluate::EvaluateArgs),
    Fingerprint(fingerprint::FingerprintArgs),
    Build(build::BuildArgs),
    Insert(insert::InsertArgs),
    Query(query::QueryArgs),
    Remove(remove::RemoveArgs),
    Export(export::ExportArgs),
    Plan(plan::PlanArgs),
    Demo(demo::DemoArgs),
    Doctor(doctor::DoctorArgs),
    Index(index::IndexArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(hide = true)]
    Stats(stats::StatsArgs),
    #[command(hide = true)]
    Explain(explain::ExplainArgs),
    #[command(hide = true)]
    Check(check::CheckArgs),
    #[command(hide = true)]
    Repair(check::RepairArgs),
    #[command(hide = true, alias = "fold")]
    Merge(index::MergeArgs),
    #[command(hide = true)]
    Compact(index::CompactArgs),
    #[command(hide = true)]
    Backup(backup::BackupArgs),
    #[command(hide = true)]
    Restore(backup::RestoreArgs),
}

impl Verb {
    /// Returns true if its work waits for the disk, so that threads beyond the processors may help.
    pub(crate) fn waits_for_disk(&self) -> bool {
        !matches!(
            self,
            Self::Dedup(_)
                | Self::Pairs(_)
                | Self::Clusters(_)
                | Self::Evaluate(_)
                | Self::Fingerprint(_)
        )
    }

    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        match self {
            Self::Dedup(args) => args.run(session),
            Self::Pairs(args) => args.run(session),
            Self::Clusters(args) => args.run(session),
            Self::Evaluate(args) => args.run(session),
            Self::Fingerprint(args) => args.run(session),
            Self::Build(args) => args.run(session),
            Self::Insert(args) => args.run(session),
            Self::Query(args) => args.run(session),
            Self::Remove(args) => args.run(session),
            Self::Export(args) => args.run(session),
            Self::Plan(args) => args.run(session),
            Self::Demo(args) => args.run(session),
            Self::Doctor(args) => args.run(session),
            Self::Index(args) => args.run(session),
            Self::Completions(args) => args.run(session),
            Self::Man(args) => args.run(session),
            Self::Stats(args) => args.run(session),
            Self::Explain(args) => args.run(session),
            Self::Check(args) => args.run(session),
            Self::Repair(args) => args.run(session),
            Self::Merge(args) => args.run(session),
            Self::Compact(args) => args.run(session),
            Self::Backup(args) => args.run(session),
            Self::Restore(args) => args.run(session),
        }
    }
}
