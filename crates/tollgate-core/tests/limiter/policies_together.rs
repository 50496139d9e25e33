//! Several policies in one call: all are charged or none, and the answer names the one that binds.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Algorithm, Limiter, Policies, Policy};

use crate::stores::MapStore;

fn policy(name: &str, algorithm: Algorithm, quota: &str) -> Policy {
    Policy::new(name, algorithm, quota.parse().expect("legal")).expect("legal")
}

fn limiter(policies: impl IntoIterator<Item = Policy>) -> Limiter<Arc<MapStore>> {
    Limiter::new(MapStore::shared(), Policies::new(policies).expect("legal"))
}

fn remaining(decision: &tollgate_core::Decision<'_>) -> Vec<u64> {
    decision
        .each()
        .map(|decision| decision.remaining())
        .collect()
}

#[tokio::test]
async fn a_policy_that_denies_keeps_the_others_from_being_charged() {
    let limiter = limiter([
        policy("tight", Algorithm::FixedWindow, "1/10 seconds"),
        policy("wide", Algorithm::FixedWindow, "10/10 seconds"),
    ]);
    let admitted = limiter.hit("a").await.unwrap();
    assert!(admitted.is_allowed());
    assert_eq!(remaining(&admitted), [0, 9]);
    let denied = limiter.hit("a").await.unwrap();
    assert!(!denied.is_allowed());
    assert_eq!(remaining(&denied), [0, 9]);
    assert_eq!(remaining(&limiter.peek("a").await.unwrap()), [0, 9]);
    let violated: Vec<_> = denied
        .violated()
        .map(|decision| decision.policy().name())
        .collect();
    assert_eq!(violated, ["tight"]);
}

#[tokio::test]
async fn a_reservation_that_one_of_two_limits_denies_holds_nothing() {
    let limiter = limiter([
        policy("ten", Algorithm::SlidingLog, "10/minute"),
        policy("three", Algorithm::Gcra, "3/minute"),
    ]);
    let reservation = limiter.reserve("a", 5).await.unwrap();
    assert!(!reservation.decision().is_allowed());
    assert_eq!(remaining(reservation.decision()), [10, 3]);
    assert!(reservation.into_receipt().is_none());
    assert_eq!(limiter.store().keys(), 0);
}

#[tokio::test]
async fn among_admitting_policies_the_one_with_the_fewest_units_left_binds() {
    let limiter = limiter([
        policy("burst", Algorithm::TokenBucket, "10/second"),
        policy("sustained", Algorithm::SlidingWindow, "12/hour"),
    ]);
    assert_eq!(
        limiter
            .hit_n("a", 5)
            .await
            .unwrap()
            .binding()
            .policy()
            .name(),
        "burst"
    );
    limiter.store().clock.advance(Duration::from_secs(1));
    let decision = limiter.hit_n("a", 5).await.unwrap();
    assert_eq!(decision.binding().policy().name(), "sustained");
    assert_eq!((decision.limit(), decision.remaining()), (12, 2));
}

#[tokio::test]
async fn of_two_policies_with_as_many_units_left_the_first_binds() {
    let limiter = limiter([
        policy("first", Algorithm::TokenBucket, "10/second"),
        policy("second", Algorithm::TokenBucket, "10/minute"),
    ]);
    assert_eq!(
        limiter.hit("a").await.unwrap().binding().policy().name(),
        "first"
    );
}

#[tokio::test]
async fn among_violated_policies_the_one_that_takes_longest_binds() {
    let limiter = limiter([
        policy("short", Algorithm::FixedWindow, "5/second"),
        policy("long", Algorithm::FixedWindow, "5/minute"),
        policy("wide", Algorithm::FixedWindow, "1000/minute"),
    ]);
    assert!(limiter.hit_n("a", 5).await.unwrap().is_allowed());
    let denied = limiter.hit("a").await.unwrap();
    assert_eq!(denied.binding().policy().name(), "long");
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(60)));
    assert_eq!(denied.violated().count(), 2);

    // Whoever waits as long is admitted by all of them.
    limiter
        .store()
        .clock
        .advance(Duration::from_micros(59_999_999));
    assert!(!limiter.hit("a").await.unwrap().is_allowed());
    limiter.store().clock.advance(Duration::from_micros(1));
    assert!(limiter.hit("a").await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_cost_that_never_fits_one_policy_binds_before_any_wait() {
    let limiter = limiter([
        policy("wait", Algorithm::FixedWindow, "10/400 days"),
        policy("never", Algorithm::FixedWindow, "3/second"),
    ]);
    for _ in 0..3 {
        assert!(limiter.hit_n("a", 3).await.unwrap().is_allowed());
        limiter.store().clock.advance(Duration::from_secs(1));
    }
    let denied = limiter.hit_n("a", 4).await.unwrap();
    assert!(denied.is_never());
    assert_eq!(denied.binding().policy().name(), "never");
    assert_eq!(denied.violated().count(), 2);
}

#[tokio::test]
async fn the_delay_is_the_longest_of_the_queues_and_none_if_anybody_denies() {
    let limiter = limiter([
        policy("slow", Algorithm::LeakyBucket, "10/10 seconds"),
        policy("fast", Algorithm::LeakyBucket, "10/second"),
        policy("three", Algorithm::FixedWindow, "3/minute"),
    ]);
    assert!(limiter.hit_n("a", 2).await.unwrap().is_allowed());
    assert_eq!(
        limiter.hit("a").await.unwrap().delay(),
        Duration::from_secs(2)
    );
    let denied = limiter.hit("a").await.unwrap();
    assert!(!denied.is_allowed());
    assert_eq!(denied.delay(), Duration::ZERO);
    assert_eq!(denied.to_report().delay, Duration::ZERO);
}

#[tokio::test]
async fn a_reset_forgets_the_subject_under_every_policy() {
    let limiter = limiter([
        policy("one", Algorithm::FixedWindow, "5/minute"),
        policy("two", Algorithm::SlidingLog, "5/minute"),
    ]);
    assert!(limiter.hit_n("a", 5).await.unwrap().is_allowed());
    assert!(limiter.reset("a").await.unwrap());
    assert!(!limiter.reset("a").await.unwrap());
    assert_eq!(remaining(&limiter.peek("a").await.unwrap()), [5, 5]);
}

#[tokio::test]
async fn the_calls_without_a_future_judge_all_policies_too() {
    let limiter = limiter([
        policy("one", Algorithm::Gcra, "5/minute"),
        policy("two", Algorithm::SlidingLog, "2/minute"),
    ]);
    assert!(limiter.hit_n_now("a", 2).unwrap().is_allowed());
    let denied = limiter.hit_now("a").unwrap();
    assert_eq!(
        (denied.is_allowed(), remaining(&denied)),
        (false, vec![3, 0])
    );
    assert_eq!(remaining(&limiter.peek_now("a").unwrap()), [3, 0]);
}
