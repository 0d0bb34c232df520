//! Decides which documents to keep, and for each other one what it duplicates.
//!
//! Documents are pushed one after another and are identified by position from then on. Pairs within
//! the distance that pass the verification form groups. Of each group, the document with the
//! highest rank is kept; ties go to the document that was pushed first. Evidence is written to a
//! temporary file, so memory holds a fingerprint, a rank and a few numbers per document, but no
//! text.
//!
//! [`advice::resolve`](crate::advice::resolve) chooses the settings from a sample of the texts.
//!
//! ```
//! use hamdex::advice::{self, Overrides};
//! use hamdex::dedup::{Decision, Dedup, DedupOptions};
//!
//! let texts = [
//!     "severe flooding closes the main road into town this morning",
//!     "just finished reading a wonderful book about the deep sea",
//!     "severe flooding closes the main road into town this evening",
//! ];
//! let settled = advice::resolve(&texts, &Overrides::new())?;
//! let pipeline = settled.pipeline.as_ref().expect("texts have a pipeline");
//!
//! let mut dedup = Dedup::<u64>::new(&DedupOptions::of(&settled))?;
//! dedup.push_texts(pipeline, &texts)?;
//! let decisions = dedup.finish(&())?;
//!
//! assert_eq!(decisions.kept(), 2);
//! assert!(matches!(decisions.of(1), Decision::Kept { cluster: None }));
//! assert!(matches!(decisions.of(2), Decision::Duplicate { kept: 0, cluster: 1, .. }));
//! # Ok::<(), hamdex::Error>(())
//! ```
#![doc = include_str!("DEDUP.md")]

mod boilerplate;
mod decisions;
mod engine;
mod grouped;
mod groups;
mod order;
mod settings;
mod sorter;
mod sources;
mod stamp;
mod state;
mod stored;
mod target;
mod unit;

pub use boilerplate::{Boilerplate, BoilerplateFinder, BoilerplateGroup, DocumentUnits};
pub use decisions::{Cluster, Decision, Decisions};
pub use engine::Dedup;
pub use groups::{Groups, groups, labels};
pub use settings::{BoilerplateOptions, DedupOptions};
pub use sources::{
    FarthestPair, LargestGroup, SourceCounts, Sources, gone_sources, sort_sources, source_warnings,
};
pub use stamp::{Number, Stamp};
pub use state::{Decided, Known, NewShard, ShardInfo, State, Trail};
pub use stored::{OwnKey, key_hash};
pub use unit::{Cut, Unit};
