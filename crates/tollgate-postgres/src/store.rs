//! The store.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tollgate_core::{Batch, Capabilities, Key, Result, Store, Verdicts};

use crate::flight::Pilot;
use crate::group::Group;
use crate::options::PostgresStoreBuilder;
use crate::question::{Question, key_bytes};
use crate::schema::Schema;
use crate::statement::Calls;
use crate::sweep::{self, Sweeper};

/// Counters in PostgreSQL, exact and shared by every process that uses the same schema.
///
/// - Each call is one statement and one round trip, at the server's clock. All checks of a batch are charged or none.
/// - Calls of one process that come while a statement is under way travel together in the next one (group commit), each
///   judged on its own. No call waits for a timer: a lone one leaves at once.
/// - A denied hit and a peek read a row and neither lock nor write one.
/// - Dropping a call's future leaves its own hit charged or not, and touches no other call.
/// - Clones are cheap and share everything. Calls need a tokio runtime.
///
/// The schema has to be there: see [`ensure_schema`](Self::ensure_schema).
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) pilot: Arc<Pilot>,
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

    /// Takes away rows that are as good as never seen, in statements of a few thousand rows. Returns how many went.
    ///
    /// Rows that somebody holds, and all of them while another process sweeps, are left for the next time. No answer
    /// depends on it: it only keeps the tables small.
    ///
    /// # Errors
    /// The server's. What has been swept before stays swept.
    pub async fn sweep(&self) -> Result<u64> {
        Ok(sweep::sweep(&self.pilot, Duration::ZERO).await?)
    }

    /// Starts a task that [sweeps](Self::sweep) about once in every span of this length, until the result is dropped.
    ///
    /// Every replica may have one: they look at different times, and only one at a time works.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn sweep_every(&self, every: Duration) -> Sweeper {
        Sweeper::start(Arc::clone(&self.pilot), every)
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
        let (questions, mut kept) = ([&question], None);
        let flight = self.pilot.fly(&questions, batch.instant(), &mut kept);
        Ok(flight.await?.remove(0))
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
