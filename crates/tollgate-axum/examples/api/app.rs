//! The routes: one that everybody may ask, and three with limits.

use anyhow::Result;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tollgate_axum::tollgate_core::{Algorithm, FailureMode, Limiter, Policy, SharedStore};
use tollgate_axum::{Charged, Headers, QuotaUnit, RateLimitLayer};

/// What a completion is charged before anybody knows what it costs.
const ESTIMATE: u64 = 100;

/// The routes, with their counters in `store`.
pub(crate) fn app(store: &SharedStore) -> Result<Router> {
    // Five requests at once, then one every two seconds, for each client address. Responses carry both families of headers.
    let policy = Policy::new("search", Algorithm::TokenBucket, "5/10 seconds".parse()?)?;
    let search_limit = RateLimitLayer::new(Limiter::new(store.clone(), policy));

    // Five failures lock an address out until 15 minutes after the first; a success forgets them. Guessing must not
    // become free while the store is away.
    let policy = Policy::new("login", Algorithm::FixedWindow, "5/15 minutes".parse()?)?;
    let limiter = Limiter::new(store.clone(), policy).on_failure(FailureMode::Closed);
    let login_limit = RateLimitLayer::new(limiter).lockout();

    // A budget of tokens: an estimate is charged before, and corrected by the handler.
    let policy = Policy::new("tokens", Algorithm::TokenBucket, "1000/minute".parse()?)?;
    let complete_limit = RateLimitLayer::new(Limiter::new(store.clone(), policy))
        .headers(Headers::default().quota_unit(QuotaUnit::new("tokens")?))
        .cost(|_| ESTIMATE)
        .with_receipt();

    Ok(Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route("/search", get(search).route_layer(search_limit))
        .route("/login", post(login).route_layer(login_limit))
        .route("/complete", post(complete).route_layer(complete_limit)))
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    q: String,
}

async fn search(Query(search): Query<Search>) -> String {
    const GOODS: [&str; 4] = ["black tea", "coffee", "green tea", "teapot"];
    let found = GOODS.iter().filter(|goods| goods.contains(&search.q));
    found.map(|goods| format!("{goods}\n")).collect()
}

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

/// Knows one user, so that there is something to guess. Your passwords lie in a database, and hashed.
async fn login(Json(login): Json<Login>) -> (StatusCode, &'static str) {
    if login.user == "alice" && login.password == "wonderland" {
        (StatusCode::OK, "welcome\n")
    } else {
        (StatusCode::UNAUTHORIZED, "wrong user or password\n")
    }
}

#[derive(Deserialize)]
struct Prompt {
    prompt: String,
}

#[derive(Serialize)]
struct Completion {
    text: String,
    tokens: u64,
}

/// Stands in for a model: it says the prompt's words backwards, and a word is a token.
async fn complete(charged: Charged, Json(prompt): Json<Prompt>) -> Json<Completion> {
    let words: Vec<_> = prompt.prompt.split_whitespace().rev().collect();
    let tokens = words.iter().chain(&words).map(|_| 1).sum();
    if let Err(error) = charged.settle(tokens).await {
        tracing::warn!("the estimate stays charged: {error}");
    }
    Json(Completion {
        text: words.join(" "),
        tokens,
    })
}
