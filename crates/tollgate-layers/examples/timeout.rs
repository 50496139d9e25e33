//! A store that takes a second, and a caller who waits for a fiftieth of it.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::{Duration, Instant};

use tollgate_layers::Timeout;
use tollgate_memory::{
    Batch, Capabilities, FailureMode, Key, Limiter, MemoryStore, Quota, Result, Store, Verdicts,
};

/// A memory store behind a slow line.
#[derive(Debug)]
struct Slow(MemoryStore);

impl Store for Slow {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = Timeout::within(Slow(MemoryStore::new()), Duration::from_millis(20))?.name("slow");
    // Without a store, nobody passes: that is what `Closed` means.
    let limiter = Limiter::new(store, Quota::per_minute(3)).on_failure(FailureMode::Closed);

    let started = Instant::now();
    let decision = limiter.hit("user:42").await?;
    println!("answered after {:?}", started.elapsed());
    println!(
        "allowed: {}, by {:?}",
        decision.is_allowed(),
        decision.source()
    );
    if let Some(error) = decision.error() {
        println!("because of: {error}");
    }
    Ok(())
}
