//! What is done through the cache takes effect at once, and what others do within the greatest age.

use std::pin::pin;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::{self, Either};
use tollgate_core::{
    Algorithm, Batch, Clock, Cost, Error, ErrorKind, ManualClock, Op, Quota, Settlement, Source,
    Store,
};
use tollgate_layers::DenyCache;

use crate::stores::{Counter, Held, Memory, Spoilt, hit, memory};

type Cached<S> = DenyCache<S, ManualClock>;

fn cached<S: Store>(store: S, clock: &ManualClock) -> Cached<S> {
    DenyCache::new(store).clock(clock.clone())
}

fn window() -> Counter {
    Counter::new(Algorithm::FixedWindow, Quota::per_hour(3))
}

/// A cache whose key is full, and known to be.
fn denied() -> (ManualClock, Memory, Cached<Memory>, Counter) {
    let clock = ManualClock::default();
    let store = memory(&clock);
    let (cache, counter) = (cached(store.clone(), &clock), window());
    assert!(counter.hit(&cache, 3).is_allowed());
    assert_eq!(counter.hit(&cache, 1).source(), Source::Store);
    assert_eq!(counter.hit(&cache, 1).source(), Source::DenyCache);
    (clock, store, cache, counter)
}

fn all_given_back(clock: &ManualClock) -> Op {
    Op::Settle(Settlement {
        charged_at: clock.now(),
        charged: Cost::new(3).unwrap(),
        mark: 3,
        actual: 0,
    })
}

#[test]
fn a_reset_lets_the_key_in_at_once() {
    let (_, _, cache, counter) = denied();
    assert_eq!(block_on(cache.reset(&[counter.key()])).unwrap(), 1);
    assert!(counter.hit(&cache, 1).is_allowed());
}

#[test]
fn a_settlement_that_gives_back_lets_the_key_in_at_once() {
    let (clock, _, cache, counter) = denied();
    counter.ask(&cache, all_given_back(&clock));
    assert!(counter.hit(&cache, 1).is_allowed());
}

#[test]
fn a_smaller_hit_that_still_fits_is_charged_and_seen_by_the_next_denial() {
    let clock = ManualClock::default();
    let (cache, counter) = (cached(memory(&clock), &clock), window());
    counter.hit(&cache, 1);
    assert_eq!(counter.hit(&cache, 3).as_slice()[0].mark(), 1);
    assert_eq!(counter.hit(&cache, 3).source(), Source::DenyCache);
    assert!(counter.hit(&cache, 1).is_allowed());
    let denial = counter.hit(&cache, 3);
    assert_eq!(
        (denial.source(), denial.as_slice()[0].mark()),
        (Source::Store, 2)
    );
}

#[test]
fn what_another_process_resets_is_seen_after_the_greatest_age() {
    let (clock, store, cache, counter) = denied();
    block_on(store.reset(&[counter.key()])).unwrap();
    clock.advance(Duration::from_micros(999_999));
    assert_eq!(counter.hit(&cache, 1).source(), Source::DenyCache);
    clock.advance(Duration::from_micros(1));
    assert!(counter.hit(&cache, 1).is_allowed());
}

#[test]
fn another_quota_is_asked_of_the_store() {
    let (_, _, cache, counter) = denied();
    let wider = Counter::new(Algorithm::FixedWindow, Quota::per_hour(4));
    assert_eq!(wider.key(), counter.key());
    assert!(wider.hit(&cache, 1).is_allowed());
}

