//! What handlers are told, and what they may do with it.

use std::time::Duration;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::get;
use tollgate_axum::{Charged, NotAdmitted, RateLimit, RateLimitLayer, RequestLimiter};
use tollgate_memory::{
    Algorithm, Limiter, ManualClock, MemoryStore, Policies, Policy, SharedStore,
};

use crate::server::{Server, limiter};
use crate::stores::Remote;

fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, Algorithm::FixedWindow, quota.parse().unwrap()).unwrap()
}

async fn tell(limit: RateLimit) -> String {
    let names: Vec<_> = limit
        .policies()
        .iter()
        .map(|status| status.policy().name())
        .collect();
    format!(
        "{} of {} left for {:?}, {} binds of {}",
        limit.remaining(),
        limit.limit(),
        limit.reset_after(),
        limit.binding().policy().name(),
        names.join(" and "),
    )
}

async fn body(server: &Server, path: &str) -> String {
    server.get(path).await.text().await.unwrap()
}

#[tokio::test]
async fn a_handler_learns_what_its_client_has_left() {
    let clock = ManualClock::default();
    let policies = Policies::new([policy("burst", "9/second"), policy("daily", "5/day")]).unwrap();
    let app = Router::new()
        .route("/", get(tell))
        .route_layer(RateLimitLayer::new(limiter(policies, &clock)));
    let server = Server::start(app).await;
    assert_eq!(
        body(&server, "/").await,
        "4 of 5 left for 86400s, daily binds of burst and daily"
    );
}

#[tokio::test]
async fn a_handler_inside_of_two_layers_learns_of_both() {
    let clock = ManualClock::default();
    let inner = RateLimitLayer::new(limiter(policy("inner", "9/minute"), &clock));
    let outer = RateLimitLayer::new(limiter(policy("outer", "3/minute"), &clock));
    let app = Router::new()
        .route("/", get(tell))
        .route_layer(inner)
        .layer(outer);
    let server = Server::start(app).await;
    assert_eq!(
        body(&server, "/").await,
        "2 of 3 left for 60s, outer binds of outer and inner"
    );
}

#[tokio::test]
async fn a_handler_without_a_layer_is_a_fault_of_the_setup_unless_it_allows_for_it() {
    let optional = async |limit: Option<RateLimit>| format!("{}", limit.is_some());
    let app = Router::new()
        .route("/bare", get(tell))
        .route("/optional", get(optional))
        .route("/charged", get(async |_: Charged| {}))
        .route(
            "/maybe",
            get(async |charged: Option<Charged>| format!("{}", charged.is_some())),
        );
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/bare", "/charged"]).await, [500, 500]);
    assert_eq!(body(&server, "/optional").await, "false");
    assert_eq!(body(&server, "/maybe").await, "false");
}

/// Settles with what the path says, and tells what is left.
async fn settle(axum::extract::Path(actual): axum::extract::Path<u64>, charged: Charged) -> String {
    let reports = charged.settle(actual).await.unwrap();
    let remaining: Vec<_> = reports
        .iter()
        .map(|report| report.remaining.to_string())
        .collect();
    remaining.join(" ")
}

#[tokio::test]
async fn a_charge_is_corrected_to_what_it_really_was() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(policy("tokens", "100/minute"), &clock))
        .cost(|_| 40)
        .with_receipt();
    let app = Router::new()
        .route("/{actual}", get(settle))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(body(&server, "/10").await, "90");
    assert_eq!(body(&server, "/0").await, "90");
    // More than was estimated, even past the limit: the debt is paid by waiting.
    assert_eq!(body(&server, "/95").await, "0");
    assert_eq!(server.status("/0").await, 429);
    clock.advance(Duration::from_secs(60));
    assert_eq!(body(&server, "/0").await, "100");
}

#[tokio::test]
async fn a_charge_that_is_not_settled_stays() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(policy("tokens", "100/minute"), &clock))
        .cost(|_| 60)
        .with_receipt();
    let app = Router::new()
        .route("/", get(async |_: Charged| {}))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/"; 2]).await, [200, 429]);
}

