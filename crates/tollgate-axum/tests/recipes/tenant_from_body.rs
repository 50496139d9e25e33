//! Tenants in the body.

use reqwest::{Method, Response};
use serde_json::json;
use tollgate_memory::ManualClock;

use crate::server::Server;
use crate::support::{number, post, store};

#[path = "../../examples/tenant_from_body.rs"]
#[expect(dead_code, reason = "its `main` is for users")]
mod example;

async fn start() -> Server {
    let store = store(&ManualClock::default());
    Server::start(example::app(&store).unwrap()).await
}

async fn note(server: &Server, tenant: &str) -> Response {
    post(
        server,
        "/events",
        &json!({"tenant": tenant, "name": "signup"}),
    )
    .await
}

#[tokio::test]
async fn each_tenant_has_the_limit_of_its_plan() {
    let server = start().await;
    for (tenant, limit) in [("acme", 3), ("globex", 6)] {
        for left in (0..limit).rev() {
            let noted = note(&server, tenant).await;
            assert_eq!(noted.status(), 200);
            assert_eq!(number(&noted, "x-ratelimit-limit"), Some(limit));
            assert_eq!(number(&noted, "x-ratelimit-remaining"), Some(left));
            assert_eq!(noted.text().await.unwrap(), "noted signup\n");
        }
        assert_eq!(note(&server, tenant).await.status(), 429);
    }
}

#[tokio::test]
async fn unknown_tenants_are_refused_and_get_no_counter() {
    let server = start().await;
    let refused = note(&server, "initech").await;
    assert_eq!(refused.status(), 403);
    assert_eq!(number(&refused, "x-ratelimit-limit"), None);
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused() {
    let server = start().await;
    let name = "x".repeat(16 * 1024);
    let refused = post(&server, "/events", &json!({"tenant": "acme", "name": name})).await;
    assert_eq!(refused.status(), 413);
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused() {
    let server = start().await;
    let request = server.request(Method::POST, "/events").body("tenant=acme");
    assert_eq!(request.send().await.unwrap().status(), 400);
}
