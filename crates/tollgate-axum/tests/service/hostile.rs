//! Clients and handlers that do what nobody expects.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use futures::{StreamExt, stream};
use http::HeaderName;
use http::request::Parts;
use reqwest::{Method, RequestBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate_axum::{RateLimitLayer, UnvalidatedHeaderKey};
use tollgate_memory::{ManualClock, MemoryStore, Quota};

use crate::server::{Server, http2, limiter};

fn per_minute(limit: u32) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(limiter(Quota::per_minute(limit), &ManualClock::default()))
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

/// What a server answers to these bytes, up to the end of the connection.
async fn raw(server: &Server, request: &str) -> String {
    let address = server.url("").replace("http://", "");
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn the_largest_cost_is_denied_for_good_and_takes_nothing() {
    let layer = per_minute(2).cost(|parts| match parts.uri.query() {
        Some("all") => u64::MAX,
        _ => 1,
    });
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    let never = server.get("/?all").await;
    assert_eq!(never.status(), 429);
    assert!(!never.headers().contains_key("retry-after"));
    assert_eq!(never.headers()["x-ratelimit-remaining"], "2");
    assert_eq!(server.statuses(["/", "/", "/"]).await, [200, 200, 429]);
}

#[tokio::test]
async fn a_huge_or_binary_identity_is_one_client_and_never_an_error() {
    let name = HeaderName::from_static("x-consumer");
    let layer = per_minute(1).key(UnvalidatedHeaderKey::new(name));
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    let huge = vec![b'x'; 60_000];
    let mut other = huge.clone();
    other[59_999] = b'y';
    for identity in [huge, other, vec![0xff; 300], vec![b'\t', 0x80, b'%']] {
        let request = || {
            let request = server.request(Method::GET, "/");
            let value = reqwest::header::HeaderValue::from_bytes(&identity).unwrap();
            request.header("x-consumer", value)
        };
        assert_eq!(status(request()).await, 200);
        assert_eq!(status(request()).await, 429);
    }
}

#[tokio::test]
async fn many_streams_of_one_connection_take_exactly_what_there_is() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let handler = get(move || async move {
        seen.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
    });
    let app = Router::new()
        .route("/", handler)
        .route_layer(per_minute(37));
    let server = Server::start(app).await;
    let client = http2();
    let requests = (0..400).map(|_| status(client.get(server.url("/"))));
    let statuses: Vec<_> = stream::iter(requests).buffer_unordered(100).collect().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 37);
    assert_eq!(
        statuses.iter().filter(|status| **status == 429).count(),
        363
    );
    assert_eq!(calls.load(Ordering::SeqCst), 37);
}

/// A panic ends one connection. It must not take the counters, the caches or the other clients with it.
#[tokio::test]
async fn after_a_panic_of_a_handler_or_a_key_the_limit_goes_on() {
    let layer = per_minute(3).key(|parts: &Parts| {
        assert_ne!(parts.uri.query(), Some("key"), "the key panics on purpose");
        "everybody"
    });
    let handler = get(|parts: Parts| async move {
        assert_ne!(
            parts.uri.query(),
            Some("handler"),
            "the handler panics on purpose"
        );
    });
    let app = Router::new().route("/", handler).route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.status("/").await, 200);
    for panicking in ["/?key", "/?handler"] {
        let request = server.request(Method::GET, panicking);
        assert!(request.send().await.is_err(), "{panicking}");
    }
    // The key's panic came before the charge, the handler's after it.
    assert_eq!(server.statuses(["/"; 2]).await, [200, 429]);
}

#[tokio::test]
async fn a_streamed_body_arrives_whole_and_is_not_waited_for() {
    let handler = get(|| async {
        let chunks = stream::iter(0..3).then(|number| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok::<_, Infallible>(Bytes::from(format!("{number};")))
        });
        Body::from_stream(chunks)
    });
    let app = Router::new().route("/", handler).route_layer(per_minute(9));
    let response = Server::start(app).await.get("/").await;
    assert_eq!(response.headers()["x-ratelimit-remaining"], "8");
    assert!(!response.headers().contains_key("content-length"));
    assert_eq!(response.text().await.unwrap(), "0;1;2;");
}

