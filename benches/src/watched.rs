//! A memory store that is watched, and the recorder that may be told.

use metrics_exporter_prometheus::PrometheusBuilder;
use tollgate_layers::Instrumented;
use tollgate_memory::{Limiter, MemoryStore};

use crate::{names_in_turn, quota};

/// The limiter of [`tollgate`](crate::tollgate) on a watched store.
pub type Watched = Limiter<Instrumented<MemoryStore>>;

/// A limiter whose store is watched, and times its calls if `timed`; a thousand subjects are known to it.
#[must_use]
pub fn watched(timed: bool) -> Watched {
    let store = Instrumented::new(MemoryStore::new()).time_in_process(timed);
    let limiter = Limiter::new(store, quota());
    for name in names_in_turn(1_000, 2_000) {
        let _ = hit(&limiter, &name);
    }
    limiter
}

/// One hit; returns whether it was admitted.
///
/// # Panics
/// If the subject is empty.
#[inline]
#[must_use]
pub fn hit(limiter: &Watched, subject: &str) -> bool {
    limiter
        .hit_now(subject)
        .is_ok_and(|decision| decision.is_allowed())
}

/// Installs the Prometheus recorder in this process.
///
/// # Panics
/// If there is a recorder already.
pub fn record() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::set_global_recorder(recorder).expect("it is the first");
}
