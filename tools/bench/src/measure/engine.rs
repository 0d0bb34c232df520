//! What an engine has to do to be measured: be built, and answer one query or many.

use super::{Job, Outcome};

/// A way to find fingerprints near a query.
pub(crate) trait Engine: Sized + Send + Sync {
    /// An answer as the engine itself gives it; nothing is converted while time is taken.
    type Answer: Send;

    /// Makes the engine ready to answer.
    fn build(job: &Job, fingerprints: &[u64]) -> Outcome<Self>;

    /// Tells whether it can be asked at this distance.
    fn answers(&self, distance: u32) -> bool;

    /// Answers one query on the calling thread.
    fn search(&self, query: u64, distance: u32) -> Outcome<Self::Answer>;

    /// Answers many queries on rayon's current pool; `None` where there is no such call.
    fn batch(&self, _queries: &[u64], _distance: u32) -> Outcome<Option<Vec<Self::Answer>>> {
        Ok(None)
    }

    /// Turns an answer into fingerprints, in any order, repeated or not.
    fn found(&self, answer: &Self::Answer, fingerprints: &[u64]) -> Vec<u64>;

    /// Bytes on disk.
    fn disk_bytes(&self) -> u64 {
        0
    }

    /// What to know about its figures.
    fn note(&self) -> String {
        String::new()
    }
}
