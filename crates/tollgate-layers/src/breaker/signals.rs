//! What a breaker tells the world: events and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Error, ErrorKind};

use super::gate::{Change, Gate, in_words};
use super::word::BreakerState;

/// How long one kind of permanent failure is not told of again, in microseconds.
const QUIET: u64 = 60_000_000;
const NEVER: u64 = u64::MAX;

/// Tells of changes and of permanent failures, under the name of the store.
#[derive(Debug)]
pub(super) struct Signals {
    name: &'static str,
    gauge: Mutex<()>,
    refused: AtomicU64,
    corrupt: AtomicU64,
}

impl Signals {
    pub(super) fn new(name: &'static str) -> Self {
        let signals = Self {
            name,
            gauge: Mutex::new(()),
            refused: AtomicU64::new(NEVER),
            corrupt: AtomicU64::new(NEVER),
        };
        signals.set_gauge(BreakerState::Closed);
        signals
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    #[cold]
    pub(super) fn changed(&self, change: Change, gate: &Gate, error: Option<&Error>) {
        let store = self.name;
        let failure = error.map(in_words).unwrap_or_default();
        match change {
            Change::Opened(wait) => {
                metrics::counter!("tollgate_breaker_opened_total", "store" => store).increment(1);
                tracing::warn!(store, next_probe_in = ?wait, error = failure, "the breaker opened: the store is taken for down");
            }
            Change::Probing => {
                tracing::debug!(store, "the breaker is half-open: one call probes the store");
            }
            Change::StillOpen(wait) => {
                tracing::debug!(store, next_probe_in = ?wait, error = failure, "the breaker stays open: the probe failed");
            }
            Change::ProbeLost => {
                tracing::debug!(
                    store,
                    "the breaker stays open: the probe ended without an answer"
                );
            }
            Change::Closed(failed_probes) => {
                tracing::info!(
                    store,
                    failed_probes,
                    "the breaker closed: the store answers again"
                );
            }
        }
        // Of two who tell at once, the later sets what holds by then.
        let _alone = self.gauge.lock();
        self.set_gauge(gate.state());
    }

    fn set_gauge(&self, state: BreakerState) {
        let value = match state {
            BreakerState::Closed => 0.0,
            BreakerState::HalfOpen => 1.0,
            BreakerState::Open => 2.0,
        };
        metrics::gauge!("tollgate_breaker_state", "store" => self.name).set(value);
    }

    /// Tells of a failure that needs somebody to change something, now and then while it lasts.
    #[cold]
    pub(super) fn permanent(&self, error: &Error, now: u64) {
        let store = self.name;
        match error.kind() {
            ErrorKind::Refused if is_due(&self.refused, now) => {
                tracing::error!(
                    store,
                    error = in_words(error),
                    "the store refuses calls: see to its credentials and permissions"
                );
            }
            ErrorKind::Corrupt if is_due(&self.corrupt, now) => {
                tracing::error!(
                    store,
                    error = in_words(error),
                    "the store holds what was not written by this library: reset the key"
                );
            }
            _ => {}
        }
    }
}

fn is_due(told: &AtomicU64, now: u64) -> bool {
    let last = told.load(Ordering::Relaxed);
    let due = last == NEVER || now.saturating_sub(last) >= QUIET;
    due && told
        .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}
