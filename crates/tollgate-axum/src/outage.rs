//! What the log says of a store's outage: its beginning and its end.

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
