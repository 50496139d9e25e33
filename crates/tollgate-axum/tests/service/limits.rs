//! What a limit lets through, and what it answers otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use http::request::Parts;
use reqwest::{Method, Version};
use tollgate_axum::{RateLimitLayer, Tier};
use tollgate_memory::{Algorithm, Limiter, ManualClock, Policies, Policy, Quota};

use crate::stores::Remote;

use crate::server::{Server, http1, http2, limiter};

/// An app whose `/` is limited, and how often its handler ran.
fn counted(layer: RateLimitLayer<tollgate_memory::MemoryStore>) -> (Router, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let handler = get(move || async move {
        seen.fetch_add(1, Ordering::SeqCst);
        "served"
    });
    (Router::new().route("/", handler).route_layer(layer), calls)
}

#[tokio::test]
async fn h1_a_burst_of_2_is_refilled_one_by_one() {
    let clock = ManualClock::default();
    let quota = Quota::new_with_burst(1, Duration::from_millis(90), 2).unwrap();
    let (app, calls) = counted(RateLimitLayer::new(limiter(quota, &clock)));
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/"; 3]).await, [200, 200, 429]);
    clock.advance(Duration::from_millis(100));
    assert_eq!(server.statuses(["/"; 2]).await, [200, 429]);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn f13_retry_after_is_never_less_than_the_wait_and_never_zero() {
    let clock = ManualClock::default();
    let quota = Quota::new(1, Duration::from_millis(90)).unwrap();
    let (app, _) = counted(RateLimitLayer::new(limiter(quota, &clock)));
    let server = Server::start(app).await;
    let served = server.get("/").await;
    assert_eq!(served.status(), 200);
    assert!(!served.headers().contains_key("retry-after"));
    let denied = server.get("/").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(denied.headers()["retry-after"], "1");
}

#[tokio::test]
async fn h3_only_the_methods_that_were_named_are_limited() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(Quota::per_minute(1), &clock)).methods([Method::GET]);
    let app = Router::new()
        .route("/", get(|| async {}).post(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/"; 2]).await, [200, 429]);
    for _ in 0..3 {
        let response = server.request(Method::POST, "/").send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("x-ratelimit-limit"));
        assert!(!response.headers().contains_key("ratelimit"));
    }
}

#[tokio::test]
async fn head_is_no_way_around_a_limit_on_get() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(Quota::per_minute(2), &clock)).methods([Method::GET]);
    let (app, calls) = counted(layer);
    let server = Server::start(app).await;
    let head = async || {
        let response = server.request(Method::HEAD, "/").send().await.unwrap();
        response.status().as_u16()
    };
    assert_eq!((head().await, server.status("/").await), (200, 200));
    assert_eq!((head().await, server.status("/").await), (429, 429));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn h13_b88_a_limit_of_zero_blocks_and_the_handler_is_never_called() {
    let clock = ManualClock::default();
    let (app, calls) = counted(RateLimitLayer::new(limiter(Quota::per_minute(0), &clock)));
    let server = Server::start(app).await;
    let denied = server.get("/").await;
    assert_eq!(denied.status(), 429);
    assert!(!denied.headers().contains_key("retry-after"));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_cost_of_a_request_is_taken_from_its_head() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(Quota::per_minute(10), &clock)).cost(|parts| {
        let query = parts.uri.query().unwrap_or_default();
        query.parse().unwrap_or(1)
    });
    let (app, calls) = counted(layer);
    let server = Server::start(app).await;
    assert_eq!(
        server.statuses(["/?6", "/?6", "/?4", "/"]).await,
        [200, 429, 200, 429]
    );
    // What costs nothing passes uncounted.
    assert_eq!(server.status("/?0").await, 200);
    // What can never fit is denied without a time to come back.
    let never = server.get("/?11").await;
    assert_eq!(never.status(), 429);
    assert!(!never.headers().contains_key("retry-after"));
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn b85_a_skipped_request_is_not_counted_and_says_nothing() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(Quota::per_minute(1), &clock))
        .skip(|parts| parts.headers.contains_key("x-internal"))
        .skip(|parts| parts.uri.query() == Some("health"));
    let (app, _) = counted(layer);
    let server = Server::start(app).await;
    for _ in 0..3 {
        assert_eq!(server.status("/?health").await, 200);
        let request = server.request(Method::GET, "/").header("x-internal", "1");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("x-ratelimit-limit"));
    }
    assert_eq!(server.statuses(["/"; 2]).await, [200, 429]);
}

#[tokio::test]
async fn several_policies_are_charged_all_or_none() {
    let clock = ManualClock::default();
    let policy = |name, quota: &str| {
        Policy::new(name, Algorithm::FixedWindow, quota.parse().unwrap()).unwrap()
    };
    let policies =
        Policies::new([policy("second", "2/second"), policy("minute", "3/minute")]).unwrap();
    let (app, _) = counted(RateLimitLayer::new(limiter(policies, &clock)));
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/"; 3]).await, [200, 200, 429]);
    clock.advance(Duration::from_secs(1));
    // The denial above took nothing from the minute's policy.
    assert_eq!(server.statuses(["/"; 2]).await, [200, 429]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(server.status("/").await, 429);
    clock.advance(Duration::from_secs(58));
    assert_eq!(server.status("/").await, 200);
}

#[tokio::test]
async fn all_connections_and_both_protocols_share_the_counters() {
    let clock = ManualClock::default();
    let (app, calls) = counted(RateLimitLayer::new(limiter(Quota::per_minute(40), &clock)));
    let server = Server::start(app).await;
    let mut requests = Vec::new();
    for number in 0..100 {
        let (client, version) = if number % 2 == 0 {
            (http1(), Version::HTTP_11)
        } else {
            (http2(), Version::HTTP_2)
        };
        let request = client.get(server.url("/")).send();
        requests.push(tokio::spawn(async move {
            let response = request.await.unwrap();
            assert_eq!(response.version(), version);
            response.status().as_u16()
        }));
    }
    let mut served = 0;
    for request in requests {
        served += u32::from(request.await.unwrap() == 200);
    }
    assert_eq!(served, 40);
    assert_eq!(calls.load(Ordering::SeqCst), 40);
}

#[tokio::test]
async fn a_layer_on_the_whole_router_limits_every_route_and_the_fallback() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(Quota::per_minute(2), &clock)).scope("everything");
    let app = Router::new()
        .route("/a", get(|| async {}))
        .route("/b", post(|| async {}))
        .layer(layer);
    let server = Server::start(app).await;
    assert_eq!(
        server.statuses(["/a", "/gone", "/a"]).await,
        [200, 404, 429]
    );
}

#[tokio::test]
async fn what_the_application_told_is_asked_once_per_request_however_far_the_store() {
    let asked: [Arc<AtomicU32>; 4] = Default::default();
    let count = |which: usize| {
        let counter = Arc::clone(&asked[which]);
        move || counter.fetch_add(1, Ordering::SeqCst)
    };
    let (cost, skip, tier, key) = (count(0), count(1), count(2), count(3));
    let layer = RateLimitLayer::new(Limiter::new(Remote::new(), Quota::per_minute(9)))
        .cost(move |_| u64::from(cost() < 9))
        .skip(move |_| skip() > 9)
        .tier(move |_| {
            tier();
            Tier::standard()
        })
        .key(move |_: &Parts| u64::from(key()) + 1);
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/"; 3]).await, [200; 3]);
    assert_eq!(asked.map(|asked| asked.load(Ordering::SeqCst)), [3; 4]);
}
