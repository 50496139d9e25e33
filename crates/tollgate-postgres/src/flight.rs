//! One statement on its way: sent, and sent again where that is safe.

use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres};
use tollgate_core::{ErrorKind, Timestamp, Verdicts};

use crate::error::{self, Failure, Retry};
use crate::hits::Hits;
use crate::question::{self, Arguments, Question};
use crate::statement::{Calls, Manner, Statement};

/// Sends statements for a store.
#[derive(Debug)]
pub(crate) struct Pilot {
    pub(crate) pool: PgPool,
    pub(crate) calls: Calls,
    pub(crate) commit: Option<&'static str>,
    pub(crate) lock_millis: i32,
    pub(crate) statement_timeout: Duration,
}

/// What came of sweeping some pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swept {
    pub(crate) swept: u64,
    pub(crate) more: bool,
}

/// How far a call has come, over all statements that are sent for it.
#[derive(Debug, Default)]
struct Course {
    /// When the first one was sent.
    began: Option<Instant>,
    /// Whether rows are locked before they are read.
    locked: bool,
    attempts: u32,
}

/// How often a statement is sent before others' writes are given the last word.
const MAX_ATTEMPTS: u32 = 24;

impl Pilot {
    /// Asks `questions` in one statement. All of them are answered, or none was charged unless the failure says it may.
    ///
    /// Takes the connection in `kept` if there is one, and leaves the one it used there if all went well.
    pub(crate) async fn fly(
        &self,
        questions: &[&Question],
        at: Option<Timestamp>,
        kept: &mut Option<PoolConnection<Postgres>>,
    ) -> Result<Vec<Verdicts>, Failure> {
        let mut course = Course::default();
        if let Some(hits) = Hits::of(questions) {
            let statement = Statement::Hits { hits: &hits, at };
            if let Some(answer) = self.run(&statement, kept, &mut course).await? {
                return hits.verdicts(&answer);
            }
        }
        let arguments = Arguments::new(questions);
        let arguments = &arguments;
        let statement = Statement::Apply { arguments, at };
        let answer = self.run(&statement, kept, &mut course).await?;
        question::verdicts(questions, &answer.ok_or_else(no_locks)?)
    }

    /// Whether the pool has connections to spare, so that one may be kept from statement to statement.
    pub(crate) fn has_spare_connections(&self) -> bool {
        let has_room = self.pool.size() < self.pool.options().get_max_connections();
        (has_room || self.pool.num_idle() > 0) && !self.pool.is_closed()
    }

    /// Forgets `keys`, which stand there once each and ascending. Returns how many there were to forget.
    pub(crate) async fn reset(&self, keys: &[Box<[u8]>]) -> Result<u64, Failure> {
        let answer = self.ask(&Statement::Reset { keys }).await?;
        let count = answer.first().and_then(|count| u64::try_from(*count).ok());
        count.ok_or_else(|| question::malformed("it does not count"))
    }

    /// Takes away expired rows on some pages of one of the tables.
    pub(crate) async fn sweep(
        &self,
        logs: bool,
        first_page: i64,
        page_count: i64,
    ) -> Result<Swept, Failure> {
        let statement = Statement::Sweep {
            logs,
            first_page,
            page_count,
        };
        match self.ask(&statement).await?[..] {
            [swept, more] => Ok(Swept {
                swept: u64::try_from(swept).unwrap_or(0),
                more: more == 1,
            }),
            _ => Err(question::malformed("it is not a pair")),
        }
    }

    async fn ask(&self, statement: &Statement<'_>) -> Result<Vec<i64>, Failure> {
        let (kept, course) = (&mut None, &mut Course::default());
        let answer = self.run(statement, kept, course).await?;
        answer.ok_or_else(no_locks)
    }

    /// Sends `statement` until it is answered, or asks for locks that it does not know how to take: then `None`.
    async fn run(
        &self,
        statement: &Statement<'_>,
        kept: &mut Option<PoolConnection<Postgres>>,
        course: &mut Course,
    ) -> Result<Option<Vec<i64>>, Failure> {
        loop {
            course.attempts += 1;
            let mut connection = match kept.take() {
                Some(connection) => connection,
                None => self.connection().await?,
            };
            let began = *course.began.get_or_insert_with(Instant::now);
            let manner = Manner {
                locked: course.locked,
                lock_millis: self.lock_millis_left(began),
                commit: self.commit,
            };
            let sent = self.calls.send(&mut connection, statement, manner);
            let Ok(answer) = tokio::time::timeout(self.statement_timeout, sent).await else {
                connection.close_on_drop();
                return Err(self.no_answer());
            };
            let failed = match answer {
                Ok(answer) => {
                    *kept = Some(connection);
                    return Ok(Some(answer));
                }
                Err(failed) => failed,
            };
            let retry = error::retry(&failed);
            if retry == Retry::Elsewhere {
                connection.close_on_drop();
            }
            if course.attempts == MAX_ATTEMPTS || matches!(retry, Retry::No | Retry::Elsewhere) {
                return Err(error::answered(failed));
            }
            drop(connection);
            if retry == Retry::Locked {
                course.locked = true;
                if matches!(statement, Statement::Hits { .. }) {
                    return Ok(None);
                }
                continue;
            }
            // The others need an instant to be done; not the same for all, or they meet again and again.
            let longest = 250 << course.attempts.min(6);
            tokio::time::sleep(Duration::from_micros(fastrand::u64(0..longest))).await;
        }
    }

    /// A connection of the pool, which by itself would try for half a minute to reach a server that is down.
    async fn connection(&self) -> Result<PoolConnection<Postgres>, Failure> {
        let acquired = tokio::time::timeout(self.statement_timeout, self.pool.acquire()).await;
        let Ok(acquired) = acquired else {
            let in_use = self.pool.num_idle() == 0 && self.pool.size() > 0;
            let exhausted = in_use && self.pool.size() >= self.pool.options().get_max_connections();
            return Err(error::no_connection(exhausted, self.statement_timeout));
        };
        acquired.map_err(error::not_connected)
    }

    /// Milliseconds that are left to wait for rows; at least one, since zero would mean for ever.
    fn lock_millis_left(&self, began: Instant) -> i32 {
        let waited = i32::try_from(began.elapsed().as_millis()).unwrap_or(i32::MAX);
        self.lock_millis.saturating_sub(waited).max(1)
    }

    fn no_answer(&self) -> Failure {
        let message = format!("no answer within {:?}", self.statement_timeout);
        Failure::new(ErrorKind::Timeout, message).with_charge_unknown()
    }
}

fn no_locks() -> Failure {
    question::malformed("it asks for locks where there are none to take")
}
