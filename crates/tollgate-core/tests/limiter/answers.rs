//! One policy: what each verb does, and what its answer says.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{
    Algorithm, Clock, Decision, ErrorKind, Limiter, ManualClock, Policy, Quota, SharedStore,
    Source, Store,
};

use crate::stores::{MapStore, START, start};

const SECOND: Duration = Duration::from_secs(1);

fn limiter() -> Limiter<Arc<MapStore>> {
    Limiter::new(MapStore::shared(), Quota::per_second(5))
}

/// Allowed, and how many are left.
fn told(decision: &Decision<'_>) -> (bool, u64) {
    (decision.is_allowed(), decision.remaining())
}

#[tokio::test]
async fn a_hit_takes_one_unit_and_hit_n_takes_several() {
    let limiter = limiter();
    assert_eq!(told(&limiter.hit("a").await.unwrap()), (true, 4));
    assert_eq!(told(&limiter.hit_n("a", 3).await.unwrap()), (true, 1));
    assert_eq!(told(&limiter.hit_n("a", 2).await.unwrap()), (false, 1));
    assert_eq!(told(&limiter.hit("b").await.unwrap()), (true, 4));
}

#[tokio::test]
async fn the_calls_without_a_future_answer_the_same() {
    let limiter = limiter();
    assert_eq!(told(&limiter.hit_now("a").unwrap()), (true, 4));
    assert_eq!(told(&limiter.hit_n_now("a", 3).unwrap()), (true, 1));
    assert_eq!(told(&limiter.peek_now("a").unwrap()), (true, 1));
    assert_eq!(told(&limiter.hit("a").await.unwrap()), (true, 0));
    assert_eq!(told(&limiter.peek_now("a").unwrap()), (false, 0));
}

#[tokio::test]
async fn a_peek_takes_nothing_and_leaves_no_key_behind() {
    let limiter = limiter();
    assert_eq!(told(&limiter.peek("a").await.unwrap()), (true, 5));
    assert_eq!(told(&limiter.peek_n("a", 5).await.unwrap()), (true, 5));
    assert_eq!(told(&limiter.peek_n("a", 6).await.unwrap()), (false, 5));
    assert_eq!(limiter.store().keys(), 0);
}

#[tokio::test]
async fn a_reset_forgets_the_subject_and_tells_whether_there_was_one() {
    let limiter = limiter();
    assert!(!limiter.reset("a").await.unwrap());
    assert!(limiter.hit_n("a", 5).await.unwrap().is_allowed());
    assert!(limiter.hit_n("b", 5).await.unwrap().is_allowed());
    assert!(limiter.reset("a").await.unwrap());
    assert_eq!(told(&limiter.peek("a").await.unwrap()), (true, 5));
    assert_eq!(told(&limiter.peek("b").await.unwrap()), (false, 0));
}

#[tokio::test]
async fn a_decision_tells_when_to_come_back_and_when_all_is_forgotten() {
    let limiter = limiter();
    let decision = limiter.hit_n("a", 5).await.unwrap();
    assert_eq!(decision.retry_after(), Some(Duration::ZERO));
    assert_eq!(decision.reset_after(), SECOND);
    assert_eq!(decision.reset_at(), Some(start() + SECOND));
    assert_eq!(decision.at(), Some(start()));
    assert_eq!(decision.source(), Source::Store);
    assert!(!decision.is_degraded() && decision.error().is_none());

    let denied = limiter.hit_n("a", 2).await.unwrap();
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(400)));
    assert!(!denied.is_never());
    assert_eq!(denied.limit(), 5);

    let never = limiter.hit_n("a", 6).await.unwrap();
    assert_eq!(never.retry_after(), None);
    assert!(never.is_never());
}

