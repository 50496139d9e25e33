//! PostgreSQL.

use anyhow::Result;
use tollgate_core::Store;
use tollgate_postgres::sqlx::PgPool;
use tollgate_postgres::sqlx::postgres::PgPoolOptions;
use tollgate_postgres::{PostgresStore, SynchronousCommit};
use tollgate_services::PostgresServer;

use crate::backend::Backend;

#[derive(Debug)]
pub(crate) struct Postgres(PostgresServer);

impl Backend for Postgres {
    const NAME: &str = "Postgres";

    async fn start() -> Self {
        // A killed server leaves to the system what it has written; only a crash of the machine would lose it.
        let server = Self(PostgresServer::start().unwrap());
        on(pool(server.port())).ensure_schema().await.unwrap();
        server
    }

    fn port(&self) -> u16 {
        self.0.port()
    }

    fn store(port: u16) -> impl Store {
        on(pool(port))
    }

    fn kill(&mut self) -> Result<()> {
        self.0.kill()
    }

    fn restart(&mut self) -> Result<()> {
        self.0.restart()
    }

    fn pause(&self) -> Result<()> {
        self.0.pause()
    }

    fn resume(&self) -> Result<()> {
        self.0.resume()
    }
}

pub(crate) fn url(port: u16) -> String {
    let name = PostgresServer::NAME;
    format!("postgres://{name}@127.0.0.1:{port}/{name}")
}

pub(crate) fn pool(port: u16) -> PgPool {
    let options = PgPoolOptions::new().max_connections(8);
    options.connect_lazy(&url(port)).unwrap()
}

/// A store whose answered charges outlive the server.
pub(crate) fn on(pool: PgPool) -> PostgresStore {
    PostgresStore::builder(pool)
        .synchronous_commit(SynchronousCommit::On)
        .build()
        .unwrap()
}
