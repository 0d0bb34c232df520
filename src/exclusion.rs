//! Locks whose holders do all their work on their own thread.
//!
//! A thread that waits in a rayon `join` runs other jobs of the pool in the meantime. If such a job
//! asks for a lock that the thread holds, the thread waits for itself. A thread outside the pool
//! that holds a lock and waits for the pool also deadlocks if every worker asks for that lock.
//! Therefore the holder of a [`Lock`] starts no job on the pool and waits for no disk. Builds with
//! debug assertions check this when work is distributed; other builds then do the work on the
//! calling thread.
//!
//! Source: rayon issue 592, "Using rayon under a Mutex can lead to deadlocks".

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard, thread_local};

thread_local! {
    /// Number of [`Held`] values of this thread.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// How many of them are suspended while a host's code runs.
    static LENT: Cell<u32> = const { Cell::new(0) };
}

/// Keeps the current thread from distributing work until it is dropped there.
#[derive(Debug)]
pub(crate) struct Held(PhantomData<*const ()>);

impl Held {
    pub(crate) fn new() -> Self {
        HELD.with(|held| held.set(held.get() + 1));
        Self(PhantomData)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.with(|held| held.set(held.get() - 1));
    }
}

/// A mutex whose holder distributes no work.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// A [`Lock`] that is held.
#[derive(Debug)]
pub(crate) struct Locked<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> Lock<T> {
    /// Locks the mutex; panics in debug builds if the thread already holds a [`Lock`].
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        require_none();
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { guard, _held: Held::new() }
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Panics in debug builds if this thread holds a lock; call it before a long wait.
pub(crate) fn require_none() {
    debug_assert_eq!(HELD.with(Cell::get), 0, "a thread must not wait while it holds a lock");
}

/// Returns true if work must stay on this thread: inside a host's callback under a lock.
pub(crate) fn alone() -> bool {
    require_none();
    HELD.with(Cell::get) > 0 || LENT.with(Cell::get) > 0
}

/// Runs a host's callback under the locks of this thread; its work stays on this thread.
#[cfg(any(test, feature = "rocksdb-interop"))]
pub(crate) fn lend<R>(body: impl FnOnce() -> R) -> R {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            HELD.with(|held| held.set(held.get() + self.0));
            LENT.with(|lent| lent.set(lent.get() - self.0));
        }
    }
    let held = HELD.with(|held| held.replace(0));
    LENT.with(|lent| lent.set(lent.get() + held));
    let _back = Back(held);
    body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_holder_works_alone_only_inside_a_host_callback() {
        let (lock, other) = (Lock::<u32>::default(), Lock::<u32>::default());
        assert!(!alone());
        let mut held = lock.lock();
        *held += 1;
        let seen = lend(|| {
            let nested = *other.lock();
            (alone(), nested)
        });
        assert_eq!(seen, (true, 0));
        assert_eq!(*held, 1);
        let elsewhere = std::thread::spawn(alone).join();
        assert!(matches!(elsewhere, Ok(false)));
        drop(held);
        assert!(!alone());
    }

    #[test]
    #[cfg(debug_assertions)]
    fn distributing_work_under_a_lock_panics_in_debug_builds() {
        let lock = Lock::<()>::default();
        let caught = std::panic::catch_unwind(|| {
            let _held = lock.lock();
            alone()
        });
        assert!(caught.is_err());
        assert!(!alone(), "the lock is free after the panic");
    }
}
