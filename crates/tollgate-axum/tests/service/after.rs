//! Charging by the response.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::get;
use reqwest::Method;
use tokio::sync::Semaphore;
use tollgate_axum::{CountAfter, Outcome, RateLimitLayer};
use tollgate_memory::{Algorithm, Limiter, ManualClock, MemoryStore, Policy, Quota};

use crate::server::{Server, limiter};
use crate::stores::Remote;

/// Answers with the status that the query names.
async fn answer(Query(query): Query<Vec<(String, u16)>>) -> StatusCode {
    let (_, status) = query.first().unwrap();
    StatusCode::from_u16(*status).unwrap()
}

fn app(layer: RateLimitLayer<MemoryStore>) -> Router {
    let routes = get(answer).post(answer).options(answer);
    Router::new().route("/", routes).route_layer(layer)
}

fn three_per_minute(clock: &ManualClock) -> Limiter<MemoryStore> {
    let quota = Quota::per_minute(3);
    limiter(
        Policy::new("attempts", Algorithm::FixedWindow, quota).unwrap(),
        clock,
    )
}

async fn remaining(server: &Server, path: &str) -> (u16, String) {
    remaining_after(Method::GET, server, path).await
}

async fn remaining_after(method: Method, server: &Server, path: &str) -> (u16, String) {
    let response = server.request(method, path).send().await.unwrap();
    let remaining = response.headers()["x-ratelimit-remaining"]
        .to_str()
        .unwrap()
        .to_owned();
    (response.status().as_u16(), remaining)
}

const GOOD: &str = "/?status=200";
const BAD: &str = "/?status=401";
const BROKEN: &str = "/?status=503";

#[tokio::test]
async fn only_what_counts_is_charged_and_its_response_tells_so() {
    let layer = RateLimitLayer::new(three_per_minute(&ManualClock::default()))
        .charge_when(|response| response.status == StatusCode::UNAUTHORIZED);
    let server = Server::start(app(layer)).await;
    for _ in 0..5 {
        assert_eq!(remaining(&server, GOOD).await, (200, "3".to_owned()));
    }
    assert_eq!(remaining(&server, BAD).await, (401, "2".to_owned()));
    assert_eq!(remaining(&server, GOOD).await, (200, "2".to_owned()));
    assert_eq!(remaining(&server, BAD).await, (401, "1".to_owned()));
    assert_eq!(remaining(&server, BAD).await, (401, "0".to_owned()));
    // From now on nothing is let through, good or bad.
    assert_eq!(remaining(&server, GOOD).await, (429, "0".to_owned()));
    assert_eq!(remaining(&server, BAD).await, (429, "0".to_owned()));
}

#[tokio::test]
async fn what_was_reserved_for_a_free_request_is_given_back() {
    let rule = CountAfter::when(|response| response.status == StatusCode::UNAUTHORIZED);
    let layer = RateLimitLayer::new(three_per_minute(&ManualClock::default()))
        .count_after(rule.reserving());
    let server = Server::start(app(layer)).await;
    for _ in 0..5 {
        assert_eq!(remaining(&server, GOOD).await, (200, "3".to_owned()));
    }
    assert_eq!(remaining(&server, BAD).await, (401, "2".to_owned()));
    assert_eq!(remaining(&server, GOOD).await, (200, "2".to_owned()));
}

#[tokio::test]
async fn a_lockout_counts_failures_and_forgets_them_at_a_success() {
    let clock = ManualClock::default();
    let server = Server::start(app(RateLimitLayer::new(three_per_minute(&clock)).lockout())).await;
    assert_eq!(server.statuses([BAD, BAD]).await, [401, 401]);
    let success = remaining_after(Method::POST, &server, GOOD).await;
    assert_eq!(success, (200, "3".to_owned()));
    assert_eq!(server.statuses([BAD, BAD]).await, [401, 401]);
    // A fault of the server is no guess.
    assert_eq!(remaining(&server, BROKEN).await, (503, "1".to_owned()));
    assert_eq!(server.statuses([BAD, GOOD, BAD]).await, [401, 429, 429]);
    clock.advance(Duration::from_secs(60));
    assert_eq!(server.status(GOOD).await, 200);
}

#[tokio::test]
async fn looking_at_the_form_does_not_forget_failures() {
    let clock = ManualClock::default();
    let server = Server::start(app(RateLimitLayer::new(three_per_minute(&clock)).lockout())).await;
    for left in ["2", "1"] {
        let guess = remaining_after(Method::POST, &server, BAD).await;
        assert_eq!(guess, (401, left.to_owned()));
        for looking in [Method::GET, Method::HEAD, Method::OPTIONS] {
            let form = remaining_after(looking, &server, GOOD).await;
            assert_eq!(form, (200, left.to_owned()));
        }
    }
    // Where the attempt itself is a GET, the rule is made of its parts.
    let rule = CountAfter::failures().reset_on_success().reserving();
    let layer = RateLimitLayer::new(three_per_minute(&clock)).count_after(rule);
    let server = Server::start(app(layer)).await;
    assert_eq!(remaining(&server, BAD).await.1, "2");
    assert_eq!(remaining(&server, GOOD).await.1, "3");
}

