//! What is remembered is bounded, and options out of range are refused.

use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tollgate_core::{
    Algorithm, Batch, ErrorKind, Limiter, ManualClock, Policy, Quota, SharedStore, Source, Store,
};
use tollgate_layers::{DenyCache, DenyCacheOptions};

use crate::stores::{Counter, hit, memory};

#[test]
fn a_flood_of_denied_keys_keeps_to_the_capacity_and_is_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let clock = ManualClock::default();
        let options = DenyCacheOptions::new().capacity(50).name("shared");
        let cache = DenyCache::with_options(memory(&clock), options).unwrap();
        let policy = Policy::new("once", Algorithm::FixedWindow, Quota::per_hour(1)).unwrap();
        let limiter = Limiter::new(cache, policy);
        futures::executor::block_on(async {
            for caller in 0..1_000 {
                let subject = format!("user:{caller}");
                let _ = limiter.hit(&subject).await.unwrap();
                assert!(!limiter.hit(&subject).await.unwrap().is_allowed());
            }
        });
        assert!(limiter.store().remembered() <= 50);
    });
    let metrics = snapshotter.snapshot().into_vec();
    let value = |name: &str| {
        let found = metrics.iter().find(|(key, ..)| key.key().name() == name);
        let (key, _, _, value) = found.unwrap_or_else(|| panic!("no {name}"));
        let labels: Vec<_> = key
            .key()
            .labels()
            .map(|label| (label.key(), label.value()))
            .collect();
        assert_eq!(labels, [("store", "shared")]);
        value
    };
    let DebugValue::Counter(evictions) = value("tollgate_deny_cache_evictions_total") else {
        panic!("a counter");
    };
    assert!(*evictions >= 900, "{evictions}");
    let DebugValue::Gauge(entries) = value("tollgate_deny_cache_entries") else {
        panic!("a gauge");
    };
    assert!(entries.into_inner() > 0.0);
}

#[test]
fn a_shared_store_is_answered_from_memory_without_a_future() {
    let clock = ManualClock::default();
    let counter = Counter::new(Algorithm::Gcra, Quota::per_hour(1));
    let cache = Arc::new(DenyCache::new(memory(&clock)));
    let shared = SharedStore::new(Arc::clone(&cache));
    counter.hit(&shared, 1);
    counter.hit(&shared, 1);
    let check = counter.check(hit(1));
    let answer = cache.apply_now(&Batch::of_one(&check));
    assert_eq!(answer.unwrap().unwrap().source(), Source::DenyCache);
}

#[test]
fn an_admitted_hit_and_a_denial_from_memory_touch_no_heap() {
    let clock = ManualClock::default();
    let cache = DenyCache::new(memory(&clock)).clock(clock);
    let counter = Counter::new(Algorithm::TokenBucket, Quota::per_hour(100));
    // The least of ten, since now and then one of them does the chores of the stores inside.
    let allocations = |source, allowed| {
        let mut least = u64::MAX;
        for _ in 0..10 {
            let calls = measure(|| {
                let answer = counter.hit(&cache, 1);
                assert_eq!((answer.source(), answer.is_allowed()), (source, allowed));
            });
            least = least.min(calls.count_total);
        }
        least
    };
    assert_eq!(allocations(Source::Store, true), 0);
    assert!(counter.hit(&cache, 90).is_allowed());
    assert!(!counter.hit(&cache, 1).is_allowed());
    assert_eq!(allocations(Source::DenyCache, false), 0);
}

#[test]
fn options_out_of_range_are_refused_with_the_range() {
    let refused = |options: DenyCacheOptions| {
        let error = DenyCache::with_options(memory(&ManualClock::default()), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    let options = DenyCacheOptions::new();
    assert_eq!(
        refused(options.capacity(0)),
        "invalid input: a deny cache holds at least 1 key, not 0"
    );
    assert_eq!(
        refused(options.max_age(Duration::ZERO)),
        "invalid input: the greatest age of a denial lies between 1ms and 3600s, not at 0ns"
    );
    assert!(refused(options.max_age(Duration::from_secs(3_601))).contains("not at 3601s"));
}
