//! How a store is set up.

use std::time::Duration;

use sqlx::PgPool;
use tollgate_core::{Error, ErrorKind, Result};

use crate::error::STORE;
use crate::schema::Schema;
use crate::store::PostgresStore;

/// What the commit of a charge waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SynchronousCommit {
    /// Nothing: the answer comes before the charge is on disk.
    ///
    /// Should the server crash, it forgets the charges of its last instants (up to three times `wal_writer_delay`, 0.6 s
    /// unless configured otherwise), and those clients may be admitted that much more. Nothing else is lost.
    #[default]
    Off,
    /// The disk: a charge that was answered outlives a crash.
    On,
    /// Whatever the server, database or role is configured for.
    AsConfigured,
}

impl SynchronousCommit {
    pub(crate) const fn setting(self) -> Option<&'static str> {
        match self {
            Self::Off => Some("off"),
            Self::On => Some("on"),
            Self::AsConfigured => None,
        }
    }
}

/// The options of a [`PostgresStore`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PostgresStoreBuilder {
    pub(crate) pool: PgPool,
    pub(crate) schema: Schema,
    pub(crate) commit: SynchronousCommit,
    pub(crate) lock_timeout: Duration,
    pub(crate) statement_timeout: Duration,
    pub(crate) prepared: bool,
    pub(crate) lanes: usize,
}

impl PostgresStoreBuilder {
    /// How long a call waits for rows that another session holds, unless set otherwise.
    pub const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_millis(250);
    pub(crate) const DEFAULT_LOCK_MILLIS: i32 = 250;
    /// How long a statement may take, unless set otherwise.
    pub const DEFAULT_STATEMENT_TIMEOUT: Duration = Duration::from_secs(2);
    /// How many statements of one store are under way at once, unless set otherwise.
    pub const DEFAULT_LANES: usize = 2;

    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            schema: Schema::default(),
            commit: SynchronousCommit::default(),
            lock_timeout: Self::DEFAULT_LOCK_TIMEOUT,
            statement_timeout: Self::DEFAULT_STATEMENT_TIMEOUT,
            prepared: true,
            lanes: Self::DEFAULT_LANES,
        }
    }

    /// Where the tables and functions are, in place of the schema `tollgate`.
    pub fn schema(self, schema: Schema) -> Self {
        Self { schema, ..self }
    }

    /// What the commit of a charge waits for.
    pub fn synchronous_commit(self, commit: SynchronousCommit) -> Self {
        Self { commit, ..self }
    }

    /// How long a call waits for rows that another session holds, in whole milliseconds.
    ///
    /// The server keeps this time. A call that runs into it has charged nothing. All waits of a call share it; only in a
    /// statement that carries many callers' hits has each wait its own, and the statement timeout bounds them all.
    pub fn lock_timeout(self, timeout: Duration) -> Self {
        Self {
            lock_timeout: timeout,
            ..self
        }
    }

    /// How long to wait for a connection of the pool, and then for a statement's answer.
    ///
    /// This side keeps this time, for a server that hangs or cannot be reached. A call that got no connection has charged
    /// nothing. Where the answer does not come, the connection is given up, and nobody knows whether the call was charged.
    pub fn statement_timeout(self, timeout: Duration) -> Self {
        Self {
            statement_timeout: timeout,
            ..self
        }
    }

    /// Whether the server keeps the statement prepared on each connection. It does unless set otherwise.
    ///
    /// Without, a call is one text in the simple query protocol, which any pooler in transaction mode lets through.
    pub fn prepared_statements(self, prepared: bool) -> Self {
        Self { prepared, ..self }
    }

    /// How many statements of this store may be under way at once.
    ///
    /// Hits on one key always take the same lane, so that they never wait for each other's rows.
    pub fn lanes(self, lanes: usize) -> Self {
        Self { lanes, ..self }
    }

    /// The store. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a lock timeout that is not 1 ms to 24 days, a statement timeout of zero, or for
    /// no lanes at all.
    pub fn build(self) -> Result<PostgresStore> {
        let lock_millis = i32::try_from(self.lock_timeout.as_millis()).unwrap_or(0);
        if lock_millis == 0 {
            return Err(invalid(format!(
                "a lock timeout is between 1 ms and 24 days, not {:?}",
                self.lock_timeout
            )));
        }
        if self.statement_timeout.is_zero() {
            return Err(invalid("a statement timeout is longer than zero"));
        }
        if self.lanes == 0 {
            return Err(invalid("a store needs at least one lane"));
        }
        Ok(PostgresStore::from_options(self, lock_millis))
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message).with_store(STORE)
}
