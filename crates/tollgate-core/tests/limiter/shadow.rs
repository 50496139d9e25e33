//! Policies in shadow mode: judged, counted and reported, never enforced.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{
    Algorithm, Decision, ErrorKind, Limiter, Policies, Policy, Quota, SharedStore, Source,
};

use crate::stores::{MapStore, start};

fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, Algorithm::FixedWindow, quota.parse().expect("legal")).expect("legal")
}

fn limiter(policies: impl IntoIterator<Item = Policy>) -> Limiter<Arc<MapStore>> {
    Limiter::new(MapStore::shared(), Policies::new(policies).expect("legal"))
}

/// One shadow of three units a minute between two limits of ten and five.
fn three_in_shadow() -> Limiter<Arc<MapStore>> {
    limiter([
        policy("ten", "10/minute"),
        policy("three", "3/minute").shadow(),
        policy("five", "5/minute"),
    ])
}

fn each(decision: &Decision<'_>) -> Vec<(bool, u64)> {
    let each = decision.each();
    each.map(|decision| (decision.is_allowed(), decision.remaining()))
        .collect()
}

fn shadow_violated<'a>(decision: &Decision<'a>) -> Vec<&'a str> {
    let violated = decision.shadow_violated();
    violated.map(|decision| decision.policy().name()).collect()
}

#[tokio::test]
async fn a_shadow_that_would_deny_is_reported_and_denies_nobody() {
    let limiter = three_in_shadow();
    let decision = limiter.hit_n("a", 3).await.unwrap();
    assert_eq!(each(&decision), [(true, 7), (true, 0), (true, 2)]);
    assert!(shadow_violated(&decision).is_empty());

    let decision = limiter.hit("a").await.unwrap();
    assert!(decision.is_allowed());
    assert_eq!(each(&decision), [(true, 6), (false, 0), (true, 1)]);
    assert_eq!(shadow_violated(&decision), ["three"]);
    assert_eq!(decision.violated().count(), 0);
    assert_eq!(decision.retry_after(), Some(Duration::ZERO));
    assert!(!decision.is_never() && !decision.is_degraded());
    let shadows: Vec<_> = decision
        .each()
        .map(|decision| decision.is_shadow())
        .collect();
    assert_eq!(shadows, [false, true, false]);
}

#[tokio::test]
async fn a_shadow_never_binds_beside_an_enforced_policy() {
    let limiter = three_in_shadow();
    for units in [1, 2, 1] {
        let decision = limiter.hit_n("a", units).await.unwrap();
        assert_eq!(decision.binding().policy().name(), "five");
        assert_eq!(decision.limit(), 5);
    }
    // Two of these three deny, and the shadow would take longest.
    let limiter = limiter_of_waits();
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    let denied = limiter.hit("a").await.unwrap();
    assert_eq!(denied.binding().policy().name(), "second");
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
}

fn limiter_of_waits() -> Limiter<Arc<MapStore>> {
    limiter([
        policy("hour", "1/hour").shadow(),
        policy("second", "1/second"),
        policy("minute", "2/minute"),
    ])
}

#[tokio::test]
async fn a_denied_hit_charges_no_shadow_and_still_tells_what_it_would_have_said() {
    let limiter = limiter([
        policy("one", "1/minute"),
        policy("two", "2/minute").shadow(),
    ]);
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    for _ in 0..3 {
        let denied = limiter.hit("a").await.unwrap();
        assert_eq!(each(&denied), [(false, 0), (true, 1)]);
        assert!(shadow_violated(&denied).is_empty());
    }
    let denied = limiter.hit_n("a", 2).await.unwrap();
    assert_eq!(each(&denied), [(false, 0), (false, 1)]);
    assert_eq!(shadow_violated(&denied), ["two"]);
}

#[tokio::test]
async fn a_peek_changes_no_shadow_and_leaves_no_key_behind() {
    let limiter = three_in_shadow();
    let decision = limiter.peek_n("a", 4).await.unwrap();
    assert_eq!(each(&decision), [(true, 10), (false, 3), (true, 5)]);
    assert!(decision.is_allowed());
    assert_eq!(shadow_violated(&decision), ["three"]);
    assert_eq!(limiter.store().keys(), 0);
}

#[tokio::test]
async fn a_limiter_of_shadows_only_admits_every_hit() {
    let limiter = limiter([
        policy("five", "5/minute").shadow(),
        policy("three", "3/minute").shadow(),
    ]);
    for hits in 1..=8 {
        let decision = limiter.hit("a").await.unwrap();
        assert!(decision.is_allowed() && !decision.is_never());
        assert_eq!(decision.retry_after(), Some(Duration::ZERO));
        assert_eq!(decision.violated().count(), 0);
        let expected: &[&str] = match hits {
            ..=3 => &[],
            4..=5 => &["three"],
            _ => &["five", "three"],
        };
        assert_eq!(shadow_violated(&decision), expected, "hit {hits}");
        assert_eq!(decision.source(), Source::Shadow);
        assert!(!decision.is_degraded());
        assert_eq!(decision.at(), Some(start()));
    }
}

