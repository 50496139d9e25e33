//! A breaker leaves a store that is down alone, and finds out when it is back.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use metrics_util::debugging::DebugValue;
use support::world::{Events, Metrics};
use support::{FarStore, Mood};
use tokio::time::{advance, sleep};
use tollgate_core::{
    Batch, Check, Cost, Error, ErrorKind, InProcessStore, Key, Limiter, Op, Policy, Quota, Result,
    Space, Store, Verdicts,
};
use tollgate_layers::{Breaker, BreakerOptions, BreakerState, Timeout};

const MILLI: Duration = Duration::from_millis(1);
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);

/// A breaker that opens after three failures, around a store that does as it is told.
struct Bed {
    store: FarStore,
    breaker: Breaker<FarStore>,
    policy: Policy,
    space: Space,
}

impl Bed {
    fn new() -> Self {
        let store = FarStore::new();
        let policy = Policy::from(Quota::per_minute(1_000));
        let options = BreakerOptions::new()
            .failures(3)
            .backoff(FIRST, LONGEST)
            .name("far");
        Self {
            breaker: Breaker::with_options(store.clone(), options).unwrap(),
            store,
            space: Space::new("", "", &policy),
            policy,
        }
    }

    fn check(&self) -> Check<'_> {
        Check {
            key: Key::new(&self.space, b"alice").unwrap(),
            policy: &self.policy,
            op: Op::Hit(Cost::ONE),
        }
    }

    async fn hit(&self) -> Result<Verdicts> {
        self.breaker.apply(Batch::of_one(&self.check())).await
    }

    async fn fail(&self) -> Error {
        self.hit().await.unwrap_err()
    }

    async fn open(&self, kind: ErrorKind) {
        self.store.be(Mood::Fails(kind));
        for _ in 0..3 {
            assert_eq!(self.fail().await.kind(), kind);
        }
        assert_eq!(self.breaker.state(), BreakerState::Open);
    }

    /// Hits, and tells whether the store heard of it.
    async fn asks_the_store(&self) -> bool {
        let before = self.store.calls();
        // Its answer is not the point here.
        let _ = self.hit().await;
        self.store.calls() > before
    }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_open_the_breaker_and_then_the_store_is_left_alone() {
    for kind in [
        ErrorKind::Unavailable,
        ErrorKind::Timeout,
        ErrorKind::Overloaded,
    ] {
        let bed = Bed::new();
        bed.open(kind).await;
        for _ in 0..50 {
            let error = bed.fail().await;
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(!error.may_have_charged());
        }
        assert_eq!(bed.store.calls(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_open_breaker_says_since_when_until_when_and_why() {
    let bed = Bed::new();
    bed.open(ErrorKind::Timeout).await;
    let text = bed.fail().await.to_string();
    let (about, failure) = text.split_once("; the last failure: ").unwrap();
    assert_eq!(
        failure,
        "far: store timed out: it was told to fail: the cable is cut"
    );
    let about = about
        .strip_prefix("far: store unavailable: the breaker is open since ")
        .unwrap();
    let (since, next) = about.split_once(", the next probe is at ").unwrap();
    let next = next.strip_suffix("; nothing was charged").unwrap();
    let waits = humantime::parse_rfc3339(next)
        .unwrap()
        .duration_since(humantime::parse_rfc3339(since).unwrap())
        .unwrap();
    assert!(
        (FIRST / 2 - MILLI..=FIRST + 5 * MILLI).contains(&waits),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_success_begins_the_count_anew() {
    let bed = Bed::new();
    for _ in 0..5 {
        bed.store.be(Mood::Fails(ErrorKind::Unavailable));
        bed.fail().await;
        bed.fail().await;
        bed.store.be(Mood::Well);
        bed.hit().await.unwrap();
    }
    assert_eq!(bed.breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_outage_is_handed_on_and_never_opens() {
    for kind in [
        ErrorKind::InvalidInput,
        ErrorKind::Unsupported,
        ErrorKind::Conflict,
        ErrorKind::Refused,
        ErrorKind::Corrupt,
        ErrorKind::Other,
    ] {
        let bed = Bed::new();
        bed.store.be(Mood::Fails(kind));
        for _ in 0..20 {
            assert_eq!(bed.fail().await.kind(), kind);
        }
        assert_eq!(bed.breaker.state(), BreakerState::Closed);
        assert_eq!(bed.store.calls(), 20, "once each: nothing is tried again");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answered_probe_closes() {
    let bed = Bed::new();
    bed.open(ErrorKind::Unavailable).await;
    bed.store.be(Mood::Well);
    assert!(!bed.asks_the_store().await, "not before the probe is due");
    advance(FIRST).await;
    bed.hit().await.unwrap();
    assert_eq!(bed.breaker.state(), BreakerState::Closed);
    bed.hit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time_and_the_others_fail_at_once() {
    let bed = Bed::new();
    bed.open(ErrorKind::Unavailable).await;
    advance(FIRST).await;
    bed.store.be(Mood::Takes(50 * MILLI));
    let before = bed.store.calls();
    let others = async {
        sleep(10 * MILLI).await;
        assert_eq!(bed.breaker.state(), BreakerState::HalfOpen);
        for _ in 0..20 {
            let error = bed.fail().await;
            assert!(
                error.to_string().contains("a probe is under way"),
                "{error}"
            );
        }
        assert_eq!(bed.store.calls(), before + 1);
    };
    let (probe, ()) = tokio::join!(bed.hit(), others);
    probe.unwrap();
    assert_eq!(bed.breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn waits_between_probes_double_up_to_the_longest() {
    let bed = Bed::new();
    bed.open(ErrorKind::Unavailable).await;
    for most in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000_u32] {
        advance(most / 2 * MILLI - MILLI).await;
        assert!(!bed.asks_the_store().await, "at least half of {most} ms");
        advance((most - most / 2) * MILLI + MILLI).await;
        assert!(bed.asks_the_store().await, "at most {most} ms");
        assert_eq!(bed.breaker.state(), BreakerState::Open);
    }
    bed.store.be(Mood::Well);
    advance(LONGEST).await;
    bed.hit().await.unwrap();
    bed.open(ErrorKind::Unavailable).await;
    advance(FIRST).await;
    assert!(
        bed.asks_the_store().await,
        "the next outage begins with the first wait"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_makes_way_for_the_next() {
    let bed = Bed::new();
    bed.open(ErrorKind::Unavailable).await;
    advance(FIRST).await;
    bed.store.be(Mood::Hangs);
    {
        let mut probe = pin!(bed.hit());
        assert!(poll(probe.as_mut()).is_pending());
        assert_eq!(bed.breaker.state(), BreakerState::HalfOpen);
    }
    assert_eq!(bed.breaker.state(), BreakerState::Open);
    bed.store.be(Mood::Well);
    bed.hit().await.unwrap();
    assert_eq!(bed.breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_kept_and_never_done_is_given_up_on() {
    let bed = Bed::new();
    bed.open(ErrorKind::Unavailable).await;
    advance(FIRST).await;
    bed.store.be(Mood::Hangs);
    let mut kept = Box::pin(bed.hit());
    assert!(poll(kept.as_mut()).is_pending());
    bed.store.be(Mood::Fails(ErrorKind::Unavailable));
    advance(LONGEST - MILLI).await;
    assert!(!bed.asks_the_store().await);
    advance(MILLI).await;
    assert!(bed.asks_the_store().await);
    assert_eq!(bed.breaker.state(), BreakerState::Open);
    drop(kept);
    assert!(
        !bed.asks_the_store().await,
        "what was given up on has no say any more"
    );
}

#[tokio::test(start_paused = true)]
async fn a_callers_mistake_as_the_probe_makes_way_for_the_next() {
    let bed = Bed::new();
    bed.open(ErrorKind::Unavailable).await;
    advance(FIRST).await;
    bed.store.be(Mood::Fails(ErrorKind::InvalidInput));
    assert_eq!(bed.fail().await.kind(), ErrorKind::InvalidInput);
    assert_eq!(bed.breaker.state(), BreakerState::Open);
    assert!(bed.asks_the_store().await);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_refused_was_answered_but_one_that_fails_otherwise_was_not() {
    for (kind, state) in [
        (ErrorKind::Refused, BreakerState::Closed),
        (ErrorKind::Corrupt, BreakerState::Closed),
        (ErrorKind::Conflict, BreakerState::Closed),
        (ErrorKind::Other, BreakerState::Open),
        (ErrorKind::Timeout, BreakerState::Open),
    ] {
        let bed = Bed::new();
        bed.open(ErrorKind::Unavailable).await;
        advance(FIRST).await;
        bed.store.be(Mood::Fails(kind));
        assert_eq!(bed.fail().await.kind(), kind);
        assert_eq!(bed.breaker.state(), state, "{kind}");
        if state == BreakerState::Open {
            assert!(!bed.asks_the_store().await, "{kind} backs off");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_began_before_the_breaker_opened_say_nothing_after() {
    let bed = Bed::new();
    bed.store.be(Mood::Takes(100 * MILLI));
    let mut early = Box::pin(bed.hit());
    assert!(poll(early.as_mut()).is_pending());
    bed.open(ErrorKind::Unavailable).await;
    early.await.unwrap();
    assert_eq!(bed.breaker.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn timeouts_of_a_layer_inside_open_the_breaker() {
    let store = FarStore::new();
    store.be(Mood::Hangs);
    let breaker = Arc::new(Breaker::new(Timeout::new(store.clone())));
    let limiter = Limiter::new(Arc::clone(&breaker), Quota::per_minute(3));
    for _ in 0..BreakerOptions::FAILURES {
        let decision = limiter.hit("alice").await.unwrap();
        assert_eq!(decision.error().unwrap().kind(), ErrorKind::Timeout);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    let decision = limiter.hit("alice").await.unwrap();
    assert_eq!(decision.error().unwrap().kind(), ErrorKind::Unavailable);
    assert_eq!(store.calls(), u64::from(BreakerOptions::FAILURES));
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_guarded_as_a_hit_is() {
    let bed = Bed::new();
    let key = bed.check().key;
    bed.store.be(Mood::Fails(ErrorKind::Unavailable));
    for _ in 0..3 {
        bed.breaker.reset(&[key]).await.unwrap_err();
    }
    assert_eq!(bed.breaker.state(), BreakerState::Open);
    bed.breaker.reset(&[key]).await.unwrap_err();
    assert_eq!(bed.store.calls(), 3);
    bed.store.be(Mood::Well);
    advance(FIRST).await;
    assert_eq!(bed.breaker.reset(&[key]).await.unwrap(), 0);
    assert_eq!(bed.breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_future_are_guarded_too() {
    let bed = Bed::new();
    let check = bed.check();
    let batch = Batch::of_one(&check);
    bed.store.be(Mood::Fails(ErrorKind::Unavailable));
    for _ in 0..3 {
        bed.breaker.judge(&batch).unwrap_err();
    }
    assert_eq!(bed.breaker.state(), BreakerState::Open);
    let asked = bed.store.calls();
    assert!(bed.breaker.judge_at_hand(&check).is_none());
    bed.breaker.judge(&batch).unwrap_err();
    let refused = bed.breaker.apply_now(&batch).unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(bed.store.calls(), asked);

    advance(FIRST).await;
    assert!(
        bed.breaker.apply_now(&batch).is_none(),
        "a probe is left to the call with a future"
    );
    bed.store.be(Mood::Well);
    bed.breaker.judge(&batch).unwrap();
    assert_eq!(bed.breaker.state(), BreakerState::Closed);
    bed.breaker.judge_at_hand(&check).unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_hand_begins_the_count_anew() {
    let bed = Bed::new();
    let check = bed.check();
    bed.breaker.judge(&Batch::of_one(&check)).unwrap();
    bed.store.be(Mood::Fails(ErrorKind::Unavailable));
    bed.fail().await;
    bed.fail().await;
    bed.store.be(Mood::Well);
    bed.breaker.judge_at_hand(&check).unwrap();
    bed.store.be(Mood::Fails(ErrorKind::Unavailable));
    bed.fail().await;
    assert_eq!(bed.breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_once_by_events_and_metrics() {
    let (events, metrics) = (Events::listen(), Metrics::record());
    let gauge = |value: f64| vec![("store=far".to_owned(), DebugValue::Gauge(value.into()))];
    let bed = Bed::new();
    assert_eq!(metrics.look("tollgate_breaker_state"), gauge(0.0));
    bed.open(ErrorKind::Timeout).await;
    for _ in 0..20 {
        bed.fail().await;
    }
    assert_eq!(metrics.look("tollgate_breaker_state"), gauge(2.0));
    advance(FIRST).await;
    bed.fail().await;
    advance(2 * FIRST).await;
    bed.store.be(Mood::Hangs);
    {
        let mut probe = pin!(bed.hit());
        assert!(poll(probe.as_mut()).is_pending());
        assert_eq!(metrics.look("tollgate_breaker_state"), gauge(1.0));
    }
    bed.store.be(Mood::Well);
    bed.hit().await.unwrap();
    assert_eq!(metrics.look("tollgate_breaker_state"), gauge(0.0));
    bed.open(ErrorKind::Timeout).await;

    let opened = events.of("WARN");
    assert_eq!(opened.len(), 2, "{opened:#?}");
    assert!(opened[0].contains("store=\"far\""), "{opened:#?}");
    assert!(opened[0].contains("the cable is cut"), "{opened:#?}");
    let closed = events.of("INFO");
    assert_eq!(closed.len(), 1, "{closed:#?}");
    assert!(closed[0].contains("failed_probes=1"), "{closed:#?}");
    assert!(events.of("ERROR").is_empty());
}

#[tokio::test(start_paused = true)]
async fn outages_are_counted_and_probes_that_fail_are_none() {
    let metrics = Metrics::record();
    let bed = Bed::new();
    for _ in 0..2 {
        bed.open(ErrorKind::Unavailable).await;
        advance(FIRST).await;
        bed.fail().await;
        advance(2 * FIRST).await;
        bed.store.be(Mood::Well);
        bed.hit().await.unwrap();
    }
    let counted = vec![("store=far".to_owned(), DebugValue::Counter(2))];
    assert_eq!(metrics.look("tollgate_breaker_opened_total"), counted);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_is_told_of_once_a_minute_and_not_once_a_call() {
    let events = Events::listen();
    let bed = Bed::new();
    for (kind, about) in [
        (ErrorKind::Refused, "credentials"),
        (ErrorKind::Corrupt, "not written by this library"),
    ] {
        let before = events.of("ERROR").len();
        bed.store.be(Mood::Fails(kind));
        for _ in 0..100 {
            bed.fail().await;
        }
        let told = events.of("ERROR");
        assert_eq!(told.len(), before + 1, "{told:#?}");
        assert!(told[before].contains(about), "{told:#?}");
        advance(Duration::from_secs(61)).await;
        bed.fail().await;
        assert_eq!(events.of("ERROR").len(), before + 2);
    }
    bed.store.be(Mood::Fails(ErrorKind::InvalidInput));
    bed.fail().await;
    assert_eq!(
        events.of("ERROR").len(),
        4,
        "a caller's mistake is his to tell"
    );
}

#[test]
fn a_refusal_costs_two_allocations_and_a_closed_breaker_none() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let bed = Bed::new();
    let check = bed.check();
    let batch = Batch::of_one(&check);
    bed.breaker.judge(&batch).unwrap();
    let closed = allocation_counter::measure(|| {
        bed.breaker.judge(&batch).unwrap();
    });
    assert_eq!(closed.count_total, 0);
    runtime.block_on(bed.open(ErrorKind::Timeout));
    let refused = allocation_counter::measure(|| {
        bed.breaker.apply_now(&batch).unwrap().unwrap_err();
    });
    assert_eq!(refused.count_total, 2, "the error and its message");
}
