//! The store.

use std::sync::Arc;

use redis::{Cmd, FromRedisValue, Value};
use tollgate_core::{
    Batch, Capabilities, Error, ErrorKind, Key, Result, Store, Timestamp, Verdicts,
};

use crate::connection::Connection;
use crate::error::{Failure, STORE};
use crate::key;
use crate::lane::Lane;
use crate::reply::Reply;
use crate::request::{Question, Request};
use crate::script::{How, Script};

/// A [`Store`] in Redis or Valkey.
///
/// - **Atomic.** A batch is judged and charged by one call of one Lua script, on the server, at one reading of the
///   server's clock. No two calls ever see each other half done, from however many processes.
/// - **One trip.** Every answer takes one round trip; two the first time a server sees the script.
/// - **Exact.** The same numbers as [`Batch::step`], bit for bit.
/// - **Expiring.** Every key has a time to live that ends after its state is as good as never seen.
///
/// Cloning is cheap; clones share the connection.
#[derive(Clone, Debug)]
pub struct RedisStore(Arc<Inner>);

/// How many keys the server looks at in one step of [`RedisStore::reset_prefix`].
const SCAN_STEP: u32 = 500;

#[derive(Debug)]
pub(crate) struct Inner {
    connection: Connection,
    script: Script,
    lane: Lane,
}

impl RedisStore {
    /// A store over `connection`. Nothing is sent before the first call, so the server may come up later.
    #[must_use]
    pub fn new(connection: impl Into<Connection>) -> Self {
        Self(Arc::new(Inner {
            connection: connection.into(),
            script: Script::new(),
            lane: Lane::default(),
        }))
    }

    /// Forgets every key under `prefix`, of whatever scope, policy and subject. Returns how many there were.
    ///
    /// For tests and for administration. The server is walked in steps of a few hundred keys (SCAN), so it keeps
    /// answering others; hits that arrive meanwhile may or may not be forgotten. `prefix` is taken literally.
    ///
    /// # Errors
    /// The store's own trouble; some of the keys may be gone by then.
    pub async fn reset_prefix(&self, prefix: &str) -> Result<u64> {
        let mut pattern = key::prefix(prefix);
        pattern.push(b'*');
        let (mut cursor, mut existed) = (0u64, 0);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern);
            scan.arg("COUNT").arg(SCAN_STEP);
            let (next, found): (u64, Vec<Vec<u8>>) = self.0.ask(&scan).await?;
            if !found.is_empty() {
                let mut unlink = redis::cmd("UNLINK");
                unlink.arg(found);
                existed += self.0.ask::<u64>(&unlink).await?;
            }
            if next == 0 {
                return Ok(existed);
            }
            cursor = next;
        }
    }
}

impl Inner {
    pub(crate) fn lane(&self, _lane: usize) -> &Lane {
        &self.lane
    }

    /// One call for one batch.
    pub(crate) async fn ask_alone(
        &self,
        at: Option<Timestamp>,
        questions: &[Question],
    ) -> Result<Verdicts> {
        let mut request = Request::new(at);
        request.push(questions);
        self.call(&request).await?.next(questions)
    }

    /// Calls the script, once. Only a server that does not know it yet is called again: it has done nothing.
    pub(crate) async fn call(&self, request: &Request) -> Result<Reply, Failure> {
        let command = request.command(&self.script, How::Hash);
        let mut answer = self.query(&command).await;
        if answer.as_ref().is_err_and(Failure::is_no_script) {
            let command = request.command(&self.script, How::Text);
            answer = self.query(&command).await;
        }
        answer.and_then(Reply::new)
    }

    async fn query(&self, command: &Cmd) -> Result<Value, Failure> {
        let answer = self.connection.query(command).await;
        if answer.as_ref().is_err_and(Failure::is_misplaced) {
            self.connection.leave().await;
        }
        answer
    }

    /// Sends a command that is no script, and reads its answer.
    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let answer = self.query(command).await?;
        T::from_redis_value(answer).map_err(|error| {
            Error::new(
                ErrorKind::Other,
                "the server's answer is not what it should be",
            )
            .with_store(STORE)
            .with_source(error)
        })
    }
}

impl Store for RedisStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let questions = Question::of_batch(&batch);
        match batch.instant() {
            None => Lane::ask(&self.0, 0, questions).await,
            // One instant per call: what is judged at an instant of its own travels alone.
            at => self.0.ask_alone(at, &questions).await,
        }
    }

    /// Deletes exactly these keys, one by one.
    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut existed = 0;
        for key in keys {
            let mut command = redis::cmd("UNLINK");
            command.arg(key::name(key));
            existed += self.0.ask::<u64>(&command).await?;
        }
        Ok(existed)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}
