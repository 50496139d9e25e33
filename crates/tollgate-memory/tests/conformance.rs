//! The conformance kit on the store with its default clock and hasher.

use std::process::ExitCode;
use std::sync::Arc;

use tollgate_conformance::{BoxError, Harness, Held, Offer, Offered};
use tollgate_memory::{
    Batch, Capabilities, Clock, InProcessStore, Key, MemoryStore, Result, Store, Timestamp,
    TscClock, Verdicts,
};

fn main() -> ExitCode {
    tollgate_conformance::main_with(MemoryHarness::default())
}

#[derive(Default)]
struct MemoryHarness {
    clock: SharedClock,
}

/// The default clock, which the harness reads as well.
#[derive(Clone, Debug, Default)]
struct SharedClock(Arc<TscClock>);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl Harness for MemoryHarness {
    type Store = AtHand;

    fn name(&self) -> &str {
        "memory"
    }

    async fn store(&self) -> std::result::Result<AtHand, BoxError> {
        let builder = MemoryStore::builder().clock(self.clock.clone());
        Ok(AtHand(builder.build()?))
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
struct AtHand(MemoryStore<SharedClock>);

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
