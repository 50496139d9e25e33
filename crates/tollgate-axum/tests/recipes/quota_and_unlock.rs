//! A quota to look at, and an administrator who gives it back.

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tollgate_memory::ManualClock;

use crate::server::Server;
use crate::support::store;

#[path = "../../examples/quota_and_unlock.rs"]
#[expect(dead_code, reason = "its `main` is for users")]
mod example;

async fn start() -> Server {
    let store = store(&ManualClock::default());
    Server::start(example::app(&store, "secret").unwrap()).await
}

async fn get(server: &Server, path: &str, key: &str) -> Response {
    let request = server.request(Method::GET, path).header("x-api-key", key);
    request.send().await.unwrap()
}

async fn quota(server: &Server, key: &str) -> Value {
    get(server, "/quota", key).await.json().await.unwrap()
}

async fn unlock(server: &Server, token: &str, user: &str) -> Response {
    let request = server.request(Method::POST, &format!("/admin/unlock/{user}"));
    request.bearer_auth(token).send().await.unwrap()
}

#[tokio::test]
async fn looking_at_the_quota_charges_nothing() {
    let server = start().await;
    assert_eq!(get(&server, "/report", "key-of-alice").await.status(), 200);
    for _ in 0..10 {
        let expected = json!({"limit": 3, "remaining": 2, "seconds_until_reset": 86_400});
        assert_eq!(quota(&server, "key-of-alice").await, expected);
    }
    let untouched = json!({"limit": 3, "remaining": 3, "seconds_until_reset": 0});
    assert_eq!(quota(&server, "key-of-bob").await, untouched);
}

#[tokio::test]
async fn an_unlocked_user_starts_afresh_and_nobody_else_does() {
    let server = start().await;
    for key in ["key-of-alice", "key-of-bob"] {
        for status in [200, 200, 200, 429] {
            assert_eq!(get(&server, "/report", key).await.status(), status);
        }
    }
    let unlocked = unlock(&server, "secret", "alice").await;
    assert_eq!(unlocked.text().await.unwrap(), "alice starts afresh\n");
    assert_eq!(get(&server, "/report", "key-of-alice").await.status(), 200);
    assert_eq!(get(&server, "/report", "key-of-bob").await.status(), 429);
}

#[tokio::test]
async fn only_the_administrator_unlocks() {
    let server = start().await;
    for status in [200, 200, 200, 429] {
        let response = get(&server, "/report", "key-of-alice").await;
        assert_eq!(response.status(), status);
    }
    assert_eq!(unlock(&server, "guess", "alice").await.status(), 403);
    let without_token = server.request(Method::POST, "/admin/unlock/alice");
    assert_eq!(without_token.send().await.unwrap().status(), 403);
    assert_eq!(get(&server, "/report", "key-of-alice").await.status(), 429);
}

#[tokio::test]
async fn unlocking_somebody_who_used_nothing_says_so() {
    let server = start().await;
    let unlocked = unlock(&server, "secret", "bob").await;
    assert_eq!(unlocked.text().await.unwrap(), "bob had used nothing\n");
}

#[tokio::test]
async fn a_client_without_a_key_is_unauthorized() {
    let server = start().await;
    for path in ["/report", "/quota"] {
        assert_eq!(get(&server, path, "guess").await.status(), 401);
    }
}
