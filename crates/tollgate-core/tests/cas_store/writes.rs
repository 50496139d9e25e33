//! What is written, for how long, and what is not written at all.

use std::time::Duration;

use tollgate_core::{Algorithm, Capabilities, ManualClock, State, Store, Timestamp};

use crate::backend::{MapBackend, START};
use crate::{limiter, policy};

#[tokio::test]
async fn a_key_lives_until_it_is_as_good_as_never_seen() {
    for (algorithm, lives) in [
        (Algorithm::TokenBucket, Duration::from_secs(600)),
        (Algorithm::FixedWindow, Duration::from_secs(3_600)),
        (Algorithm::SlidingLog, Duration::from_secs(3_600)),
        (
            Algorithm::SlidingWindow,
            Duration::from_micros(3_600_000_001),
        ),
    ] {
        let limiter = limiter(MapBackend::new(), policy(algorithm, "6/hour"));
        let decision = limiter.hit("a").await.unwrap();
        assert_eq!(decision.reset_after(), lives, "{algorithm}");
        let [written] = &limiter.store().backend().writes()[..] else {
            panic!("one key is written once");
        };
        assert_eq!(written.expires_after, lives);
        assert!(State::decode(written.value.as_deref().unwrap()).is_ok());
    }
}

/// The backend counts by its own clock, which knows nothing of the instants that a test or a replay names.
#[tokio::test]
async fn at_a_named_instant_a_key_lives_a_minute_at_least() {
    let clock = ManualClock::new(Timestamp::from_micros(START).unwrap());
    let limiter = limiter(MapBackend::new(), policy(Algorithm::Gcra, "5/second")).clock(clock);
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    assert_eq!(
        limiter.store().backend().writes()[0].expires_after,
        Duration::from_secs(60)
    );
}

#[tokio::test]
async fn peeks_and_denied_hits_write_nothing() {
    let limiter = limiter(MapBackend::new(), policy(Algorithm::SlidingLog, "5/minute"));
    assert!(limiter.peek("a").await.unwrap().is_allowed());
    assert!(!limiter.hit_n("a", 6).await.unwrap().is_allowed());
    assert!(limiter.store().backend().is_empty());
    assert!(limiter.hit_n("a", 5).await.unwrap().is_allowed());
    assert!(!limiter.hit("a").await.unwrap().is_allowed());
    assert_eq!(limiter.store().backend().writes().len(), 1);
}

/// It lay ahead of the clock, and is moved back, so that the step locks nobody out.
#[tokio::test]
async fn a_hit_that_is_denied_after_a_clock_step_writes_the_earlier_time() {
    let limiter = limiter(
        MapBackend::new(),
        policy(Algorithm::FixedWindow, "5/minute"),
    );
    assert!(limiter.hit_n("a", 5).await.unwrap().is_allowed());
    let earlier = Timestamp::from_micros(START - 3_600_000_000).unwrap();
    limiter.store().backend().clock.set(earlier);
    assert!(!limiter.hit("a").await.unwrap().is_allowed());
    let written = limiter.store().backend().writes().pop().unwrap();
    let state = State::decode(written.value.as_deref().unwrap()).unwrap();
    assert_eq!(state.time(), Some(earlier));
    assert_eq!(written.expires_after, Duration::from_secs(60));
}

#[tokio::test]
async fn a_reset_deletes_the_key() {
    let limiter = limiter(MapBackend::new(), policy(Algorithm::Gcra, "5/second"));
    assert!(!limiter.reset("a").await.unwrap());
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    assert!(limiter.reset("a").await.unwrap());
    assert!(limiter.store().backend().is_empty());
    assert_eq!(limiter.store().capabilities(), Capabilities::ALL);
}
