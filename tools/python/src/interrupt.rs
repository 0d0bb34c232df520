//! Interrupts: long work runs without the GIL and stops if a signal handler raises.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hamdex::Progress;
use hamdex_io::host::Host;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::{Failure, Result};

/// Interval between two checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// A flag that cancels work.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch(Arc<AtomicBool>);

impl Watch {
    /// Returns the flag, which is true once the work is cancelled.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Progress for Watch {
    fn cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Nothing is shown; the counts of a call are in its result.
impl Host for Watch {
    fn share(&self) -> Arc<dyn Host> {
        Arc::new(self.clone())
    }
}

/// Runs short work without the GIL.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    py.detach(|| pool()?.install(work))
}

/// Runs long work without the GIL and checks for signals in the meantime.
///
/// Only the main thread handles signals, so the work runs on another thread. The call always waits
/// for it, so no work continues in the background.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Watch) -> Result<T> + Send,
) -> Result<T> {
    let watch = Watch::default();
    py.detach(|| {
        let pool = pool()?;
        std::thread::scope(|scope| {
            let (done, waiting) = mpsc::channel::<()>();
            let (watch, pool) = (&watch, &pool);
            let worker = scope.spawn(move || {
                let result = pool.install(|| work(watch));
                drop(done);
                result
            });
            let mut raised = None;
            // A method path has one lifetime only, which is too strict here.
            #[allow(clippy::redundant_closure_for_method_calls)]
            while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(SIGNAL_INTERVAL) {
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    watch.0.store(true, Relaxed);
                    raised = Some(error);
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map_or(result, |error| Err(Failure::Python(error)))
        })
    })
}

/// Returns the thread pool of this process; a fork does not inherit the parent's threads.
fn pool() -> Result<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, pool)) = &*pool
        && *owner == process
    {
        return Ok(Arc::clone(pool));
    }
    let fresh = ThreadPoolBuilder::new()
        .thread_name(|n| format!("hamdex-{n}"))
        .build()
        .map_err(|e| Failure::usage(format!("cannot start threads: {e}")))?;
    let fresh = Arc::new(fresh);
    // Dropping the pool of the parent would wait for threads that do not exist here.
    if let Some((_, parents)) = pool.replace((process, Arc::clone(&fresh))) {
        std::mem::forget(parents);
    }
    Ok(fresh)
}
