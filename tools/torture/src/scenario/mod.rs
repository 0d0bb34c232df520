//! Scenarios: each builds indexes, does its worst, and compares what is left with the oracle.

pub(crate) mod concurrency;
pub(crate) mod crash;
pub(crate) mod damage;
mod damage_backup;
pub(crate) mod disk;
pub(crate) mod faults;
pub(crate) mod hostile;
mod images;
pub(crate) mod power;
pub(crate) mod shards;
pub(crate) mod soak;
