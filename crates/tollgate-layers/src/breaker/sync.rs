//! The atomics and the lock of the gate: the real ones, and in unit tests those that a model checker schedules.

#[cfg(not(test))]
pub(super) use parking_lot::Mutex;
#[cfg(test)]
pub(super) use shuttle::sync::atomic::AtomicU64;
#[cfg(not(test))]
pub(super) use std::sync::atomic::AtomicU64;

#[cfg(test)]
#[derive(Debug)]
pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

#[cfg(test)]
impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(super) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}
