//! The kit against PostgreSQL, with every hook.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tollgate_conformance::{BoxError, Harness, Held, Offer, Offered, Outage, Plant};
use tollgate_core::{Key, State, Timestamp};
use tollgate_postgres::sqlx::{self, AssertSqlSafe, Postgres};
use tollgate_postgres::{PostgresStore, Schema, SynchronousCommit, tollgate_core};
use tollgate_services::PostgresServer;

fn main() -> std::process::ExitCode {
    tollgate_conformance::main_with(PostgresHarness {
        server: support::server(),
    })
}

struct PostgresHarness {
    server: Arc<PostgresServer>,
}

impl Harness for PostgresHarness {
    type Store = PostgresStore;

    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn store(&self) -> Result<PostgresStore, BoxError> {
        let store = PostgresStore::new(support::pool(&self.server, 4));
        store.ensure_schema().await?;
        Ok(store)
    }

    async fn peer(&self, _store: &PostgresStore) -> Offered<PostgresStore> {
        Ok(Offer::Given(self.store().await?))
    }

    async fn backend_time(&self, store: &PostgresStore) -> Offered<Timestamp> {
        let sql = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let micros: i64 = sqlx::query_scalar(sql).fetch_one(store.pool()).await?;
        Ok(Offer::Given(Timestamp::from_micros(micros.try_into()?)?))
    }

    async fn held(&self, store: &PostgresStore, key: &Key<'_>) -> Offered<Held> {
        let schema = store.schema().quoted();
        let sql = format!(
            "SELECT expires_at - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
             FROM (SELECT expires_at, key FROM {schema}.counters UNION ALL SELECT expires_at, key FROM {schema}.logs) r
             WHERE r.key = $1"
        );
        let query = sqlx::query_scalar::<Postgres, i64>(AssertSqlSafe(sql)).bind(row_key(key));
        let left = query.fetch_optional(store.pool()).await?;
        Ok(Offer::Given(left.map_or(Held::Nothing, |micros| {
            Held::For(Duration::from_micros(micros.try_into().unwrap_or(0)))
        })))
    }

    async fn lose_expiry(&self, _store: &PostgresStore, _key: &Key<'_>) -> Offered<()> {
        Ok(Offer::NotApplicable(
            "no row is without its expiry: the column is NOT NULL",
        ))
    }

    async fn plant(&self, store: &PostgresStore, key: &Key<'_>, plant: Plant<'_>) -> Offered<()> {
        let (state, torn) = match plant {
            Plant::VersionOne(state) => (state, false),
            Plant::Torn(state) => (state, true),
            _ => {
                return Ok(Offer::NotApplicable(
                    "the version stands in the schema and in the names of its functions, not in its rows",
                ));
            }
        };
        let schema = store.schema().quoted();
        let columns = columns(state, torn);
        let hex: String = row_key(key)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let never = i64::MAX;
        let sql = match columns {
            Columns::Counter([a, b, c]) => format!(
                "INSERT INTO {schema}.counters (expires_at, a, b, c, key) VALUES ({never}, {a}, {b}, {c}, '\\x{hex}')"
            ),
            Columns::Log(tail) => format!(
                "INSERT INTO {schema}.logs (expires_at, base, tail_base, chunked, key, tail) \
                 VALUES ({never}, 0, 0, false, '\\x{hex}', '{{{}}}')",
                tail.join(",")
            ),
        };
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(store.pool())
            .await?;
        Ok(Offer::Given(()))
    }

    async fn outage(&self) -> Offered<Outage<PostgresStore>> {
        let server = PostgresServer::start()?;
        let builder = PostgresStore::builder(support::pool(&server, 4));
        let builder = builder.schema(Schema::default());
        // What was answered is to be there when the killed server comes back.
        let store = builder.synchronous_commit(SynchronousCommit::On).build()?;
        store.ensure_schema().await?;
        let server = Arc::new(Mutex::new(server));
        let again = Arc::clone(&server);
        Ok(Offer::Given(Outage::new(
            store,
            move || {
                let killed = server.lock().unwrap_or_else(PoisonError::into_inner).kill();
                async move { Ok(killed?) }
            },
            move || {
                let started = again
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .restart();
                async move { Ok(started?) }
            },
        )))
    }
}

enum Columns {
    Counter([i64; 3]),
    Log(Vec<String>),
}

/// A state as version 1 of the schema keeps it. A torn one has a number that no call writes, or lacks one.
fn columns(state: &State, torn: bool) -> Columns {
    let number = |number: u64| i64::try_from(number).expect("no state holds more");
    let columns = match state {
        State::Bucket(bucket) => [bucket.updated.as_micros(), bucket.level, bucket.unit],
        State::FixedWindow(window) => [window.start.as_micros(), window.count, 0],
        State::SlidingWindow(windows) => {
            [windows.start.as_micros(), windows.count, windows.previous]
        }
        State::SlidingLog(log) => {
            let mut total = 0;
            let mut tail = Vec::new();
            for (at, units) in log.hits() {
                total += units;
                tail.push(at.as_micros().to_string());
                tail.push(total.to_string());
            }
            if torn {
                tail.pop();
            }
            return Columns::Log(tail);
        }
    };
    let [a, b, c] = columns.map(number);
    match state {
        State::Bucket(_) if torn => Columns::Counter([a, b, 0]),
        _ if torn => Columns::Counter([a, -1, c]),
        _ => Columns::Counter([a, b, c]),
    }
}

fn row_key(key: &Key<'_>) -> Vec<u8> {
    let mut bytes = key.digest().to_be_bytes().to_vec();
    bytes.extend_from_slice(key.subject());
    bytes
}
