//! What one writes without a library: a token bucket in one upsert per hit.

use anyhow::Result;
use tollgate_postgres::sqlx::{self, PgPool};

#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    pool: PgPool,
}

const TABLE: &str = "
    CREATE TABLE bucket (key text PRIMARY KEY, tokens bigint NOT NULL, updated bigint NOT NULL) WITH (fillfactor = 85)";

/// A million tokens, one more every millisecond.
const UPSERT: &str = "
    INSERT INTO bucket AS b (key, tokens, updated)
        VALUES ($1, 999999, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ON CONFLICT (key) DO UPDATE SET
        tokens = least(1000000, b.tokens + (excluded.updated - b.updated)) - 1,
        updated = excluded.updated
        WHERE least(1000000, b.tokens + (excluded.updated - b.updated)) >= 1
    RETURNING tokens";

impl Baseline {
    pub(crate) async fn prepare(pool: &PgPool) -> Result<()> {
        sqlx::raw_sql(TABLE).execute(pool).await?;
        Ok(())
    }

    pub(crate) const fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    pub(crate) async fn hit(&self, key: &str) -> Result<()> {
        let _tokens: Option<i64> = sqlx::query_scalar(UPSERT)
            .bind(key)
            .fetch_optional(&self.pool)
            .await?;
        Ok(())
    }
}
