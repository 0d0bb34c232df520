//! The locks of the write protocol, for which a model checker may stand in.
//!
//! With the feature `model`, which only tests enable, threads change at locks, waits and atomics
//! alone, and shuttle chooses the order. Everything else uses std's directly.

#[cfg(not(feature = "model"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard, atomic};
#[cfg(not(feature = "model"))]
pub(crate) use std::thread_local;

#[cfg(feature = "model")]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard, atomic};
#[cfg(feature = "model")]
pub(crate) use shuttle::thread_local;

/// Lets a model checker change threads; called where the store is, which has none of its locks.
#[inline]
pub(crate) fn pause() {
    #[cfg(feature = "model")]
    atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
}