/// A denial is judged, then `meanwhile` happens, and only then the denial arrives. What a hit is answered after that.
fn overtaken(meanwhile: impl FnOnce(&Cached<Held<Memory>>, &ManualClock, &Counter)) -> bool {
    let clock = ManualClock::default();
    let held = Held::new(memory(&clock));
    let (cache, counter) = (cached(held.clone(), &clock), window());
    counter.hit(&cache, 3);
    let release = held.hold_next();
    let check = counter.check(hit(1));
    let mut denial = pin!(cache.apply(Batch::of_one(&check)));
    let still_waiting = block_on(future::select(denial.as_mut(), future::ready(())));
    assert!(matches!(still_waiting, Either::Right(_)));
    meanwhile(&cache, &clock, &counter);
    release.send(()).unwrap();
    assert!(!block_on(denial).unwrap().is_allowed());
    counter.hit(&cache, 1).is_allowed()
}

#[test]
fn a_denial_that_a_reset_overtook_is_not_remembered() {
    assert!(overtaken(|cache, _, counter| {
        block_on(cache.reset(&[counter.key()])).unwrap();
    }));
}

#[test]
fn a_denial_that_a_settlement_overtook_is_not_remembered() {
    assert!(overtaken(|cache, clock, counter| {
        counter.ask(cache, all_given_back(clock));
    }));
}

#[test]
fn a_denial_that_nothing_overtook_is_remembered() {
    assert!(!overtaken(|_, _, _| {}));
}

#[test]
fn a_settlement_that_was_dropped_half_way_may_have_been_made() {
    let clock = ManualClock::default();
    let held = Held::new(memory(&clock));
    let (cache, counter) = (cached(held.clone(), &clock), window());
    counter.hit(&cache, 3);
    counter.hit(&cache, 1);
    let _never = held.hold_next();
    {
        let check = counter.check(all_given_back(&clock));
        let settling = pin!(cache.apply(Batch::of_one(&check)));
        let dropped = block_on(future::select(settling, future::ready(())));
        assert!(matches!(dropped, Either::Right(_)));
    }
    assert!(counter.hit(&cache, 1).is_allowed());
}

#[test]
fn a_settlement_whose_answer_was_lost_may_have_been_made() {
    let clock = ManualClock::default();
    let lost = || Error::new(ErrorKind::Timeout, "no answer").with_charge_unknown();
    let lossy = Spoilt::lost_settlements(memory(&clock), lost);
    let (cache, counter) = (cached(lossy, &clock), window());
    counter.hit(&cache, 3);
    counter.hit(&cache, 1);
    let settlement = counter.check(all_given_back(&clock));
    assert!(block_on(cache.apply(Batch::of_one(&settlement))).is_err());
    assert!(counter.hit(&cache, 1).is_allowed());
}

#[test]
fn a_call_that_certainly_did_nothing_leaves_the_denial_in_force() {
    let clock = ManualClock::default();
    let refused = || Error::new(ErrorKind::Unavailable, "no connection");
    let lossy = Spoilt::lost_settlements(memory(&clock), refused);
    let (cache, counter) = (cached(lossy, &clock), window());
    counter.hit(&cache, 3);
    counter.hit(&cache, 1);
    let settlement = counter.check(all_given_back(&clock));
    assert!(block_on(cache.apply(Batch::of_one(&settlement))).is_err());
    assert_eq!(counter.hit(&cache, 1).source(), Source::DenyCache);
}

#[test]
fn a_degraded_denial_is_not_remembered() {
    for source in [Source::Fallback, Source::FailureMode, Source::DenyCache] {
        let clock = ManualClock::default();
        let cache = cached(Spoilt::from_source(memory(&clock), source), &clock);
        let counter = window();
        counter.hit(&cache, 3);
        counter.hit(&cache, 1);
        counter.hit(&cache, 1);
        assert_eq!(cache.remembered(), 0, "{source:?}");
    }
}

#[test]
fn a_cost_that_never_fits_is_not_remembered() {
    let clock = ManualClock::default();
    let (cache, counter) = (cached(memory(&clock), &clock), window());
    assert!(!counter.hit(&cache, 4).is_allowed());
    assert_eq!(counter.hit(&cache, 4).source(), Source::Store);
    assert_eq!(cache.remembered(), 0);
}
