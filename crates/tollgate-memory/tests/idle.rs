//! What is as good as never seen leaves, and nothing else does.

mod support;

use std::time::Duration;

use support::{Limit, at, hit, judge};
use tollgate_memory::{Algorithm, ManualClock, MemoryStore};

const MINUTE: Duration = Duration::from_secs(60);

/// Lets time pass as a service sees it: a hit every eighth of a second on one busy key.
fn pass(store: &MemoryStore<ManualClock>, clock: &ManualClock, time: Duration) {
    let busy = Limit::of(Algorithm::TokenBucket, "1000000/second");
    let step = Duration::from_millis(125);
    for _ in 0..time.as_millis() / step.as_millis() {
        clock.advance(step);
        let _ = judge(store, &busy, b"busy", hit(1), None);
    }
}

#[test]
fn keys_that_nobody_uses_leave_within_minutes_of_their_reset() {
    for algorithm in Algorithm::ALL {
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(clock.clone()).build().unwrap();
        let limit = Limit::of(algorithm, "5/minute");
        for key in 0..1_000_u32 {
            for _ in 0..3 {
                let _ = judge(&store, &limit, &key.to_be_bytes(), hit(1), None);
            }
        }
        assert_eq!(store.stats().keys, 1_000);
        pass(&store, &clock, 4 * MINUTE);
        assert_eq!(store.stats().keys, 1, "{algorithm}: the busy one");
    }
}

#[test]
fn idleness_is_per_key_a_month_is_not_over_after_an_hour_and_a_second_is() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build().unwrap();
    let month = Limit::of(Algorithm::FixedWindow, "1/30 days");
    let second = Limit::of(Algorithm::SlidingWindow, "1/second");
    assert!(judge(&store, &month, b"key", hit(1), None).is_allowed());
    assert!(judge(&store, &second, b"key", hit(1), None).is_allowed());
    pass(&store, &clock, 60 * MINUTE);
    assert_eq!(store.stats().keys, 2, "the month and the busy key");
    assert!(!judge(&store, &month, b"key", hit(1), None).is_allowed());
    clock.advance(Duration::from_secs(30 * 24 * 60 * 60));
    assert!(judge(&store, &month, b"key", hit(1), None).is_allowed());
}

#[test]
fn a_key_judged_at_named_instants_outlives_them() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build().unwrap();
    let limit = Limit::of(Algorithm::TokenBucket, "1/second");
    // Long over by the store's clock.
    assert!(judge(&store, &limit, b"key", hit(1), Some(at(5))).is_allowed());
    pass(&store, &clock, Duration::from_secs(59));
    assert!(!judge(&store, &limit, b"key", hit(1), Some(at(6))).is_allowed());
    pass(&store, &clock, 4 * MINUTE);
    assert_eq!(store.stats().keys, 1, "the busy one");
}