#[tokio::test]
async fn an_empty_subject_and_a_cost_of_zero_are_errors_of_every_call() {
    let limiter = limiter();
    let is_refused = |error: tollgate_core::Error| error.kind() == ErrorKind::InvalidInput;
    assert!(is_refused(limiter.hit("").await.unwrap_err()));
    assert!(is_refused(limiter.hit_now("").unwrap_err()));
    assert!(is_refused(limiter.peek("").await.unwrap_err()));
    assert!(is_refused(limiter.reset("").await.unwrap_err()));
    assert!(is_refused(limiter.reserve("", 1).await.unwrap_err()));
    assert!(is_refused(limiter.hit_n("a", 0).await.unwrap_err()));
    assert!(is_refused(limiter.hit_n_now("a", 0).unwrap_err()));
    assert!(is_refused(limiter.peek_n("a", 0).await.unwrap_err()));
    assert!(is_refused(limiter.reserve("a", 0).await.unwrap_err()));
    assert_eq!(limiter.store().keys(), 0);
}

#[tokio::test]
async fn scopes_and_prefixes_count_apart_and_limiters_of_one_name_count_together() {
    let store = MapStore::shared();
    let limiter = Limiter::new(Arc::clone(&store), Quota::per_second(5));
    let same = Limiter::new(Arc::clone(&store), Quota::per_second(5));
    let scoped = limiter.clone().scope("login");
    let prefixed = limiter.clone().prefix("other");
    assert!(limiter.hit_n("a", 5).await.unwrap().is_allowed());
    assert!(!same.hit("a").await.unwrap().is_allowed());
    assert!(scoped.hit_n("a", 5).await.unwrap().is_allowed());
    assert!(prefixed.hit_n("a", 5).await.unwrap().is_allowed());
    assert_eq!(store.keys(), 3);
}

#[tokio::test]
async fn a_limiter_judges_by_its_own_clock_if_it_is_given_one() {
    let clock = ManualClock::new(start() + SECOND);
    let limiter = limiter().clock(clock.clone());
    assert_eq!(
        limiter.hit_n("a", 5).await.unwrap().at(),
        Some(start() + SECOND)
    );
    clock.advance(Duration::from_millis(200));
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    assert_eq!(limiter.store().clock.now().as_micros(), START);
}

#[tokio::test]
async fn an_erased_store_answers_what_the_store_inside_answers() {
    let store = MapStore::shared();
    let limiter: Limiter = Limiter::new(SharedStore::new(Arc::clone(&store)), Quota::per_second(5));
    let plain = Limiter::new(Arc::clone(&store), Quota::per_second(5));
    assert_eq!(told(&limiter.hit("a").await.unwrap()), (true, 4));
    assert_eq!(told(&plain.hit("a").await.unwrap()), (true, 3));
    assert_eq!(limiter.store().capabilities(), store.capabilities());
    assert!(limiter.reset("a").await.unwrap());
    assert_eq!(store.keys(), 0);
}

#[tokio::test]
async fn a_leaky_bucket_tells_how_long_to_wait_in_its_queue() {
    let policy = Policy::new("queue", Algorithm::LeakyBucket, Quota::per_second(5)).unwrap();
    let limiter = Limiter::new(MapStore::shared(), policy);
    assert_eq!(limiter.hit("a").await.unwrap().delay(), Duration::ZERO);
    assert_eq!(
        limiter.hit("a").await.unwrap().delay(),
        Duration::from_millis(200)
    );
    assert_eq!(
        limiter.hit_n("a", 4).await.unwrap().delay(),
        Duration::ZERO,
        "denied"
    );
}

#[tokio::test]
async fn a_report_holds_the_numbers_of_its_decision_and_outlives_the_limiter() {
    let report = {
        let limiter = limiter();
        assert!(limiter.hit_n("a", 5).await.unwrap().is_allowed());
        limiter.hit("a").await.unwrap().to_report()
    };
    assert!(!report.allowed);
    assert_eq!(
        (report.policy.as_str(), report.algorithm),
        ("default", Algorithm::TokenBucket)
    );
    assert_eq!((report.limit, report.remaining), (5, 0));
    assert_eq!(report.retry_after, Some(Duration::from_millis(200)));
    assert_eq!(
        (report.reset_after, report.reset_at),
        (SECOND, Some(start() + SECOND))
    );
    assert_eq!(report.violated, ["default"]);
    assert_eq!(report.to_string(), "denied, retry after 200ms (default)");
}
