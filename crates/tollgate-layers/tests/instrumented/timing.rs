//! How long calls take, by a clock that moves on command.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::executor::block_on;
use metrics_util::debugging::DebuggingRecorder;
use quanta::Mock;
use tollgate_core::{Batch, Capabilities, Key, Limiter, ManualClock, Result, Store, Verdicts};
use tollgate_layers::Instrumented;
use tollgate_memory::MemoryStore;

use crate::support::{Fault, Faulty, counters, memory, policy, samples};

/// A store that takes a quarter of a second for a hit and an eighth for a reset.
#[derive(Debug)]
struct Slow {
    store: MemoryStore<ManualClock>,
    time: Arc<Mock>,
}

impl Store for Slow {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.time.increment(Duration::from_millis(250));
        self.store.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.time.increment(Duration::from_millis(125));
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

#[test]
fn calls_with_a_future_are_timed_by_verb() {
    let recorder = DebuggingRecorder::new();
    let (clock, time) = quanta::Clock::mock();
    let play = || {
        let store = memory(&ManualClock::default());
        let store = Instrumented::new(Slow { store, time });
        let limiter = Limiter::new(store, policy("p", "10/minute"));
        let _ = block_on(limiter.hit("a")).unwrap();
        let _ = block_on(limiter.hit("a")).unwrap();
        let _ = block_on(limiter.peek("a")).unwrap();
        let _ = block_on(limiter.reset("a")).unwrap();
    };
    quanta::with_clock(&clock, || metrics::with_local_recorder(&recorder, play));
    let timed = |verb| format!("tollgate_call_duration_seconds{{store=store,verb={verb}}}");
    let samples = samples(&recorder.snapshotter());
    assert_eq!(samples.len(), 3);
    assert_eq!(samples[&timed("hit")], [0.25, 0.25]);
    assert_eq!(samples[&timed("peek")], [0.25]);
    assert_eq!(samples[&timed("reset")], [0.125]);
}

#[test]
fn calls_in_this_process_are_timed_only_on_request() {
    for (wanted, timed) in [(false, 0), (true, 3)] {
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || {
            let store = memory(&ManualClock::default());
            let store = Instrumented::new(store).time_in_process(wanted);
            let limiter = Limiter::new(store, policy("p", "10/minute"));
            for _ in 0..3 {
                let _ = limiter.hit_now("a").unwrap();
            }
        });
        let samples = samples(&recorder.snapshotter());
        assert_eq!(samples.values().map(Vec::len).sum::<usize>(), timed);
    }
}

#[test]
fn a_call_that_its_caller_drops_is_counted_as_abandoned() {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let store = Faulty::new();
        store.set(Fault::Hang);
        let limiter = Limiter::new(Instrumented::new(store), policy("p", "10/minute"));
        assert!(limiter.hit("a").now_or_never().is_none());
        assert!(limiter.peek("a").now_or_never().is_none());
    });
    let counts = counters(&recorder.snapshotter());
    let abandoned = |verb| format!("tollgate_calls_abandoned_total{{store=store,verb={verb}}}");
    assert_eq!(counts.len(), 2);
    assert_eq!(counts[&abandoned("hit")], 1);
    assert_eq!(counts[&abandoned("peek")], 1);
}
