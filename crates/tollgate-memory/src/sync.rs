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

impl<T> Lock<T> for parking_lot::Mutex<T> {
    type Guard<'a>
        = parking_lot::MutexGuard<'a, T>
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
