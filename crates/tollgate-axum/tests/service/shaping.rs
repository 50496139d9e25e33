//! Requests that wait for their turn.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::time::Instant;
use tollgate_axum::RateLimitLayer;
use tollgate_memory::{Algorithm, Limiter, MemoryStore, Policy};

use crate::server::Server;

fn leaky(quota: &str) -> Limiter<MemoryStore> {
    let policy = Policy::new("shape", Algorithm::LeakyBucket, quota.parse().unwrap()).unwrap();
    Limiter::new(MemoryStore::new(), policy)
}

/// The statuses of so many requests sent at once, and how long each took, the quickest first.
async fn at_once(app: Router, requests: usize) -> Vec<(Duration, u16)> {
    let server = Arc::new(Server::start(app).await);
    let started = Instant::now();
    let requests: Vec<_> = (0..requests)
        .map(|_| {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let status = server.status("/").await;
                (started.elapsed(), status)
            })
        })
        .collect();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap());
    }
    answers.sort_unstable();
    answers
}

#[tokio::test]
async fn requests_reach_the_handler_at_the_steady_rate() {
    let layer = RateLimitLayer::new(leaky("20/second burst 5")).shape(Duration::from_secs(5));
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let answers = at_once(app, 5).await;
    assert!(
        answers.iter().all(|(_, status)| *status == 200),
        "{answers:?}"
    );
    // The last of five leaves four steps of 50 ms after the first came.
    let (last, _) = answers[4];
    assert!(last >= Duration::from_millis(199), "{answers:?}");
}

#[tokio::test]
async fn one_that_would_wait_too_long_is_refused_at_once_and_charged_nothing() {
    let limiter = leaky("1/minute burst 100");
    // One goes at once, and nobody may wait.
    let layer = RateLimitLayer::new(limiter.clone())
        .shape(Duration::from_secs(59))
        .scope("shape");
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.status("/").await, 200);
    let refused = server.get("/").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["x-ratelimit-limit"], "1");
    let wait: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((50..=60).contains(&wait), "{wait}");
    let limiter = limiter.scope("shape");
    let used = limiter.peek("ip:127.0.0.1").await.unwrap();
    assert_eq!(used.remaining(), 99);
}

#[tokio::test]
async fn without_shaping_a_queue_is_only_a_burst() {
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(RateLimitLayer::new(leaky("1/minute burst 3")));
    let answers = at_once(app, 4).await;
    let denied = answers.iter().filter(|(_, status)| *status == 429);
    assert_eq!(denied.count(), 1);
    assert!(answers[3].0 < Duration::from_secs(30), "{answers:?}");
}
