//! Options of verification: what the verbs that find near-duplicates check of them.
#![allow(dead_code)]

use clap::Args;
use hamdex::Verification;

/// The check that near documents have to pass.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct VerifyArg {
    /// Check near documents: none, jaccard:T, zhou:K,T or edit:T [default: none]
    #[arg(long, value_name = "CHECK")]
    pub(crate) verify: Option<Verification>,
}

impl VerifyArg {
    /// The check asked for; none when nothing is.
    pub(crate) fn check(self) -> Verification {
        self.verify.unwrap_or_default()
    }
}

/// Whether members of a group are held against its representative as well.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct RepresentativeArg {
    /// Check every member of a group against its representative too, which cuts long chains
    #[arg(long, requires = "verify")]
    pub(crate) verify_representative: bool,
}

/// Whether an index keeps what the checks compare.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct KeepFeaturesArg {
    /// Keep the feature set of every document, for --verify jaccard:T and zhou:K,T
    #[arg(long)]
    pub(crate) keep_features: bool,
}
