//! The denials that are remembered, and how none is remembered that has been overtaken.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::notification::RemovalCause;
use moka::sync::Cache;
use parking_lot::Mutex;
use tollgate_core::Key;

use super::denial::Denial;
use crate::owned_key::OwnedKey;

/// How many counts of changes the keys share.
const STRIPES: u64 = 1024;

/// A bounded map from denied keys to what is known of them.
///
/// A denial that was judged before the key was reset, settled or charged may arrive after that. So whoever asks the
/// store first reads how many changes there were, and nothing is remembered if there has been one since. Keys share
/// these counts: then a denial may be forgotten for nothing, which costs one more call of the store.
#[derive(Debug)]
pub(super) struct Denials {
    cache: Cache<OwnedKey, Denial, ahash::RandomState>,
    hasher: ahash::RandomState,
    stripes: Box<[Stripe]>,
    store_name: &'static str,
}

#[derive(Debug, Default)]
struct Stripe {
    /// Changes of what is remembered of these keys, and of the keys themselves. Counted after they are done.
    changes: AtomicU64,
    changing: Mutex<()>,
}

/// How things stood when the store was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) changes: u64,
    /// Whether something was remembered, though it did not answer.
    pub(super) remembered: bool,
}

impl Denials {
    pub(super) fn new(capacity: u64, store_name: &'static str) -> Self {
        let hasher = ahash::RandomState::new();
        let cache = Cache::builder()
            .max_capacity(capacity)
            .expire_after(ByLife)
            .eviction_listener(move |_, _, cause| {
                if cause == RemovalCause::Size {
                    let evictions = metrics::counter!("tollgate_deny_cache_evictions_total", "store" => store_name);
                    evictions.increment(1);
                }
            })
            .build_with_hasher(hasher.clone());
        Self {
            cache,
            hasher,
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            store_name,
        }
    }

    fn stripe(&self, key: &Key<'_>) -> &Stripe {
        let index = usize::try_from(self.hasher.hash_one(key) % STRIPES);
        let index = index.expect("a remainder of a small number is small");
        &self.stripes[index]
    }

    /// What is remembered of `key`, and how often that has changed.
    pub(super) fn look_up(&self, key: &Key<'_>) -> (Seen, Option<Denial>) {
        // Read first: what is remembered after this is counted as a change.
        let changes = self.stripe(key).changes.load(Ordering::Acquire);
        let denial = self.cache.get(key);
        let remembered = denial.is_some();
        (
            Seen {
                changes,
                remembered,
            },
            denial,
        )
    }

    /// Remembers `denial`, unless something changed after it was asked for.
    pub(super) fn remember(&self, key: &Key<'_>, denial: Denial, seen: Seen) {
        let stripe = self.stripe(key);
        let _changing = stripe.changing.lock();
        if stripe.changes.load(Ordering::Relaxed) != seen.changes {
            return;
        }
        self.cache.insert(OwnedKey::from(key), denial);
        stripe.changes.fetch_add(1, Ordering::Release);
        let entries = u32::try_from(self.cache.entry_count()).unwrap_or(u32::MAX);
        metrics::gauge!("tollgate_deny_cache_entries", "store" => self.store_name)
            .set(f64::from(entries));
    }

    /// Forgets what was known of `key`, and what is still on its way.
    pub(super) fn forget(&self, key: &Key<'_>) {
        let stripe = self.stripe(key);
        let _changing = stripe.changing.lock();
        self.cache.invalidate(key);
        stripe.changes.fetch_add(1, Ordering::Release);
    }

    /// [`forget`](Self::forget), for one who has looked: most keys are in good standing, and there is nothing to forget.
    pub(super) fn forget_seen(&self, key: &Key<'_>, seen: Seen) {
        let stripe = self.stripe(key);
        let _changing = stripe.changing.lock();
        if seen.remembered || stripe.changes.load(Ordering::Relaxed) != seen.changes {
            self.cache.invalidate(key);
        }
        stripe.changes.fetch_add(1, Ordering::Release);
    }

    /// About how many keys are remembered.
    pub(super) fn len(&self) -> u64 {
        self.cache.run_pending_tasks();
        self.cache.entry_count()
    }
}

/// Lets go of a denial some time after it has ceased to answer.
///
/// That only frees the room: whether it answers is read off itself, by a clock that may go slower than this one.
#[derive(Debug)]
struct ByLife;

impl ByLife {
    const LEAST: Duration = Duration::from_secs(10);

    fn of(denial: &Denial) -> Option<Duration> {
        Some(denial.lives().max(Self::LEAST))
    }
}

impl Expiry<OwnedKey, Denial> for ByLife {
    fn expire_after_create(&self, _: &OwnedKey, denial: &Denial, _: Instant) -> Option<Duration> {
        Self::of(denial)
    }

    fn expire_after_read(
        &self,
        _: &OwnedKey,
        _: &Denial,
        _: Instant,
        left: Option<Duration>,
        _: Instant,
    ) -> Option<Duration> {
        left
    }

    fn expire_after_update(
        &self,
        _: &OwnedKey,
        denial: &Denial,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Self::of(denial)
    }
}
