//! Who is counted, and what becomes of those who cannot be told apart.

use axum::Router;
use axum::routing::get;
use http::request::Parts;
use reqwest::Method;
use tollgate_axum::{KeyError, KeyExtractor, MissingKey, RateLimitLayer, from_async_fn};
use tollgate_memory::{ManualClock, Quota};

use crate::server::{Server, limiter};

/// An app that lets each client through twice.
fn keyed<K: KeyExtractor>(key: K, missing_key: MissingKey) -> Router {
    let layer = RateLimitLayer::new(limiter(Quota::per_minute(2), &ManualClock::default()))
        .key(key)
        .on_missing_key(missing_key);
    let app = Router::new().route("/", get(|| async { "served" }));
    app.route_layer(layer)
}

fn client(parts: &Parts) -> Option<String> {
    let name = parts.headers.get("x-client")?;
    Some(name.to_str().ok()?.to_owned())
}

/// The statuses of requests by these clients, in turn.
async fn statuses<const N: usize>(server: &Server, clients: [&str; N]) -> [u16; N] {
    let mut statuses = [0; N];
    for (status, client) in statuses.iter_mut().zip(clients) {
        let request = server.request(Method::GET, "/").header("x-client", client);
        *status = request.send().await.unwrap().status().as_u16();
    }
    statuses
}

#[tokio::test]
async fn b57_what_one_client_takes_is_not_taken_from_another() {
    let server = Server::start(keyed(client, MissingKey::Reject)).await;
    assert_eq!(
        statuses(&server, ["a", "a", "b", "a", "b", "b"]).await,
        [200, 200, 200, 429, 200, 429]
    );
}

#[tokio::test]
async fn a_key_that_has_to_be_looked_up_is_waited_for() {
    let key = from_async_fn(|parts: &Parts| {
        let name = client(parts);
        async move {
            tokio::task::yield_now().await;
            name
        }
    });
    let server = Server::start(keyed(key, MissingKey::Reject)).await;
    assert_eq!(
        statuses(&server, ["a", "a", "b", "a"]).await,
        [200, 200, 200, 429]
    );
}

#[tokio::test]
async fn b63_no_identity_is_refused_and_never_one_counter_for_all() {
    let server = Server::start(keyed(client, MissingKey::Reject)).await;
    for _ in 0..3 {
        let refused = server.get("/").await;
        assert_eq!(refused.status(), 500);
        assert!(!refused.headers().contains_key("retry-after"));
        assert!(!refused.headers().contains_key("x-ratelimit-limit"));
    }
}

#[tokio::test]
async fn no_identity_passes_uncounted_if_told_so() {
    let server = Server::start(keyed(client, MissingKey::Skip)).await;
    for _ in 0..4 {
        let served = server.get("/").await;
        assert_eq!(served.status(), 200);
        assert!(!served.headers().contains_key("x-ratelimit-limit"));
    }
}

#[tokio::test]
async fn h12_an_identity_that_cannot_be_told_is_refused_whatever_happens_to_missing_ones() {
    let broken = |_: &Parts| -> Result<Option<String>, KeyError> { Err(KeyError::other("broken")) };
    let server = Server::start(keyed(broken, MissingKey::Skip)).await;
    let refused = server.get("/").await;
    assert_eq!(refused.status(), 500);
    let body = refused.text().await.unwrap();
    assert!(!body.contains("broken"), "the cause is not told: {body}");
}

#[tokio::test]
async fn b86_without_peers_addresses_nothing_is_counted_for_unknown() {
    let layer = RateLimitLayer::new(limiter(Quota::per_minute(2), &ManualClock::default()));
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start_without_peers(app).await;
    assert_eq!(server.statuses(["/"; 3]).await, [500, 500, 500]);
}
