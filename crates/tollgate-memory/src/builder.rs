//! Settings of a store.

use std::hash::BuildHasher;

use tollgate_core::{Clock, Error, ErrorKind, Result};

use crate::clock::TscClock;
use crate::store::MemoryStore;

/// Settings of a [`MemoryStore`].
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct MemoryStoreBuilder<C = TscClock, H = ahash::RandomState> {
    max_capacity: u64,
    clock: C,
    hasher: H,
}

impl MemoryStoreBuilder {
    pub(crate) fn new() -> Self {
        Self {
            max_capacity: MemoryStore::DEFAULT_MAX_CAPACITY,
            clock: TscClock::new(),
            hasher: ahash::RandomState::new(),
        }
    }
}

impl<C, H> MemoryStoreBuilder<C, H> {
    /// The most keys the store holds; [`MemoryStore::DEFAULT_MAX_CAPACITY`] unless set.
    ///
    /// For a moment it may hold a few more, since other threads make room at the same time.
    pub fn max_capacity(self, keys: u64) -> Self {
        Self {
            max_capacity: keys,
            ..self
        }
    }

    /// The clock that decides where a call names no instant; a [`TscClock`] unless set.
    ///
    /// [`SystemClock`](tollgate_core::SystemClock) reads the operating system's, and
    /// [`ManualClock`](tollgate_core::ManualClock) is for tests.
    pub fn clock<D: Clock>(self, clock: D) -> MemoryStoreBuilder<D, H> {
        MemoryStoreBuilder {
            max_capacity: self.max_capacity,
            clock,
            hasher: self.hasher,
        }
    }

    /// The hasher of keys; ahash with random seeds unless set.
    ///
    /// Keys are often chosen by strangers: a hasher without a secret seed lets them slow the store down, and lets them
    /// choose with whom they share an overflow cell.
    pub fn hasher<I: BuildHasher>(self, hasher: I) -> MemoryStoreBuilder<C, I> {
        MemoryStoreBuilder {
            max_capacity: self.max_capacity,
            clock: self.clock,
            hasher,
        }
    }
}

impl<C: Clock, H: BuildHasher + Send + Sync + 'static> MemoryStoreBuilder<C, H> {
    /// The store.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a capacity of zero or of more than 2^32 - 1 keys.
    pub fn build(self) -> Result<MemoryStore<C, H>> {
        let capacity = u32::try_from(self.max_capacity).unwrap_or(0);
        if capacity == 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a store holds 1 to {} keys, not {}",
                    u32::MAX,
                    self.max_capacity
                ),
            )
            .with_store("memory"));
        }
        Ok(MemoryStore::with_parts(capacity, self.clock, self.hasher))
    }
}
