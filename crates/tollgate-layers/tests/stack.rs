//! The usual layers work together, in the order that the stack puts them in.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod support;

use std::time::Duration;

use metrics_util::debugging::DebugValue;
use support::kit::{Outages, passes_the_kit};
use support::world::{Events, Metrics};
use support::{FarStore, Mood};
use tokio::time::{Instant, advance};
use tollgate_core::{ErrorKind, FailureMode, Limiter, Policy, Quota, SharedStore, Source, Store};
use tollgate_layers::{BreakerOptions, DenyCacheOptions, Share, Stack};
use tollgate_memory::MemoryStore;

const MILLI: Duration = Duration::from_millis(1);
const HALF: Duration = Duration::from_millis(500);

fn half() -> Share {
    Share::of(1, 2).unwrap()
}

fn stack() -> (FarStore, Stack<FarStore>) {
    let store = FarStore::new();
    (store.clone(), Stack::around(store).name("far"))
}

fn ten_an_hour(store: SharedStore) -> Limiter {
    Limiter::new(store, Quota::per_hour(10))
}

/// Hits until the breaker is open, and says how long the last hit took.
async fn break_down(store: &FarStore, limiter: &Limiter) -> Duration {
    store.be(Mood::Hangs);
    let mut took = Duration::ZERO;
    for _ in 0..=BreakerOptions::FAILURES {
        let started = Instant::now();
        assert!(limiter.hit("bob").await.unwrap().is_degraded());
        took = started.elapsed();
    }
    took
}

