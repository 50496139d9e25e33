//! A recorder without a size of its own is a recorder nevertheless.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use tollgate_layers::Instrumented;
use tollgate_memory::{Limiter, MemoryStore, Quota};

/// Of every counter that says `allowed`.
static ALLOWED: AtomicU64 = AtomicU64::new(0);

/// Keeps everything in a static, as a bridge to another library of metrics would.
#[derive(Debug)]
struct Bridge;

struct Allowed;

impl CounterFn for Allowed {
    fn increment(&self, value: u64) {
        ALLOWED.fetch_add(value, Ordering::SeqCst);
    }

    fn absolute(&self, value: u64) {
        ALLOWED.store(value, Ordering::SeqCst);
    }
}

impl Recorder for Bridge {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.labels().any(|label| label.value() == "allowed") {
            return Counter::from_arc(Arc::new(Allowed));
        }
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn a_recorder_without_a_size_is_told_everything_once_it_is_installed() {
    let limiter = Limiter::new(Instrumented::new(MemoryStore::new()), Quota::per_minute(9));
    let _ = limiter.hit_now("a").unwrap();
    assert_eq!(ALLOWED.load(Ordering::SeqCst), 0);
    metrics::set_global_recorder(Bridge).unwrap();
    let _ = limiter.hit_now("a").unwrap();
    let _ = limiter.hit_now("a").unwrap();
    assert_eq!(ALLOWED.load(Ordering::SeqCst), 2);
}
