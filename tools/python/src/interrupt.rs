//! Interrupts: long work runs without the GIL and ends when Python wants to raise something.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hamdex::{Error, Progress};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::{Failure, Result};

/// How long work may go on before signals are looked for again.
const LOOK: Duration = Duration::from_millis(100);

/// Tells work whether to go on.
#[derive(Debug, Default)]
pub(crate) struct Watch(Arc<AtomicBool>);

impl Watch {
    /// Fails once the work should stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::Cancelled.into()) } else { Ok(()) }
    }

    /// A flag that is true once the work should stop.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Progress for Watch {
    fn cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Does short work without the GIL.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    py.detach(|| pool()?.install(work))
}

/// Does long work without the GIL, and looks for signals meanwhile.
///
/// Signals are handled by the main thread alone, so the work is on another one. It is waited for
/// in any case: nothing goes on behind the caller's back.
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
            // A method by its name holds for one lifetime only.
            #[allow(clippy::redundant_closure_for_method_calls)]
            while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(LOOK) {
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

/// Threads of this process; those of a parent do not come along through a fork.
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
        .map_err(|e| Failure::usage(format!("no threads can be started: {e}")))?;
    let fresh = Arc::new(fresh);
    // Waiting for threads that are not there would never end.
    if let Some((_, parents)) = pool.replace((process, Arc::clone(&fresh))) {
        std::mem::forget(parents);
    }
    Ok(fresh)
}