#[tokio::test(start_paused = true)]
async fn the_usual_stack_stops_asking_a_store_that_hangs_and_tells_of_it() {
    let (events, metrics) = (Events::listen(), Metrics::record());
    let (store, stack) = stack();
    let limiter = ten_an_hour(stack.build().unwrap());
    assert_eq!(limiter.hit("alice").await.unwrap().source(), Source::Store);
    assert_eq!(break_down(&store, &limiter).await, Duration::ZERO);
    let asked = store.calls();
    let decision = limiter.hit("alice").await.unwrap();
    assert!(decision.is_allowed() && decision.is_degraded());
    let error = decision.error().unwrap();
    assert_eq!(
        (error.kind(), error.store()),
        (ErrorKind::Unavailable, "far")
    );
    assert!(
        error.to_string().contains("no answer within 100ms"),
        "{error}"
    );
    assert_eq!(store.calls(), asked);

    store.be(Mood::Well);
    advance(HALF).await;
    assert_eq!(limiter.hit("alice").await.unwrap().remaining(), 8);

    let state = metrics.look("tollgate_breaker_state");
    let closed = ("store=far".to_owned(), DebugValue::Gauge(0.0.into()));
    assert_eq!(state, [closed]);
    let answers = metrics.look("tollgate_answers_total");
    assert!(
        answers
            .iter()
            .any(|(labels, _)| labels.contains("store=far")),
        "{answers:?}"
    );
    let opened = events.of("WARN");
    assert!(
        opened
            .iter()
            .any(|line| line.contains("the breaker opened")),
        "{opened:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn with_a_fallback_the_stand_in_judges_as_soon_as_the_breaker_is_open() {
    let (store, stack) = stack();
    let store_with_fallback = stack.fallback(half()).build().unwrap();
    assert!(store_with_fallback.capabilities().fallback);
    let limiter = ten_an_hour(store_with_fallback).on_failure(FailureMode::Fallback);
    assert_eq!(break_down(&store, &limiter).await, Duration::ZERO);
    let started = Instant::now();
    let decision = limiter.hit("alice").await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(decision.source(), Source::Fallback);
    assert_eq!((decision.limit(), decision.remaining()), (5, 4));

    store.be(Mood::Well);
    advance(HALF).await;
    let decision = limiter.hit("alice").await.unwrap();
    assert_eq!(decision.source(), Source::Store);
    assert_eq!(decision.remaining(), 8, "what the stand-in charged counts");
}

#[tokio::test(start_paused = true)]
async fn with_a_deny_cache_denials_stay_in_force_while_the_store_is_away() {
    let (store, stack) = stack();
    let options = DenyCacheOptions::new().max_age(Duration::from_secs(60));
    let limiter = ten_an_hour(stack.deny_cache(options).build().unwrap());
    for _ in 0..10 {
        assert!(limiter.hit("alice").await.unwrap().is_allowed());
    }
    assert_eq!(limiter.hit("alice").await.unwrap().source(), Source::Store);
    break_down(&store, &limiter).await;
    let asked = store.calls();
    let decision = limiter.hit("alice").await.unwrap();
    assert!(!decision.is_allowed());
    assert_eq!(decision.source(), Source::DenyCache);
    assert_eq!(store.calls(), asked);
}

#[tokio::test(start_paused = true)]
async fn each_policy_is_answered_by_its_own_failure_mode() {
    let (store, stack) = stack();
    let shared = stack.fallback(half()).build().unwrap();
    store.be(Mood::Fails(ErrorKind::Unavailable));
    for (mode, allowed, source) in [
        (FailureMode::Open, true, Source::FailureMode),
        (FailureMode::Closed, false, Source::FailureMode),
        (FailureMode::Fallback, true, Source::Fallback),
    ] {
        let policy = Policy::from(Quota::per_hour(10)).on_failure(mode);
        let limiter = Limiter::new(shared.clone(), policy);
        let decision = limiter.hit("alice").await.unwrap();
        assert_eq!(
            (decision.is_allowed(), decision.source()),
            (allowed, source)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_that_was_asked_for_holds_and_the_breaker_may_be_left_out() {
    let (store, stack) = stack();
    let stack = stack.timeout(7 * MILLI).without_breaker();
    let limiter = ten_an_hour(stack.build().unwrap());
    assert_eq!(break_down(&store, &limiter).await, 7 * MILLI);
}

#[tokio::test(start_paused = true)]
async fn without_a_timeout_the_store_may_take_its_time() {
    let (store, stack) = stack();
    let limiter = ten_an_hour(stack.without_timeout().build().unwrap());
    store.be(Mood::Takes(Duration::from_secs(3)));
    assert_eq!(limiter.hit("alice").await.unwrap().source(), Source::Store);
}

#[tokio::test(start_paused = true)]
async fn the_breaker_opens_when_it_was_told_to() {
    let (store, stack) = stack();
    let stack = stack.breaker(BreakerOptions::new().failures(1));
    let limiter = ten_an_hour(stack.build().unwrap());
    store.be(Mood::Fails(ErrorKind::Unavailable));
    for _ in 0..3 {
        assert!(limiter.hit("alice").await.unwrap().is_degraded());
    }
    assert_eq!(store.calls(), 1);
}

#[test]
fn a_store_in_the_process_is_still_answered_without_a_future() {
    let stack = Stack::around(MemoryStore::new()).build().unwrap();
    let policy = Policy::from(Quota::per_minute(1));
    let space = tollgate_core::Space::new("", "", &policy);
    let check = tollgate_core::Check {
        key: tollgate_core::Key::new(&space, b"alice").unwrap(),
        policy: &policy,
        op: tollgate_core::Op::Hit(tollgate_core::Cost::ONE),
    };
    let batch = tollgate_core::Batch::of_one(&check);
    assert!(stack.apply_now(&batch).unwrap().unwrap().is_allowed());
}

#[test]
fn what_does_not_go_together_is_refused() {
    let around = || Stack::around(MemoryStore::new());
    let with_fallback = around().fallback(half()).build().unwrap();
    for (stack, why) in [
        (around().timeout(Duration::ZERO), "a timeout lies between"),
        (
            around().breaker(BreakerOptions::new().failures(0)),
            "1 failure",
        ),
        (
            around().deny_cache(DenyCacheOptions::new().capacity(0)),
            "at least 1 key",
        ),
        (
            around().timeout(Duration::from_secs(11)),
            "longer than the breaker's longest backoff, 10s",
        ),
        (
            around().fallback(half()).without_timeout(),
            "a fallback needs a timeout",
        ),
    ] {
        let error = stack.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(why), "{error}");
    }
    let twice = Stack::around(with_fallback).fallback(half());
    let error = twice.build().unwrap_err();
    assert!(error.to_string().contains("a fallback already"), "{error}");
    assert!(
        around()
            .timeout(Duration::from_secs(11))
            .without_breaker()
            .build()
            .is_ok()
    );
}

#[test]
fn the_usual_stack_passes_the_kit() {
    passes_the_kit(Outages::AreErrors, |store| {
        Stack::around(store).build().unwrap()
    });
}

#[test]
fn the_stack_with_a_fallback_passes_the_kit() {
    passes_the_kit(Outages::AreAnswered, |store| {
        Stack::around(store).fallback(half()).build().unwrap()
    });
}

#[test]
fn the_whole_stack_passes_the_kit() {
    passes_the_kit(Outages::AreAnswered, |store| {
        let stack = Stack::around(store).fallback(half());
        stack.deny_cache(DenyCacheOptions::new()).build().unwrap()
    });
}
