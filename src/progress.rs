//! Progress and cancellation: how long work reports to its caller.

/// Receives the progress of long work and may cancel it.
///
/// Calls come from the thread that does the work, sometimes from several at once. Every method
/// has a default that does nothing, so `()` is the sink that ignores everything.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Counter(AtomicU64);
///
/// impl hamdex::Progress for Counter {
///     fn advance(&self, units: u64) {
///         self.0.fetch_add(units, Ordering::Relaxed);
///     }
/// }
/// ```
pub trait Progress: Sync {
    /// Tells that a phase begins, with its units of work if known.
    fn begin(&self, _phase: &str, _total: Option<u64>) {}

    /// Tells that so many more units of the phase are done.
    fn advance(&self, _units: u64) {}

    /// Returns true when the work should stop; it then ends with [`crate::Error::Cancelled`].
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}

/// Fails with [`crate::Error::Cancelled`] once the caller has asked to stop.
pub(crate) fn check(progress: &dyn Progress) -> crate::Result<()> {
    if progress.cancelled() { Err(crate::Error::Cancelled) } else { Ok(()) }
}
