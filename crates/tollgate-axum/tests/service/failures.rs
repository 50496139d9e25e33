//! When the store is away.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use reqwest::Response;
use tollgate_axum::{CountAfter, RateLimit, RateLimitLayer};
use tollgate_layers::{Fallback, Share, Timeout};
use tollgate_memory::{Algorithm, FailureMode, Limiter, Policies, Policy, Quota, Store};

use crate::server::Server;
use crate::stores::Remote;

fn app<S: Store + Clone>(limiter: Limiter<S>) -> Router {
    let handler = get(|limit: RateLimit| async move { limit.is_degraded().to_string() });
    Router::new()
        .route("/", handler)
        .route_layer(RateLimitLayer::new(limiter))
}

fn says_no_number(response: &Response) -> bool {
    let names = [
        "x-ratelimit-limit",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
    ];
    !names
        .iter()
        .any(|name| response.headers().contains_key(*name))
}

#[tokio::test]
async fn h12_open_lets_requests_pass_and_says_nothing_it_does_not_know() {
    let store = Remote::new();
    let server = Server::start(app(Limiter::new(store.clone(), Quota::per_minute(1)))).await;
    store.break_down(true);
    for _ in 0..3 {
        let response = server.get("/").await;
        assert_eq!(response.status(), 200);
        assert!(says_no_number(&response));
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
    assert!(says_no_number(&response));
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

#[tokio::test]
async fn a_store_that_hangs_is_one_that_is_away() {
    let bound = Duration::from_millis(20);
    for (mode, expected) in [(FailureMode::Open, 200), (FailureMode::Closed, 503)] {
        let store = Timeout::within(Remote::held(), bound).unwrap();
        let limiter = Limiter::new(store, Quota::per_minute(9)).on_failure(mode);
        let server = Server::start(app(limiter)).await;
        let response = server.get("/").await;
        assert_eq!(response.status(), expected);
        assert!(says_no_number(&response));
    }
}

#[tokio::test]
async fn h12_every_way_to_charge_fails_as_it_is_told() {
    let rules = [
        CountAfter::lockout(),
        CountAfter::failures(),
        CountAfter::when(|_| true).reserving(),
    ];
    for (mode, expected) in [
        (FailureMode::Open, 200),
        (FailureMode::Closed, 503),
        (FailureMode::Fallback, 500),
    ] {
        let store = Remote::new();
        store.break_down(true);
        let limiter = Limiter::new(store, Quota::per_minute(9)).on_failure(mode);
        let layer = RateLimitLayer::new(limiter);
        let mut layers = vec![layer.clone(), layer.clone().with_receipt()];
        layers.extend(
            rules
                .iter()
                .map(|rule| layer.clone().count_after(rule.clone())),
        );
        for layer in layers {
            let app = Router::new()
                .route("/", get(|| async {}))
                .route_layer(layer);
            let response = Server::start(app).await.get("/").await;
            assert_eq!(response.status(), expected, "{mode:?}");
            assert!(says_no_number(&response), "{mode:?}");
            assert!(!response.text().await.unwrap().contains("cut off"));
        }
    }
}

#[tokio::test]
async fn h12_a_stand_in_counts_its_share_and_its_numbers_are_told() {
    let remote = Remote::new();
    let store = Fallback::new(remote.clone(), Share::of(1, 2).unwrap());
    let policy = Policy::new("w", Algorithm::FixedWindow, Quota::per_minute(4)).unwrap();
    let server = Server::start(app(Limiter::new(Arc::new(store), policy))).await;
    remote.break_down(true);
    for left in ["1", "0"] {
        let response = server.get("/").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-ratelimit-remaining"], left);
        assert_eq!(response.text().await.unwrap(), "true");
    }
    let denied = server.get("/").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(denied.headers()["retry-after"], "60");
    assert_eq!(denied.headers()["ratelimit"], r#""w";r=0;t=60"#);
}
