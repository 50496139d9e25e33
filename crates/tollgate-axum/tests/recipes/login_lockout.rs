//! Login lockout.

use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tollgate_memory::ManualClock;

use crate::server::Server;
use crate::support::{post, store, violated};

#[path = "../../examples/login_lockout.rs"]
#[expect(dead_code, reason = "its `main` is for users")]
mod example;

const MINUTE: Duration = Duration::from_secs(60);

async fn start(clock: &ManualClock) -> Server {
    Server::start(example::app(&store(clock)).unwrap()).await
}

fn credentials(password: &str) -> Value {
    json!({"user": "alice", "password": password})
}

async fn attempt(server: &Server, password: &str) -> u16 {
    let response = post(server, "/login", &credentials(password)).await;
    response.status().as_u16()
}

#[tokio::test]
async fn after_five_failures_the_right_password_is_refused_too() {
    let clock = ManualClock::default();
    let server = start(&clock).await;
    for _ in 0..5 {
        assert_eq!(attempt(&server, "guess").await, 401);
    }
    let denied = post(&server, "/login", &credentials("wonderland")).await;
    assert_eq!(denied.status(), 429);
    assert_eq!(denied.headers()["retry-after"], "900");
    assert_eq!(violated(denied).await, json!(["address"]));

    clock.advance(15 * MINUTE - Duration::from_micros(1));
    assert_eq!(attempt(&server, "wonderland").await, 429);
    clock.advance(Duration::from_micros(1));
    assert_eq!(attempt(&server, "wonderland").await, 200);
}

#[tokio::test]
async fn a_success_forgets_the_failures_before_it() {
    let server = start(&ManualClock::default()).await;
    for _ in 0..3 {
        for _ in 0..4 {
            assert_eq!(attempt(&server, "guess").await, 401);
        }
        assert_eq!(attempt(&server, "wonderland").await, 200);
    }
}

/// An address of each client's own, as four attackers would have.
#[tokio::test]
async fn an_account_is_locked_when_many_addresses_guess_together() {
    let clock = ManualClock::default();
    let server = start(&clock).await;
    let attempt_from = async |last, password| {
        let address = Ipv4Addr::new(127, 0, 0, last);
        let client = Client::builder()
            .no_proxy()
            .local_address(Some(address.into()));
        let request = client.build().unwrap().post(server.url("/login"));
        request.json(&credentials(password)).send().await.unwrap()
    };
    for attacker in 2..6 {
        for _ in 0..5 {
            assert_eq!(attempt_from(attacker, "guess").await.status(), 401);
        }
    }
    let denied = attempt_from(6, "wonderland").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(violated(denied).await, json!(["account"]));

    clock.advance(60 * MINUTE);
    assert_eq!(attempt_from(6, "wonderland").await.status(), 200);
}
