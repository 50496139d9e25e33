//! One caller alone, who leaves, sleeps, waits for a row or outlives its runtime, is no trouble for those who come after.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::task::Poll;
use std::time::Duration;

use tollgate_core::{Algorithm, Error, ErrorKind};
use tollgate_postgres::sqlx;
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tollgate_postgres::{PostgresStore, tollgate_core};

use crate::support::{
    hit, lock, policy, process_of, run, session, store_on, until_somebody_waits_for,
};

async fn process_behind(store: &PostgresStore) -> i32 {
    let query = sqlx::query_scalar("SELECT pg_backend_pid()");
    query.fetch_one(store.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_goes_away_is_charged_whole_and_its_connection_stays() {
    let server = support::server();
    let store = store_on(&server, 1).await;
    let policy = policy(Algorithm::FixedWindow, 1_000);
    hit(&store, &policy, "s", &["k"]).await.unwrap();
    let process = process_behind(&store).await;
    let mut session = session(&server).await;
    let holder = process_of(&mut session).await;
    lock(&mut session, &store, "k").await;
    let caller = tokio::spawn({
        let (store, policy) = (store.clone(), policy.clone());
        async move { hit(&store, &policy, "s", &["k"]).await }
    });
    until_somebody_waits_for(holder, &server).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    run(&mut session, "ROLLBACK".to_owned()).await;

    // There is one connection, so this comes after the statement of the caller who has left.
    let verdicts = hit(&store, &policy, "s", &["k"]).await.unwrap();
    assert_eq!(verdicts.as_slice()[0].mark(), 3);
    assert_eq!(process_behind(&store).await, process);
}

#[tokio::test]
async fn a_lone_hit_as_text_means_the_key_of_others_however_the_session_reads_backslashes() {
    // A unit's share of a week, in microseconds: what has drained since is less.
    const UNIT: u64 = 60_480_000_000;
    let server = support::server();
    let schema = support::schema(&support::pool(&server, 1)).await;
    let policy = policy(Algorithm::TokenBucket, 10);
    let mut hits = 0;
    for conforming in ["on", "off"] {
        let options: PgConnectOptions = server.url().parse().unwrap();
        let options = options.options([("standard_conforming_strings", conforming)]);
        let pool = PgPoolOptions::new().connect_lazy_with(options);
        let builder = PostgresStore::builder(pool).schema(schema.clone());
        let store = builder.prepared_statements(false).build().unwrap();
        for subjects in [&["k"][..], &["k", "other"]] {
            let verdicts = hit(&store, &policy, "s", subjects).await.unwrap();
            hits += 1;
            assert_eq!(
                verdicts.as_slice()[0].mark().div_ceil(UNIT),
                hits,
                "{conforming}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_polls_holds_up_nobody_in_its_lane() {
    let server = support::server();
    let store = store_on(&server, 4).await;
    let policy = policy(Algorithm::FixedWindow, 1_000);
    let mut kept = Box::pin(hit(&store, &policy, "s", &["k"]));
    assert!(futures::poll!(&mut kept).is_pending());
    for number in 1..=20 {
        let verdicts = hit(&store, &policy, "s", &["k"]).await.unwrap();
        let mark = verdicts.as_slice()[0].mark();
        assert!((number..=number + 1).contains(&mark), "{mark}");
    }
    assert_eq!(kept.await.unwrap().as_slice().len(), 1);
    let last = hit(&store, &policy, "s", &["k"]).await.unwrap();
    assert_eq!(last.as_slice()[0].mark(), 22);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_caller_of_a_held_row_leaves_its_lane_to_the_others() {
    let server = support::server();
    let schema = support::schema(&support::pool(&server, 1)).await;
    let builder = PostgresStore::builder(support::pool(&server, 3)).schema(schema);
    let builder = builder.lanes(1).lock_timeout(Duration::from_millis(1_500));
    let store = builder.build().unwrap();
    let policy = policy(Algorithm::TokenBucket, 1_000);
    hit(&store, &policy, "s", &["held"]).await.unwrap();
    let mut session = session(&server).await;
    lock(&mut session, &store, "held").await;
    let times_out = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(!error.may_have_charged());
    };
    // From here on the store knows that the row is held.
    times_out(hit(&store, &policy, "s", &["held"]).await.unwrap_err());
    let mut held = Box::pin(hit(&store, &policy, "s", &["held"]));
    assert!(futures::poll!(&mut held).is_pending());
    for _ in 0..10 {
        hit(&store, &policy, "s", &["free"]).await.unwrap();
    }
    assert!(matches!(futures::poll!(&mut held), Poll::Pending));
    times_out(held.await.unwrap_err());
    run(&mut session, "ROLLBACK".to_owned()).await;
    hit(&store, &policy, "s", &["held"]).await.unwrap();
}

#[test]
fn a_call_that_outlives_its_runtime_leaves_the_lane_to_those_of_another() {
    let server = support::server();
    let policy = policy(Algorithm::FixedWindow, 1_000);
    let first = tokio::runtime::Runtime::new().unwrap();
    let store = first.block_on(store_on(&server, 1));
    let mut kept = Box::pin(hit(&store, &policy, "s", &["k"]));
    let mut session = first.block_on(async {
        hit(&store, &policy, "s", &["k"]).await.unwrap();
        let mut session = session(&server).await;
        lock(&mut session, &store, "k").await;
        let short = Duration::from_millis(100);
        assert!(tokio::time::timeout(short, &mut kept).await.is_err());
        session
    });
    first.block_on(run(&mut session, "ROLLBACK".to_owned()));
    drop(first);
    drop(kept);

    let second = tokio::runtime::Runtime::new().unwrap();
    second.block_on(async {
        // The first runtime's connections went with it.
        let mut failures = 0;
        while let Err(error) = hit(&store, &policy, "s", &["k"]).await {
            assert!(error.is_transient(), "{error}");
            failures += 1;
            assert!(failures < 5, "{error}");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_at_hand_for_the_next_hit_goes_back_to_the_pool() {
    let server = support::server();
    let store = store_on(&server, 8).await;
    let policy = policy(Algorithm::Gcra, 1_000);
    for number in 0..50 {
        let name = format!("user:{number}");
        hit(&store, &policy, "s", &[&name]).await.unwrap();
    }
    let given_back = async {
        while store.pool().num_idle() < usize::try_from(store.pool().size()).unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let long = Duration::from_secs(30);
    tokio::time::timeout(long, given_back).await.unwrap();

    hit(&store, &policy, "s", &["last"]).await.unwrap();
    let closed = store.pool().close();
    tokio::time::timeout(long, closed).await.unwrap();
    let error = hit(&store, &policy, "s", &["last"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!error.may_have_charged());
}
