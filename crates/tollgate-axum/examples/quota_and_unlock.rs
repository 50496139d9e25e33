//! A quota to look at, and an administrator who gives it back.
//!
//! `ADMIN_TOKEN=secret cargo run -p tollgate-axum --example quota_and_unlock`, then
//! `curl -i http://localhost:3000/report -H 'x-api-key: key-of-alice'` until it is denied,
//! `curl http://localhost:3000/quota -H 'x-api-key: key-of-alice'`, and
//! `curl -X POST http://localhost:3000/admin/unlock/alice -H 'authorization: Bearer secret'`.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use axum::extract::{FromRef, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header, request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tollgate_axum::tollgate_core::{Algorithm, Limiter, Policy, SharedStore};
use tollgate_axum::{RateLimitLayer, RequestKey};
use tollgate_memory::MemoryStore;

#[derive(Clone)]
struct Shared {
    reports: Limiter,
    admin_token: String,
}

impl FromRef<Shared> for Limiter {
    fn from_ref(shared: &Shared) -> Self {
        shared.reports.clone()
    }
}

/// The routes, with their counters in `store`.
pub(crate) fn app(store: &SharedStore, admin_token: &str) -> Result<Router> {
    let policy = Policy::new("reports", Algorithm::FixedWindow, "3/day".parse()?)?;
    // With a scope of its own the limiter counts in one place, whichever route asks it.
    let reports = Limiter::new(store.clone(), policy).scope("reports");
    let limit = RateLimitLayer::new(reports.clone()).key(user);

    let admin_token = admin_token.to_owned();
    let users = Router::new()
        .route(
            "/report",
            get(|| async { "a long report\n" }).route_layer(limit),
        )
        .route("/quota", get(quota))
        .route_layer(from_fn(authenticate));
    let admins = Router::new().route("/admin/unlock/{user}", post(unlock));
    Ok(users.merge(admins).with_state(Shared {
        reports,
        admin_token,
    }))
}

#[derive(Clone)]
struct User(&'static str);

/// Leaves the user in the request. Knows two keys; yours lie in a database, and hashed.
async fn authenticate(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let key = request.headers().get("x-api-key");
    let user = match key.and_then(|key| key.to_str().ok()) {
        Some("key-of-alice") => User("alice"),
        Some("key-of-bob") => User("bob"),
        _ => return Err(StatusCode::UNAUTHORIZED),
    };
    request.extensions_mut().insert(user);
    Ok(next.run(request).await)
}

fn user(parts: &request::Parts) -> Option<&'static str> {
    parts.extensions.get::<User>().map(|user| user.0)
}

/// The subject that the limiter counts by for a key that is a closure, as [`user`] is.
fn subject(user: &str) -> Result<RequestKey, StatusCode> {
    RequestKey::new(user).map_err(internal)
}

#[derive(Serialize)]
struct Quota {
    limit: u64,
    remaining: u64,
    seconds_until_reset: u64,
}

/// Looks, and charges nothing: a page may ask as often as it likes.
async fn quota(
    State(reports): State<Limiter>,
    Extension(User(user)): Extension<User>,
) -> Result<Json<Quota>, StatusCode> {
    let subject = subject(user)?;
    let decision = reports.peek(subject.subject()).await.map_err(internal)?;
    Ok(Json(Quota {
        limit: decision.limit(),
        remaining: decision.remaining(),
        seconds_until_reset: decision.reset_after().as_secs(),
    }))
}

/// Forgets what a user has used.
async fn unlock(
    State(shared): State<Shared>,
    Path(user): Path<String>,
    headers: HeaderMap,
) -> Result<String, StatusCode> {
    if !is_admin(&headers, &shared.admin_token) {
        return Err(StatusCode::FORBIDDEN);
    }
    let subject = subject(&user)?;
    let was_known = shared.reports.reset(subject.subject()).await;
    if was_known.map_err(internal)? {
        Ok(format!("{user} starts afresh\n"))
    } else {
        Ok(format!("{user} had used nothing\n"))
    }
}

fn is_admin(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(header::AUTHORIZATION);
    let given = given.and_then(|given| given.to_str().ok()?.strip_prefix("Bearer "));
    // How long it takes to compare digests says nothing about the token.
    given.is_some_and(|given| Sha256::digest(given) == Sha256::digest(token))
}

fn internal(error: impl std::error::Error) -> StatusCode {
    tracing::error!("{error}");
    StatusCode::INTERNAL_SERVER_ERROR
}

#[tokio::main]
async fn main() -> Result<()> {
    let admin_token = std::env::var("ADMIN_TOKEN").context("set ADMIN_TOKEN to a secret")?;
    let app = app(&SharedStore::new(MemoryStore::new()), &admin_token)?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
