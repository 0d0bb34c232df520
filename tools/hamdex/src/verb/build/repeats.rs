//! Repeats: rows of the same id become a choice, or a refusal that names both places.

use clap::ValueEnum;
use hamdex::Repeats;

use crate::failure::Failure;
use crate::input::{Inputs, Origins};

/// Which row counts of those with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OnRepeat {
    First,
    Last,
}

pub(super) fn of(choice: Option<OnRepeat>) -> Repeats {
    match choice {
        Some(OnRepeat::First) => Repeats::First,
        Some(OnRepeat::Last) => Repeats::Last,
        None => Repeats::Refuse,
    }
}

/// Names the rows of two origins that have the same id.
pub(super) fn refused(inputs: &Inputs, origins: &Origins, first: u64, again: u64) -> Failure {
    let reason = format!(
        "has the same id as {}, and nothing was stored; remove one of them, or choose by \
         --on-repeat first or --on-repeat last",
        inputs.at(origins, first)
    );
    Failure::File { path: inputs.at(origins, again), reason }
}
