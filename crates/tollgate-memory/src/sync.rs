//! The lock around a shard: the real one, and the one a model checker drives.

use std::ops::DerefMut;

/// A mutual exclusion lock.
pub(crate) trait Lock<T> {
    /// Gives access until it is dropped.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;

    fn new(value: T) -> Self;

    fn lock(&self) -> Self::Guard<'_>;
}

/// The real lock spins a little and then yields its turn.
///
/// It is held for some twenty nanoseconds, and a shard is one of many, so waiting is rare and short. In return it is
/// given back by a plain store, which a lock that parks threads cannot do: a quarter of a hit.
pub(crate) type RealLock<T> = spin::mutex::SpinMutex<T, spin::Yield>;

impl<T> Lock<T> for RealLock<T> {
    type Guard<'a>
        = spin::mutex::SpinMutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }
}
