//! Burst and sustained: ten requests a second, and no more than a hundred a minute.
//!
//! `cargo run -p tollgate-axum --example burst_and_sustained`, then
//! `for i in $(seq 11); do curl -i http://localhost:3000/; done`.

use std::net::SocketAddr;

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tollgate_axum::RateLimitLayer;
use tollgate_axum::tollgate_core::{Algorithm, Limiter, Policies, Policy, SharedStore};
use tollgate_memory::MemoryStore;

/// The routes, with their counters in `store`.
pub(crate) fn app(store: &SharedStore) -> Result<Router> {
    let burst = Policy::new("burst", Algorithm::SlidingWindow, "10/second".parse()?)?;
    let sustained = Policy::new("sustained", Algorithm::SlidingWindow, "100/minute".parse()?)?;
    // Charged together or not at all: what the burst denies does not use up the minute.
    let limiter = Limiter::new(store.clone(), Policies::new([burst, sustained])?);
    let work = get(|| async { "done\n" }).route_layer(RateLimitLayer::new(limiter));
    Ok(Router::new().route("/", work))
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = app(&SharedStore::new(MemoryStore::new()))?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
