//! Synchronous code asks a limiter: on a plain thread, and in the middle of a task.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use tollgate_layers::{Blocking, Timeout};
use tollgate_memory::{Acquire, Limiter, MemoryStore, Quota, Result};

/// What some library calls back, from wherever it likes: it knows nothing of futures.
fn handle(limiter: &Blocking<Timeout<MemoryStore>>, place: &str) -> Result<()> {
    let decision = limiter.hit("user:42")?;
    println!("{place}: {}", decision.to_report());
    Ok(())
}

fn main() -> Result<()> {
    // Whatever connections a store opens here are driven by the limiter's own thread.
    let limiter = Blocking::connect(async {
        let store = Timeout::new(MemoryStore::new());
        Ok(Limiter::new(
            store,
            "2/100ms".parse::<Quota>().expect("a quota"),
        ))
    })?;

    handle(&limiter, "on a plain thread")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime
        .expect("a runtime can be started")
        .block_on(async { handle(&limiter, "in a task") })?;
    handle(&limiter, "too often")?;

    let decision = limiter.acquire("user:42", Acquire::within(Duration::from_secs(1)))?;
    println!("after a wait: {}", decision.to_report());
    Ok(())
}
