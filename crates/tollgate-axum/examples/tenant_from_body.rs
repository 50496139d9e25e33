//! Tenants: who is limited, and by which plan, stands in the body.
//!
//! A middleware reads the body once, within a bound, and leaves the tenant in the request; the limiter behind it counts by
//! that, and the handler reads the body as ever.
//!
//! `cargo run -p tollgate-axum --example tenant_from_body`, then four times
//! `curl -i http://localhost:3000/events --json '{"tenant":"acme","name":"signup"}'`.

use std::net::SocketAddr;

use anyhow::Result;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;
use tollgate_axum::tollgate_core::{Algorithm, Limiter, Policy, SharedStore};
use tollgate_axum::{ExtensionKey, RateLimitLayer, Tier};
use tollgate_memory::MemoryStore;

/// The longest body, in bytes. Whatever is longer is refused before it is read to its end.
const LONGEST: usize = 16 * 1024;

/// The routes, with their counters in `store`.
pub(crate) fn app(store: &SharedStore) -> Result<Router> {
    let free = Policy::new("free", Algorithm::TokenBucket, "3/minute".parse()?)?;
    let paid = Policy::new("paid", Algorithm::TokenBucket, "6/minute".parse()?)?;
    let paid = Tier::limited(paid);

    let limit = RateLimitLayer::new(Limiter::new(store.clone(), free))
        .key(ExtensionKey::<Tenant, _>::new(|tenant| tenant.name.clone()))
        .tier(move |parts| match parts.extensions.get::<Tenant>() {
            Some(Tenant {
                plan: Plan::Paid, ..
            }) => paid.clone(),
            _ => Tier::standard(),
        });

    // What is added last is asked first.
    Ok(Router::new()
        .route("/events", post(event))
        .route_layer(limit)
        .route_layer(from_fn(identify)))
}

/// Whose request it is.
#[derive(Clone)]
struct Tenant {
    name: String,
    plan: Plan,
}

#[derive(Clone, Copy)]
enum Plan {
    Free,
    Paid,
}

impl Tenant {
    /// Knows two tenants. Yours lie in a database.
    fn find(name: String) -> Option<Self> {
        let plan = match name.as_str() {
            "acme" => Plan::Free,
            "globex" => Plan::Paid,
            _ => return None,
        };
        Some(Self { name, plan })
    }
}

#[derive(Deserialize)]
struct Owner {
    tenant: String,
}

/// Reads the body, leaves its tenant in the request, and hands the same body on.
async fn identify(request: Request, next: Next) -> Result<Response, (StatusCode, String)> {
    let (mut parts, body) = request.into_parts();
    let bytes = to_bytes(body, LONGEST).await;
    let bytes = bytes.map_err(|error| (StatusCode::PAYLOAD_TOO_LARGE, format!("{error}\n")))?;
    let owner: Owner = serde_json::from_slice(&bytes)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("{error}\n")))?;
    // Only tenants that there are get a counter.
    let tenant = Tenant::find(owner.tenant);
    let tenant = tenant.ok_or((StatusCode::FORBIDDEN, "unknown tenant\n".to_owned()))?;
    parts.extensions.insert(tenant);
    Ok(next
        .run(Request::from_parts(parts, Body::from(bytes)))
        .await)
}

#[derive(Deserialize)]
struct Event {
    name: String,
}

async fn event(Json(event): Json<Event>) -> String {
    format!("noted {}\n", event.name)
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = app(&SharedStore::new(MemoryStore::new()))?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