#[tokio::test]
async fn answers_without_a_body_keep_their_status_and_get_the_headers() {
    let handler = any(|parts: Parts| async move {
        let status = parts.uri.query().unwrap().parse().unwrap();
        StatusCode::from_u16(status).unwrap()
    });
    let app = Router::new().route("/", handler).route_layer(per_minute(9));
    let server = Server::start(app).await;
    for (status, left) in [(204, "8"), (304, "7"), (205, "6")] {
        let response = server.get(&format!("/?{status}")).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["x-ratelimit-remaining"], left);
        assert!(!response.headers().contains_key("retry-after"));
    }
}

#[tokio::test]
async fn an_upgrade_passes_the_layer_and_a_denied_one_does_not_switch() {
    let handler = get(|| async {
        let upgrade = [("connection", "upgrade"), ("upgrade", "echo")];
        (StatusCode::SWITCHING_PROTOCOLS, upgrade)
    });
    let app = Router::new().route("/", handler).route_layer(per_minute(1));
    let server = Server::start(app).await;
    let request =
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: echo\r\n\r\n";
    let switched = raw(&server, request).await;
    assert!(switched.starts_with("HTTP/1.1 101 "), "{switched}");
    assert!(switched.contains("upgrade: echo\r\n"), "{switched}");
    let denied = raw(&server, request).await;
    assert!(denied.starts_with("HTTP/1.1 429 "), "{denied}");
    assert!(!denied.contains("upgrade: echo"), "{denied}");
}

/// A client that asks first (`Expect: 100-continue`) is told no before it has sent its body.
#[tokio::test]
async fn a_denied_upload_is_answered_without_reading_it() {
    let handler = post(|body: String| async move { body });
    let app = Router::new().route("/", handler).route_layer(per_minute(0));
    let server = Server::start(app).await;
    let request = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nexpect: 100-continue\r\n\
                   content-length: 1000000\r\n\r\n";
    let answer = raw(&server, request).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
}

#[tokio::test]
async fn made_up_methods_and_paths_do_not_make_counters() {
    let layer = per_minute(2).scope_by_method(true);
    let app = Router::new().fallback(|| async {}).layer(layer);
    let server = Server::start(app).await;
    let mut statuses = Vec::new();
    for number in 0..4 {
        let method = Method::from_bytes(format!("MADE-UP-{number}").as_bytes()).unwrap();
        let request = server.request(method, &format!("/path/{number}"));
        statuses.push(status(request).await);
    }
    assert_eq!(statuses, [200, 200, 429, 429]);
}

#[tokio::test]
async fn b80_b83_h10_a_reset_that_is_near_or_past_is_a_second_away_and_whole() {
    let clock = ManualClock::default();
    let quota = Quota::new(1, Duration::from_millis(1_500)).unwrap();
    let policy = tollgate_memory::Policy::new("w", tollgate_memory::Algorithm::FixedWindow, quota);
    let layer = RateLimitLayer::new(limiter(policy.unwrap(), &clock));
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    let served = server.get("/").await;
    assert_eq!(served.headers()["ratelimit"], "\"w\";r=0;t=2");
    assert!(!served.headers().contains_key("retry-after"));
    for (advance, expected, t) in [
        (1_400, 429, "1"),
        (99, 429, "1"),
        (1, 200, "2"),
        (1_500, 200, "2"),
    ] {
        clock.advance(Duration::from_millis(advance));
        let response = server.get("/").await;
        assert_eq!(response.status(), expected);
        let headers = response.headers();
        assert_eq!(headers["ratelimit"], format!("\"w\";r=0;t={t}"));
        let retry_after = headers
            .get("retry-after")
            .map(|value| value.to_str().unwrap());
        assert_eq!(retry_after, (expected == 429).then_some("1"));
        let reset: u64 = headers["x-ratelimit-reset"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        let now = tollgate_memory::Clock::now(&clock).as_micros();
        assert!(reset * 1_000_000 >= now, "{reset} is before {now}");
    }
}
