//! What the stand-in charged counts in the store from the key's first call after the store is back.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Algorithm, Batch, ManualClock, Policy, Quota, Source, Store};
use tollgate_layers::Share;

use crate::stores::{Counter, Health, Switched, hit, peek, replica, setting};

#[test]
fn the_share_that_was_used_is_missing_from_the_limit_afterwards() {
    for algorithm in Algorithm::ALL {
        let (_, store, standing) = setting();
        let counter = Counter::new(algorithm, Quota::per_hour(8));
        assert!(counter.hit(&standing, 3).is_allowed());
        store.set(Health::Away);
        assert_eq!(counter.drain(&standing), 2);
        assert_eq!(standing.debts(), 1);
        store.set(Health::Up);
        assert_eq!(counter.drain(&standing), 3, "{algorithm}");
        assert_eq!((standing.debts(), store.settled()), (0, 2));
    }
}

#[test]
fn a_full_key_is_charged_past_its_limit() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(8));
    assert_eq!(counter.drain(&standing), 8);
    store.set(Health::Away);
    assert_eq!(counter.drain(&standing), 2);
    store.set(Health::Up);
    assert!(!counter.hit(&standing, 1).is_allowed());
    assert_eq!(counter.used(&store), 10);
}

#[test]
fn what_no_longer_counts_is_not_handed_back() {
    for algorithm in Algorithm::ALL {
        let (clock, store, standing) = setting();
        let counter = Counter::new(algorithm, Quota::per_minute(8));
        store.set(Health::Away);
        assert_eq!(counter.drain(&standing), 2);
        clock.advance(Duration::from_secs(120));
        store.set(Health::Up);
        assert_eq!(counter.drain(&standing), 8, "{algorithm}");
        assert_eq!((standing.debts(), store.settled()), (0, 0));
    }
}

#[test]
fn a_peek_hands_back_too_so_that_it_tells_what_a_hit_would() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::SlidingLog, Quota::per_hour(8));
    store.set(Health::Away);
    counter.drain(&standing);
    store.set(Health::Up);
    let told = counter.ask(&standing, peek(1)).unwrap();
    assert_eq!(counter.decision(&told, false).remaining(), 6);
}

#[test]
fn while_the_store_is_away_a_key_with_debts_costs_it_one_call_per_hit() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::TokenBucket, Quota::per_hour(80));
    store.set(Health::Away);
    for hits in 1..=10 {
        assert_eq!(counter.hit(&standing, 1).source(), Source::Fallback);
        assert_eq!(store.calls(), hits);
    }
}

#[test]
fn a_second_outage_goes_on_with_the_same_share() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(8));
    for flap in 0..5 {
        store.set(Health::Away);
        let admitted = counter.drain(&standing);
        assert_eq!(admitted, if flap == 0 { 2 } else { 0 });
        store.set(Health::Up);
        counter.ask(&standing, peek(1)).unwrap();
    }
    assert_eq!(store.settled(), 2);
}

#[test]
fn a_hit_that_may_have_been_charged_is_charged_by_the_stand_in_as_well() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(8));
    store.set(Health::Mute);
    assert!(counter.hit(&standing, 1).is_allowed());
    store.set(Health::Up);
    counter.ask(&standing, peek(1)).unwrap();
    assert_eq!(counter.used(&store), 2);
}

#[test]
fn a_payment_that_certainly_failed_stays_owed() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(8));
    store.set(Health::Away);
    counter.hit(&standing, 2);
    counter.ask(&standing, peek(1)).unwrap();
    assert_eq!(standing.debts(), 1);
    store.set(Health::Up);
    counter.ask(&standing, peek(1)).unwrap();
    assert_eq!((standing.debts(), store.settled()), (0, 2));
}

#[test]
fn a_payment_that_may_have_been_charged_counts_as_paid() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(8));
    store.set(Health::Away);
    counter.hit(&standing, 2);
    store.set(Health::MuteToSettlements);
    let answer = counter.ask(&standing, peek(1)).unwrap();
    assert_eq!((answer.source(), standing.debts()), (Source::Fallback, 0));
    store.set(Health::Up);
    counter.ask(&standing, peek(1)).unwrap();
    assert_eq!(store.settled(), 2);
}

#[test]
fn a_permanent_error_of_the_payment_passes_and_the_debt_stays() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(8));
    store.set(Health::Away);
    counter.hit(&standing, 2);
    store.set(Health::Refusing);
    assert!(counter.ask(&standing, hit(1)).is_err());
    assert_eq!(standing.debts(), 1);
}

#[test]
fn of_more_keys_than_it_has_room_for_it_hands_back_as_many_as_that() {
    let clock = ManualClock::default();
    let store = Switched::new(&clock);
    let standing = replica(&store, Share::WHOLE, &clock).max_debts(2);
    let counters: Vec<Counter> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let quota = Quota::per_hour(1);
            Counter::of(Policy::new(name, Algorithm::FixedWindow, quota).unwrap())
        })
        .collect();
    store.set(Health::Away);
    for counter in &counters {
        assert!(counter.hit(&standing, 1).is_allowed());
    }
    assert_eq!(standing.debts(), 2);
    store.set(Health::Up);
    let admitted = counters
        .iter()
        .filter(|counter| counter.hit(&standing, 1).is_allowed());
    assert_eq!(admitted.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn however_many_calls_race_the_debt_is_paid_once_and_before_any_of_them() {
    for _ in 0..50 {
        let (_, store, standing) = setting();
        let standing = Arc::new(standing);
        let counter = Arc::new(Counter::new(Algorithm::FixedWindow, Quota::per_hour(40)));
        store.set(Health::Away);
        assert_eq!(counter.drain(&*standing), 10);
        store.set(Health::Up);
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let (standing, counter) = (Arc::clone(&standing), Arc::clone(&counter));
                tokio::spawn(async move {
                    let check = counter.check(hit(1));
                    let answer = standing.apply(Batch::of_one(&check)).await.unwrap();
                    assert_eq!(answer.source(), Source::Store);
                    answer.is_allowed()
                })
            })
            .collect();
        let mut admitted = 0;
        for call in calls {
            admitted += u64::from(call.await.unwrap());
        }
        assert_eq!(admitted, 30);
        assert_eq!((standing.debts(), store.settled()), (0, 10));
    }
}
