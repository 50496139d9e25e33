//! A background worker that keeps to the rate of a service it calls, without any HTTP of its own.
//!
//! `cargo run -p tollgate-axum --example worker`; ctrl-c ends it between two jobs.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::select;
use tokio::sync::mpsc;
use tollgate_memory::{Acquire, FailureMode, Limiter, MemoryStore, Quota, Result, SharedStore};

/// How long a job may wait for its turn. One that would wait longer is given up at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of the jobs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) done: Vec<u32>,
    pub(crate) given_up: Vec<u32>,
    pub(crate) not_begun: Vec<u32>,
}

/// What the service allows: two calls a second, evenly spread, from all workers on this store together.
pub(crate) fn limiter(store: &SharedStore) -> anyhow::Result<Limiter> {
    let pace: Quota = "2/second burst 1".parse()?;
    let limiter = Limiter::new(store.clone(), pace).scope("mail-service");
    // Nobody waits for an answer here, so a job is rather given up than sent too fast.
    Ok(limiter.on_failure(FailureMode::Closed))
}

/// Works until there are no more jobs, or until `shutdown`.
///
/// # Errors
/// If the limiter cannot be asked like this.
pub(crate) async fn run(
    limiter: &Limiter,
    mut jobs: mpsc::Receiver<u32>,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary> {
    let mut shutdown = pin!(shutdown);
    let mut summary = Summary::default();
    loop {
        let next = select! {
            biased;
            () = &mut shutdown => break,
            job = jobs.recv() => job,
        };
        let Some(job) = next else {
            return Ok(summary);
        };
        // Waiting charges nothing, so a wait that is broken off takes no turn from anybody.
        let turn = select! {
            biased;
            () = &mut shutdown => {
                summary.not_begun.push(job);
                break;
            }
            turn = limiter.acquire("everybody", Acquire::within(PATIENCE)) => turn?,
        };
        if turn.is_allowed() {
            call(job);
            summary.done.push(job);
        } else {
            summary.given_up.push(job);
        }
    }
    jobs.close();
    while let Some(job) = jobs.recv().await {
        summary.not_begun.push(job);
    }
    Ok(summary)
}

/// Stands in for the service.
fn call(job: u32) {
    tracing::info!("job {job}");
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_ansi(false).init();
    let (sender, jobs) = mpsc::channel(20);
    for job in 1..=20 {
        sender.send(job).await?;
    }
    drop(sender);

    let limiter = limiter(&SharedStore::new(MemoryStore::new()))?;
    let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    let summary = run(&limiter, jobs, shutdown).await?;
    tracing::info!("{summary:?}");
    Ok(())
}
