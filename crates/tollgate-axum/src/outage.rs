//! What the log says of decisions: an outage's beginning and its end, and what shadows would have denied.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_core::Decision;

/// Whether the last answer was given without the store.
///
/// An outage concerns every request, and a line for each would bury what else the log says.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    lasts: AtomicBool,
}

impl Outage {
    /// Logs if `decision` is the first one of an outage, or the first one after it.
    #[inline]
    pub(crate) fn observe(&self, decision: &Decision<'_>) {
        if decision.is_degraded() != self.lasts.load(Ordering::Relaxed) {
            self.turn(decision);
        }
    }

    #[cold]
    fn turn(&self, decision: &Decision<'_>) {
        let degraded = decision.is_degraded();
        if self.lasts.swap(degraded, Ordering::Relaxed) == degraded {
            return;
        }
        if !degraded {
            tracing::info!("rate limits are counted by their store again");
            return;
        }
        tracing::warn!(
            error = decision.error().map(|error| error as &dyn Error),
            source = ?decision.source(),
            allowed = decision.is_allowed(),
            "rate limits are judged without their store until further notice"
        );
    }
}

/// Logs what policies in shadow mode would have denied, or could not judge.
#[inline]
pub(crate) fn log_shadows(decision: &Decision<'_>, scope: &str) {
    for shadow in decision.shadow_violated() {
        let policy = shadow.policy().name();
        tracing::debug!(
            policy,
            scope,
            "a request would be denied if the policy were enforced"
        );
    }
    for (policy, error) in decision.shadow_failed() {
        let (policy, error): (_, &dyn Error) = (policy.name(), error);
        tracing::debug!(
            policy,
            scope,
            error,
            "a policy in shadow mode was not judged"
        );
    }
}