#[tokio::test]
async fn a_charge_is_taken_once_and_covers_all_layers() {
    let clock = ManualClock::default();
    let layer = |name, quota| {
        RateLimitLayer::new(limiter(policy(name, quota), &clock))
            .cost(|_| 10)
            .with_receipt()
    };
    let twice = async |first: Charged, second: Option<Charged>| {
        assert!(second.is_none());
        settle(axum::extract::Path(1), first).await
    };
    let app = Router::new()
        .route("/", get(twice))
        .route_layer(layer("inner", "50/minute"))
        .layer(layer("outer", "100/minute"));
    let server = Server::start(app).await;
    assert_eq!(body(&server, "/").await, "99 49");
}

#[tokio::test]
async fn a_store_that_is_away_does_not_keep_a_handler_from_its_receipt() {
    let store = Remote::new();
    let layer = RateLimitLayer::new(Limiter::new(store.clone(), policy("tokens", "100/minute")));
    let app = Router::new()
        .route("/{actual}", get(settle))
        .route_layer(layer.cost(|_| 40).with_receipt());
    let server = Server::start(app).await;
    store.break_down(true);
    let served = server.get("/10").await;
    assert_eq!(served.status(), 200);
    assert_eq!(served.text().await.unwrap(), "", "nothing was charged");
    store.break_down(false);
    assert_eq!(body(&server, "/10").await, "90");
}

#[tokio::test]
async fn a_used_up_shadow_does_not_keep_a_handler_from_its_receipt() {
    let clock = ManualClock::default();
    let planned = policy("planned", "40/minute").shadow();
    let layer = RateLimitLayer::new(limiter(planned, &clock))
        .cost(|_| 40)
        .with_receipt();
    let app = Router::new()
        .route("/{actual}", get(settle))
        .route_layer(layer);
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/40", "/40", "/40"]).await, [200; 3]);
}

#[derive(Clone)]
struct App {
    limiter: Limiter,
}

impl FromRef<App> for Limiter {
    fn from_ref(app: &App) -> Self {
        app.limiter.clone()
    }
}

async fn invite(
    axum::extract::Path(email): axum::extract::Path<String>,
    limiter: RequestLimiter,
) -> Result<String, NotAdmitted> {
    let limit = limiter.hit(email).await?;
    Ok(limit.remaining().to_string())
}

fn inviting(clock: &ManualClock) -> Router {
    let store = SharedStore::new(MemoryStore::new());
    let limiter = Limiter::new(store, policy("invitations", "1/minute")).clock(clock.clone());
    Router::new()
        .route("/invite/{email}", get(invite))
        .route(
            "/nobody",
            get(async |limiter: RequestLimiter| limiter.hit("").await.map(drop)),
        )
        .with_state(App { limiter })
}

#[tokio::test]
async fn a_handler_may_ask_by_itself_and_its_denial_is_a_whole_answer() {
    let server = Server::start(inviting(&ManualClock::default())).await;
    assert_eq!(body(&server, "/invite/a@example.com").await, "0");
    let denied = server.get("/invite/a@example.com").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(denied.headers()["retry-after"], "60");
    assert_eq!(denied.headers()["ratelimit"], r#""invitations";r=0;t=60"#);
    assert_eq!(denied.headers()["content-type"], "application/problem+json");
    assert_eq!(server.status("/invite/b@example.com").await, 200);
    // An empty subject is a fault of the handler, not of the client.
    assert_eq!(server.status("/nobody").await, 500);
}

#[tokio::test]
async fn a_handlers_own_denial_is_listed_beside_the_layers_around_it() {
    let clock = ManualClock::default();
    let layer = RateLimitLayer::new(limiter(policy("outer", "9/minute"), &clock));
    let server = Server::start(inviting(&clock).layer(layer)).await;
    assert_eq!(server.status("/invite/a@example.com").await, 200);
    let denied = server.get("/invite/a@example.com").await;
    assert_eq!(
        denied.headers()["ratelimit"],
        r#""outer";r=7;t=60, "invitations";r=0;t=60"#
    );
    assert_eq!(denied.headers()["x-ratelimit-limit"], "1");
}
