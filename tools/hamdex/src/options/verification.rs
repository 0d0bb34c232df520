//! Options of verification: the check of verbs that find near-duplicates.

use clap::{Args, ValueEnum};
use hamdex::Error;
use hamdex::advice::{Kind, Settings, Support};
use hamdex::inspect::Header;
use hamdex::join::Linkage;
use hamdex::verify::Evidence;
use hamdex::verify::Verification;
use hamdex_io::host::Host;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Proofs, Wanted};
use crate::key::Name;
use crate::settings;

/// The check that near documents have to pass.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct VerifyArg {
    /// Check near documents: none, jaccard:T, zhou:K,T, edit:T or contains:T [default: without -k,
    /// chosen from the texts or as the index was made for, else none]
    ///
    /// jaccard requires documents to share a part T of their features. edit requires an edit
    /// similarity of the texts; edit:S,L rises from S for short texts to L for long ones, and
    /// edit:S,L,N also compares the words that fewer than N documents repeat. contains requires a
    /// part T of the smaller text's phrases of three words to occur in the larger text; dedup then
    /// keeps the longest text, and --prefer decides between equally long ones.
    ///
    /// -k selects the pairs to check, and texts of very different lengths are far apart. At 16
    /// bits, contains finds nearly all excerpts of four fifths of a text, most of three fifths, and
    /// few below a third. An index can keep features for jaccard and zhou, and nothing for edit and
    /// contains.
    #[arg(long, value_name = "CHECK")]
    pub(crate) verify: Option<Verification>,
}

impl VerifyArg {
    /// Refuses a check that the documents of an index cannot be put to.
    pub(crate) fn require_stored(self, keeps_features: bool) -> Result<()> {
        settings::require_stored(self.check(), keeps_features)
    }

    /// Resolves the check for searches of an index, if the user passes none.
    ///
    /// An index that keeps feature sets is searched with the check that is advised for the kind of
    /// its pipeline, at any distance.
    pub(crate) fn or_as_made(self, header: &Header, console: &Console) -> Result<Self> {
        if self.verify.is_some() || !header.keeps_features {
            return Ok(self);
        }
        let kind = Kind::of_descriptor(&header.pipeline)?.unwrap_or(Kind::Text);
        let check = Settings::of(kind, header.bits, Support::Features).verification;
        console.say(&format!(
            "verification {check}, because the index keeps features; --verify none turns it off"
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
            "document {} has a fingerprint but no text; --verify needs the text",
            Name::of(name)
        )))
    }

    /// Returns the requested check, or none.
    pub(crate) fn check(self) -> Verification {
        self.verify.unwrap_or_default()
    }
}

/// What a document must pass the check with to join a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LinkageName {
    /// The kept or first document of the group
    Representative,
    /// Any document of the group, so that pairs form chains
    Chain,
}

/// How pairs form groups.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct LinkageArg {
    /// Form groups around a representative, which cuts chains, or along chains of pairs
    ///
    /// With representative, every document of a group passes the check with its representative: the
    /// kept document in dedup, the first one in clusters. With chain, a document joins a group if
    /// it passes with any member. By default dedup uses representative if it verifies, and clusters
    /// uses chain.
    #[arg(
        long,
        value_name = "representative|chain",
        value_enum,
        hide_possible_values = true,
        conflicts_with_all = ["verify_representative", "verify_chain"]
    )]
    linkage: Option<LinkageName>,
    /// Former spelling of --linkage representative
    #[arg(long, hide = true, conflicts_with = "verify_chain")]
    verify_representative: bool,
    /// Former spelling of --linkage chain
    #[arg(long, hide = true)]
    verify_chain: bool,
}

impl LinkageArg {
    /// Refuses to compare documents of an index with each other without a check.
    pub(crate) fn require(self, verify: VerifyArg) -> Result<()> {
        let chain = self.or_chain() == Linkage::Chain;
        if chain || verify.check() != Verification::None {
            return Ok(());
        }
        Err(Failure::Usage(
            "--linkage representative over an index needs --verify; add one, such as --verify \
                jaccard:0.6"
                .to_owned(),
        ))
    }

    /// Returns the linkage that an option names.
    pub(crate) fn given(self) -> Option<Linkage> {
        match (self.linkage, self.verify_representative, self.verify_chain) {
            (Some(LinkageName::Representative), ..) | (None, true, _) => {
                Some(Linkage::Representative)
            }
            (Some(LinkageName::Chain), ..) | (None, _, true) => Some(Linkage::Chain),
            (None, false, false) => None,
        }
    }

    /// Returns the linkage of verbs that follow chains by default.
    pub(crate) fn or_chain(self) -> Linkage {
        self.given().unwrap_or(Linkage::Chain)
    }
}

/// Whether an index keeps the evidence of checks.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct KeepFeaturesArg {
    /// Keep the feature set of every document, for --verify jaccard:T and zhou:K,T
    #[arg(long)]
    pub(crate) keep_features: bool,
}

impl KeepFeaturesArg {
    /// Returns the evidence to extract from every text for a stored or new index.
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
