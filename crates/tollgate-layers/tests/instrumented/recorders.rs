//! Recorders that come late, and calls that nobody records.

use metrics_util::debugging::DebuggingRecorder;
use tollgate_core::{Limiter, ManualClock};
use tollgate_layers::{Instrumented, observe_memory};
use tollgate_memory::MemoryStore;

use crate::support::{counters, expected, memory, policy};

#[test]
fn a_recorder_may_be_installed_after_the_first_call() {
    let store = Instrumented::new(memory(&ManualClock::default()));
    let limiter = Limiter::new(store, policy("p", "10/minute"));
    let _ = limiter.hit_now("a").unwrap();
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let _ = limiter.hit_now("a").unwrap();
    });
    let counts = counters(&recorder.snapshotter());
    assert_eq!(
        counts,
        expected([
            ("tollgate_answers_total{store=store,source=store}", 1),
            (
                "tollgate_requests_total{store=store,policy=p,outcome=allowed}",
                1
            ),
        ])
    );
}

#[test]
fn handles_stay_with_the_recorder_they_came_from() {
    let store = Instrumented::new(memory(&ManualClock::default()));
    let limiter = Limiter::new(store, policy("p", "10/minute"));
    let first = DebuggingRecorder::new();
    metrics::with_local_recorder(&first, || {
        let _ = limiter.hit_now("a").unwrap();
    });
    let second = DebuggingRecorder::new();
    metrics::with_local_recorder(&second, || {
        let _ = limiter.hit_now("a").unwrap();
    });
    let requests = "tollgate_requests_total{store=store,policy=p,outcome=allowed}";
    assert_eq!(counters(&first.snapshotter())[requests], 2);
    assert!(counters(&second.snapshotter()).is_empty());
}

#[test]
fn a_full_memory_store_shows_what_it_drove_out() {
    let store = MemoryStore::builder()
        .clock(ManualClock::default())
        .max_capacity(100)
        .build()
        .unwrap();
    let limiter = Limiter::new(store.clone(), policy("p", "10/hour"));
    for index in 0..1_000 {
        let _ = limiter.hit_now(format!("user:{index}")).unwrap();
    }
    let recorder = DebuggingRecorder::new();
    let observe = || metrics::with_local_recorder(&recorder, || observe_memory("mem", &store));
    observe();
    observe();
    let stats = store.stats();
    assert!(stats.evicted_live > 0);
    let counts = counters(&recorder.snapshotter());
    let evictions = counts["tollgate_memory_evictions_total{store=mem}"];
    assert_eq!(evictions, stats.evicted_live);
}
