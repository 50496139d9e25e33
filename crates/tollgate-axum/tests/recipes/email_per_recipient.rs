//! E-mail per recipient.

use std::time::Duration;

use reqwest::Response;
use serde_json::json;
use tollgate_memory::ManualClock;

use crate::server::Server;
use crate::support::{post, store, violated};

#[path = "../../examples/email_per_recipient.rs"]
#[expect(dead_code, reason = "its `main` is for users")]
mod example;

const PAUSE: Duration = Duration::from_secs(600);

async fn start(clock: &ManualClock) -> Server {
    Server::start(example::app(&store(clock)).unwrap()).await
}

async fn send(server: &Server, to: &str) -> Response {
    post(server, "/send", &json!({"to": to, "text": "hello"})).await
}

#[tokio::test]
async fn a_recipient_gets_one_message_and_others_get_theirs() {
    let server = start(&ManualClock::default()).await;
    let sent = send(&server, "bob@example.com").await;
    assert_eq!(sent.status(), 202);
    assert_eq!(
        sent.text().await.unwrap(),
        "sent to bob@example.com; 4 more today\n"
    );

    let denied = send(&server, "bob@example.com").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(denied.headers()["retry-after"], "600");
    assert_eq!(violated(denied).await, json!(["pause"]));

    assert_eq!(send(&server, "carol@example.com").await.status(), 202);
}

#[tokio::test]
async fn a_message_that_has_to_wait_does_not_count_for_the_day() {
    let clock = ManualClock::default();
    let server = start(&clock).await;
    for left in (0..5).rev() {
        let sent = send(&server, "bob@example.com").await.text().await.unwrap();
        assert!(sent.ends_with(&format!("{left} more today\n")), "{sent}");
        for _ in 0..3 {
            assert_eq!(send(&server, "bob@example.com").await.status(), 429);
        }
        clock.advance(PAUSE);
    }
    let denied = send(&server, "bob@example.com").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(violated(denied).await, json!(["daily"]));
}

#[tokio::test]
async fn the_day_ends_at_midnight() {
    // It is 01:46:40, and six messages take no hour.
    let clock = ManualClock::default();
    let server = start(&clock).await;
    for _ in 0..5 {
        assert_eq!(send(&server, "bob@example.com").await.status(), 202);
        clock.advance(PAUSE);
    }
    let until_midnight = 24 * 3_600 - (3_600 + 46 * 60 + 40) - 5 * 600;
    let denied = send(&server, "bob@example.com").await;
    assert_eq!(
        denied.headers()["retry-after"],
        until_midnight.to_string().as_str()
    );

    clock.advance(Duration::from_secs(until_midnight));
    assert_eq!(send(&server, "bob@example.com").await.status(), 202);
}

#[tokio::test]
async fn another_spelling_is_the_same_mailbox() {
    let server = start(&ManualClock::default()).await;
    assert_eq!(send(&server, "bob@example.com").await.status(), 202);
    assert_eq!(send(&server, " Bob@Example.COM").await.status(), 429);
}

#[tokio::test]
async fn what_is_no_address_is_refused() {
    let server = start(&ManualClock::default()).await;
    for nobody in ["", "bob", "@example.com", "bob@", "bob@a@b"] {
        assert_eq!(send(&server, nobody).await.status(), 422, "{nobody}");
    }
}
