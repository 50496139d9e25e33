//! Login lockout: five failures lock an address out, and twenty an account, wherever they come from.
//!
//! `cargo run -p tollgate-axum --example login_lockout`, then six times
//! `curl -i http://localhost:3000/login --json '{"user":"alice","password":"guess"}'`.

use std::net::SocketAddr;

use anyhow::Result;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;
use tollgate_axum::tollgate_core::{Algorithm, FailureMode, Limiter, Policy, SharedStore};
use tollgate_axum::{NotAdmitted, RateLimitLayer, RequestLimiter};
use tollgate_memory::MemoryStore;

/// The routes, with their counters in `store`.
pub(crate) fn app(store: &SharedStore) -> Result<Router> {
    // A fixed window begins with the first failure and ends 15 minutes later, whatever is tried in between. Guessing must
    // not become free while the store is away.
    let policy = Policy::new("address", Algorithm::FixedWindow, "5/15 minutes".parse()?)?;
    let limiter = Limiter::new(store.clone(), policy).on_failure(FailureMode::Closed);
    let addresses = RateLimitLayer::new(limiter).lockout();

    // High, because whoever uses it up keeps the owner out as well.
    let policy = Policy::new("account", Algorithm::FixedWindow, "20/hour".parse()?)?;
    let limiter = Limiter::new(store.clone(), policy).on_failure(FailureMode::Closed);
    let accounts = limiter.scope("accounts");

    let login = post(login).route_layer(addresses);
    Ok(Router::new().route("/login", login).with_state(accounts))
}

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

/// The account is in the body, where no layer looks, so the handler asks; and it asks first, so that attempts made at the
/// same time are no way around the limit.
async fn login(
    accounts: RequestLimiter,
    Json(login): Json<Login>,
) -> Result<(StatusCode, &'static str), NotAdmitted> {
    accounts.hit(&login.user).await?;
    if !is_right(&login) {
        return Ok((StatusCode::UNAUTHORIZED, "wrong user or password\n"));
    }
    if let Err(error) = accounts.limiter().reset(&login.user).await {
        tracing::warn!("the account's failures stay counted: {error}");
    }
    Ok((StatusCode::OK, "welcome\n"))
}

/// Knows one user, so that there is something to guess. Your passwords lie in a database, and hashed.
fn is_right(login: &Login) -> bool {
    login.user == "alice" && login.password == "wonderland"
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = app(&SharedStore::new(MemoryStore::new()))?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
