//! Which requests share a counter.

use axum::Router;
use axum::routing::{any, get};
use reqwest::Method;
use tollgate_axum::RateLimitLayer;
use tollgate_memory::{Limiter, ManualClock, MemoryStore, Quota};

use crate::server::{Server, limiter};

fn two_per_minute() -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(limiter(Quota::per_minute(2), &ManualClock::default()))
}

#[tokio::test]
async fn a_route_with_parameters_is_one_counter_not_one_per_item() {
    let app = Router::new()
        .route("/items/{id}", get(|| async {}))
        .route("/users/{id}", get(|| async {}))
        .route_layer(two_per_minute());
    let server = Server::start(app).await;
    assert_eq!(
        server
            .statuses(["/items/1", "/items/2", "/items/3", "/users/1"])
            .await,
        [200, 200, 429, 200]
    );
}

#[tokio::test]
async fn a_nested_route_counts_under_its_whole_template() {
    let layer = two_per_minute();
    let shop = |layer| {
        Router::new()
            .route("/items/{id}", get(|| async {}))
            .route_layer(layer)
    };
    let app = Router::new()
        .nest("/eu/{country}", shop(layer.clone()))
        .nest("/us", shop(layer.clone()))
        .nest_service("/as", shop(layer));
    let server = Server::start(app).await;
    assert_eq!(
        server
            .statuses(["/eu/fr/items/1", "/eu/de/items/2", "/eu/fr/items/3"])
            .await,
        [200, 200, 429]
    );
    for region in ["/us", "/as"] {
        let item = &format!("{region}/items/1");
        assert_eq!(server.statuses([item; 3]).await, [200, 200, 429]);
    }
}

#[tokio::test]
async fn a_layer_around_a_nest_sees_the_template_too() {
    let inner = Router::new().route("/items/{id}", get(|| async {}));
    let app = Router::new().nest("/shop", inner).layer(two_per_minute());
    let server = Server::start(app).await;
    assert_eq!(
        server
            .statuses(["/shop/items/1", "/shop/items/2", "/shop/items/3"])
            .await,
        [200, 200, 429]
    );
}

#[tokio::test]
async fn without_a_template_all_paths_share_one_counter() {
    let app = Router::new().fallback(|| async {}).layer(two_per_minute());
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/a", "/b", "/c"]).await, [200, 200, 429]);
}

#[tokio::test]
async fn routes_of_one_name_share_a_counter_across_layers() {
    let clock = ManualClock::default();
    let limiter = limiter(Quota::per_minute(2), &clock);
    let named = |limiter: Limiter<_>| RateLimitLayer::new(limiter).scope("search-api");
    let app = Router::new()
        .route("/search", get(|| async {}).layer(named(limiter.clone())))
        .route("/suggest", get(|| async {}).layer(named(limiter.clone())))
        .route(
            "/other",
            get(|| async {}).layer(RateLimitLayer::new(limiter)),
        );
    let server = Server::start(app).await;
    assert_eq!(
        server
            .statuses(["/search", "/suggest", "/search", "/suggest", "/other"])
            .await,
        [200, 200, 429, 429, 200]
    );
}

#[tokio::test]
async fn the_limiters_own_scope_takes_the_place_of_the_template() {
    let limiter = limiter(Quota::per_minute(2), &ManualClock::default()).scope("mine");
    let app = Router::new()
        .route("/a", get(|| async {}))
        .route("/b", get(|| async {}))
        .route_layer(RateLimitLayer::new(limiter.clone()));
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/a", "/b", "/a"]).await, [200, 200, 429]);
    let decision = limiter.peek("ip:127.0.0.1").await.unwrap();
    assert_eq!(decision.remaining(), 0);
}

#[tokio::test]
async fn each_method_counts_by_itself_if_asked_and_head_is_get() {
    let app = Router::new()
        .route("/", any(|| async {}))
        .route_layer(two_per_minute().scope_by_method(true));
    let server = Server::start(app).await;
    let status = async |method: &[u8]| {
        let method = Method::from_bytes(method).unwrap();
        let response = server.request(method, "/").send().await.unwrap();
        response.status().as_u16()
    };
    assert_eq!(status(b"GET").await, 200);
    assert_eq!(status(b"HEAD").await, 200);
    assert_eq!(status(b"GET").await, 429);
    assert_eq!(status(b"POST").await, 200);
    // A client does not get a counter for each method it makes up.
    assert_eq!(status(b"BREW").await, 200);
    assert_eq!(status(b"WHEN").await, 200);
    assert_eq!(status(b"PROPFIND").await, 429);
}

#[tokio::test]
async fn without_asking_all_methods_share_the_counter() {
    let app = Router::new()
        .route("/", any(|| async {}))
        .route_layer(two_per_minute());
    let server = Server::start(app).await;
    assert_eq!(server.statuses(["/"; 2]).await, [200, 200]);
    let response = server.request(Method::POST, "/").send().await.unwrap();
    assert_eq!(response.status(), 429);
}
