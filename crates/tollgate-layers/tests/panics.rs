//! A store that panics leaves nothing of a layer behind that is stuck.

mod support;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use support::{FarStore, Mood};
use tokio::time::advance;
use tollgate_core::{
    Batch, Capabilities, ErrorKind, Key, Limiter, Quota, Result, Source, Store, Verdicts,
};
use tollgate_layers::{
    Breaker, BreakerOptions, BreakerState, DenyCache, Fallback, Instrumented, Share,
};

/// A store that panics when it is told to, after it has been waited for.
#[derive(Clone, Debug)]
struct Panicking {
    store: FarStore,
    panics: Arc<AtomicBool>,
}

impl Panicking {
    fn new() -> Self {
        Self {
            store: FarStore::new(),
            panics: Arc::default(),
        }
    }

    fn panics(&self, panics: bool) {
        self.panics.store(panics, Ordering::SeqCst);
    }
}

impl Store for Panicking {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let answer = self.store.apply(batch).await;
        assert!(!self.panics.load(Ordering::SeqCst), "it was told to");
        answer
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

async fn hit_that_panics<S: Store>(limiter: &Limiter<S>) {
    assert!(
        AssertUnwindSafe(limiter.hit("bob"))
            .catch_unwind()
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_makes_way_for_the_next() {
    let store = Panicking::new();
    let options = BreakerOptions::new().failures(1);
    let breaker = Breaker::with_options(store.clone(), options).unwrap();
    let limiter = Limiter::new(breaker, Quota::per_hour(10));
    store.store.be(Mood::Fails(ErrorKind::Unavailable));
    assert!(limiter.hit("bob").await.unwrap().is_degraded());
    assert_eq!(limiter.store().state(), BreakerState::Open);
    store.store.be(Mood::Well);
    store.panics(true);
    advance(Duration::from_secs(1)).await;
    hit_that_panics(&limiter).await;
    assert_eq!(limiter.store().state(), BreakerState::Open);
    store.panics(false);
    assert_eq!(limiter.hit("bob").await.unwrap().source(), Source::Store);
    assert_eq!(limiter.store().state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_peek_that_panics_leaves_the_debt_to_be_paid_by_the_next_call() {
    let store = Panicking::new();
    let limiter = Limiter::new(
        Fallback::new(store.clone(), Share::WHOLE),
        Quota::per_hour(10),
    );
    store.store.be(Mood::Fails(ErrorKind::Unavailable));
    assert_eq!(limiter.hit("bob").await.unwrap().source(), Source::Fallback);
    store.store.be(Mood::Well);
    store.panics(true);
    hit_that_panics(&limiter).await;
    assert_eq!(limiter.store().debts(), 1);
    store.panics(false);
    let decision = limiter.hit("bob").await.unwrap();
    assert_eq!(
        (decision.source(), decision.remaining()),
        (Source::Store, 8)
    );
    assert_eq!(limiter.store().debts(), 0);
}

#[tokio::test]
async fn a_settlement_that_panics_makes_a_deny_cache_forget_the_key() {
    let store = Panicking::new();
    let limiter = Limiter::new(
        Instrumented::new(DenyCache::new(store.clone())),
        Quota::per_hour(1),
    );
    let reservation = limiter.reserve("bob", 1).await.unwrap();
    let receipt = reservation.into_receipt().unwrap();
    assert_eq!(limiter.hit("bob").await.unwrap().source(), Source::Store);
    assert_eq!(
        limiter.hit("bob").await.unwrap().source(),
        Source::DenyCache
    );
    store.panics(true);
    let settling = AssertUnwindSafe(limiter.settle(receipt, 0)).catch_unwind();
    assert!(settling.await.is_err());
    store.panics(false);
    assert!(limiter.hit("bob").await.unwrap().is_allowed());
}
