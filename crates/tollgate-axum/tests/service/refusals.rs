//! Answers of the application's own.

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use reqwest::Method;
use tollgate_axum::{DenialFormat, DenialReason, RateLimitLayer, Refused};
use tollgate_memory::{ManualClock, MemoryStore, Quota};

use crate::server::{Server, limiter};

fn blocked() -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(limiter(Quota::per_minute(1), &ManualClock::default()))
}

fn tell(refused: &Refused) -> String {
    let limit = refused.limit.as_ref().unwrap();
    format!("{}: {} left", refused.parts.uri.path(), limit.remaining())
}

#[tokio::test]
async fn a_closure_answers_in_the_place_of_the_problem_document() {
    let layer = blocked().on_refusal(|refused: Refused| (StatusCode::IM_A_TEAPOT, tell(&refused)));
    let app = Router::new()
        .route("/tea", get(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.status("/tea").await, 200);
    let response = server.get("/tea").await;
    assert_eq!(response.status(), 418);
    assert_eq!(response.headers()["retry-after"], "60");
    assert_eq!(response.headers()["x-ratelimit-remaining"], "0");
    assert_eq!(response.text().await.unwrap(), "/tea: 0 left");
}

#[tokio::test]
async fn an_answer_may_take_a_future_and_set_headers_of_its_own() {
    let layer = blocked().on_refusal_async(|refused: Refused| async move {
        tokio::task::yield_now().await;
        let headers = [("retry-after", "7"), ("x-ratelimit-limit", "many")];
        (refused.denial.status(), headers, tell(&refused))
    });
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.status("/").await, 200);
    let response = server.get("/").await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "7");
    assert_eq!(response.headers()["x-ratelimit-limit"], "many");
    assert!(!response.headers().contains_key("x-ratelimit-remaining"));
    assert!(response.headers().contains_key("ratelimit"));
}

#[tokio::test]
async fn it_answers_as_well_where_nobody_could_be_named() {
    let layer = blocked().on_refusal(|refused: Refused| {
        assert_eq!(refused.denial.reason(), DenialReason::Internal);
        assert!(refused.limit.is_none());
        (refused.denial.status(), "sorry").into_response()
    });
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start_without_peers(app).await;
    let response = server.get("/").await;
    assert_eq!(response.status(), 500);
    assert_eq!(response.text().await.unwrap(), "sorry");
}

#[tokio::test]
async fn the_document_is_spelled_as_the_client_accepts_or_as_the_layer_says() {
    let app = Router::new()
        .route("/asked", get(|| async {}).layer(blocked().cost(|_| 2)))
        .route(
            "/told",
            get(|| async {}).layer(blocked().cost(|_| 2).denial_format(DenialFormat::Json)),
        );
    let server = Server::start(app).await;
    for (path, content_type) in [
        ("/asked", "text/plain; charset=utf-8"),
        ("/told", "application/json"),
    ] {
        let request = server
            .request(Method::GET, path)
            .header("accept", "text/plain");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["content-type"], content_type);
    }
}
