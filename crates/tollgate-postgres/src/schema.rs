//! The tables and functions, in a schema of their own.

use sqlx::{AssertSqlSafe, Connection, Decode, PgConnection, PgPool, Postgres, Row, Type};
use tollgate_core::algorithm::MAX_STORED;
use tollgate_core::{Error, ErrorKind, Result, Timestamp};

use crate::error::{self, STORE};
use crate::question::STRIDE;

/// Where the store keeps its tables and functions.
///
/// The name is validated here, once, and quoted wherever it stands.
///
/// ```
/// use tollgate_postgres::Schema;
///
/// let schema = Schema::new("limits")?;
/// assert!(schema.sql().contains(r#"CREATE TABLE IF NOT EXISTS "limits".counters"#));
/// assert!(Schema::new(r#"limits"; DROP TABLE users"#).is_err());
/// # Ok::<(), tollgate_postgres::tollgate_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    quoted: String,
    unlogged: bool,
}

impl Schema {
    /// The name of the schema unless another is given.
    pub const DEFAULT_NAME: &str = "tollgate";

    /// The version of the tables and functions. It stands in the table `version` and in the functions' names.
    pub const VERSION: i32 = 1;

    const LONGEST_NAME: usize = 63;
    /// From so many keys on, one query for all of them is cheaper than one query each.
    const MANY: u32 = 8;

    /// A schema of the given name: 1 to 63 ASCII letters, digits and underscores, not beginning with a digit or `pg_`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for any other name.
    pub fn new(name: &str) -> Result<Self> {
        let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let begins = name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit());
        if !is_word || !begins || name.len() > Self::LONGEST_NAME || name.starts_with("pg_") {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a schema name is 1 to 63 ASCII letters, digits and underscores, and does not begin with a digit \
                     or pg_; {name:?} is not"
                ),
            )
            .with_store(STORE));
        }
        Ok(Self {
            quoted: format!("\"{name}\""),
            unlogged: false,
        })
    }

    /// The same with unlogged tables: a crash of the server empties them, and a standby has none of their rows.
    ///
    /// Only tables that are yet to be made heed this; for others there is `ALTER TABLE ... SET UNLOGGED`.
    #[must_use]
    pub fn unlogged(self) -> Self {
        Self {
            unlogged: true,
            ..self
        }
    }

    /// The name in double quotes.
    #[must_use]
    pub fn quoted(&self) -> &str {
        &self.quoted
    }

    /// Everything the store needs, as one script in one transaction: for a migration tool, or for `psql`.
    ///
    /// It may run again, and at the same time from many places. It fails on a schema of a later version, and changes
    /// nothing then.
    #[must_use]
    pub fn sql(&self) -> String {
        let parts = [
            "BEGIN;\n",
            include_str!("sql/begin.sql"),
            include_str!("sql/tables.sql"),
            include_str!("sql/log.sql"),
            include_str!("sql/support.sql"),
            include_str!("sql/apply.sql"),
            include_str!("sql/hit.sql"),
            include_str!("sql/hits.sql"),
            include_str!("sql/sweep.sql"),
            include_str!("sql/end.sql"),
            "COMMIT;\n",
        ];
        let unlogged = if self.unlogged { "UNLOGGED " } else { "" };
        parts
            .join("\n")
            .replace("{schema}", &self.quoted)
            .replace("{unlogged}", unlogged)
            .replace("{version}", &Self::VERSION.to_string())
            .replace("{stride}", &STRIDE.to_string())
            .replace("{max_stored}", &MAX_STORED.to_string())
            .replace("{last_time}", &Timestamp::MAX.as_micros().to_string())
            .replace("{many}", &Self::MANY.to_string())
    }

    /// Makes the tables and functions where they are missing.
    ///
    /// Replicas may start at once: an advisory lock lets one do the work and the others wait. Where everything is there
    /// already, one query tells, and a role that may create nothing is enough.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the schema is of a later version, [`ErrorKind::Refused`] if it is missing and the
    /// role may not create it, and the errors of the connection.
    pub async fn ensure(&self, pool: &PgPool) -> Result<()> {
        let mut connection = pool
            .acquire()
            .await
            .map_err(|error| Error::from(error::not_connected(error)))?;
        match self.stored_version(&mut connection).await? {
            Some(Self::VERSION) => Ok(()),
            Some(version) if version > Self::VERSION => Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the schema {} has version {version}, and this library knows version {}; use a newer library",
                    self.quoted,
                    Self::VERSION
                ),
            )
            .with_store(STORE)),
            _ => self.create(&mut connection).await,
        }
    }

    async fn create(&self, connection: &mut PgConnection) -> Result<()> {
        let script = AssertSqlSafe(self.sql());
        if let Err(error) = sqlx::raw_sql(script).execute(&mut *connection).await {
            // The script has begun a transaction that nobody else will end.
            let ended = sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await;
            if ended.is_err() {
                connection.ping().await.ok();
            }
            return Err(error::answered(error).into());
        }
        Ok(())
    }

    /// The version that is there; `None` if none is.
    async fn stored_version(&self, connection: &mut PgConnection) -> Result<Option<i32>> {
        // What a hit calls is looked for as well, so that a half-dropped schema is made whole.
        let sql = format!(
            "SELECT to_regclass('{0}.version') IS NOT NULL AND to_regproc('{0}.apply_v{1}') IS NOT NULL \
             AND to_regproc('{0}.hit_v{1}') IS NOT NULL AND to_regproc('{0}.hits_v{1}') IS NOT NULL",
            self.quoted,
            Self::VERSION
        );
        if fetch_one::<bool>(connection, sql).await? != Some(true) {
            return Ok(None);
        }
        let sql = format!("SELECT version FROM {}.version", self.quoted);
        fetch_one(connection, sql).await
    }
}

/// The first value of the first row, in the simple protocol, which every pooler lets through.
async fn fetch_one<T>(connection: &mut PgConnection, sql: String) -> Result<Option<T>>
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
{
    let rows = sqlx::raw_sql(AssertSqlSafe(sql))
        .fetch_all(connection)
        .await;
    let value = rows.and_then(|rows| rows.first().map(|row| row.try_get(0)).transpose());
    value.map_err(|error| error::answered(error).into())
}

impl Default for Schema {
    fn default() -> Self {
        Self {
            quoted: format!("\"{}\"", Self::DEFAULT_NAME),
            unlogged: false,
        }
    }
}
