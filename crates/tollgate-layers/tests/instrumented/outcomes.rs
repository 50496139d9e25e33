//! Hits by policy and what became of them.

use std::time::Duration;

use futures::executor::block_on;
use tollgate_core::{
    FailureMode, InProcessStore, Limiter, ManualClock, Policies, Quota, SharedStore, Source, Store,
};
use tollgate_layers::Instrumented;

use crate::support::{Fault, Faulty, counted, expected, memory, policy};

fn watched<S: Store>(store: S) -> Instrumented<S> {
    Instrumented::new(store).name("m")
}

/// Ten admitted hits, three denied ones, one that never fits, and ten more in the next window.
fn play<S: InProcessStore>(limiter: &Limiter<S>, clock: &ManualClock) {
    for _ in 0..13 {
        let _ = limiter.hit_now("a").unwrap();
    }
    assert!(limiter.hit_n_now("a", 11).unwrap().is_never());
    clock.advance(Duration::from_secs(60));
    assert_eq!(limiter.hit_n_now("a", 10).unwrap().remaining(), 0);
}

const PLAYED: [(&str, u64); 5] = [
    ("tollgate_answers_total{store=m,source=store}", 15),
    // The ninth and the tenth leave one unit and none, and the last one none.
    ("tollgate_near_limit_total{store=m,policy=p}", 3),
    (
        "tollgate_requests_total{store=m,policy=p,outcome=allowed}",
        11,
    ),
    (
        "tollgate_requests_total{store=m,policy=p,outcome=denied}",
        3,
    ),
    ("tollgate_requests_total{store=m,policy=p,outcome=never}", 1),
];

#[test]
fn every_outcome_is_counted_once_for_hits_without_a_future() {
    let counts = counted(|| {
        let clock = ManualClock::default();
        let store = watched(memory(&clock));
        play(&Limiter::new(store, policy("p", "10/minute")), &clock);
    });
    assert_eq!(counts, expected(PLAYED));
}

#[test]
fn buckets_that_are_judged_at_hand_are_counted_like_those_that_are_not() {
    let counts = |detailed: bool| {
        counted(|| {
            let clock = ManualClock::default();
            let store = watched(memory(&clock)).time_in_process(detailed);
            play(&Limiter::new(store, Quota::per_minute(10)), &clock);
        })
    };
    let at_hand = counts(false);
    assert_eq!(at_hand, counts(true));
    assert_eq!(at_hand.values().sum::<u64>(), 33);
}

#[test]
fn hits_with_a_future_are_counted_alike_by_a_plain_and_an_erased_store() {
    let hits = |limiter: Limiter| {
        for _ in 0..13 {
            let _ = block_on(limiter.hit("a")).unwrap();
        }
    };
    let erased = counted(|| {
        let store = SharedStore::new(watched(memory(&ManualClock::default())));
        hits(Limiter::new(store, policy("p", "10/minute")));
    });
    let plain = counted(|| {
        let store = watched(memory(&ManualClock::default()));
        let limiter = Limiter::new(store, policy("p", "10/minute"));
        for _ in 0..13 {
            let _ = block_on(limiter.hit("a")).unwrap();
        }
    });
    assert_eq!(erased, plain);
    assert_eq!(
        plain["tollgate_requests_total{store=m,policy=p,outcome=allowed}"],
        10
    );
    assert_eq!(
        plain["tollgate_requests_total{store=m,policy=p,outcome=denied}"],
        3
    );
}

#[test]
fn a_policy_that_would_have_admitted_what_another_denied_was_not_charged() {
    let counts = counted(|| {
        let store = watched(memory(&ManualClock::default()));
        let policies = [policy("tight", "1/minute"), policy("wide", "100/minute")];
        let limiter = Limiter::new(store, Policies::new(policies).unwrap());
        for _ in 0..3 {
            let _ = limiter.hit_now("a").unwrap();
        }
    });
    assert_eq!(
        counts,
        expected([
            ("tollgate_answers_total{store=m,source=store}", 3),
            ("tollgate_near_limit_total{store=m,policy=tight}", 1),
            (
                "tollgate_requests_total{store=m,policy=tight,outcome=allowed}",
                1
            ),
            (
                "tollgate_requests_total{store=m,policy=tight,outcome=denied}",
                2
            ),
            (
                "tollgate_requests_total{store=m,policy=wide,outcome=allowed}",
                1
            ),
            (
                "tollgate_requests_total{store=m,policy=wide,outcome=uncharged}",
                2
            ),
        ])
    );
}