/// So whoever writes headers sees from `binding` that there is no limit to tell of.
#[tokio::test]
async fn only_where_all_are_shadows_the_one_that_would_bind_gives_the_numbers() {
    let limiter = limiter([
        policy("five", "5/minute").shadow(),
        policy("three", "3/minute").shadow(),
    ]);
    let decision = limiter.hit("a").await.unwrap();
    assert!(decision.binding().is_shadow());
    assert_eq!(decision.binding().policy().name(), "three");
    assert_eq!((decision.limit(), decision.remaining()), (3, 2));
}

#[tokio::test]
async fn the_only_policy_may_be_a_shadow() {
    let limiter = Limiter::new(
        MapStore::shared(),
        Policy::from(Quota::per_second(1)).shadow(),
    );
    assert!(shadow_violated(&limiter.hit("a").await.unwrap()).is_empty());
    let decision = limiter.hit_now("a").unwrap();
    assert!(decision.is_allowed());
    assert_eq!(shadow_violated(&decision), ["default"]);
    let decision = limiter.hit("a").await.unwrap();
    assert!(decision.is_allowed());
    assert_eq!(shadow_violated(&decision), ["default"]);
}

#[tokio::test]
async fn a_shadow_queue_delays_nobody() {
    let queue = Policy::new("queue", Algorithm::LeakyBucket, Quota::per_second(5)).unwrap();
    let limiter = limiter([policy("ten", "10/minute"), queue.shadow()]);
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    let decision = limiter.hit("a").await.unwrap();
    assert_eq!(decision.delay(), Duration::ZERO);
    let delays: Vec<_> = decision.each().map(|decision| decision.delay()).collect();
    assert_eq!(delays, [Duration::ZERO, Duration::from_millis(200)]);
}

#[tokio::test]
async fn the_calls_without_a_future_treat_shadows_the_same() {
    let limiter = three_in_shadow();
    assert_eq!(
        each(&limiter.hit_n_now("a", 3).unwrap()),
        [(true, 7), (true, 0), (true, 2)]
    );
    let decision = limiter.hit_now("a").unwrap();
    assert!(decision.is_allowed());
    assert_eq!(shadow_violated(&decision), ["three"]);
    assert_eq!(
        each(&limiter.peek_now("a").unwrap()),
        [(true, 6), (false, 0), (true, 1)]
    );
    let denied = limiter.hit_n_now("a", 2).unwrap();
    assert!(!denied.is_allowed());
    assert_eq!(each(&denied), [(true, 6), (false, 0), (false, 1)]);
}

#[tokio::test]
async fn an_erased_store_treats_shadows_the_same() {
    let policies = three_in_shadow().policies().clone();
    let limiter: Limiter = Limiter::new(SharedStore::new(MapStore::shared()), policies);
    assert!(limiter.hit_n("a", 3).await.unwrap().is_allowed());
    let limiter = tokio::spawn(async move {
        let decision = limiter.hit("a").await.unwrap();
        assert_eq!(shadow_violated(&decision), ["three"]);
        drop(decision);
        limiter
    });
    assert!(limiter.await.unwrap().hit("a").await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_reset_forgets_the_shadows_too() {
    let limiter = three_in_shadow();
    assert!(limiter.hit_n("a", 3).await.unwrap().is_allowed());
    assert_eq!(limiter.store().keys(), 3);
    assert!(limiter.reset("a").await.unwrap());
    assert_eq!(limiter.store().keys(), 0);
    assert!(!limiter.reset("a").await.unwrap());
}

#[tokio::test]
async fn an_empty_subject_is_an_error_before_anything_is_asked() {
    for limiter in [
        three_in_shadow(),
        limiter([policy("three", "3/minute").shadow()]),
    ] {
        let refused = limiter.hit("").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let refused = limiter.hit_now("").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert_eq!(limiter.store().keys(), 0);
    }
}

#[tokio::test]
async fn a_report_names_the_shadows_that_would_have_denied() {
    let limiter = three_in_shadow();
    let report = limiter.hit_n("a", 4).await.unwrap().to_report();
    assert!(report.allowed && report.violated.is_empty());
    assert_eq!(report.shadow_violated, ["three"]);
    assert_eq!(
        report.to_string(),
        "allowed, 1 of 5 left (five); in shadow, denied by three"
    );
    let report = limiter.hit_n("a", 2).await.unwrap().to_report();
    assert_eq!(
        (report.violated, report.shadow_violated),
        (vec!["five".to_owned()], vec![])
    );
}

/// Taking the mode away goes on from the counter that the shadow kept.
#[tokio::test]
async fn a_shadow_counts_under_the_key_it_has_when_it_is_enforced() {
    let shadow = limiter([policy("three", "3/minute").shadow()]);
    assert!(shadow.hit_n("a", 2).await.unwrap().is_allowed());
    let enforced = Limiter::new(Arc::clone(shadow.store()), policy("three", "3/minute"));
    assert_eq!(enforced.hit("a").await.unwrap().remaining(), 0);
    assert!(!enforced.hit("a").await.unwrap().is_allowed());
    assert_eq!(shadow_violated(&shadow.hit("a").await.unwrap()), ["three"]);
}
