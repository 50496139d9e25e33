//! Policies that depend on the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::routing::get;
use http::request::Parts;
use reqwest::Method;
use tollgate_axum::{RateLimitLayer, Tier};
use tollgate_memory::{Algorithm, ManualClock, MemoryStore, Policies, Policy, Quota};

use crate::server::{Server, limiter};

fn plan(parts: &Parts) -> String {
    let plan = parts.headers.get("x-plan");
    plan.map_or_else(String::new, |plan| plan.to_str().unwrap().to_owned())
}

fn one_per_minute() -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(limiter(Quota::per_minute(1), &ManualClock::default()))
}

fn app(layer: RateLimitLayer<MemoryStore>) -> Router {
    Router::new()
        .route("/a", get(|| async {}))
        .route("/b", get(|| async {}))
        .route_layer(layer)
}

/// The tiers of the tests, each in a scope of its own.
#[derive(Clone)]
struct Tiers {
    silver: Tier,
    gold: Tier,
}

impl Tiers {
    fn new() -> Self {
        let tier = |name: &str, limit| {
            Tier::limited(Policy::new(name, Algorithm::Gcra, Quota::per_minute(limit)).unwrap())
        };
        Self {
            silver: tier("silver", 2),
            gold: tier("gold", 3),
        }
    }

    fn of(&self, plan: &str) -> Result<Tier, String> {
        match plan {
            "" => Ok(Tier::standard()),
            "silver" => Ok(self.silver.clone()),
            "gold" => Ok(self.gold.clone()),
            "staff" => Ok(Tier::exempt()),
            other => Err(format!("there is no plan {other:?}")),
        }
    }
}

/// How many of five requests of this plan are served.
async fn served(server: &Server, path: &str, plan: &str) -> usize {
    let mut served = 0;
    for _ in 0..5 {
        let request = server.request(Method::GET, path);
        let request = if plan.is_empty() {
            request
        } else {
            request.header("x-plan", plan)
        };
        served += usize::from(request.send().await.unwrap().status() == 200);
    }
    served
}

async fn each_plan_has_its_limit(server: &Server) {
    for path in ["/a", "/b"] {
        assert_eq!(served(server, path, "").await, 1);
        assert_eq!(served(server, path, "silver").await, 2);
        assert_eq!(served(server, path, "gold").await, 3);
        assert_eq!(served(server, path, "staff").await, 5);
    }
}

#[tokio::test]
async fn a_tier_known_at_once_has_limits_of_its_own_per_route() {
    let tiers = Tiers::new();
    let layer = one_per_minute().tier(move |parts| tiers.of(&plan(parts)));
    each_plan_has_its_limit(&Server::start(app(layer)).await).await;
}

#[tokio::test]
async fn a_tier_may_be_looked_up() {
    let tiers = Tiers::new();
    let lookups = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&lookups);
    let layer = one_per_minute().tier_async(move |parts| {
        let (tiers, plan) = (tiers.clone(), plan(parts));
        seen.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::task::yield_now().await;
            tiers.of(&plan)
        }
    });
    each_plan_has_its_limit(&Server::start(app(layer)).await).await;
    assert_eq!(lookups.load(Ordering::SeqCst), 40);
}

#[tokio::test]
async fn h12_a_tier_that_cannot_be_told_is_refused_and_not_counted() {
    let tiers = Tiers::new();
    let layer = one_per_minute().tier(move |parts| tiers.of(&plan(parts)));
    let server = Server::start(app(layer)).await;
    let request = server.request(Method::GET, "/a").header("x-plan", "bronze");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 500);
    assert!(!response.text().await.unwrap().contains("bronze"));
    assert_eq!(server.status("/a").await, 200);
}

#[tokio::test]
async fn b85_an_exempt_tier_is_told_nothing() {
    let layer = one_per_minute().tier(|_| Tier::exempt());
    let server = Server::start(app(layer)).await;
    let response = server.get("/a").await;
    assert!(!response.headers().contains_key("x-ratelimit-limit"));
    assert!(!response.headers().contains_key("ratelimit"));
}

#[tokio::test]
async fn a_tier_built_anew_for_each_request_still_counts() {
    let layer = one_per_minute().tier(|_| Tier::limited(Quota::per_minute(4)));
    let server = Server::start(app(layer)).await;
    assert_eq!(served(&server, "/a", "").await, 4);
}

#[tokio::test]
async fn a_tier_of_the_same_policy_names_keeps_what_was_used() {
    let larger = Tier::limited(Quota::per_minute(3));
    let layer = one_per_minute().tier(move |parts| {
        if plan(parts) == "gold" {
            larger.clone()
        } else {
            Tier::standard()
        }
    });
    let server = Server::start(app(layer)).await;
    assert_eq!(served(&server, "/a", "").await, 1);
    assert_eq!(served(&server, "/a", "gold").await, 2);
}

#[tokio::test]
async fn a_tier_with_a_scope_of_its_own_is_shared_by_routes() {
    let shared = Tier::limited(Policies::from(Quota::per_minute(3)).scope("shared"));
    let layer = one_per_minute().tier(move |_| shared.clone());
    let server = Server::start(app(layer)).await;
    assert_eq!(served(&server, "/a", "").await, 3);
    assert_eq!(served(&server, "/b", "").await, 0);
}

#[tokio::test]
async fn a_tier_counts_under_the_limiters_prefix_unless_it_has_its_own() {
    let clock = ManualClock::default();
    let shop = limiter(Quota::per_minute(1), &clock).prefix("shop");
    let counts = |tier: Tier| {
        let layer = RateLimitLayer::new(shop.clone()).tier(move |_| tier.clone());
        async move { served(&Server::start(app(layer)).await, "/a", "").await }
    };
    let own = Policies::from(Quota::per_minute(3)).prefix("other");
    assert_eq!(counts(Tier::standard()).await, 1);
    assert_eq!(counts(Tier::limited(Quota::per_minute(3))).await, 2);
    assert_eq!(counts(Tier::limited(own)).await, 3);
}
