//! What goes wrong, and what the store says and does then.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ErrorKind, Key, Op, Policy, Quota, Space, Store,
};
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tollgate_postgres::{PostgresStore, sqlx, tollgate_core};
use tollgate_services::PostgresServer;

use crate::support::{hit, lock, policy, run, session, signal, store_on};

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_another_session_holds_delays_no_other_key() {
    let server = support::server();
    let store = store_on(&server, 8).await;
    let policy = policy(Algorithm::TokenBucket, 1_000_000);
    hit(&store, &policy, "s", &["held"]).await.unwrap();
    let mut session = session(&server).await;
    lock(&mut session, &store, "held").await;

    let held = async {
        for _ in 0..3 {
            let error = hit(&store, &policy, "s", &["held"]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            assert!(!error.may_have_charged());
        }
    };
    let others = (0..50).map(|number| {
        let (store, policy) = (&store, &policy);
        async move {
            let mut slowest = Duration::ZERO;
            for _ in 0..20 {
                let asked = Instant::now();
                hit(store, policy, "s", &[&format!("free:{number}")])
                    .await
                    .unwrap();
                slowest = slowest.max(asked.elapsed());
            }
            slowest
        }
    });
    let ((), slowest) = tokio::join!(held, join_all(others));
    // Nobody waited for more than the one statement that found the row held, and its second try.
    let longest = slowest.into_iter().max().unwrap();
    assert!(longest < Duration::from_secs(2), "{longest:?}");

    run(&mut session, "ROLLBACK".to_owned()).await;
    hit(&store, &policy, "s", &["held"]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_waits_for_rows_share_one_deadline() {
    let server = support::server();
    let pool = support::pool(&server, 2);
    let schema = support::schema(&pool).await;
    let builder = PostgresStore::builder(pool).schema(schema);
    let store = builder
        .lock_timeout(Duration::from_millis(800))
        .build()
        .unwrap();
    let policy = policy(Algorithm::Gcra, 100);
    hit(&store, &policy, "s", &["a", "b"]).await.unwrap();
    let (mut first, mut second) = (session(&server).await, session(&server).await);
    lock(&mut first, &store, "a").await;
    lock(&mut second, &store, "b").await;

    let release = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        run(&mut first, "ROLLBACK".to_owned()).await;
    };
    let asked = Instant::now();
    let (answer, ()) = tokio::join!(hit(&store, &policy, "s", &["a", "b"]), release);
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(!error.may_have_charged());
    // Two full waits would be 1.3 s.
    assert!(
        asked.elapsed() < Duration::from_millis(1_250),
        "{:?}",
        asked.elapsed()
    );

    run(&mut second, "ROLLBACK".to_owned()).await;
    let space = Space::new("", "s", &policy);
    let check = Check {
        key: Key::new(&space, b"a").unwrap(),
        policy: &policy,
        op: Op::Peek(Cost::new(99).unwrap()),
    };
    let verdicts = store.apply(Batch::of_one(&check)).await.unwrap();
    assert!(verdicts.is_allowed(), "only the first hit was charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hit_that_waited_across_the_end_of_its_window_counts_in_the_next() {
    let server = support::server();
    let pool = support::pool(&server, 2);
    let schema = support::schema(&pool).await;
    let builder = PostgresStore::builder(pool).schema(schema);
    let store = builder
        .lock_timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    let quota = Quota::new(2, Duration::from_millis(500)).unwrap();
    let policy = Policy::new("p", Algorithm::FixedWindow, quota).unwrap();
    let first = hit(&store, &policy, "s", &["k"]).await.unwrap();
    let mut session = session(&server).await;
    lock(&mut session, &store, "k").await;
    let release = async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        run(&mut session, "ROLLBACK".to_owned()).await;
    };
    let (answer, ()) = tokio::join!(hit(&store, &policy, "s", &["k"]), release);
    let second = answer.unwrap();
    let apart = second.at().saturating_since(first.at());
    assert!(
        apart >= Duration::from_millis(800),
        "judged {apart:?} after the first"
    );
    let window = second.as_slice()[0];
    assert_eq!(
        window.mark(),
        1,
        "the first hit of a new window: {window:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_is_a_kind_of_its_own_and_charges_nothing() {
    let server = support::server();
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(300))
        .connect(&server.url())
        .await
        .unwrap();
    let schema = support::schema(&pool).await;
    let store = PostgresStore::builder(pool.clone())
        .schema(schema)
        .build()
        .unwrap();
    let policy = policy(Algorithm::Gcra, 10);
    let taken = pool.acquire().await.unwrap();
    let error = hit(&store, &policy, "s", &["k"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert!(!error.may_have_charged());
    assert!(error.to_string().contains("max_connections"), "{error}");
    drop(taken);
    hit(&store, &policy, "s", &["k"]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_nobody_could_have_written_fails_its_own_key_alone() {
    let server = support::server();
    let store = store_on(&server, 4).await;
    let policy = policy(Algorithm::TokenBucket, 1_000);
    hit(&store, &policy, "s", &["broken"]).await.unwrap();
    let mut session = session(&server).await;
    let schema = store.schema().quoted();
    run(&mut session, format!("UPDATE {schema}.counters SET b = -1")).await;

    let names: Vec<String> = (0..40).map(|number| format!("sound:{number}")).collect();
    let hits = names.iter().map(String::as_str).chain(["broken"]);
    let hits = hits.map(|name| {
        let (store, policy) = (&store, &policy);
        async move { (name, hit(store, policy, "s", &[name]).await) }
    });
    for (name, answer) in join_all(hits).await {
        if name == "broken" {
            let error = answer.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(!error.may_have_charged());
        } else {
            assert!(answer.unwrap().is_allowed());
        }
    }
    let space = Space::new("", "s", &policy);
    let key = Key::new(&space, b"broken").unwrap();
    assert_eq!(store.reset(&[key]).await.unwrap(), 1);
    hit(&store, &policy, "s", &["broken"]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stricter_isolation_levels_admit_exactly_the_limit_too() {
    let server = support::server();
    for level in ["repeatable read", "serializable"] {
        let options: PgConnectOptions = server.url().parse().unwrap();
        let options = options.options([("default_transaction_isolation", level)]);
        let schema = support::schema(&support::pool(&server, 1)).await;
        let stores: Vec<PostgresStore> = (0..3)
            .map(|_| {
                let pool = PgPoolOptions::new().max_connections(2);
                let pool = pool.connect_lazy_with(options.clone());
                PostgresStore::builder(pool)
                    .schema(schema.clone())
                    .build()
                    .unwrap()
            })
            .collect();
        for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog] {
            let policy = policy(algorithm, 40);
            let admitted = AtomicU64::new(0);
            let hits = (0..120).map(|number: usize| {
                let (store, policy, admitted) = (&stores[number % 3], &policy, &admitted);
                async move {
                    // A conflict that outlasts the retries is an error that charged nothing.
                    match hit(store, policy, "s", &["hot"]).await {
                        Ok(verdicts) => {
                            admitted.fetch_add(u64::from(verdicts.is_allowed()), Ordering::Relaxed);
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                            assert!(!error.may_have_charged());
                        }
                    }
                }
            });
            join_all(hits).await;
            let space = Space::new("", "s", &policy);
            let check = Check {
                key: Key::new(&space, b"hot").unwrap(),
                policy: &policy,
                op: Op::Hit(Cost::ONE),
            };
            while store_admits(&stores[0], &check).await {
                admitted.fetch_add(1, Ordering::Relaxed);
            }
            assert_eq!(admitted.into_inner(), 40, "{level}, {algorithm}");
        }
    }
}

async fn store_admits(store: &PostgresStore, check: &Check<'_>) -> bool {
    store
        .apply(Batch::of_one(check))
        .await
        .unwrap()
        .is_allowed()
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_go_away_neither_lose_nor_double_the_hits_of_others() {
    let server = support::server();
    let store = Arc::new(store_on(&server, 4).await);
    let policy = Arc::new(policy(Algorithm::FixedWindow, 1_000_000));
    let mut leavers = Vec::new();
    let mut stayers = Vec::new();
    for number in 0..400_u64 {
        let (store, policy) = (Arc::clone(&store), Arc::clone(&policy));
        let stays = number % 2 == 0;
        let name = if stays { "stayer" } else { "leaver" };
        let task = tokio::spawn(async move { hit(&store, &policy, "s", &[name]).await });
        if stays {
            stayers.push(task);
        } else {
            leavers.push((number, task));
        }
    }
    for (number, task) in leavers {
        tokio::time::sleep(Duration::from_micros(number % 7 * 20)).await;
        task.abort();
    }
    for task in stayers {
        assert!(task.await.unwrap().unwrap().is_allowed());
    }
    let last = hit(&store, &policy, "s", &["stayer"]).await.unwrap();
    assert_eq!(last.as_slice()[0].mark(), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_is_unavailable_and_its_connections_are_given_up() {
    let server = PostgresServer::start().unwrap();
    let store = store_on(&server, 2).await;
    let policy = policy(Algorithm::TokenBucket, 10);
    let mut session = session(&server).await;
    run(
        &mut session,
        "ALTER SYSTEM SET default_transaction_read_only = on".to_owned(),
    )
    .await;
    run(&mut session, "SELECT pg_reload_conf()".to_owned()).await;
    let error = loop {
        match hit(&store, &policy, "s", &["k"]).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("primary"), "{error}");
    assert!(!error.may_have_charged());
    let sql =
        "SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only";
    for statement in sql.split("; ") {
        run(&mut session, statement.to_owned()).await;
    }
    run(&mut session, "SELECT pg_reload_conf()".to_owned()).await;
    while hit(&store, &policy, "s", &["k"]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_given_up_in_time_and_taken_up_again() {
    let server = PostgresServer::start().unwrap();
    let pool = support::pool(&server, 1);
    let schema = support::schema(&pool).await;
    let builder = PostgresStore::builder(pool).schema(schema);
    let store = builder
        .statement_timeout(Duration::from_millis(400))
        .build()
        .unwrap();
    let policy = policy(Algorithm::FixedWindow, 1_000_000);
    hit(&store, &policy, "s", &["k"]).await.unwrap();
    // The pool asks the server once more before it takes a connection back.
    while store.pool().num_idle() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut session = session(&server).await;
    let (pid,): (i32,) = sqlx::query_as(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )
    .fetch_one(&mut session)
    .await
    .unwrap();
    signal(pid, "STOP");
    let asked = Instant::now();
    let error = hit(&store, &policy, "s", &["k"]).await.unwrap_err();
    let waited = asked.elapsed();
    signal(pid, "CONT");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(error.may_have_charged());
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    hit(&store, &policy, "s", &["k"]).await.unwrap();
}
