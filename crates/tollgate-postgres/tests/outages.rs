//! Servers that end, hang or move, while callers go on asking.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tollgate_core::{Algorithm, Batch, Check, Cost, ErrorKind, Key, Op, Policy, Space, Store};
use tollgate_faults::Proxy;
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tollgate_postgres::{PostgresStore, Schema, SynchronousCommit, sqlx, tollgate_core};
use tollgate_services::PostgresServer;

use crate::support::{hit, policy, run, session, signal, store_on};

/// Hits until told to stop, and counts what came of it.
#[derive(Debug, Default)]
struct Tally {
    admitted: AtomicU64,
    unknown: AtomicU64,
    untouched: AtomicU64,
}

impl Tally {
    async fn hits(&self, store: &PostgresStore, policy: &Policy, until: Instant) {
        while Instant::now() < until {
            match hit(store, policy, "s", &["hot"]).await {
                Ok(verdicts) => {
                    assert!(verdicts.is_allowed());
                    self.admitted.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    assert!(error.is_transient(), "{error:?}");
                    let counter = if error.may_have_charged() {
                        &self.unknown
                    } else {
                        &self.untouched
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    /// What the store has counted lies between what was answered and that with what nobody knows.
    async fn compare(&self, store: &PostgresStore, policy: &Policy) {
        let space = Space::new("", "s", policy);
        let check = Check {
            key: Key::new(&space, b"hot").unwrap(),
            policy,
            op: Op::Peek(Cost::ONE),
        };
        let charged = loop {
            match store.apply(Batch::of_one(&check)).await {
                Ok(verdicts) => break verdicts.as_slice()[0].mark(),
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        };
        let admitted = self.admitted.load(Ordering::Relaxed);
        let unknown = self.unknown.load(Ordering::Relaxed);
        assert!(admitted > 0, "{self:?}");
        assert!(
            (admitted..=admitted + unknown).contains(&charged),
            "{charged} charged: {self:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_sessions_lose_no_answered_hit() {
    let server = PostgresServer::start().unwrap();
    let store = store_on(&server, 8).await;
    let policy = policy(Algorithm::FixedWindow, 1_000_000_000);
    let tally = Tally::default();
    let until = Instant::now() + Duration::from_secs(2);
    let mut session = session(&server).await;
    let terminate = async {
        while Instant::now() < until {
            let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                       WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
            run(&mut session, sql.to_owned()).await;
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    };
    let hits = join_all((0..32).map(|_| tally.hits(&store, &policy, until)));
    tokio::join!(hits, terminate);
    tally.compare(&store, &policy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_comes_back_with_every_answered_hit() {
    let settings = ["fsync=on", "full_page_writes=on"];
    let mut server = PostgresServer::start_with(&settings).unwrap();
    let pool = support::pool(&server, 8);
    let schema = support::schema(&pool).await;
    let builder = PostgresStore::builder(pool).schema(schema);
    let store = builder
        .synchronous_commit(SynchronousCommit::On)
        .build()
        .unwrap();
    let policy = policy(Algorithm::FixedWindow, 1_000_000_000);
    let tally = Tally::default();
    let until = Instant::now() + Duration::from_secs(3);
    let hits = join_all((0..32).map(|_| tally.hits(&store, &policy, until)));
    let kill = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        tokio::task::block_in_place(|| {
            server.kill().unwrap();
            server.restart().unwrap();
        });
    };
    tokio::join!(hits, kill);
    tally.compare(&store, &policy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_for_seconds_loses_no_answered_hit() {
    let server = PostgresServer::start().unwrap();
    let pool = support::pool(&server, 8);
    let schema = support::schema(&pool).await;
    let builder = PostgresStore::builder(pool).schema(schema);
    let builder = builder.statement_timeout(Duration::from_millis(700));
    let store = builder.build().unwrap();
    let policy = policy(Algorithm::FixedWindow, 1_000_000_000);
    let tally = Tally::default();
    let until = Instant::now() + Duration::from_secs(5);
    let hits = join_all((0..32).map(|_| tally.hits(&store, &policy, until)));
    let mut session = session(&server).await;
    let stand_still = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let all = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
        let processes: Vec<i32> = sqlx::query_scalar(all)
            .fetch_all(&mut session)
            .await
            .unwrap();
        // First the one that would start more of them.
        server.signal("STOP").unwrap();
        for process in &processes {
            signal(*process, "STOP");
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        let answered = tally.admitted.load(Ordering::Relaxed);
        server.signal("CONT").unwrap();
        for process in &processes {
            signal(*process, "CONT");
        }
        answered
    };
    let (_, answered) = tokio::join!(hits, stand_still);
    let failed = [&tally.unknown, &tally.untouched].map(|count| count.load(Ordering::Relaxed));
    assert_ne!(failed, [0, 0], "nobody waited for all of the time");
    assert!(
        tally.admitted.load(Ordering::Relaxed) > answered,
        "it went on"
    );
    tally.compare(&store, &policy).await;
}

/// Two servers with the same schema, and a store that finds the first of them at an address which can move.
async fn moving() -> (PostgresServer, PostgresServer, PostgresStore, Proxy) {
    let (first, second) = (
        PostgresServer::start().unwrap(),
        PostgresServer::start().unwrap(),
    );
    for server in [&first, &second] {
        let schema = Schema::default();
        schema.ensure(&support::pool(server, 1)).await.unwrap();
    }
    let proxy = Proxy::start((Ipv4Addr::LOCALHOST, first.port())).unwrap();
    let options: PgConnectOptions = first.url().parse().unwrap();
    let options = options.port(proxy.port());
    let pool = PgPoolOptions::new()
        .max_connections(4)
        .test_before_acquire(false);
    let store = PostgresStore::new(pool.connect_lazy_with(options));
    (first, second, store, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_follow_an_address_that_moves_to_another_server() {
    let (mut first, second, store, proxy) = moving().await;
    let policy = policy(Algorithm::FixedWindow, 1_000_000_000);
    let (before, after) = (Tally::default(), Tally::default());
    let until = Instant::now() + Duration::from_secs(1);
    join_all((0..16).map(|_| before.hits(&store, &policy, until))).await;
    before.compare(&store, &policy).await;

    first.kill().unwrap();
    proxy.redirect((Ipv4Addr::LOCALHOST, second.port()));
    let until = Instant::now() + Duration::from_secs(2);
    join_all((0..16).map(|_| after.hits(&store, &policy, until))).await;
    // Of the first server's hits the second one knows nothing, and of its own it lacks none.
    after.compare(&store, &policy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_was_demoted_is_left_for_the_new_one() {
    let (first, second, store, proxy) = moving().await;
    let policy = policy(Algorithm::FixedWindow, 1_000_000_000);
    // More than the new server will have counted at the end, so that an answer tells whose it is.
    join_all((0..100).map(|_| hit(&store, &policy, "s", &["hot"]))).await;
    let mut session = session(&first).await;
    let demote = "ALTER SYSTEM SET default_transaction_read_only = on";
    run(&mut session, demote.to_owned()).await;
    run(&mut session, "SELECT pg_reload_conf()".to_owned()).await;
    proxy.redirect((Ipv4Addr::LOCALHOST, second.port()));

    // The old connections still lead to the old server, which answers, and takes no writes.
    let mut refused = 0;
    let mut admitted = 0;
    let began = Instant::now();
    while admitted < 20 {
        assert!(began.elapsed() < Duration::from_secs(60));
        match hit(&store, &policy, "s", &["hot"]).await {
            // The old server's process behind this connection has not heard of it yet.
            Ok(verdicts) if verdicts.as_slice()[0].mark() > 100 => {}
            Ok(verdicts) => {
                admitted += 1;
                let counted = verdicts.as_slice()[0].mark();
                assert_eq!(counted, admitted, "the new server counts");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                assert!(!error.may_have_charged());
                refused += 1;
            }
        }
    }
    // No more than there were connections.
    assert!(refused <= 4, "{refused}");
}
