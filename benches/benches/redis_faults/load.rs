//! Steady load from many tasks on a few subjects, each with a limit that the load goes far beyond.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tollgate_core::{Algorithm, FailureMode, Limiter, Policy, Quota};
use tollgate_redis::{Connection, RedisStore, tollgate_core};

const TASKS: u64 = 64;
const SUBJECTS: u64 = 50;
/// Per subject and day: it does not drain while the load lasts.
const LIMIT: u32 = 1_000;

/// What callers saw.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) over_admitted: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) longest: Duration,
    admitted: BTreeMap<u64, u64>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.longest = self.longest.max(other.longest);
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        for (subject, count) in other.admitted {
            *self.admitted.entry(subject).or_default() += count;
        }
    }
}

/// Hits over `connection` while `fault` goes on, on a thread of its own, and a while before and after. The servers that
/// it returns are kept until then.
pub(crate) async fn during<S: Send + 'static>(
    connection: impl Into<Connection>,
    fault: impl FnOnce() -> Result<S> + Send + 'static,
) -> Result<Outcome> {
    let policy = Policy::new("fault", Algorithm::FixedWindow, Quota::per_day(LIMIT))?;
    let limiter = Limiter::new(RedisStore::new(connection), policy);
    let limiter = Arc::new(limiter.on_failure(FailureMode::Closed));
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(hit(limiter.clone(), stop.clone(), task)))
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _servers = tokio::task::spawn_blocking(fault).await??;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.store(true, Ordering::Relaxed);
    let mut outcome = Outcome::default();
    for task in tasks {
        outcome.add(task.await??);
    }
    let over = |admitted: &u64| admitted.saturating_sub(u64::from(LIMIT));
    outcome.over_admitted = outcome.admitted.values().map(over).sum();
    Ok(outcome)
}

async fn hit(
    limiter: Arc<Limiter<RedisStore>>,
    stop: Arc<AtomicBool>,
    task: u64,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    while !stop.load(Ordering::Relaxed) {
        let subject = (task * 7 + outcome.sent) % SUBJECTS;
        let started = Instant::now();
        let decision = limiter.hit(format!("subject {subject}")).await?;
        outcome.longest = outcome.longest.max(started.elapsed());
        outcome.sent += 1;
        match decision.error() {
            None => outcome.answered += 1,
            Some(error) => {
                *outcome.errors.entry(error.kind().to_string()).or_default() += 1;
                // As a service would: no storm against a server that is down.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        if decision.is_allowed() {
            *outcome.admitted.entry(subject).or_default() += 1;
        }
        // Slow enough that the limit is reached only after a while.
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    Ok(outcome)
}
