//! The example `api` as users start it: a process of its own, on every store, asked by two clients over HTTP/1.1 and HTTP/2.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

mod client;
mod program;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;
use tollgate_services::{PostgresServer, RedisProgram, RedisServer};

use crate::client::{Answer, Client};
use crate::program::{Api, refused};

/// What every client is told by every store, in the time that it takes.
async fn asked_by_everybody(api: &Api) {
    for client in Client::everybody() {
        let client = client.of(api);
        let health = client.get("/health").await;
        assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
        assert_eq!(health.text("ratelimit"), None);

        search_until_denied(&client).await;
        lock_out(&client).await;
        spend_tokens(&client).await;
    }
}

async fn search_until_denied(client: &Client) {
    let started = Instant::now();
    let mut admitted = 0;
    let denied = loop {
        let answer = client.get("/search?q=coffee").await;
        assert_eq!(answer.text("x-ratelimit-limit"), Some("5"));
        assert_eq!(
            answer.text("ratelimit-policy"),
            Some(r#""search";q=5;w=10"#)
        );
        assert!(
            answer
                .text("ratelimit")
                .unwrap()
                .starts_with(r#""search";r="#)
        );
        if answer.status != 200 {
            break answer;
        }
        assert_eq!(answer.body, "coffee\n");
        admitted += 1;
        // One more for every two seconds, and one that was about to come.
        assert!(admitted <= 6 + started.elapsed().as_secs() / 2);
    };
    assert!(admitted >= 5, "{admitted}");
    assert_denied(&denied, "search", 2);
}

async fn lock_out(client: &Client) {
    let right = json!({"user": "alice", "password": "wonderland"});
    let wrong = json!({"user": "alice", "password": "guess"});
    for _ in 0..4 {
        assert_eq!(client.post("/login", &wrong).await.status, 401);
    }
    assert_eq!(client.post("/login", &right).await.body, "welcome\n");
    // The success has forgotten the four failures.
    for left in (0..5).rev() {
        let failed = client.post("/login", &wrong).await;
        assert_eq!(failed.status, 401);
        assert_eq!(failed.number("x-ratelimit-remaining"), Some(left));
    }
    assert_denied(&client.post("/login", &right).await, "login", 900);
}

async fn spend_tokens(client: &Client) {
    let prompt = json!({"prompt": "what is the answer"});
    let first = client.post("/complete", &prompt).await;
    assert_eq!(first.number("x-ratelimit-remaining"), Some(900));
    let completion: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!(
        completion,
        json!({"text": "answer the is what", "tokens": 8})
    );

    // Of the 100 that were charged, 92 are back; what refills meanwhile comes on top.
    let second = client.post("/complete", &prompt).await;
    let left = second.number("x-ratelimit-remaining").unwrap();
    assert!((892..=900).contains(&left), "{left}");
}

fn assert_denied(denied: &Answer, policy: &str, longest_wait: u64) {
    assert_eq!(denied.status, 429);
    assert_eq!(
        denied.text("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(denied.number("x-ratelimit-remaining"), Some(0));
    let wait = denied.number("retry-after").unwrap();
    assert!((1..=longest_wait).contains(&wait), "{wait}");
    let problem: Value = serde_json::from_str(&denied.body).unwrap();
    assert_eq!(problem["violated-policies"], json!([policy]));
}

#[tokio::test]
async fn every_client_is_limited_in_memory() {
    let api = Api::start(&[]).await;
    asked_by_everybody(&api).await;
}

#[tokio::test]
async fn every_client_is_limited_on_redis() {
    let server = RedisServer::start(RedisProgram::System).unwrap();
    let api = Api::start_on(&server.url()).await;
    asked_by_everybody(&api).await;
}

#[tokio::test]
async fn every_client_is_limited_on_postgres() {
    let server = PostgresServer::start().unwrap();
    let api = Api::start_on(&server.url()).await;
    asked_by_everybody(&api).await;
}

#[tokio::test]
async fn two_processes_on_one_store_count_together() {
    let server = RedisServer::start(RedisProgram::System).unwrap();
    let apis = [
        Api::start_on(&server.url()).await,
        Api::start_on(&server.url()).await,
    ];
    let wrong = json!({"user": "alice", "password": "guess"});
    let clients = apis.each_ref().map(|api| Client::reqwest().of(api));
    for left in (0..5).rev() {
        let failed = clients[usize::from(left % 2 == 0)]
            .post("/login", &wrong)
            .await;
        assert_eq!(failed.number("x-ratelimit-remaining"), Some(left));
    }
    for client in &clients {
        assert_eq!(client.post("/login", &wrong).await.status, 429);
    }
}

#[tokio::test]
async fn without_its_store_searches_pass_and_logins_wait_until_it_is_back() {
    let mut server = RedisServer::start(RedisProgram::System).unwrap();
    let api = Api::start_on(&server.url()).await;
    let client = Client::reqwest().of(&api);
    assert_eq!(
        client.get("/search").await.number("x-ratelimit-remaining"),
        Some(4)
    );

    server.kill().unwrap();
    let right = json!({"user": "alice", "password": "wonderland"});
    for _ in 0..10 {
        let found = client.get("/search").await;
        assert_eq!((found.status, found.text("ratelimit")), (200, None));
        assert_eq!(client.post("/login", &right).await.status, 503);
    }

    server.restart().unwrap();
    let started = Instant::now();
    while client.get("/search").await.text("ratelimit").is_none() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "it is not asked again"
        );
        // The breaker waits before it lets a call through.
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(client.post("/login", &right).await.status, 200);
}

#[tokio::test]
async fn ctrl_c_ends_it_in_good_order() {
    let api = Api::start(&[]).await;
    assert_eq!(Client::reqwest().of(&api).get("/health").await.status, 200);
    assert_eq!(api.interrupt().await, (Some(0), "stopped\n".to_owned()));
}

#[tokio::test]
async fn what_it_cannot_use_is_said_and_nothing_is_served() {
    let usage: [(&[&str], &str); 6] = [
        (
            &["--port", "http"],
            "invalid value 'http' for '--port <PORT>'",
        ),
        (&["--port", "65536"], "65536 is not in 0..=65535"),
        (&["--prot", "80"], "unexpected argument '--prot'"),
        (
            &["--store", "mysql://localhost"],
            "expected memory, redis://.. or postgres://..",
        ),
        (
            &["--store", "redis://localhost:port"],
            "Redis URL did not parse",
        ),
        (&["--store-timeout", "0"], "0 is not in 1..=10000"),
    ];
    for (arguments, complaint) in usage {
        let (code, stderr) = refused(arguments, "0").await;
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(complaint), "{stderr}");
    }
    let (code, stderr) = refused(&[], "eighty").await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("invalid value 'eighty' for '--port <PORT>'"),
        "{stderr}"
    );
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_an_error_at_once() {
    let started = Instant::now();
    let nobody = tollgate_services::free_port().unwrap();
    for (scheme, name) in [("redis", "Redis"), ("postgres", "Postgres")] {
        let url = format!("{scheme}://127.0.0.1:{nobody}");
        let (code, stderr) = refused(&["--store", &url], "0").await;
        assert_eq!(code, Some(1), "{stderr}");
        let complaint = format!("Error: cannot reach {name} at 127.0.0.1:{nobody}\n");
        assert!(stderr.contains(&complaint), "{stderr}");
    }
    // A driver that tries again for its own sake takes half a minute.
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let api = Api::start(&[]).await;
    let (code, stderr) = refused(&[], &api.port().to_string()).await;
    assert_eq!(code, Some(1), "{stderr}");
    let complaint = format!("Error: cannot listen on 127.0.0.1:{}\n", api.port());
    assert!(stderr.contains(&complaint), "{stderr}");
}

#[tokio::test]
async fn help_names_every_option_and_its_default() {
    let help = program::help().await;
    for part in [
        "--port",
        "PORT",
        "3000",
        "--store",
        "memory",
        "--store-timeout",
        "100",
    ] {
        assert!(help.contains(part), "{help}");
    }
}
