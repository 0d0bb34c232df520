//! Stops: another thread, or a signal handler, ends a long call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hamdex::Progress;
use hamdex_io::host::Host;

use crate::error::{free, guard_or};

/// Ends long calls from another thread or from a signal handler.
///
/// Owned by the caller; free with `hamdex_stop_free` when no call uses it any more. Once requested,
/// it ends every later call that gets it as well.
#[derive(Debug, Default)]
pub struct HamdexStop(Arc<AtomicBool>);

/// Creates an object that ends the calls that get it, once that is requested.
///
/// NULL only after a panic.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_stop_new() -> Option<Box<HamdexStop>> {
    guard_or(None, || Some(Box::default()))
}

/// Requests that calls with this object end with `HAMDEX_ERROR_CODE_STOPPED`.
///
/// They end within a second. Does nothing if `stop` is NULL; safe in a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_stop_request(stop: Option<&HamdexStop>) {
    if let Some(HamdexStop(requested)) = stop {
        requested.store(true, Ordering::Relaxed);
    }
}

/// Frees the object; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_stop_free(stop: Option<Box<HamdexStop>>) {
    free(stop);
}

/// The host of a call that an object may stop.
#[derive(Debug, Clone)]
pub(crate) struct Stoppable(Option<Arc<AtomicBool>>);

impl Stoppable {
    pub(crate) fn by(stop: Option<&HamdexStop>) -> Self {
        Self(stop.map(|stop| Arc::clone(&stop.0)))
    }
}

impl Progress for Stoppable {
    fn cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|requested| requested.load(Ordering::Relaxed))
    }
}

impl Host for Stoppable {
    fn share(&self) -> Arc<dyn Host> {
        Arc::new(self.clone())
    }
}
