//! Progress reports and cancellation of long operations.

/// Receives progress reports of long operations and may cancel them.
///
/// Methods are called from the working threads, sometimes from several at once. The default methods
/// do nothing, so `()` ignores all reports.
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
///
/// ```
/// // Cancels after a time.
/// struct Until(std::time::Instant);
///
/// impl hamdex::Progress for Until {
///     fn begin(&self, phase: &str, total: Option<u64>) {
///         println!("{phase}: {total:?}");
///     }
///
///     fn cancelled(&self) -> bool {
///         std::time::Instant::now() > self.0
///     }
/// }
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
/// let minute = std::time::Duration::from_secs(60);
/// index.check(&Until(std::time::Instant::now() + minute))?;
/// # Ok::<(), hamdex::Error>(())
/// ```
pub trait Progress: Sync {
    /// Reports the start of a phase and its total units of work, if known.
    fn begin(&self, _phase: &str, _total: Option<u64>) {}

    /// Reports `units` more units of work as done.
    fn advance(&self, _units: u64) {}

    /// Returns true to cancel; the operation then returns [`crate::Error::Cancelled`].
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}

/// Returns [`crate::Error::Cancelled`] if `progress` requests cancellation.
pub(crate) fn check(progress: &dyn Progress) -> crate::Result<()> {
    if progress.cancelled() { Err(crate::Error::Cancelled) } else { Ok(()) }
}
