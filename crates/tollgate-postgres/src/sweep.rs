//! Taking away expired rows. No answer depends on it: it only gives the space back.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::error::Failure;
use crate::flight::Pilot;

/// Pages per statement: a few thousand rows, which takes a few milliseconds.
const PAGES: u32 = 64;
/// How long the sweeper leaves the server alone between two statements.
const PAUSE: Duration = Duration::from_millis(10);

/// A task that sweeps now and then; it ends when this is dropped.
///
/// Any number of replicas may run one: they look at different times, and an advisory lock lets one of them work.
#[derive(Debug)]
#[must_use = "the task ends when this is dropped"]
pub struct Sweeper(JoinHandle<()>);

impl Sweeper {
    pub(crate) fn start(pilot: Arc<Pilot>, every: Duration) -> Self {
        Self(tokio::spawn(async move {
            loop {
                // Half to one and a half times, so that replicas that started together do not sweep together.
                let micros = u64::try_from(every.as_micros())
                    .unwrap_or(u64::MAX / 2)
                    .max(2);
                let jittered = fastrand::u64(micros / 2..micros.saturating_add(micros / 2));
                tokio::time::sleep(Duration::from_micros(jittered)).await;
                match sweep(&pilot, PAUSE).await {
                    Ok(swept) => tracing::debug!(swept, "took away expired rows"),
                    Err(failure) => {
                        let error = tollgate_core::Error::from(failure);
                        tracing::warn!(%error, "cannot take away expired rows; trying again later");
                    }
                }
            }
        }))
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sweeps both tables, and returns how many rows went.
pub(crate) async fn sweep(pilot: &Pilot, pause: Duration) -> Result<u64, Failure> {
    let mut swept = 0;
    for logs in [false, true] {
        let mut page = 0;
        loop {
            let outcome = pilot.sweep(logs, page, PAGES.into()).await?;
            swept += outcome.swept;
            if !outcome.more {
                break;
            }
            page += i64::from(PAGES);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }
    Ok(swept)
}
