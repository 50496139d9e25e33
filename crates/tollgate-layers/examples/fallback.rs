//! A store that goes away and comes back, and what one of two processes admits meanwhile.
//!
//! ```text
//! cargo run -p tollgate-layers --example fallback
//! ```

#![expect(clippy::print_stdout, reason = "an example that shows its result")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_core::{
    Batch, Capabilities, Error, ErrorKind, Key, Limiter, Quota, Result, Store, Verdicts,
};
use tollgate_layers::{Fallback, Share};
use tollgate_memory::MemoryStore;

/// A store on a line that can be cut. It takes the place of one in the network.
#[derive(Clone, Debug)]
struct Line {
    store: MemoryStore,
    cut: Arc<AtomicBool>,
}

impl Line {
    fn check(&self) -> Result<()> {
        if self.cut.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, "the line is cut"));
        }
        Ok(())
    }
}

impl Store for Line {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.check()?;
        self.store.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.check()?;
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

async fn hits(limiter: &Limiter<Fallback<Line>>, when: &str, times: u32) -> Result<()> {
    println!("{when}");
    for _ in 0..times {
        let decision = limiter.hit("user:42").await?;
        println!(
            "  {:<36} {:?}",
            decision.to_report().to_string(),
            decision.source()
        );
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let line = Line {
        store: MemoryStore::new(),
        cut: Arc::default(),
    };
    let store = Fallback::new(line.clone(), Share::of(1, 2)?);
    let limiter = Limiter::new(store, Quota::per_hour(6));

    hits(&limiter, "the store is up", 1).await?;
    line.cut.store(true, Ordering::SeqCst);
    hits(
        &limiter,
        "the store is away, and half of the limit is ours",
        4,
    )
    .await?;
    line.cut.store(false, Ordering::SeqCst);
    hits(
        &limiter,
        "the store is back, and three more are charged to it",
        3,
    )
    .await
}
