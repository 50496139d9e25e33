//! The conformance kit on an instrumented memory store: whoever watches a store changes none of its answers.

use std::process::ExitCode;
use std::sync::Arc;

use metrics_util::debugging::DebuggingRecorder;
use tollgate_conformance::{BoxError, Harness, Held, Offer, Offered};
use tollgate_core::{
    Batch, Capabilities, Clock, InProcessStore, Key, Result, Store, Timestamp, Verdicts,
};
use tollgate_layers::Instrumented;
use tollgate_memory::{MemoryStore, TscClock};

fn main() -> ExitCode {
    let recorder = DebuggingRecorder::new();
    recorder.install().expect("nobody else installs one");
    tollgate_conformance::main_with(InstrumentedHarness::default())
}

#[derive(Default)]
struct InstrumentedHarness {
    clock: SharedClock,
}

/// The store's clock, which the harness reads as well.
#[derive(Clone, Debug, Default)]
struct SharedClock(Arc<TscClock>);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl Harness for InstrumentedHarness {
    type Store = AtHand;

    fn name(&self) -> &str {
        "instrumented"
    }

    async fn store(&self) -> std::result::Result<AtHand, BoxError> {
        let store = MemoryStore::builder().clock(self.clock.clone()).build()?;
        let store = Instrumented::new(store).name("memory").log_denials(true);
        Ok(AtHand(store))
    }

    async fn backend_time(&self, _: &AtHand) -> Offered<Timestamp> {
        Ok(Offer::Given(self.clock.now()))
    }

    async fn held(&self, _: &AtHand, _: &Key<'_>) -> Offered<Held> {
        Ok(Offer::NotApplicable(
            "a state expires by its own reset time; nothing stands beside it",
        ))
    }
}

/// The store with the shortcut of `Limiter::hit_now`: what is at hand is judged there, anything else the long way.
#[derive(Debug)]
struct AtHand(Instrumented<MemoryStore<SharedClock>>);

impl Store for AtHand {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.0.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        if let ([check], None) = (batch.checks(), batch.instant())
            && let Some((at, verdict)) = self.0.judge_at_hand(check)
        {
            return Some(Ok(Verdicts::one(at, verdict)));
        }
        self.0.apply_now(batch)
    }
}
