//! A client that ignores its denial costs the store one call per `max_age` or `retry_after`.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Algorithm, ManualClock, Quota, Source};
use tollgate_layers::{DenyCache, DenyCacheOptions};

use crate::stores::{Counted, Counter, Held, memory};

/// Ten seconds of twenty thousand hits each. What the store was asked, with the first admitted hit.
fn calls_of_an_attack(quota: Quota, max_age: Duration) -> u64 {
    let clock = ManualClock::default();
    let counted = Counted::new(memory(&clock));
    let options = DenyCacheOptions::new().max_age(max_age);
    let cache = DenyCache::with_options(counted.clone(), options)
        .unwrap()
        .clock(clock.clone());
    let counter = Counter::new(Algorithm::TokenBucket, quota);
    for _ in 0..200_000 {
        counter.hit(&cache, 1);
        clock.advance(Duration::from_micros(50));
    }
    counted.calls()
}

#[test]
fn a_denied_key_reaches_the_store_once_per_max_age() {
    let calls = calls_of_an_attack(Quota::per_hour(1), Duration::from_secs(1));
    assert_eq!(calls, 1 + 10);
}

#[test]
fn a_denied_key_reaches_the_store_once_per_retry_after_where_that_is_shorter() {
    // Ten fit at once. From then on one is admitted each tenth of a second, and the next one denied.
    let calls = calls_of_an_attack(Quota::per_second(10), Duration::from_secs(1));
    assert_eq!(calls, 10 + 1 + 2 * 99);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn beyond_that_only_calls_reach_it_that_began_before_the_first_denial_came_back() {
    let clock = ManualClock::default();
    let counted = Counted::new(memory(&clock));
    let held = Held::new(counted.clone());
    let cache = Arc::new(DenyCache::new(held.clone()));
    let counter = Arc::new(Counter::new(Algorithm::TokenBucket, Quota::per_hour(1)));
    let hit = |cache: &Arc<DenyCache<_>>| {
        let (cache, counter) = (Arc::clone(cache), Arc::clone(&counter));
        tokio::task::spawn_blocking(move || counter.hit(&*cache, 1))
    };
    assert!(hit(&cache).await.unwrap().is_allowed());
    // The first denial is on its way: nothing is known yet, and the others go to the store as well.
    let release = tokio::task::spawn_blocking(move || held.hold_next())
        .await
        .unwrap();
    let first = hit(&cache);
    while counted.calls() < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        assert!(!hit(&cache).await.unwrap().is_allowed());
    }
    let calls = counted.calls();
    assert_eq!(calls, 3, "the second denial was at hand for the third");
    release.send(()).unwrap();
    assert_eq!(first.await.unwrap().source(), Source::Store);
    let attackers: Vec<_> = (0..200).map(|_| hit(&cache)).collect();
    for attacker in attackers {
        assert_eq!(attacker.await.unwrap().source(), Source::DenyCache);
    }
    assert_eq!(counted.calls(), calls);
}
