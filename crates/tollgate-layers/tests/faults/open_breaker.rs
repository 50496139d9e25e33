//! A store that is left alone.

use std::time::{Duration, Instant};

use tollgate_core::{FailureMode, SharedStore};
use tollgate_faults::{Counts, Fault, Proxy};
use tollgate_layers::{Breaker, BreakerOptions, BreakerState, Timeout};

use crate::backend::Backend;
use crate::load::limiter;
use crate::postgres::Postgres;
use crate::redis::Redis;

#[tokio::test]
async fn an_open_breaker_sends_redis_nothing() {
    an_open_breaker_sends_nothing::<Redis>().await;
}

#[tokio::test]
async fn an_open_breaker_sends_postgres_nothing() {
    an_open_breaker_sends_nothing::<Postgres>().await;
}

async fn an_open_breaker_sends_nothing<B: Backend>() {
    const CALLS: u32 = 10_000;
    let server = B::start().await;
    let proxy = server.proxy();
    // No probe falls into the time that is watched.
    let hour = Duration::from_secs(3600);
    let options = BreakerOptions::new().backoff(hour, hour);
    let store = Timeout::new(B::store(proxy.port()));
    let breaker = std::sync::Arc::new(Breaker::with_options(store, options).unwrap());
    let limiter = limiter(
        &SharedStore::new(std::sync::Arc::clone(&breaker)),
        "open",
        FailureMode::Closed,
    );
    assert!(!limiter.hit("a").await.unwrap().is_degraded());
    proxy.set(Fault::Silence).unwrap();
    while breaker.state() == BreakerState::Closed {
        assert!(limiter.hit("a").await.unwrap().is_degraded());
    }
    let before = settled(&proxy).await;
    for _ in 0..CALLS {
        let decision = limiter.hit("a").await.unwrap();
        let error = decision.error().unwrap();
        assert!(!error.may_have_charged(), "{error}");
    }
    assert_eq!(settled(&proxy).await, before);
}

/// The counts once nothing has come for a while: a call that was given up may still leave something to be sent.
async fn settled(proxy: &Proxy) -> Counts {
    let (mut counts, mut since) = (proxy.counts(), Instant::now());
    while since.elapsed() < Duration::from_millis(300) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if proxy.counts() != counts {
            (counts, since) = (proxy.counts(), Instant::now());
        }
    }
    counts
}
