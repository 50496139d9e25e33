//! A client that ignores its denial, and how often that reaches the store.
//!
//! ```text
//! cargo run -p tollgate-layers --example deny_cache
//! ```

#![expect(clippy::print_stdout, reason = "an example that shows its result")]

use std::time::{Duration, Instant};

use tollgate_core::{Limiter, Quota, Result, Source};
use tollgate_layers::{DenyCache, DenyCacheOptions};
use tollgate_memory::MemoryStore;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // A store in the network in its place gains by it; one in memory only shows what happens.
    let options = DenyCacheOptions::new().max_age(Duration::from_millis(500));
    let store = DenyCache::with_options(MemoryStore::new(), options)?;
    let limiter = Limiter::new(store, Quota::per_minute(5));

    let (mut admitted, mut from_store, mut from_memory) = (0, 0, 0);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        let decision = limiter.hit("203.0.113.7").await?;
        match (decision.is_allowed(), decision.source()) {
            (true, _) => admitted += 1,
            (false, Source::DenyCache) => from_memory += 1,
            (false, _) => from_store += 1,
        }
    }
    println!("admitted                 {admitted}");
    println!("denied by the store      {from_store}");
    println!("denied from memory       {from_memory}");
    Ok(())
}
