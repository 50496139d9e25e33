//! While the store is away, the share is enforced, and what is told is the stand-in's truth.

use std::time::Duration;

use futures::executor::block_on;
use tollgate_core::{
    Algorithm, Batch, ErrorKind, FailureMode, Limiter, Policies, Policy, Quota, SharedStore,
    Source, Store,
};

use crate::stores::{Counter, Health, hit, setting};

#[test]
fn each_algorithm_admits_its_share_and_tells_when_the_next_unit_fits() {
    for algorithm in Algorithm::ALL {
        let (clock, store, standing) = setting();
        let counter = Counter::new(algorithm, Quota::per_minute(8));
        store.set(Health::Away);
        let first = counter.hit(&standing, 1);
        assert_eq!(first.source(), Source::Fallback);
        let told = counter.decision(&first, true);
        assert_eq!((told.limit(), told.remaining()), (2, 1), "{algorithm}");
        assert_eq!(counter.drain(&standing), 1);
        let denial = counter.hit(&standing, 1);
        let told = counter.decision(&denial, false);
        assert_eq!(told.remaining(), 0);
        let wait = told.retry_after().unwrap();
        clock.advance(wait - Duration::from_micros(1));
        assert!(!counter.hit(&standing, 1).is_allowed(), "{algorithm}");
        clock.advance(Duration::from_micros(1));
        assert!(counter.hit(&standing, 1).is_allowed(), "{algorithm}");
    }
}

#[test]
fn a_denial_of_the_store_is_the_stores_alone() {
    let (_, _, standing) = setting();
    let counter = Counter::new(Algorithm::TokenBucket, Quota::per_minute(1));
    assert_eq!(counter.drain(&standing), 1);
    assert_eq!(counter.hit(&standing, 1).source(), Source::Store);
    assert_eq!(counter.used(standing.stand_in()), 0);
}

#[test]
fn a_permanent_error_passes_and_the_stand_in_stays_out() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::TokenBucket, Quota::per_minute(8));
    store.set(Health::Refusing);
    let error = counter.ask(&standing, hit(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(counter.used(standing.stand_in()), 0);
}

#[test]
fn several_policies_are_charged_together_or_not_at_all() {
    let (_, store, standing) = setting();
    let policies = Policies::new([
        Policy::new("burst", Algorithm::TokenBucket, Quota::per_second(40)).unwrap(),
        Policy::new("sustained", Algorithm::SlidingLog, Quota::per_hour(12)).unwrap(),
    ])
    .unwrap();
    let limiter = Limiter::new(SharedStore::new(standing), policies);
    store.set(Health::Away);
    block_on(async {
        for left in [2, 1, 0] {
            let decision = limiter.hit("someone").await.unwrap();
            assert!(decision.is_allowed());
            assert_eq!(decision.remaining(), left);
        }
        let denial = limiter.hit("someone").await.unwrap();
        assert!(denial.is_degraded());
        let remaining: Vec<u64> = denial.each().map(|one| one.remaining()).collect();
        assert_eq!(
            remaining,
            [7, 0],
            "the burst was not charged for the denied hit"
        );
        let report = denial.to_report();
        assert_eq!((report.limit, report.policy.as_str()), (3, "sustained"));
    });
}

#[test]
fn a_limiter_in_fallback_mode_is_satisfied_with_the_stand_in() {
    let (_, store, standing) = setting();
    let limiter = Limiter::new(standing, Quota::per_minute(4)).on_failure(FailureMode::Fallback);
    store.set(Health::Away);
    block_on(async {
        assert!(limiter.hit("someone").await.unwrap().is_allowed());
        assert!(!limiter.hit("someone").await.unwrap().is_allowed());
        store.set(Health::Refusing);
        let denied = limiter.hit("someone else").await.unwrap();
        assert_eq!(
            (denied.source(), denied.is_allowed()),
            (Source::FailureMode, false)
        );
    });
}

#[test]
fn a_reset_forgets_the_stand_ins_charges_also_when_the_store_cannot_be_told() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_minute(8));
    store.set(Health::Away);
    assert_eq!(counter.drain(&standing), 2);
    let error = block_on(standing.reset(&[counter.key()])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(standing.debts(), 0);
    assert_eq!(counter.drain(&standing), 2);
    store.set(Health::Up);
    assert_eq!(block_on(standing.reset(&[counter.key()])).unwrap(), 0);
    assert_eq!(counter.drain(&standing), 8, "nothing was owed any more");
}

#[test]
fn it_has_a_stand_in_and_otherwise_what_the_store_can() {
    let (_, store, standing) = setting();
    let capabilities = standing.capabilities();
    assert_eq!(capabilities, store.capabilities().with_fallback(true));
}

#[test]
fn a_store_in_this_process_is_asked_without_a_future_unless_something_is_owed() {
    let (clock, store, _) = setting();
    let share = tollgate_layers::Share::WHOLE;
    let local = crate::stores::memory(&clock);
    let standing = tollgate_layers::Fallback::with_stand_in(store.store, share, local);
    let counter = Counter::new(Algorithm::Gcra, Quota::per_minute(8));
    let check = counter.check(hit(1));
    let answer = standing.apply_now(&Batch::of_one(&check)).unwrap().unwrap();
    assert_eq!(answer.source(), Source::Store);
}
