//! The store that `--store` names, and what protects its callers from it.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tollgate_layers::Stack;
use tollgate_memory::{MemoryStore, SharedStore, Store};
use tollgate_postgres::sqlx::ConnectOptions;
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tollgate_postgres::{PostgresStore, Sweeper};
use tollgate_redis::RedisStore;
use tollgate_redis::redis::Client;
use tollgate_redis::redis::aio::ConnectionManagerConfig;

/// A store that is not opened yet.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    Memory,
    Redis(Box<Client>),
    Postgres(Box<PgConnectOptions>),
}

impl FromStr for Backend {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        match (text, scheme) {
            ("memory", None) => Ok(Self::Memory),
            (_, Some("redis")) => Ok(Self::Redis(Box::new(Client::open(text)?))),
            (_, Some("postgres" | "postgresql")) => Ok(Self::Postgres(Box::new(text.parse()?))),
            _ => bail!("expected memory, redis://.. or postgres://.."),
        }
    }
}

impl Backend {
    /// Connects, so that a wrong address stops the start and not each request; and what keeps the store swept.
    pub(crate) async fn open(self, bound: Duration) -> Result<(SharedStore, Option<Sweeper>)> {
        match self {
            Self::Memory => Ok((SharedStore::new(MemoryStore::new()), None)),
            Self::Redis(client) => {
                let store = redis(*client).await?;
                Ok((protected(store, "redis", bound)?, None))
            }
            Self::Postgres(options) => {
                let store = postgres(*options).await?;
                let sweeper = store.sweep_every(Duration::from_secs(300));
                Ok((protected(store, "postgres", bound)?, Some(sweeper)))
            }
        }
    }
}

async fn redis(client: Client) -> Result<RedisStore> {
    let address = client.get_connection_info().addr().to_string();
    // The breaker decides when to try again.
    let config = ConnectionManagerConfig::new().set_number_of_retries(0);
    let manager = client.get_connection_manager_with_config(config).await;
    let manager = manager.with_context(|| format!("cannot reach Redis at {address}"))?;
    Ok(RedisStore::new(manager))
}

async fn postgres(options: PgConnectOptions) -> Result<PostgresStore> {
    let address = format!("{}:{}", options.get_host(), options.get_port());
    // The pool would try again for a while, and then say that it timed out.
    let connecting = tokio::time::timeout(Duration::from_secs(5), options.connect());
    connecting
        .await
        .map_err(anyhow::Error::from)
        .and_then(|connected| Ok(connected?))
        .with_context(|| format!("cannot reach Postgres at {address}"))?;
    let store = PostgresStore::new(PgPoolOptions::new().connect_lazy_with(options));
    store.ensure_schema().await?;
    Ok(store)
}

/// A slow store is given up on, and one that is down is not asked until it is back.
fn protected(store: impl Store, name: &'static str, bound: Duration) -> Result<SharedStore> {
    Ok(Stack::around(store).name(name).timeout(bound).build()?)
}
