//! A budget of tokens for a language model: an estimate is charged before, the real number after.
//!
//! `cargo run -p tollgate-axum --example token_budget`, then
//! `curl -iN http://localhost:3000/complete --json '{"prompt":"tell me a story"}'`.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::Result;
use axum::body::Body;
use axum::http::{header, request};
use axum::routing::post;
use axum::{Json, Router};
use futures::stream;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tollgate_axum::tollgate_core::{Algorithm, Limiter, Policy, SharedStore};
use tollgate_axum::{Charged, Headers, QuotaUnit, RateLimitLayer};
use tollgate_memory::MemoryStore;

/// The most tokens that an answer has.
const LONGEST_ANSWER: u64 = 100;
/// The most tokens that a prompt has, and what one of unknown length is charged.
const LONGEST_PROMPT: u64 = 500;

/// The routes, with their counters in `store`.
pub(crate) fn app(store: &SharedStore) -> Result<Router> {
    let policy = Policy::new("tokens", Algorithm::TokenBucket, "1000/minute".parse()?)?;
    let limit = RateLimitLayer::new(Limiter::new(store.clone(), policy))
        .headers(Headers::default().quota_unit(QuotaUnit::new("tokens")?))
        .cost(estimate)
        .with_receipt();
    let complete = post(complete).route_layer(limit);
    Ok(Router::new().route("/complete", complete))
}

/// About four bytes make a token; and no answer is known before it is given.
fn estimate(request: &request::Parts) -> u64 {
    let length = request.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let prompt = length.map_or(LONGEST_PROMPT, |bytes: u64| bytes.div_ceil(4));
    prompt.min(LONGEST_PROMPT) + LONGEST_ANSWER
}

#[derive(Deserialize)]
struct Prompt {
    prompt: String,
}

/// Streams the answer, which ends once it is paid for. A task of its own settles, so that it also does when the client has
/// left. What is never settled (a body that is no JSON, a crash) stays charged as estimated.
async fn complete(charged: Charged, Json(prompt): Json<Prompt>) -> Body {
    let (words, answer) = mpsc::channel(1);
    tokio::spawn(async move {
        let tokens = generate(&prompt.prompt, &words).await;
        if let Err(error) = charged.settle(tokens).await {
            tracing::warn!("the estimate stays charged: {error}");
        }
    });
    Body::from_stream(stream::unfold(answer, async |mut answer| {
        let word: String = answer.recv().await?;
        Some((Ok::<_, Infallible>(word), answer))
    }))
}

/// Stands in for a model: it says the prompt's words backwards, until nobody listens. A word is a token; returns how many
/// there were, in the prompt and in the answer.
pub(crate) async fn generate(prompt: &str, answer: &mpsc::Sender<String>) -> u64 {
    let mut tokens = prompt.split_whitespace().map(|_| 1).sum();
    for word in prompt.split_whitespace().rev() {
        if answer.send(format!("{word} ")).await.is_err() {
            break;
        }
        tokens += 1;
    }
    tokens
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = app(&SharedStore::new(MemoryStore::new()))?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
