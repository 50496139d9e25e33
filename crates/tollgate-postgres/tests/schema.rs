//! The schema: made once however many start at once, refused where it cannot be used, swept of what is expired.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use futures::future::join_all;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ErrorKind, Key, Op, Policy, Quota, Space, Store, Timestamp,
};
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tollgate_postgres::sqlx::{self, AssertSqlSafe, PgPool};
use tollgate_postgres::{PostgresStore, Schema, tollgate_core};
use tollgate_services::PostgresServer;

use crate::support::{hit, policy};

async fn run(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(pool)
        .await
        .unwrap();
}

async fn count(pool: &PgPool, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_replicas_may_start_at_once() {
    let server = support::server();
    let schema = Schema::new("Ten_Replicas").unwrap();
    let pools: Vec<PgPool> = (0..10).map(|_| support::pool(&server, 1)).collect();
    for answer in join_all(pools.iter().map(|pool| schema.ensure(pool))).await {
        answer.unwrap();
    }
    // And once more, when everything is there.
    schema.ensure(&pools[0]).await.unwrap();
    run(&pools[0], &schema.sql()).await;
    let store = PostgresStore::builder(pools[0].clone()).schema(schema);
    let store = store.build().unwrap();
    hit(&store, &policy(Algorithm::Gcra, 1), "s", &["k"])
        .await
        .unwrap();
}

#[tokio::test]
async fn names_that_could_be_more_than_a_name_are_refused() {
    for name in [
        "",
        "1st",
        "pg_limits",
        "a b",
        "a\"b",
        "a;b",
        "ä",
        &"x".repeat(64),
    ] {
        let error = Schema::new(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}");
    }
    Schema::new(&"x".repeat(63)).unwrap();
}

#[tokio::test]
async fn a_schema_of_a_later_version_is_refused_and_left_alone() {
    let server = support::server();
    let pool = support::pool(&server, 1);
    let schema = support::schema(&pool).await;
    run(
        &pool,
        &format!("UPDATE {}.version SET version = 7", schema.quoted()),
    )
    .await;
    let error = schema.ensure(&pool).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 7"), "{error}");
    let error = sqlx::raw_sql(AssertSqlSafe(schema.sql()))
        .execute(&pool)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("version 7"), "{error}");
}

#[tokio::test]
async fn a_schema_that_lacks_a_function_is_made_whole() {
    let server = support::server();
    let pool = support::pool(&server, 1);
    let schema = support::schema(&pool).await;
    let store = PostgresStore::builder(pool.clone()).schema(schema.clone());
    let store = store.build().unwrap();
    for function in ["apply_v1", "hit_v1", "hits_v1"] {
        let sql = format!("DROP FUNCTION {}.{function}", schema.quoted());
        run(&pool, &sql).await;
        store.ensure_schema().await.unwrap();
        let sql = format!(
            "SELECT count(*) FROM pg_proc WHERE oid = to_regproc('{}.{function}')",
            schema.quoted()
        );
        assert_eq!(count(&pool, &sql).await, 1, "{function}");
    }
}

#[tokio::test]
async fn operators_on_the_search_path_of_who_makes_the_schema_stay_out_of_it() {
    let server = support::server();
    let options: PgConnectOptions = server.url().parse().unwrap();
    let options = options.options([("search_path", "strange,pg_catalog")]);
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect_lazy_with(options);
    run(
        &pool,
        "CREATE SCHEMA strange;
         CREATE FUNCTION strange.always(bigint, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
         CREATE OPERATOR strange.<= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = strange.always)",
    )
    .await;
    let schema = support::schema(&pool).await;
    let sql = format!("SELECT {}.bucket_drained_v1(100, 10, 1)", schema.quoted());
    assert_eq!(count(&pool, &sql).await, 90);
}

#[tokio::test]
async fn a_missing_schema_is_named_with_what_to_do() {
    let server = support::server();
    let builder = PostgresStore::builder(support::pool(&server, 1));
    let store = builder
        .schema(Schema::new("nowhere").unwrap())
        .build()
        .unwrap();
    let error = hit(&store, &policy(Algorithm::Gcra, 1), "s", &["k"])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(!error.may_have_charged());
    assert!(error.to_string().contains("ensure_schema"), "{error}");
}

/// A pool whose role has what the guide lists, and nothing else.
async fn least_pool(server: &PostgresServer, schema: &Schema, role: &str) -> PgPool {
    let owner = support::pool(server, 1);
    let schema = schema.quoted();
    run(&owner, &format!("CREATE ROLE {role} LOGIN")).await;
    for grant in [
        format!("GRANT USAGE ON SCHEMA {schema} TO {role}"),
        format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.counters, {schema}.logs, {schema}.log_chunks TO {role}"
        ),
        format!("GRANT SELECT ON {schema}.version TO {role}"),
    ] {
        run(&owner, &grant).await;
    }
    let options: PgConnectOptions = server.url().parse().unwrap();
    PgPoolOptions::new().connect_lazy_with(options.username(role))
}

