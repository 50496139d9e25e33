//! Layers around layers, and what their responses advertise.

use axum::Router;
use axum::http::{HeaderName, HeaderValue};
use axum::response::AppendHeaders;
use axum::routing::get;
use reqwest::Response;
use tollgate_axum::{Headers, RateLimitLayer};
use tollgate_memory::{Algorithm, Limiter, ManualClock, MemoryStore, Policies, Policy, Quota};

use crate::server::{Server, limiter};

fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, Algorithm::FixedWindow, quota.parse().unwrap()).unwrap()
}

fn layer(limiter: Limiter<MemoryStore>) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(limiter)
}

/// The one value of a header.
fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    let mut values = response.headers().get_all(name).into_iter();
    let value = values.next().unwrap().to_str().unwrap();
    assert!(values.next().is_none(), "{name} stands there twice");
    value
}

fn numbers(response: &Response) -> (&str, &str) {
    (
        header(response, "x-ratelimit-limit"),
        header(response, "x-ratelimit-remaining"),
    )
}

#[tokio::test]
async fn h2_h7_one_policy_is_told_in_both_families() {
    let clock = ManualClock::default();
    let policies = policy("default-policy", "2/minute");
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer(limiter(policies, &clock)));
    let server = Server::start(app).await;
    let first = server.get("/").await;
    assert_eq!(first.status(), 200);
    assert_eq!(numbers(&first), ("2", "1"));
    assert_eq!(header(&first, "x-ratelimit-reset"), "1000000060");
    assert_eq!(
        header(&first, "ratelimit-policy"),
        r#""default-policy";q=2;w=60"#
    );
    assert_eq!(header(&first, "ratelimit"), r#""default-policy";r=1;t=60"#);
    let second = server.get("/").await;
    assert_eq!(numbers(&second), ("2", "0"));
    assert!(!second.headers().contains_key("retry-after"));
    let third = server.get("/").await;
    assert_eq!(third.status(), 429);
    assert_eq!(numbers(&third), ("2", "0"));
    assert_eq!(header(&third, "retry-after"), "60");
    assert_eq!(header(&third, "content-type"), "application/problem+json");
    let body = third.text().await.unwrap();
    assert!(
        body.contains(r#""violated-policies":["default-policy"]"#),
        "{body}"
    );
}

#[tokio::test]
async fn h11_two_layers_are_listed_outermost_first_and_never_twice() {
    let clock = ManualClock::default();
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer(limiter(policy("inner", "3/minute"), &clock)))
        .layer(layer(limiter(policy("outer", "2/minute"), &clock)).scope("all"));
    let server = Server::start(app).await;
    let response = server.get("/").await;
    assert_eq!(
        header(&response, "ratelimit-policy"),
        r#""outer";q=2;w=60, "inner";q=3;w=60"#
    );
    assert_eq!(
        header(&response, "ratelimit"),
        r#""outer";r=1;t=60, "inner";r=2;t=60"#
    );
    assert_eq!(numbers(&response), ("2", "1"));
}

#[tokio::test]
async fn b84_the_binding_limit_is_told_whichever_layer_it_belongs_to() {
    let clock = ManualClock::default();
    let global = limiter(policy("global", "4/minute"), &clock);
    let search = limiter(policy("search", "2/minute"), &clock);
    let app = Router::new()
        .route("/search", get(|| async {}).layer(layer(search)))
        .route("/other", get(|| async {}))
        .layer(layer(global).scope("global"));
    let server = Server::start(app).await;
    let one = server.get("/search").await;
    assert_eq!((one.status().as_u16(), numbers(&one)), (200, ("2", "1")));
    let two = server.get("/search").await;
    assert_eq!((two.status().as_u16(), numbers(&two)), (200, ("2", "0")));
    // The inner layer denies: its policy binds, and the outer one's is listed all the same.
    let denied = server.get("/search").await;
    assert_eq!(
        (denied.status().as_u16(), numbers(&denied)),
        (429, ("2", "0"))
    );
    assert_eq!(
        header(&denied, "ratelimit"),
        r#""global";r=1;t=60, "search";r=0;t=60"#
    );
    // What the inner layer denied was charged by the outer one.
    let last = server.get("/other").await;
    assert_eq!((last.status().as_u16(), numbers(&last)), (200, ("4", "0")));
    // The outer layer denies: the inner one was not asked.
    let denied = server.get("/search").await;
    assert_eq!(
        (denied.status().as_u16(), numbers(&denied)),
        (429, ("4", "0"))
    );
    assert_eq!(header(&denied, "ratelimit"), r#""global";r=0;t=60"#);
}

#[tokio::test]
async fn both_policies_of_one_layer_are_listed_and_one_binds() {
    let clock = ManualClock::default();
    let policies = Policies::new([policy("burst", "5/second"), policy("daily", "3/day")]).unwrap();
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(layer(limiter(policies, &clock)));
    let server = Server::start(app).await;
    let response = server.get("/").await;
    assert_eq!(numbers(&response), ("3", "2"));
    assert_eq!(
        header(&response, "ratelimit"),
        r#""burst";r=4;t=1, "daily";r=2;t=86400"#
    );
}

#[tokio::test]
async fn what_a_handler_sets_by_itself_is_left_alone() {
    let clock = ManualClock::default();
    let name = HeaderName::from_static("x-ratelimit-limit");
    let handler = get(move || async { AppendHeaders([(name, HeaderValue::from_static("mine"))]) });
    let app = Router::new()
        .route("/", handler)
        .route_layer(layer(limiter(Quota::per_minute(2), &clock)))
        .layer(layer(limiter(Quota::per_minute(9), &clock)).scope("all"));
    let server = Server::start(app).await;
    let response = server.get("/").await;
    assert_eq!(header(&response, "x-ratelimit-limit"), "mine");
    assert!(!response.headers().contains_key("x-ratelimit-remaining"));
    assert!(response.headers().contains_key("ratelimit"));
}

#[tokio::test]
async fn each_family_has_a_switch() {
    let clock = ManualClock::default();
    let quota = Quota::per_minute(9);
    let limited = |headers| get(|| async {}).layer(layer(limiter(quota, &clock)).headers(headers));
    let app = Router::new()
        .route("/x", limited(Headers::default().rate_limit(false)))
        .route("/ietf", limited(Headers::default().x_rate_limit(false)))
        .route("/none", limited(Headers::none()));
    let server = Server::start(app).await;
    for (path, x_rate_limit, rate_limit) in [
        ("/x", true, false),
        ("/ietf", false, true),
        ("/none", false, false),
    ] {
        let response = server.get(path).await;
        let has = |name| response.headers().contains_key(name);
        assert_eq!(has("x-ratelimit-limit"), x_rate_limit, "{path}");
        assert_eq!(has("ratelimit-policy"), rate_limit, "{path}");
    }
}

#[tokio::test]
async fn an_exempt_request_inside_a_limited_one_adds_nothing() {
    let clock = ManualClock::default();
    let inner = layer(limiter(policy("inner", "1/minute"), &clock)).skip(|_| true);
    let app = Router::new()
        .route("/", get(|| async {}))
        .route_layer(inner)
        .layer(layer(limiter(policy("outer", "5/minute"), &clock)));
    let server = Server::start(app).await;
    let response = server.get("/").await;
    assert_eq!(header(&response, "ratelimit"), r#""outer";r=4;t=60"#);
    assert_eq!(server.status("/").await, 200);
}
