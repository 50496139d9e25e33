//! A server for the tests of one binary, and a schema of its own for each test.
#![allow(
    dead_code,
    reason = "each test binary uses the part of this module that it needs"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tollgate_core::{
    Algorithm, Batch, Check, Cost, Error, Key, Op, Policy, Quota, Space, Store, Verdicts,
};
use tollgate_postgres::sqlx::postgres::PgPoolOptions;
use tollgate_postgres::sqlx::{self, AssertSqlSafe, Connection, PgConnection, PgPool};
use tollgate_postgres::{PostgresStore, Schema, tollgate_core};
use tollgate_services::PostgresServer;

static SERVER: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// The server of this test binary. The first who asks starts it; it is gone when nobody holds it any more.
pub(crate) fn server() -> Arc<PostgresServer> {
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    server.upgrade().unwrap_or_else(|| {
        let started = Arc::new(PostgresServer::start().unwrap());
        *server = Arc::downgrade(&started);
        started
    })
}

/// A pool of `size` connections.
pub(crate) fn pool(server: &PostgresServer, size: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(size)
        .test_before_acquire(false)
        .connect_lazy(&server.url())
        .unwrap()
}

/// A schema that no other test uses, with everything in it.
pub(crate) async fn schema(pool: &PgPool) -> Schema {
    let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    let schema = Schema::new(&format!("test_{}_{number}", std::process::id())).unwrap();
    schema.ensure(pool).await.unwrap();
    schema
}

/// A limit per week.
pub(crate) fn policy(algorithm: Algorithm, limit: u64) -> Policy {
    let quota = Quota::new(limit, Duration::from_secs(7 * 86_400)).unwrap();
    Policy::new("p", algorithm, quota).unwrap()
}

/// One hit on each of `subjects`, as one batch.
pub(crate) async fn hit(
    store: &PostgresStore,
    policy: &Policy,
    scope: &str,
    subjects: &[&str],
) -> Result<Verdicts, Error> {
    let space = Space::new("", scope, policy);
    let checks: Vec<Check<'_>> = subjects
        .iter()
        .map(|subject| Check {
            key: Key::new(&space, subject.as_bytes()).unwrap(),
            policy,
            op: Op::Hit(Cost::ONE),
        })
        .collect();
    store.apply(Batch::new(&checks).unwrap()).await
}

/// A store in a schema that no other test uses, over a pool of `size` connections.
pub(crate) async fn store_on(server: &PostgresServer, size: u32) -> PostgresStore {
    let builder = PostgresStore::builder(pool(server, size));
    let builder = builder.schema(schema(&pool(server, 1)).await);
    builder.build().unwrap()
}

/// A session of the test's own.
pub(crate) async fn session(server: &PostgresServer) -> PgConnection {
    PgConnection::connect(&server.url()).await.unwrap()
}

pub(crate) async fn run(connection: &mut PgConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .unwrap();
}

/// Locks the row of `subject` until the transaction ends.
pub(crate) async fn lock(connection: &mut PgConnection, store: &PostgresStore, subject: &str) {
    let schema = store.schema().quoted();
    run(connection, "BEGIN".to_owned()).await;
    let sql =
        format!("SELECT 1 FROM {schema}.counters WHERE substr(key, 17) = '{subject}' FOR UPDATE");
    let rows = sqlx::raw_sql(AssertSqlSafe(sql))
        .fetch_all(connection)
        .await
        .unwrap();
    assert_eq!(rows.len(), 1, "the row to lock is there");
}

/// Waits until some session waits for a row that the session of process `holder` has locked.
pub(crate) async fn until_somebody_waits_for(holder: i32, server: &PostgresServer) {
    // Not asked by the holder itself: within its transaction it would not hear of sessions that come later.
    let mut watcher = session(server).await;
    let waiting =
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
    loop {
        let waits = sqlx::query_scalar(waiting).bind(holder);
        if waits.fetch_one(&mut watcher).await.unwrap() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The server's process behind a session.
pub(crate) async fn process_of(session: &mut PgConnection) -> i32 {
    let query = sqlx::query_scalar("SELECT pg_backend_pid()");
    query.fetch_one(session).await.unwrap()
}

/// Sends a signal, by its name, to one of the server's processes.
pub(crate) fn signal(pid: i32, name: &str) {
    let arguments = [format!("-{name}"), pid.to_string()];
    let status = std::process::Command::new("kill").args(arguments).status();
    assert!(status.unwrap().success());
}
