//! Exclusion: locks whose holder does everything alone, on its own thread.
//!
//! A thread that waits within a `join` of rayon runs other jobs of the pool meanwhile. Such a job
//! may ask for the lock that the thread holds, and then the thread waits for itself. A plain
//! thread that holds a lock and waits for the pool never ends either, if all workers ask for the
//! lock. So whoever holds a [`Lock`] starts nothing on the pool and waits for no disk. Builds with
//! debug assertions check this wherever work is shared out; others do the work on the one thread.
//!
//! Source: issue 592 of rayon, "Using rayon under a Mutex can lead to deadlocks".

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard, thread_local};

thread_local! {
    /// Exclusions of this thread.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// Those under which a host's code runs.
    static LENT: Cell<u32> = const { Cell::new(0) };
}

/// Keeps its thread from sharing out work, until it is dropped on that thread.
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

/// A mutex whose holder works alone.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// A [`Lock`] that is held.
#[derive(Debug)]
pub(crate) struct Locked<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> Lock<T> {
    /// Waits for the lock; a thread that holds one asks for no other.
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

/// Fails in builds with debug assertions if this thread holds a lock, before it waits for long.
pub(crate) fn require_none() {
    debug_assert_eq!(
        HELD.with(Cell::get),
        0,
        "a thread that holds a lock waits for something else"
    );
}

/// Returns true where work must not be shared out: below a host's code that is called under a lock.
pub(crate) fn alone() -> bool {
    require_none();
    HELD.with(Cell::get) > 0 || LENT.with(Cell::get) > 0
}

/// Runs a host's code under the locks of this thread; what it asks for is done on this thread.
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
    fn a_holder_is_alone_below_code_of_a_host_and_nowhere_else() {
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
    fn sharing_out_work_under_a_lock_is_a_fault_of_the_library() {
        let lock = Lock::<()>::default();
        let caught = std::panic::catch_unwind(|| {
            let _held = lock.lock();
            alone()
        });
        assert!(caught.is_err());
        assert!(!alone(), "the lock is free after the panic");
    }
}
