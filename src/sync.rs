//! Locks of the write protocol, which a model checker can replace.
//!
//! With the feature `model`, used only by tests, threads switch only at locks, waits and atomics,
//! and shuttle chooses the order. Other builds use std's types directly.

#[cfg(not(feature = "model"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard, atomic};
#[cfg(not(feature = "model"))]
pub(crate) use std::thread_local;

#[cfg(feature = "model")]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard, atomic};
#[cfg(feature = "model")]
pub(crate) use shuttle::thread_local;

/// Lets a model checker switch threads at a store call, which contains none of these locks.
#[inline]
pub(crate) fn pause() {
    #[cfg(feature = "model")]
    atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
}
