//! A store goes away for a second and comes back; the breaker spares it, and finds out.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use tollgate_layers::{Breaker, BreakerOptions};
use tollgate_memory::{
    Batch, Capabilities, Error, ErrorKind, Key, Limiter, MemoryStore, Quota, Result, Store,
    Verdicts,
};

/// A memory store that can be taken away.
#[derive(Debug)]
struct Shaky {
    memory: MemoryStore,
    away: Arc<AtomicBool>,
}

impl Shaky {
    fn check(&self) -> Result<()> {
        if self.away.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, "nobody answers"));
        }
        Ok(())
    }
}

impl Store for Shaky {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.check()?;
        self.memory.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.check()?;
        self.memory.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let away = Arc::new(AtomicBool::new(false));
    let store = Shaky {
        memory: MemoryStore::new(),
        away: Arc::clone(&away),
    };
    let options = BreakerOptions::new()
        .name("shaky")
        .failures(2)
        .backoff(Duration::from_millis(100), Duration::from_millis(400));
    let limiter = Limiter::new(
        Breaker::with_options(store, options)?,
        Quota::per_minute(100),
    );

    for tick in 0..16 {
        away.store((3..13).contains(&tick), Ordering::SeqCst);
        let decision = limiter.hit("user:42").await?;
        let state = limiter.store().state();
        match decision.error() {
            Some(error) => println!("{state:?}: {error}"),
            None => println!("{state:?}: {} left", decision.remaining()),
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
