//! E-mail per recipient: one message in ten minutes and five a day, whoever sends them.
//!
//! `cargo run -p tollgate-axum --example email_per_recipient`, then twice
//! `curl -i http://localhost:3000/send --json '{"to":"bob@example.com","text":"hello"}'`.

use std::net::SocketAddr;

use anyhow::Result;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;
use tollgate_axum::tollgate_core::{Algorithm, Limiter, Policies, Policy, SharedStore};
use tollgate_axum::{NotAdmitted, RequestLimiter};
use tollgate_memory::MemoryStore;

/// The routes, with their counters in `store`.
pub(crate) fn app(store: &SharedStore) -> Result<Router> {
    let pause = Policy::new("pause", Algorithm::FixedWindow, "1/10 minutes".parse()?)?;
    // Days begin at midnight, UTC.
    let daily = Policy::new("daily", Algorithm::FixedWindow, "5/day".parse()?)?.aligned(0)?;
    // Both are charged or none: a message that has to wait does not count for the day.
    let limiter = Limiter::new(store.clone(), Policies::new([pause, daily])?).scope("mail");
    Ok(Router::new().route("/send", post(send)).with_state(limiter))
}

#[derive(Deserialize)]
struct Message {
    to: String,
    text: String,
}

async fn send(
    limiter: RequestLimiter,
    Json(message): Json<Message>,
) -> Result<(StatusCode, String), NotAdmitted> {
    let Some(recipient) = recipient(&message.to) else {
        let answer = format!("{:?} is no address\n", message.to);
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, answer));
    };
    let limit = limiter.hit(&recipient).await?;
    deliver(&recipient, &message.text);
    // The policies are in the order that they were given in.
    let left = limit.policies()[1].remaining();
    let answer = format!("sent to {recipient}; {left} more today\n");
    Ok((StatusCode::ACCEPTED, answer))
}

/// One spelling for each mailbox, or capital letters would be a way around the limit.
fn recipient(address: &str) -> Option<String> {
    let address = address.trim();
    let (mailbox, domain) = address.split_once('@')?;
    let is_address = !mailbox.is_empty() && !domain.is_empty() && !domain.contains('@');
    is_address.then(|| address.to_lowercase())
}

/// Stands in for a mail server.
fn deliver(recipient: &str, text: &str) {
    tracing::info!("to {recipient}: {text}");
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = app(&SharedStore::new(MemoryStore::new()))?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
