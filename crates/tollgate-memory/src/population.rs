//! How many keys there are in all shards, how many there may be, and what became of them.

use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// Counts that all shards share.
#[derive(Debug)]
pub(crate) struct Population {
    max: usize,
    keys: AtomicUsize,
    /// Moves on as the clerk takes keys over, so that keys in use are reported to it often enough to stay.
    epoch: AtomicU16,
    evicted_live: AtomicU64,
    shared: AtomicU64,
}

impl Population {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            max,
            keys: AtomicUsize::new(0),
            epoch: AtomicU16::new(0),
            evicted_live: AtomicU64::new(0),
            shared: AtomicU64::new(0),
        }
    }

    pub(crate) const fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.keys() >= self.max
    }

    pub(crate) fn add(&self, keys: usize) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, keys: usize) {
        self.keys.fetch_sub(keys, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn epoch(&self) -> u16 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(crate) fn set_epoch(&self, epoch: u16) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    pub(crate) fn count_evicted_live(&self) {
        self.evicted_live.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn evicted_live(&self) -> u64 {
        self.evicted_live.load(Ordering::Relaxed)
    }

    pub(crate) fn count_shared(&self) {
        self.shared.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn shared(&self) -> u64 {
        self.shared.load(Ordering::Relaxed)
    }
}
