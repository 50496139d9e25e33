//! Every trouble of the server is an error of the right kind, says whether the hit may have been charged, and passes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tollgate_core::{Algorithm, Error, ErrorKind, FailureMode, Limiter, Policy, Quota};
use tollgate_redis::{RedisStore, redis, tollgate_core};
use tollgate_services::{RedisProgram, RedisServer, free_port};

fn server() -> RedisServer {
    RedisServer::start(RedisProgram::System).unwrap()
}

/// A server of each program that is installed, and of the system's in any case: they word what they refuse to a script
/// in different ways.
fn servers(settings: &[&str]) -> impl Iterator<Item = RedisServer> {
    RedisProgram::ALL
        .into_iter()
        .filter(|program| *program == RedisProgram::System || program.is_installed())
        .map(|program| RedisServer::start_with(program, settings).unwrap())
}

fn manager(url: &str, patience: Duration) -> ConnectionManager {
    let client = redis::Client::open(url).unwrap();
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_response_timeout(Some(patience))
        .set_connection_timeout(Some(patience));
    ConnectionManager::new_lazy_with_config(client, config).unwrap()
}

/// A busy machine is no trouble.
const LONG: Duration = Duration::from_secs(10);

fn limiter(url: &str) -> Limiter<RedisStore> {
    limiter_over(RedisStore::new(manager(url, LONG)))
}

fn limiter_over(store: RedisStore) -> Limiter<RedisStore> {
    let policy = Policy::new("p", Algorithm::Gcra, Quota::per_day(100)).unwrap();
    Limiter::new(store, policy).on_failure(FailureMode::Closed)
}

fn set(server: &RedisServer, setting: &str, value: &str) {
    server.command(&["CONFIG", "SET", setting, value]).unwrap();
}

fn info(server: &RedisServer, section: &str) -> String {
    server.command(&["INFO", section]).unwrap()
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

/// The trouble of a call that charged nothing and says what can be done.
async fn refusal(limiter: &Limiter<RedisStore>, kind: ErrorKind, advice: &str) {
    let error = trouble(limiter).await;
    assert_eq!(error.kind(), kind, "{error}");
    assert!(!error.may_have_charged(), "{error}");
    assert!(error.to_string().contains(advice), "{error}");
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
    for server in servers(&["--save", ""]) {
        let limiter = limiter(&server.url());
        assert_eq!(recovers(&limiter).await, 99);
        set(&server, "maxmemory", "1");
        refusal(&limiter, ErrorKind::Overloaded, "`maxmemory`").await;
        assert_eq!(limiter.peek("a").await.unwrap().remaining(), 99);
        set(&server, "maxmemory", "0");
        assert_eq!(recovers(&limiter).await, 98);
    }
}

#[tokio::test]
async fn a_server_that_cannot_save_refuses_hits_until_it_can() {
    for server in servers(&["--save", ""]) {
        // Only a server that is to save refuses writes when it cannot.
        set(&server, "save", "3600 1000000");
        let limiter = limiter(&server.url());
        assert_eq!(recovers(&limiter).await, 99);
        // A snapshot ends by taking this name.
        let obstacle = server.directory().join("dump.rdb");
        fs::create_dir(&obstacle).unwrap();
        server.command(&["BGSAVE"]).unwrap();
        let started = Instant::now();
        while !info(&server, "persistence").contains("rdb_last_bgsave_status:err") {
            assert!(started.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        refusal(&limiter, ErrorKind::Unavailable, "cannot save to its disk").await;
        fs::remove_dir(&obstacle).unwrap();
        server.command(&["SAVE"]).unwrap();
        assert_eq!(recovers(&limiter).await, 98);
    }
}

#[tokio::test]
async fn a_server_that_lacks_replicas_refuses_hits_until_it_may_do_without() {
    for server in servers(&["--save", ""]) {
        let limiter = limiter(&server.url());
        assert_eq!(recovers(&limiter).await, 99);
        set(&server, "min-replicas-to-write", "1");
        refusal(&limiter, ErrorKind::Unavailable, "`min-replicas-to-write`").await;
        set(&server, "min-replicas-to-write", "0");
        assert_eq!(recovers(&limiter).await, 98);
    }
}

#[tokio::test]
async fn a_server_that_loads_its_data_says_so_and_goes_on_with_it() {
    // Two seconds for 2000 keys, and an ear for clients every few keys.
    let settings = [
        "--save",
        "",
        "--key-load-delay",
        "1000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let mut server = RedisServer::start_with(RedisProgram::System, &settings).unwrap();
    let limiter = limiter(&server.url());
    assert_eq!(recovers(&limiter).await, 99);
    let fill = "for i = 1, 2000 do redis.call('SET', 'filler:' .. i, i) end";
    server.command(&["EVAL", fill, "0"]).unwrap();
    server.command(&["SAVE"]).unwrap();
    server.kill().unwrap();
    let restart = tokio::task::spawn_blocking(move || {
        server.restart().unwrap();
        server
    });
    let started = Instant::now();
    let loading = loop {
        // Until the server listens there is nobody at all.
        let error = trouble(&limiter).await;
        if error.to_string().contains("loading its data") {
            break error;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(loading.kind(), ErrorKind::Unavailable, "{loading}");
    assert!(!loading.may_have_charged());
    let _server = restart.await.unwrap();
    assert_eq!(recovers(&limiter).await, 98);
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn a_cluster_that_lost_a_slot_refuses_its_keys_until_it_is_served_again() {
    use redis::cluster::ClusterClientBuilder;
    use tollgate_services::RedisCluster;
    let cluster = RedisCluster::start(RedisProgram::System).unwrap();
    let client = ClusterClientBuilder::new(cluster.urls())
        .retries(0)
        .response_timeout(LONG)
        .build()
        .unwrap();
    let limiter = limiter_over(RedisStore::new(client));
    assert_eq!(recovers(&limiter).await, 99);
    let holds_it = |node: &&RedisServer| node.command(&["DBSIZE"]).unwrap() == ":1\r\n";
    let owner = cluster.nodes().iter().find(holds_it).unwrap();
    let slot = owner.command(&["CLUSTER", "KEYSLOT", "{a}"]).unwrap();
    let slot = slot.trim_start_matches(':').trim_end();
    owner.command(&["CLUSTER", "DELSLOTS", slot]).unwrap();
    refusal(&limiter, ErrorKind::Unavailable, "CLUSTER INFO").await;
    owner.command(&["CLUSTER", "ADDSLOTS", slot]).unwrap();
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
    for server in servers(&["--save", ""]) {
        let limiter = limiter(&server.url());
        assert_eq!(recovers(&limiter).await, 99);
        server.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
        refusal(&limiter, ErrorKind::Unavailable, "looks for the master").await;
        server.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
        assert_eq!(recovers(&limiter).await, 98);
    }
}

#[tokio::test]
async fn a_frozen_server_times_out_and_the_hit_may_have_been_charged() {
    let server = server();
    let hasty = manager(&server.url(), Duration::from_millis(500));
    let limiter = limiter_over(RedisStore::new(hasty));
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
    let endless = manager(&server.url(), LONG);
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
    let limiter = limiter_over(RedisStore::new(pool.clone()));
    let taken = pool.get().await.unwrap();
    let error = trouble(&limiter).await;
    assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
    assert!(!error.may_have_charged());
    drop(taken);
    assert_eq!(recovers(&limiter).await, 99);
}