#[tokio::test]
async fn an_attempt_whose_client_hangs_up_stays_counted() {
    let arrivals = Arc::new(Semaphore::new(0));
    let arrived = Arc::clone(&arrivals);
    let handler = get(move || async move {
        arrived.add_permits(1);
        std::future::pending::<StatusCode>().await
    });
    let layer = RateLimitLayer::new(three_per_minute(&ManualClock::default())).lockout();
    let server = Server::start(Router::new().route("/", handler).route_layer(layer)).await;
    for _ in 0..3 {
        let attempt = tokio::spawn(server.request(Method::GET, "/").send());
        arrivals.acquire().await.unwrap().forget();
        attempt.abort();
    }
    assert_eq!(server.status("/").await, 429);
}

#[tokio::test]
async fn a_429_from_inside_is_no_failure() {
    let clock = ManualClock::default();
    let rule = CountAfter::failures();
    let layer = RateLimitLayer::new(three_per_minute(&clock)).count_after(rule);
    let server = Server::start(app(layer)).await;
    assert_eq!(
        remaining(&server, "/?status=429").await,
        (429, "3".to_owned())
    );
    assert_eq!(
        remaining(&server, "/?status=404").await,
        (404, "2".to_owned())
    );
}

#[tokio::test]
async fn each_outcome_does_what_it_says_with_a_cost_of_its_own() {
    let rule = CountAfter::by(|response| match response.status.as_u16() {
        200 => Outcome::Free,
        201 => Outcome::Reset,
        _ => Outcome::Charge,
    });
    for rule in [rule.clone(), rule.reserving()] {
        let layer = RateLimitLayer::new(three_per_minute(&ManualClock::default()))
            .cost(|_| 2)
            .count_after(rule);
        let server = Server::start(app(layer)).await;
        assert_eq!(remaining(&server, BAD).await.1, "1");
        assert_eq!(server.statuses([GOOD, BAD]).await, [429, 429]);
        let layer = RateLimitLayer::new(three_per_minute(&ManualClock::default())).count_after(
            CountAfter::by(|response| match response.status.as_u16() {
                201 => Outcome::Reset,
                _ => Outcome::Charge,
            }),
        );
        let server = Server::start(app(layer)).await;
        assert_eq!(server.statuses([BAD, BAD]).await, [401, 401]);
        assert_eq!(
            remaining(&server, "/?status=201").await,
            (201, "3".to_owned())
        );
    }
}

/// How many of ten failing requests that are under way at once are let through.
async fn under_way_at_once(rule: CountAfter) -> usize {
    let gate = Arc::new(Semaphore::new(0));
    let (handler_gate, arrivals) = (Arc::clone(&gate), Arc::new(Semaphore::new(0)));
    let arrived = Arc::clone(&arrivals);
    let handler = get(move || async move {
        arrived.add_permits(1);
        handler_gate.acquire().await.unwrap().forget();
        StatusCode::UNAUTHORIZED
    });
    let layer = RateLimitLayer::new(three_per_minute(&ManualClock::default())).count_after(rule);
    let server = Server::start(Router::new().route("/", handler).route_layer(layer)).await;
    let server = Arc::new(server);
    let requests: Vec<_> = (0..10)
        .map(|_| {
            let server = Arc::clone(&server);
            let arrivals = Arc::clone(&arrivals);
            tokio::spawn(async move {
                let status = server.status("/").await;
                // One that was refused has arrived as well.
                if status == 429 {
                    arrivals.add_permits(1);
                }
                status
            })
        })
        .collect();
    arrivals.acquire_many(10).await.unwrap().forget();
    gate.add_permits(10);
    let mut failed = 0;
    for request in requests {
        failed += usize::from(request.await.unwrap() == 401);
    }
    failed
}

#[tokio::test]
async fn reserving_lets_no_more_be_under_way_than_the_limit_allows() {
    assert_eq!(under_way_at_once(CountAfter::lockout()).await, 3);
    // Looking first does not see what is under way: this is what its documentation warns of.
    assert_eq!(under_way_at_once(CountAfter::failures()).await, 10);
}

#[tokio::test]
async fn a_store_that_fails_after_the_response_does_not_take_it_from_the_client() {
    let store = Remote::new();
    let limiter = Limiter::new(store.clone(), Quota::per_minute(3));
    let breaking = store.clone();
    let handler = get(move || async move {
        breaking.break_down(true);
        "done"
    });
    for rule in [
        CountAfter::when(|_| true),
        CountAfter::when(|_| false).reserving(),
        CountAfter::by(|_| Outcome::Reset),
    ] {
        store.break_down(false);
        let layer = RateLimitLayer::new(limiter.clone()).count_after(rule);
        let app = Router::new().route("/", handler.clone()).route_layer(layer);
        let response = Server::start(app).await.get("/").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.text().await.unwrap(), "done");
    }
}
