//! Labels: few, and never a subject.

use std::collections::BTreeSet;

use metrics_util::debugging::DebuggingRecorder;
use proptest::prelude::*;
use tollgate_core::{ErrorKind, Limiter, ManualClock};
use tollgate_layers::{Instrumented, SubjectLogging};
use tracing::Level;

use crate::support::{Fault, Faulty, Lines, at, counted, expected, memory, policy, spelled};

/// Every series there is after hits of all sorts on `subject`.
fn series(subject: &[u8]) -> BTreeSet<String> {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let store = Faulty::new();
        let watched = Instrumented::new(store.clone())
            .log_denials(true)
            .log_subjects(SubjectLogging::Verbatim);
        let limiter = Limiter::new(watched, policy("p", "1/minute"));
        let _ = limiter.hit_now(subject).unwrap();
        let _ = limiter.hit_now(subject).unwrap();
        store.set(Fault::Error(ErrorKind::Corrupt, "on command"));
        let _ = limiter.hit_now(subject).unwrap();
        futures::executor::block_on(limiter.reset(subject)).unwrap_err();
    });
    let all = recorder.snapshotter().snapshot().into_vec().into_iter();
    all.map(|(key, ..)| spelled(key.key())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_subject_changes_what_series_there_are(
        subject in prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..300),
            "[a-z\"{}=,\\\\\n]{1,20}".prop_map(String::into_bytes),
        ],
    ) {
        prop_assert_eq!(series(&subject), series(b"somebody else"));
    }
}

#[test]
fn scopes_are_a_label_only_on_request() {
    let hits = |label_scopes: bool| {
        counted(|| {
            let store = Instrumented::new(memory(&ManualClock::default()));
            let limiter = Limiter::new(store.label_scopes(label_scopes), policy("p", "9/minute"));
            let _ = limiter.clone().scope("/a").hit_now("a").unwrap();
            let _ = limiter.scope("/b").hit_now("a").unwrap();
        })
    };
    let answers = ("tollgate_answers_total{store=store,source=store}", 2);
    assert_eq!(
        hits(false),
        expected([
            answers,
            (
                "tollgate_requests_total{store=store,policy=p,outcome=allowed}",
                2
            ),
        ])
    );
    assert_eq!(
        hits(true),
        expected([
            answers,
            (
                "tollgate_requests_total{store=store,scope=/a,policy=p,outcome=allowed}",
                1
            ),
            (
                "tollgate_requests_total{store=store,scope=/b,policy=p,outcome=allowed}",
                1
            ),
        ])
    );
}

#[test]
fn policies_beyond_the_256th_are_counted_together_and_told_of_once() {
    let hits = || {
        let store = Instrumented::new(memory(&ManualClock::default()));
        for index in 0..300 {
            let limiter = Limiter::new(store.clone(), policy(&format!("p{index}"), "9/minute"));
            let _ = limiter.hit_now("a").unwrap();
        }
    };
    let mut lines = Vec::new();
    let counts = counted(|| lines = Lines::of(hits));
    let allowed =
        |policy| format!("tollgate_requests_total{{store=store,policy={policy},outcome=allowed}}");
    assert_eq!(counts[&allowed("(other)")], 44);
    assert_eq!(counts[&allowed("p255")], 1);
    assert!(!counts.contains_key(&allowed("p256")));
    assert_eq!(at(Level::WARN, &lines).len(), 1);
}

#[test]
fn every_metric_is_described_and_durations_have_a_unit() {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let store = Instrumented::new(memory(&ManualClock::default()));
        let limiter = Limiter::new(store, policy("p", "9/minute"));
        let _ = limiter.hit_now("a").unwrap();
        tollgate_layers::observe_memory("memory", limiter.store().inner());
    });
    for (key, unit, description, _) in recorder.snapshotter().snapshot().into_vec() {
        let name = key.key().name().to_owned();
        assert!(description.is_some_and(|text| !text.is_empty()), "{name}");
        let seconds = unit == Some(metrics::Unit::Seconds);
        assert_eq!(seconds, name.ends_with("_seconds"), "{name}");
    }
}
