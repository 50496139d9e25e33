//! Every trouble of the server is an error of the right kind, says whether the hit may have been charged, and passes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::time::{Duration, Instant};

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tollgate_core::{Algorithm, Error, ErrorKind, FailureMode, Limiter, Policy, Quota};
use tollgate_redis::{RedisStore, redis, tollgate_core};
use tollgate_services::{RedisProgram, RedisServer, free_port};

fn server() -> RedisServer {
    RedisServer::start(RedisProgram::System).unwrap()
}

fn manager(url: &str) -> ConnectionManager {
    let client = redis::Client::open(url).unwrap();
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_response_timeout(Some(Duration::from_millis(500)));
    ConnectionManager::new_lazy_with_config(client, config).unwrap()
}

fn limiter(url: &str) -> Limiter<RedisStore> {
    let policy = Policy::new("p", Algorithm::Gcra, Quota::per_day(100)).unwrap();
    Limiter::new(RedisStore::new(manager(url)), policy).on_failure(FailureMode::Closed)
}

/// The trouble behind the answer to a hit.
async fn trouble(limiter: &Limiter<RedisStore>) -> Error {
    let decision = limiter.hit("a").await.unwrap();
    match copied(&decision) {
        Some(error) => error,
        None => panic!("the hit was answered: {decision:?}"),
    }
}

/// A copy of what matters of an error, which outlives the decision.
fn copied(decision: &tollgate_core::Decision<'_>) -> Option<Error> {
    let error = decision.error()?;
    let copy = Error::new(error.kind(), error.to_string());
    Some(if error.may_have_charged() {
        copy.with_charge_unknown()
    } else {
        copy
    })
}

/// Hits until the server answers again.
async fn recovers(limiter: &Limiter<RedisStore>) -> u64 {
    let started = Instant::now();
    loop {
        let decision = limiter.hit("a").await.unwrap();
        if !decision.is_degraded() {
            return decision.remaining();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{decision:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_that_comes_up_later_is_found() {
    let port = free_port().unwrap();
    let limiter = limiter(&format!("redis://127.0.0.1:{port}"));
    let error = trouble(&limiter).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!error.may_have_charged());
    let _server = RedisServer::start_on(RedisProgram::System, port).unwrap();
    assert_eq!(recovers(&limiter).await, 99);
}

#[tokio::test]
async fn a_full_server_refuses_hits_charges_nothing_and_still_answers_peeks() {
    let server = server();
    let limiter = limiter(&server.url());
    assert_eq!(recovers(&limiter).await, 99);
    server
        .command(&["CONFIG", "SET", "maxmemory", "1"])
        .unwrap();
    let error = trouble(&limiter).await;
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert!(!error.may_have_charged());
    assert!(error.to_string().contains("maxmemory"), "{error}");
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 99);
    server
        .command(&["CONFIG", "SET", "maxmemory", "0"])
        .unwrap();
    assert_eq!(recovers(&limiter).await, 98);
}

#[tokio::test]
async fn a_missing_or_wrong_password_is_a_refusal() {
    let settings = ["--requirepass", "secret", "--save", ""];
    let server = RedisServer::start_with(RedisProgram::System, &settings).unwrap();
    for url in [
        server.url(),
        format!("redis://:wrong@127.0.0.1:{}", server.port()),
    ] {
        let error = trouble(&limiter(&url)).await;
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(!error.may_have_charged(), "{error}");
    }
    let right = limiter(&format!("redis://:secret@127.0.0.1:{}", server.port()));
    assert_eq!(recovers(&right).await, 99);
}

#[tokio::test]
async fn a_user_needs_exactly_the_listed_commands_and_the_prefix() {
    let server = server();
    common::allow(&server, "~tollgate:*", common::COMMANDS);
    let url = common::limited_url(&server);
    assert_eq!(recovers(&limiter(&url)).await, 99);
    let elsewhere = limiter(&url).prefix("other");
    assert_eq!(trouble(&elsewhere).await.kind(), ErrorKind::Refused);
    for missing in ["+evalsha", "+get", "+set", "+time"] {
        let less: Vec<_> = common::COMMANDS
            .iter()
            .copied()
            .filter(|command| *command != missing)
            .collect();
        common::allow(&server, "~tollgate:*", &less);
        let error = trouble(&limiter(&url)).await;
        assert_eq!(error.kind(), ErrorKind::Refused, "{missing}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_became_a_replica_is_left_and_found_again() {
    let server = server();
    let limiter = limiter(&server.url());
    assert_eq!(recovers(&limiter).await, 99);
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    let error = trouble(&limiter).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!error.may_have_charged());
    server.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    assert_eq!(recovers(&limiter).await, 98);
}

#[tokio::test]
async fn a_frozen_server_times_out_and_the_hit_may_have_been_charged() {
    let server = server();
    let limiter = limiter(&server.url());
    assert_eq!(recovers(&limiter).await, 99);
    server.process().signal("STOP").unwrap();
    let error = trouble(&limiter).await;
    server.process().signal("CONT").unwrap();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(error.may_have_charged());
    // The hit that nobody heard of was charged when the server went on.
    assert_eq!(recovers(&limiter).await, 97);
}

#[tokio::test]
async fn a_server_busy_with_somebody_elses_script_says_so() {
    let settings = ["--save", "", "--lua-time-limit", "50"];
    let server = RedisServer::start_with(RedisProgram::System, &settings).unwrap();
    let limiter = limiter(&server.url());
    assert_eq!(recovers(&limiter).await, 99);
    let endless = manager(&server.url());
    let endless = tokio::spawn(async move {
        let mut command = redis::cmd("EVAL");
        command.arg("while true do end").arg(0);
        command.query_async::<()>(&mut { endless }).await
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let error = trouble(&limiter).await;
    assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
    assert!(!error.may_have_charged());
    server.command(&["SCRIPT", "KILL"]).unwrap();
    assert!(endless.await.unwrap().is_err());
    assert_eq!(recovers(&limiter).await, 98);
}

#[cfg(feature = "deadpool")]
#[tokio::test]
async fn an_exhausted_pool_is_an_overload_that_charged_nothing() {
    use tollgate_redis::deadpool_redis;
    let server = server();
    let pool = deadpool_redis::Config::from_url(server.url())
        .builder()
        .unwrap()
        .max_size(1)
        .wait_timeout(Some(Duration::from_millis(20)))
        .runtime(deadpool_redis::Runtime::Tokio1)
        .build()
        .unwrap();
    let policy = Policy::new("p", Algorithm::Gcra, Quota::per_day(100)).unwrap();
    let limiter =
        Limiter::new(RedisStore::new(pool.clone()), policy).on_failure(FailureMode::Closed);
    let taken = pool.get().await.unwrap();
    let error = trouble(&limiter).await;
    assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
    assert!(!error.may_have_charged());
    drop(taken);
    assert_eq!(recovers(&limiter).await, 99);
}
