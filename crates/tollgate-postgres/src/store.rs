//! The store.

use std::sync::Arc;

use sqlx::PgPool;
use tollgate_core::{Batch, Capabilities, Key, Result, Store, Verdicts};

use crate::flight::Pilot;
use crate::group::Group;
use crate::options::PostgresStoreBuilder;
use crate::question::{Question, key_bytes};
use crate::schema::Schema;
use crate::statement::Calls;

/// Counters in PostgreSQL, exact and shared by every process that uses the same schema.
///
/// - Each call is one statement and one round trip, at the server's clock. All checks of a batch are charged or none.
/// - Calls of one process that come while a statement is under way travel together in the next one (group commit), each
///   judged on its own. There is no timer in it: a lone call leaves at once.
/// - A denied hit and a peek read a row and neither lock nor write one.
/// - Dropping a call's future leaves its own hit charged or not, and touches no other call.
/// - Clones are cheap and share everything. Calls need a tokio runtime.
///
/// The schema has to be there: see [`ensure_schema`](Self::ensure_schema).
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pilot: Arc<Pilot>,
    group: Arc<Group>,
    schema: Schema,
}

impl PostgresStore {
    /// A store over `pool`, with the defaults.
    ///
    /// Nothing is sent yet, and the store opens no connections besides the pool's.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self::from_options(
            Self::builder(pool),
            PostgresStoreBuilder::DEFAULT_LOCK_MILLIS,
        )
    }

    /// The options of a store over `pool`.
    pub fn builder(pool: PgPool) -> PostgresStoreBuilder {
        PostgresStoreBuilder::new(pool)
    }

    pub(crate) fn from_options(options: PostgresStoreBuilder, lock_millis: i32) -> Self {
        let pilot = Arc::new(Pilot {
            calls: Calls::new(&options.schema, options.prepared),
            pool: options.pool,
            commit: options.commit.setting(),
            lock_millis,
            statement_timeout: options.statement_timeout,
        });
        Self {
            group: Arc::new(Group::new(Arc::clone(&pilot), options.lanes)),
            pilot,
            schema: options.schema,
        }
    }

    /// Makes the tables and functions where they are missing; see [`Schema::ensure`].
    ///
    /// # Errors
    /// Those of [`Schema::ensure`].
    pub async fn ensure_schema(&self) -> Result<()> {
        self.schema.ensure(&self.pilot.pool).await
    }

    /// The schema.
    #[must_use]
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pilot.pool
    }
}

impl Store for PostgresStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let question = Question::new(&batch);
        if batch.instant().is_none() {
            return Ok(self.group.ask(question).await?);
        }
        // Instants that callers name differ, so such batches travel alone.
        let mut verdicts = self.pilot.fly(&[&question], batch.instant()).await?;
        Ok(verdicts.remove(0))
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut keys: Vec<Box<[u8]>> = keys.iter().map(key_bytes).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(0);
        }
        Ok(self.pilot.reset(&keys).await?)
    }

    /// Everything: virtual time, and batches over any keys.
    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}