#[tokio::test]
async fn a_role_with_the_least_privileges_can_do_everything_but_create() {
    let server = support::server();
    let schema = support::schema(&support::pool(&server, 1)).await;
    let pool = least_pool(&server, &schema, "least").await;
    schema.ensure(&pool).await.unwrap();
    let store = PostgresStore::builder(pool.clone())
        .schema(schema)
        .build()
        .unwrap();
    for algorithm in Algorithm::ALL {
        let policy = policy(algorithm, 5);
        assert!(
            hit(&store, &policy, algorithm.name(), &["k"])
                .await
                .unwrap()
                .is_allowed()
        );
        let space = Space::new("", algorithm.name(), &policy);
        let key = Key::new(&space, b"k").unwrap();
        assert_eq!(store.reset(&[key, key]).await.unwrap(), 1);
        assert_eq!(store.reset(&[key]).await.unwrap(), 0);
    }
    store.sweep().await.unwrap();
    let error = Schema::new("not_allowed")
        .unwrap()
        .ensure(&pool)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    // The connection is fit for use after the failure.
    assert_eq!(count(&pool, "SELECT 1::bigint").await, 1);
}

#[tokio::test]
async fn unlogged_tables_are_made_on_request() {
    let server = support::server();
    let pool = support::pool(&server, 1);
    Schema::new("unlogged")
        .unwrap()
        .unlogged()
        .ensure(&pool)
        .await
        .unwrap();
    let sql = "SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' \
               AND relnamespace = 'unlogged'::regnamespace";
    assert_eq!(count(&pool, sql).await, 3);
}

/// A hit at an instant the caller names.
async fn hit_at(store: &PostgresStore, policy: &Policy, subject: &str, at: Timestamp) {
    let space = Space::new("", "s", policy);
    let check = Check {
        key: Key::new(&space, subject.as_bytes()).unwrap(),
        policy,
        op: Op::Hit(Cost::ONE),
    };
    store
        .apply(Batch::of_one(&check).at(Some(at)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sweeping_takes_what_is_expired_and_nothing_else() {
    let server = support::server();
    let pool = support::pool(&server, 3);
    let schema = support::schema(&pool).await;
    let store = PostgresStore::builder(pool.clone())
        .schema(schema)
        .build()
        .unwrap();
    let schema = store.schema().quoted().to_owned();
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
    ] {
        let quota = Quota::new(200, Duration::from_secs(3_600)).unwrap();
        let policy = Policy::new("p", algorithm, quota).unwrap();
        for number in 0..100 {
            hit(&store, &policy, "s", &[&format!("old:{number}")])
                .await
                .unwrap();
            hit(&store, &policy, "s", &[&format!("new:{number}")])
                .await
                .unwrap();
        }
        for _ in 0..100 {
            hit(&store, &policy, "s", &["old:0"]).await.unwrap();
        }
    }
    let rows = format!(
        "SELECT (SELECT count(*) FROM {schema}.counters) + (SELECT count(*) FROM {schema}.logs)"
    );
    let chunks = format!("SELECT count(*) FROM {schema}.log_chunks");
    assert_eq!(count(&pool, &rows).await, 800);
    assert!(count(&pool, &chunks).await > 0);
    assert_eq!(store.sweep().await.unwrap(), 0, "nothing is expired yet");

    for table in ["counters", "logs"] {
        let sql =
            format!("UPDATE {schema}.{table} SET expires_at = 1 WHERE substr(key, 17, 3) = 'old'");
        run(&pool, &sql).await;
    }
    let mut holder = pool.begin().await.unwrap();
    let held =
        format!("SELECT 1 FROM {schema}.counters WHERE substr(key, 17) = 'old:1' FOR UPDATE");
    sqlx::raw_sql(AssertSqlSafe(held))
        .execute(&mut *holder)
        .await
        .unwrap();
    assert_eq!(store.sweep().await.unwrap(), 397, "three rows are held");
    holder.rollback().await.unwrap();
    assert_eq!(store.sweep().await.unwrap(), 3);
    assert_eq!(count(&pool, &rows).await, 400);
    assert_eq!(count(&pool, &chunks).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_virtual_time_outlives_the_sweeper() {
    let server = support::server();
    let store = PostgresStore::builder(support::pool(&server, 1));
    let schema = support::schema(&support::pool(&server, 1)).await;
    let store = store.schema(schema).build().unwrap();
    for algorithm in Algorithm::ALL {
        hit_at(
            &store,
            &policy(algorithm, 3),
            algorithm.name(),
            Timestamp::EPOCH,
        )
        .await;
    }
    assert_eq!(store.sweep().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweeper_works_until_it_is_dropped() {
    let server = support::server();
    let pool = support::pool(&server, 2);
    let schema = support::schema(&pool).await;
    let store = PostgresStore::builder(pool.clone())
        .schema(schema)
        .build()
        .unwrap();
    let schema = store.schema().quoted().to_owned();
    let rows = format!("SELECT count(*) FROM {schema}.counters");
    let expire = format!("UPDATE {schema}.counters SET expires_at = 1");
    let sweeper = store.sweep_every(Duration::from_millis(20));
    hit(&store, &policy(Algorithm::Gcra, 5), "s", &["k"])
        .await
        .unwrap();
    run(&pool, &expire).await;
    while count(&pool, &rows).await > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(sweeper);
    tokio::time::sleep(Duration::from_millis(100)).await;
    hit(&store, &policy(Algorithm::Gcra, 5), "s", &["k"])
        .await
        .unwrap();
    run(&pool, &expire).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(count(&pool, &rows).await, 1);
}
