//! Burst and sustained.

use std::time::Duration;

use serde_json::json;
use tollgate_memory::ManualClock;

use crate::server::Server;
use crate::support::{store, violated};

#[path = "../../examples/burst_and_sustained.rs"]
#[expect(dead_code, reason = "its `main` is for users")]
mod example;

async fn start(clock: &ManualClock) -> Server {
    Server::start(example::app(&store(clock)).unwrap()).await
}

#[tokio::test]
async fn the_eleventh_in_a_second_is_denied_by_the_burst() {
    let server = start(&ManualClock::default()).await;
    for _ in 0..10 {
        assert_eq!(server.status("/").await, 200);
    }
    let denied = server.get("/").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(
        denied.headers()["ratelimit"],
        r#""burst";r=0;t=2, "sustained";r=90;t=61"#
    );
    assert_eq!(violated(denied).await, json!(["burst"]));
}

#[tokio::test]
async fn what_the_burst_denies_does_not_use_up_the_minute() {
    let clock = ManualClock::default();
    let server = start(&clock).await;
    for _ in 0..10 {
        for _ in 0..10 {
            assert_eq!(server.status("/").await, 200);
        }
        assert_eq!(server.status("/").await, 429);
        clock.advance(Duration::from_secs(2));
    }
    let denied = server.get("/").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(violated(denied).await, json!(["sustained"]));
}
