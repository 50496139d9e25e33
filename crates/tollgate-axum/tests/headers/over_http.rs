//! The same over real connections, read by two clients: reqwest, and curl, which prints what it was sent.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

use std::net::SocketAddr;
use std::process::Stdio;

use axum::Router;
use axum::routing::get;
use reqwest::{Client, Method, Response};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tollgate_axum::{Headers, RateLimitLayer};
use tollgate_core::{Algorithm, Limiter, ManualClock, Policies, Quota, Timestamp};
use tollgate_memory::MemoryStore;

use crate::setup::{START_SECONDS, lists, number, numbers, policy, text};

type Layer = RateLimitLayer<MemoryStore>;

/// A layer in a time that stands still.
fn layer(policies: impl Into<Policies>) -> Layer {
    let start = Timestamp::from_micros(START_SECONDS * 1_000_000).unwrap();
    RateLimitLayer::new(Limiter::new(MemoryStore::new(), policies).clock(ManualClock::new(start)))
}

fn window(name: &str, quota: &str) -> Layer {
    layer(policy(name, Algorithm::FixedWindow, quota))
}

fn route() -> Router {
    Router::new().route("/", get(|| async { "served" }).post(|| async { "taken" }))
}

/// A server on a port of its own, until it is dropped.
struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, task }
    }

    async fn ask(&self, method: Method) -> Response {
        let client = Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{}/", self.address);
        client.request(method, url).send().await.unwrap()
    }

    /// What curl prints: the lines of the response's head without the date, and the body.
    async fn curl(&self, options: &[&str]) -> (Vec<String>, String) {
        let curl = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--include",
                "--noproxy",
                "*",
                "--max-time",
                "20",
            ])
            .args(options)
            .arg(format!("http://{}/", self.address))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("curl is installed");
        assert!(
            curl.status.success(),
            "{}",
            String::from_utf8_lossy(&curl.stderr)
        );
        let printed = String::from_utf8(curl.stdout).unwrap();
        let (head, body) = printed.split_once("\r\n\r\n").unwrap();
        let lines = head
            .split("\r\n")
            .filter(|line| !line.starts_with("date: "));
        (lines.map(str::to_owned).collect(), body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Lines of a head without the connection's own.
fn lines_of(head: &[String]) -> Vec<&str> {
    let lines = head.iter().map(String::as_str);
    lines
        .filter(|line| !line.starts_with("content-length: "))
        .collect()
}

#[tokio::test]
async fn curl_prints_what_the_guide_shows() {
    let server = Server::start(route().layer(layer(Quota::per_minute(10)))).await;
    let (head, body) = server.curl(&[]).await;
    assert_eq!(body, "served");
    let guide = include_str!("../../../../docs/http.md");
    for line in lines_of(&head) {
        // A plain text is what this handler answers; the guide shows the headers that matter.
        let is_shown = guide.lines().any(|shown| shown == line);
        assert!(is_shown || line.starts_with("content-type: "), "{line}");
    }
    assert_eq!(head.len(), 8, "{head:?}");
}

#[tokio::test]
async fn curl_prints_the_denial_that_the_guide_shows() {
    let server = Server::start(route().layer(window("login", "5/minute"))).await;
    for _ in 0..5 {
        assert_eq!(server.ask(Method::GET).await.status(), 200);
    }
    let (head, body) = server.curl(&[]).await;
    let guide = include_str!("../../../../docs/http.md");
    for line in lines_of(&head) {
        assert!(guide.lines().any(|shown| shown == line), "{line}");
    }
    // The guide breaks the document into two lines.
    assert!(
        guide
            .replace(",\n\"detail\"", ",\"detail\"")
            .contains(&body),
        "{body}"
    );

    let (head, body) = server.curl(&["--header", "accept: text/plain"]).await;
    assert!(head.contains(&"content-type: text/plain; charset=utf-8".to_owned()));
    assert!(guide.contains(&body), "{body}");
}

#[tokio::test]
async fn head_is_answered_with_the_head_alone() {
    for option in ["--http1.1", "--http2-prior-knowledge"] {
        let server = Server::start(route().layer(window("none", "0/minute"))).await;
        let (get, document) = server.curl(&[option]).await;
        let (head, nothing) = server.curl(&[option, "--head"]).await;
        assert_eq!(lines_of(&head), lines_of(&get));
        assert_eq!(nothing, "");
        let length = format!("content-length: {}", document.len());
        assert!(
            head.contains(&length) && get.contains(&length),
            "{head:?} {get:?}"
        );
    }
}

#[tokio::test]
async fn layers_around_layers_send_every_header_once() {
    let app = route()
        .route_layer(window("route", "2/minute"))
        .layer(window("global", "9/minute"));
    let server = Server::start(app).await;
    for (status, route_left, global_left) in [(200, 1, 8), (200, 0, 7), (429, 0, 6)] {
        let response = server.ask(Method::GET).await;
        assert_eq!(response.status(), status);
        let headers = response.headers();
        assert_eq!(numbers(headers), Some((2, route_left, 60)));
        let limits = format!(r#""global";r={global_left};t=60, "route";r={route_left};t=60"#);
        let policies = r#""global";q=9;w=60, "route";q=2;w=60"#;
        assert_eq!(lists(headers), Some((policies, limits.as_str())));
        let retry_after = number(headers, "retry-after");
        assert_eq!(retry_after, (status == 429).then_some(60));
    }
}

#[tokio::test]
async fn an_outer_denial_speaks_of_its_own_policies() {
    let app = route()
        .route_layer(window("route", "9/minute"))
        .layer(window("global", "1/hour"));
    let server = Server::start(app).await;
    let _ = server.ask(Method::GET).await;
    let response = server.ask(Method::GET).await;
    assert_eq!(response.status(), 429);
    assert_eq!(numbers(response.headers()), Some((1, 0, 3_600)));
    let expected = (r#""global";q=1;w=3600"#, r#""global";r=0;t=3600"#);
    assert_eq!(lists(response.headers()), Some(expected));
}

#[tokio::test]
async fn exempt_requests_have_none_of_the_headers() {
    let server =
        Server::start(route().layer(window("get", "1/minute").methods([Method::GET]))).await;
    assert_eq!(server.ask(Method::GET).await.status(), 200);
    assert_eq!(server.ask(Method::GET).await.status(), 429);
    let response = server.ask(Method::POST).await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        (numbers(response.headers()), lists(response.headers())),
        (None, None)
    );
}

#[tokio::test]
async fn requests_without_an_identity_are_a_500_without_numbers() {
    let nobody = window("api", "1/minute").key(|_: &http::request::Parts| None::<String>);
    let server = Server::start(route().layer(nobody)).await;
    let response = server.ask(Method::GET).await;
    assert_eq!(response.status(), 500);
    assert_eq!(
        (numbers(response.headers()), lists(response.headers())),
        (None, None)
    );
    assert_eq!(text(response.headers(), "retry-after"), None);
    assert!(response.text().await.unwrap().contains("about:blank"));
}

#[tokio::test]
async fn a_handlers_own_headers_reach_the_client_as_they_are() {
    let own = || async { ([("x-ratelimit-limit", "7"), ("retry-after", "3")], "served") };
    let app = Router::new()
        .route("/", get(own))
        .layer(window("api", "9/minute"));
    let server = Server::start(app).await;
    let response = server.ask(Method::GET).await;
    let headers = response.headers();
    assert_eq!(
        (
            text(headers, "x-ratelimit-limit"),
            text(headers, "retry-after")
        ),
        (Some("7"), Some("3"))
    );
    assert_eq!(text(headers, "x-ratelimit-remaining"), None);
    assert_eq!(lists(headers).unwrap().0, r#""api";q=9;w=60"#);
}

#[tokio::test]
async fn a_layer_without_headers_sends_none() {
    let server =
        Server::start(route().layer(window("api", "1/minute").headers(Headers::none()))).await;
    let _ = server.ask(Method::GET).await;
    let response = server.ask(Method::GET).await;
    assert_eq!(
        (numbers(response.headers()), lists(response.headers())),
        (None, None)
    );
    assert_eq!(text(response.headers(), "retry-after"), Some("60"));
}