#[test]
fn near_the_limit_means_less_than_a_fifth_left() {
    // Of 9 a fifth is 1.8: one unit left is less, two are not. Of 10 it is 2: two left are not less.
    for (limit, near) in [(1, 1), (4, 1), (5, 1), (6, 2), (9, 2), (10, 2), (11, 3)] {
        let counts = counted(|| {
            let store = watched(memory(&ManualClock::default()));
            let limiter = Limiter::new(store, policy("p", &format!("{limit}/minute")));
            for _ in 0..limit {
                assert!(limiter.hit_now("a").unwrap().is_allowed());
            }
        });
        let counted = counts["tollgate_near_limit_total{store=m,policy=p}"];
        assert_eq!(counted, near, "limit {limit}");
    }
}

#[test]
fn peeks_settlements_and_resets_are_answers_but_no_requests() {
    let counts = counted(|| {
        let store = watched(memory(&ManualClock::default()));
        let limiter = Limiter::new(store, policy("p", "100/minute"));
        let reservation = block_on(limiter.reserve("a", 5)).unwrap();
        let receipt = reservation.into_receipt().unwrap();
        block_on(limiter.settle(receipt, 2)).unwrap();
        let _ = limiter.peek_now("a").unwrap();
        assert!(block_on(limiter.reset("a")).unwrap());
    });
    assert_eq!(
        counts,
        expected([
            ("tollgate_answers_total{store=m,source=store}", 3),
            (
                "tollgate_requests_total{store=m,policy=p,outcome=allowed}",
                1
            ),
        ])
    );
}

#[test]
fn answers_are_counted_by_who_gave_them_and_a_stand_in_is_degraded() {
    let counts = counted(|| {
        let store = Faulty::new().with_stand_in();
        let limiter = Limiter::new(watched(store.clone()), policy("p", "100/minute"))
            .on_failure(FailureMode::Fallback);
        for (source, hits) in [
            (Source::NativeCounter, 1),
            (Source::DenyCache, 2),
            (Source::Fallback, 3),
        ] {
            store.set(Fault::As(source));
            for _ in 0..hits {
                assert_eq!(limiter.hit_now("a").unwrap().source(), source);
            }
        }
    });
    assert_eq!(
        counts,
        expected([
            ("tollgate_answers_total{store=m,source=deny_cache}", 2),
            ("tollgate_answers_total{store=m,source=fallback}", 3),
            ("tollgate_answers_total{store=m,source=native_counter}", 1),
            ("tollgate_degraded_total{store=m,policy=p,mode=fallback}", 3),
            (
                "tollgate_requests_total{store=m,policy=p,outcome=allowed}",
                6
            ),
        ])
    );
}

#[test]
fn threads_lose_no_count() {
    let recorder = metrics_util::debugging::DebuggingRecorder::new();
    let store = watched(memory(&ManualClock::default()));
    let limiter = Limiter::new(store, policy("p", "1000/minute"));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                metrics::with_local_recorder(&recorder, || {
                    for _ in 0..250 {
                        let _ = limiter.hit_now("a").unwrap();
                    }
                });
            });
        }
    });
    let counts = crate::support::counters(&recorder.snapshotter());
    assert_eq!(
        counts,
        expected([
            ("tollgate_answers_total{store=m,source=store}", 2000),
            // 199 to 0 units left.
            ("tollgate_near_limit_total{store=m,policy=p}", 200),
            (
                "tollgate_requests_total{store=m,policy=p,outcome=allowed}",
                1000
            ),
            (
                "tollgate_requests_total{store=m,policy=p,outcome=denied}",
                1000
            ),
        ])
    );
}

#[test]
fn what_a_shadow_would_have_denied_is_counted_apart() {
    let counts = counted(|| {
        let store = watched(memory(&ManualClock::default()));
        let policies = [
            policy("wide", "100/minute"),
            policy("trial", "2/minute").shadow(),
        ];
        let limiter = Limiter::new(store, Policies::new(policies).unwrap());
        for _ in 0..5 {
            assert!(limiter.hit_now("a").unwrap().is_allowed());
        }
    });
    assert_eq!(
        counts,
        expected([
            ("tollgate_answers_total{store=m,source=store}", 10),
            ("tollgate_near_limit_total{store=m,policy=trial}", 1),
            (
                "tollgate_requests_total{store=m,policy=trial,outcome=allowed}",
                2
            ),
            (
                "tollgate_requests_total{store=m,policy=trial,outcome=shadow_denied}",
                3
            ),
            (
                "tollgate_requests_total{store=m,policy=wide,outcome=allowed}",
                5
            ),
            ("tollgate_shadow_denied_total{store=m,policy=trial}", 3),
        ])
    );
}
