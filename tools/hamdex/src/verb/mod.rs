//! Verbs: each file holds the arguments of one verb and what it does.

mod backup;
mod build;
mod check;
mod clusters;
pub(crate) mod dedup;
mod demo;
mod description;
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
mod stats;

use clap::Subcommand;

use crate::failure::Result;
use crate::session::Session;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Fingerprint(fingerprint::FingerprintArgs),
    Build(build::BuildArgs),
    Insert(insert::InsertArgs),
    Query(query::QueryArgs),
    Remove(remove::RemoveArgs),
    Pairs(pairs::PairsArgs),
    Clusters(clusters::ClustersArgs),
    Dedup(Box<dedup::DedupArgs>),
    Demo(demo::DemoArgs),
    Plan(plan::PlanArgs),
    Explain(explain::ExplainArgs),
    Stats(stats::StatsArgs),
    Check(check::CheckArgs),
    Fold(index::FoldArgs),
    Compact(index::CompactArgs),
    Repair(check::RepairArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Export(export::ExportArgs),
    Evaluate(evaluate::EvaluateArgs),
    Doctor(doctor::DoctorArgs),
    Completions(description::CompletionsArgs),
    Man(description::ManArgs),
}

impl Verb {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        match self {
            Self::Fingerprint(args) => args.run(session),
            Self::Build(args) => args.run(session),
            Self::Insert(args) => args.run(session),
            Self::Query(args) => args.run(session),
            Self::Remove(args) => args.run(session),
            Self::Pairs(args) => args.run(session),
            Self::Clusters(args) => args.run(session),
            Self::Dedup(args) => args.run(session),
            Self::Demo(args) => args.run(session),
            Self::Plan(args) => args.run(session),
            Self::Explain(args) => args.run(session),
            Self::Stats(args) => args.run(session),
            Self::Check(args) => args.run(session),
            Self::Fold(args) => args.run(session),
            Self::Compact(args) => args.run(session),
            Self::Repair(args) => args.run(session),
            Self::Backup(args) => args.run(session),
            Self::Restore(args) => args.run(session),
            Self::Export(args) => args.run(session),
            Self::Evaluate(args) => args.run(session),
            Self::Doctor(args) => args.run(session),
            Self::Completions(args) => args.run(session),
            Self::Man(args) => args.run(session),
        }
    }
}
