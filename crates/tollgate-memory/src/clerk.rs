//! The clerk: moka, which knows keys by their hashes only, and says when one that is in use should leave.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moka::notification::RemovalCause;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::population::Population;
use crate::shard::Promotion;

/// What the clerk keeps of a key: for how many microseconds it stays if nothing more is heard of it.
type Lifetime = u64;

/// Decides which of the keys in use leave: those that nobody uses any more, and the least recently used for capacity.
#[derive(Debug)]
pub(crate) struct Clerk {
    cache: Cache<u64, Lifetime, BuildIdentity>,
    taken: AtomicU64,
    /// Keys taken over per epoch.
    epoch_length: u64,
}

impl Clerk {
    /// The longest the clerk waits before it asks after a key again.
    const MAX_LIFETIME: Lifetime = 400 * 24 * 60 * 60 * 1_000_000;

    /// A clerk that keeps `capacity` keys, and reports by `release` the hash of each that has to leave: with `true` for
    /// want of room, with `false` because its time seems over.
    pub(crate) fn new(capacity: u64, release: impl Fn(u64, bool) + Send + Sync + 'static) -> Self {
        let listener = move |hash: std::sync::Arc<u64>, _, cause| match cause {
            RemovalCause::Replaced => {}
            RemovalCause::Size => release(*hash, true),
            RemovalCause::Expired | RemovalCause::Explicit => release(*hash, false),
        };
        let cache = Cache::builder()
            .max_capacity(capacity)
            // Another policy might refuse a newcomer, who would then be evicted at every hit.
            .eviction_policy(EvictionPolicy::lru())
            .expire_after(UntilExpiry)
            .eviction_listener(listener)
            .build_with_hasher(BuildIdentity);
        Self {
            cache,
            taken: AtomicU64::new(0),
            epoch_length: (capacity / 16).max(1),
        }
    }

    /// Takes a key over, or learns that it stays for longer.
    pub(crate) fn take(&self, (hash, lifetime): Promotion, population: &Population) {
        self.cache.insert(hash, lifetime.min(Self::MAX_LIFETIME));
        let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        let epoch = (taken / self.epoch_length) & u64::from(u16::MAX);
        population.set_epoch(u16::try_from(epoch).unwrap_or(0));
    }

    /// Hears that a key is in use. Returns whether it knew the key.
    pub(crate) fn touch(&self, hash: u64) -> bool {
        self.cache.get(&hash).is_some()
    }

    /// Carries out what has become due.
    pub(crate) fn run(&self) {
        self.cache.run_pending_tasks();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }
}

/// An entry leaves when its state is as good as never seen.
struct UntilExpiry;

impl moka::Expiry<u64, Lifetime> for UntilExpiry {
    fn expire_after_create(&self, _: &u64, lifetime: &Lifetime, _: Instant) -> Option<Duration> {
        Some(Duration::from_micros(*lifetime))
    }

    fn expire_after_update(
        &self,
        _: &u64,
        lifetime: &Lifetime,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(Duration::from_micros(*lifetime))
    }
}

/// Takes a hash for its own hash.
#[derive(Clone, Copy, Debug)]
struct BuildIdentity;

#[derive(Debug)]
struct Identity(u64);

impl BuildHasher for BuildIdentity {
    type Hasher = Identity;

    fn build_hasher(&self) -> Identity {
        Identity(0)
    }
}

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::sleep;

    use parking_lot::Mutex;

    use super::*;

    type Released = Arc<Mutex<Vec<(u64, bool)>>>;

    fn clerk(capacity: u64) -> (Clerk, Released) {
        let released = Released::default();
        let listener = Arc::clone(&released);
        let clerk = Clerk::new(capacity, move |hash, for_capacity| {
            listener.lock().push((hash, for_capacity));
        });
        (clerk, released)
    }

    #[test]
    fn for_want_of_room_the_least_recently_used_key_leaves() {
        let (clerk, released) = clerk(3);
        let population = Population::new(3);
        for hash in 1..=3 {
            clerk.take((hash, 60_000_000), &population);
        }
        clerk.run();
        assert!(clerk.touch(1));
        clerk.take((4, 60_000_000), &population);
        clerk.run();
        assert_eq!(*released.lock(), [(2, true)]);
        assert!(!clerk.touch(2));
    }

    /// The clerk keeps real time, so this takes some: until the short-lived key has left, however long that takes.
    #[test]
    fn a_key_leaves_when_its_own_time_is_over() {
        let (clerk, released) = clerk(10);
        let population = Population::new(10);
        clerk.take((1, 1_000), &population);
        clerk.take((2, 30 * 24 * 60 * 60 * 1_000_000), &population);
        while released.lock().is_empty() {
            sleep(Duration::from_millis(5));
            clerk.run();
        }
        assert_eq!(*released.lock(), [(1, false)]);
        assert!(clerk.touch(2), "a month is not over");
    }

    #[test]
    fn the_epoch_moves_on_with_every_sixteenth_of_the_capacity_taken_over() {
        let (clerk, _) = clerk(160);
        let population = Population::new(160);
        for hash in 0..25 {
            clerk.take((hash, 60_000_000), &population);
        }
        assert_eq!(population.epoch(), 2);
    }
}
