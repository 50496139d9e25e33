//! Behind PgBouncer in transaction mode.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::join_all;
use tollgate_core::Algorithm;
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tollgate_postgres::{PostgresStore, tollgate_core};
use tollgate_services::PgBouncer;

use crate::support::{hit, policy};

/// More clients than the pooler has connections, so that they share.
async fn exactly_the_limit(prepared: bool, pooler: &PgBouncer) {
    let options: PgConnectOptions = pooler.url().parse().unwrap();
    let server = support::server();
    let schema = support::schema(&support::pool(&server, 1)).await;
    let stores: Vec<PostgresStore> = (0..3)
        .map(|_| {
            let pool = PgPoolOptions::new().max_connections(6);
            let pool = pool.connect_lazy_with(options.clone());
            let builder = PostgresStore::builder(pool).schema(schema.clone());
            builder.prepared_statements(prepared).build().unwrap()
        })
        .collect();
    // Through the pooler too: everything is there, and it says so.
    stores[0].ensure_schema().await.unwrap();
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog] {
        let policy = policy(algorithm, 60);
        let admitted = AtomicU64::new(0);
        let hits = (0..300).map(|number: usize| {
            let (store, policy, admitted) = (&stores[number % 3], &policy, &admitted);
            async move {
                let other = format!("other:{number}");
                hit(store, policy, "s", &[&other]).await.unwrap();
                let verdicts = hit(store, policy, "s", &["hot"]).await.unwrap();
                admitted.fetch_add(u64::from(verdicts.is_allowed()), Ordering::Relaxed);
            }
        });
        join_all(hits).await;
        assert_eq!(admitted.into_inner(), 60, "{algorithm}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_prepared_statements_any_pooler_will_do() {
    let server = support::server();
    let pooler = PgBouncer::start(&server).unwrap();
    exactly_the_limit(false, &pooler).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_get_through_a_pooler_that_knows_them() {
    let server = support::server();
    let pooler = PgBouncer::start(&server).unwrap();
    exactly_the_limit(pooler.knows_prepared_statements(), &pooler).await;
}
