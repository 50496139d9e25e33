//! The usual layers around a store that goes away: it is stood in for, and then asked again.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate_layers::{BreakerOptions, DenyCacheOptions, Share, Stack};
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
    let wait = Duration::from_millis(100);
    let store = Stack::around(store)
        .name("shaky")
        .timeout(Duration::from_millis(50))
        .breaker(BreakerOptions::new().failures(2).backoff(wait, wait))
        .fallback(Share::of(1, 2)?)
        .deny_cache(DenyCacheOptions::new())
        .build()?;
    let limiter = Limiter::new(store, Quota::per_hour(10));

    for (act, is_away) in [("well", false), ("away", true), ("back", false)] {
        away.store(is_away, Ordering::SeqCst);
        tokio::time::sleep(wait).await;
        for _ in 0..4 {
            let decision = limiter.hit("user:42").await?;
            println!(
                "{act}: {}, by {:?}",
                decision.to_report(),
                decision.source()
            );
        }
    }
    Ok(())
}
