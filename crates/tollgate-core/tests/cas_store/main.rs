//! A whole store from load and compare-and-swap: exact under contention, and honest when it gives up.

mod backend;
mod contention;
mod trouble;
mod writes;

use std::sync::Arc;

use tollgate_core::{Algorithm, CasStore, Limiter, Policy};

use backend::MapBackend;

fn policy(algorithm: Algorithm, quota: &str) -> Policy {
    Policy::new("cas", algorithm, quota.parse().expect("legal")).expect("legal")
}

fn limiter(
    backend: MapBackend,
    policies: impl Into<tollgate_core::Policies>,
) -> Limiter<Arc<CasStore<MapBackend>>> {
    Limiter::new(Arc::new(CasStore::new(backend)), policies)
}
