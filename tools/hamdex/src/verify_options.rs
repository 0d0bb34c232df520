//! Options of verification: what the verbs that find near-duplicates check of them.

use clap::Args;
use hamdex::advice::{Kind, Settings, Support};
use hamdex::join::Linkage;
use hamdex::verify::Evidence;
use hamdex::{Error, Header, Verification};

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Proofs, Wanted};
use crate::key::Name;

/// The check that near documents have to pass.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct VerifyArg {
    /// Check near documents: none, jaccard:T, zhou:K,T, edit:T or contains:T [default: where -k is
    /// left open, by the texts or as the index was made for, else none]
    ///
    /// jaccard asks for a part of the features to be shared, edit for an edit similarity of the
    /// texts; edit:S,L rises from S for short texts to L for long ones, and edit:S,L,N leaves lines
    /// that N documents have out for a second look. contains asks for a part of
    /// the smaller text's phrases of three words to occur in the larger one: what dedup removes by it
    /// is never the longer text, whatever --keep says, which decides between equally long ones. -k
    /// finds the pairs to check, and texts of very different lengths are far apart: at 16 bits nearly
    /// all excerpts of four fifths of a text are found, most of three fifths, few below a third. An
    /// index keeps features for jaccard and zhou, and nothing for edit and contains.
    #[arg(long, value_name = "CHECK")]
    pub(crate) verify: Option<Verification>,
}

impl VerifyArg {
    /// Refuses a check that the documents of an index cannot be put to.
    pub(crate) fn require_stored(self, keeps_features: bool) -> Result<()> {
        match self.check().needs() {
            Evidence::Features if !keeps_features => Err(Error::NoFeatureSets.into()),
            Evidence::Nothing | Evidence::Features => Ok(()),
            Evidence::Text => Err(not_kept("edit:T compares texts")),
            Evidence::Phrases => Err(not_kept("contains:T compares all words")),
        }
    }

    /// Fills in what an index was made to be searched with, where nothing is said.
    ///
    /// An index that keeps feature sets is searched with the check that is advised for the kind of
    /// its pipeline, whatever distance is asked for.
    pub(crate) fn or_as_made(self, header: &Header, console: &Console) -> Result<Self> {
        if self.verify.is_some() || !header.keeps_features {
            return Ok(self);
        }
        let kind = Kind::of_descriptor(&header.pipeline)?.unwrap_or(Kind::Text);
        let check = Settings::of(kind, header.bits, Support::Features).verification;
        console.say(&format!(
            "verification {check}, as the index keeps features; --verify none leaves it out"
        ));
        Ok(Self { verify: Some(check) })
    }

    /// Makes sure of the evidence of a document that is to be checked.
    ///
    /// # Errors
    ///
    /// A document without text has none.
    pub(crate) fn require(self, name: &[u8], proofs: &Proofs) -> Result<()> {
        if self.check().needs() != Evidence::Features || !proofs.features.is_empty() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{} brings a fingerprint and no text, so --verify has nothing to compare",
            Name::of(name)
        )))
    }

    /// The check asked for; none when nothing is.
    pub(crate) fn check(self) -> Verification {
        self.verify.unwrap_or_default()
    }
}

/// The failure of a check of what is not stored.
fn not_kept(what: &str) -> Failure {
    Failure::Usage(format!(
        "--verify {what}, which an index does not keep: ask for jaccard:T or zhou:K,T, or give the \
         documents instead of an index, as hamdex dedup OLD NEW"
    ))
}

/// Whether members of a group are held against its representative as well.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct RepresentativeArg {
    /// Check every member of a group against its representative too, which cuts long chains
    #[arg(long)]
    pub(crate) verify_representative: bool,
}

impl RepresentativeArg {
    /// Refuses to hold documents of an index against one another without a check.
    pub(crate) fn require(self, verify: VerifyArg) -> Result<()> {
        if !self.verify_representative || verify.check() != Verification::None {
            return Ok(());
        }
        Err(Failure::Usage(
            "--verify-representative needs --verify over an index; add it, as --verify jaccard:0.6"
                .to_owned(),
        ))
    }

    pub(crate) fn linkage(self) -> Linkage {
        if self.verify_representative { Linkage::Representative } else { Linkage::Chain }
    }
}

/// Whether an index keeps what the checks compare.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct KeepFeaturesArg {
    /// Keep the feature set of every document, for --verify jaccard:T and zhou:K,T
    #[arg(long)]
    pub(crate) keep_features: bool,
}

impl KeepFeaturesArg {
    /// What has to be made of every text for an index that is there or is to be made.
    ///
    /// # Errors
    ///
    /// An index keeps features from the start or never.
    pub(crate) fn wanted(self, header: Option<&Header>) -> Result<Wanted> {
        let kept = header.map_or(self.keep_features, |header| header.keeps_features);
        if self.keep_features && !kept {
            return Err(Error::HeaderMismatch {
                what: "keep_features",
                stored: "false".to_owned(),
                wanted: "true".to_owned(),
            }
            .into());
        }
        Ok(if kept { Wanted::FEATURES } else { Wanted::NOTHING })
    }
}
