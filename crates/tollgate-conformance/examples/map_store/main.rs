//! A store from two functions, at work. `docs/writing-a-store.md` tells how it comes about.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[expect(
    dead_code,
    reason = "the conformance test looks behind the store with the rest"
)]
mod backend;

use backend::MapBackend;
use tollgate_core::{CasStore, Limiter, Quota, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let backend = MapBackend::default();
    let limiter = Limiter::new(CasStore::new(backend.clone()), Quota::per_minute(3));
    for nth in 1..=4 {
        let decision = limiter.hit("alice").await?;
        println!("hit {nth}: {}", decision.to_report());
    }
    backend.sweep();
    Ok(())
}
