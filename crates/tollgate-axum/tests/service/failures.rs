//! When the store is away.

use axum::Router;
use axum::routing::get;
use tollgate_axum::{RateLimit, RateLimitLayer};
use tollgate_memory::{Algorithm, FailureMode, Limiter, Policies, Policy, Quota};

use crate::server::Server;
use crate::stores::Remote;

fn app(limiter: Limiter<Remote>) -> Router {
    let handler = get(|limit: RateLimit| async move { limit.is_degraded().to_string() });
    Router::new()
        .route("/", handler)
        .route_layer(RateLimitLayer::new(limiter))
}

#[tokio::test]
async fn h12_open_lets_requests_pass_and_says_nothing_it_does_not_know() {
    let store = Remote::new();
    let server = Server::start(app(Limiter::new(store.clone(), Quota::per_minute(1)))).await;
    store.break_down(true);
    for _ in 0..3 {
        let response = server.get("/").await;
        assert_eq!(response.status(), 200);
        for name in [
            "x-ratelimit-limit",
            "ratelimit",
            "ratelimit-policy",
            "retry-after",
        ] {
            assert!(!response.headers().contains_key(name), "{name}");
        }
        assert_eq!(response.text().await.unwrap(), "true");
    }
    store.break_down(false);
    let response = server.get("/").await;
    assert_eq!(response.headers()["x-ratelimit-remaining"], "0");
    assert_eq!(response.text().await.unwrap(), "false");
    assert_eq!(server.status("/").await, 429);
}

#[tokio::test]
async fn h12_closed_answers_503_without_a_time_that_nobody_knows() {
    let store = Remote::new();
    let limiter = Limiter::new(store.clone(), Quota::per_minute(9)).on_failure(FailureMode::Closed);
    let server = Server::start(app(limiter)).await;
    store.break_down(true);
    let response = server.get("/").await;
    assert_eq!(response.status(), 503);
    for name in [
        "x-ratelimit-limit",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
    ] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    store.break_down(false);
    assert_eq!(server.status("/").await, 200);
}

#[tokio::test]
async fn a_policy_may_have_a_failure_mode_of_its_own() {
    let store = Remote::new();
    let policy = |name, mode| {
        let policy = Policy::new(name, Algorithm::Gcra, Quota::per_minute(9)).unwrap();
        policy.on_failure(mode)
    };
    let policies = Policies::new([
        policy("soft", FailureMode::Open),
        policy("hard", FailureMode::Closed),
    ])
    .unwrap();
    let server = Server::start(app(Limiter::new(store.clone(), policies))).await;
    store.break_down(true);
    let response = server.get("/").await;
    assert_eq!(response.status(), 503);
    let body = response.text().await.unwrap();
    assert!(body.contains(r#"["hard"]"#), "{body}");
}

#[tokio::test]
async fn h12_a_fallback_that_is_not_there_is_a_fault_of_the_setup() {
    let store = Remote::new();
    let limiter =
        Limiter::new(store.clone(), Quota::per_minute(9)).on_failure(FailureMode::Fallback);
    let server = Server::start(app(limiter)).await;
    store.break_down(true);
    let response = server.get("/").await;
    assert_eq!(response.status(), 500);
    let body = response.text().await.unwrap();
    assert!(!body.contains("cut off"), "{body}");
}
