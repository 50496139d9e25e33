//! Many callers at once, on one server: exactly the limit is admitted, and nobody disturbs anybody.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Algorithm;
use tollgate_postgres::{PostgresStore, tollgate_core};

use crate::support::{hit, policy};

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_limit_is_admitted_whatever_the_algorithm() {
    let server = support::server();
    let schema = support::schema(&support::pool(&server, 1)).await;
    // Four stores are four processes to the server: none knows of another's statements.
    let stores: Vec<PostgresStore> = (0..4)
        .map(|_| {
            let builder = PostgresStore::builder(support::pool(&server, 4));
            builder.schema(schema.clone()).build().unwrap()
        })
        .collect();
    for algorithm in Algorithm::ALL {
        let policy = policy(algorithm, 100);
        let admitted = AtomicU64::new(0);
        let tasks = (0..64).map(|task| {
            let (store, policy, admitted) = (&stores[task % stores.len()], &policy, &admitted);
            async move {
                for _ in 0..5 {
                    let verdicts = hit(store, policy, algorithm.name(), &["hot"])
                        .await
                        .unwrap();
                    admitted.fetch_add(u64::from(verdicts.is_allowed()), Ordering::Relaxed);
                }
            }
        });
        futures::future::join_all(tasks).await;
        assert_eq!(admitted.into_inner(), 100, "{algorithm}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_in_opposite_orders_never_deadlock_and_are_all_or_none() {
    let server = support::server();
    let schema = support::schema(&support::pool(&server, 1)).await;
    let stores: Vec<PostgresStore> = (0..4)
        .map(|_| {
            let builder = PostgresStore::builder(support::pool(&server, 4));
            builder.schema(schema.clone()).build().unwrap()
        })
        .collect();
    for algorithm in [Algorithm::Gcra, Algorithm::SlidingLog] {
        let policy = policy(algorithm, 50);
        let admitted = AtomicU64::new(0);
        let tasks = (0..64).map(|task| {
            let (store, policy, admitted) = (&stores[task % stores.len()], &policy, &admitted);
            let mut subjects = ["a", "b", "c"];
            if task % 2 == 0 {
                subjects.reverse();
            }
            async move {
                for _ in 0..5 {
                    let verdicts = hit(store, policy, "order", &subjects).await.unwrap();
                    let verdicts = verdicts.as_slice();
                    assert!(
                        verdicts
                            .iter()
                            .all(|one| one.is_allowed() == verdicts[0].is_allowed())
                    );
                    admitted.fetch_add(u64::from(verdicts[0].is_allowed()), Ordering::Relaxed);
                }
            }
        });
        futures::future::join_all(tasks).await;
        assert_eq!(admitted.into_inner(), 50, "{algorithm}");
    }
    let log = server.log().unwrap();
    assert!(!log.contains("deadlock"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_one_connection_is_enough() {
    let server = support::server();
    let pool = support::pool(&server, 1);
    let schema = support::schema(&pool).await;
    let store = PostgresStore::builder(pool).schema(schema).build().unwrap();
    let policy = policy(Algorithm::TokenBucket, 30);
    let names: Vec<String> = (0..40).map(|number| format!("user:{number}")).collect();
    let hits = names.iter().flat_map(|name| (0..40).map(move |_| name));
    let (store, policy) = (&store, &policy);
    let hits = hits.map(|name| async move { hit(store, policy, "one", &[name]).await });
    let allowed = futures::future::join_all(hits).await;
    let allowed = allowed
        .into_iter()
        .filter(|answer| answer.as_ref().unwrap().is_allowed());
    assert_eq!(allowed.count(), 40 * 30);
}
