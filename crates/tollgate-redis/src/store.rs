//! The store.

#[cfg(feature = "cluster")]
use std::collections::HashMap;
use std::sync::Arc;
#[cfg(feature = "cluster")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "cluster")]
use redis::cluster_routing::Slot;
use redis::{FromRedisValue, Value};
use tollgate_core::{
    Batch, Capabilities, Check, Error, ErrorKind, Family, Key, Result, Store, Timestamp, Verdicts,
};

use crate::capability::Capability;
use crate::connection::Connection;
use crate::counter::{Counted, Tally};
use crate::error::{Failure, STORE};
use crate::key;
use crate::lane::Lane;
use crate::reply::Reply;
use crate::request::{self, Question, Request};
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
    lanes: Lanes,
    counters: Capability,
}

/// The queues that calls wait in.
#[derive(Debug)]
enum Lanes {
    /// To one server: for the script, and for its own counters.
    One(Arc<Lane>, Arc<Lane>),
    /// To each slot of a cluster that was ever asked for.
    #[cfg(feature = "cluster")]
    BySlot(Mutex<HashMap<Slot, Arc<Lane>>>),
}

impl RedisStore {
    /// A store over `connection`. Nothing is sent before the first call, so the server may come up later.
    #[must_use]
    pub fn new(connection: impl Into<Connection>) -> Self {
        let connection = connection.into();
        if connection.has_slots() {
            // One trip to a counter is several commands, which a cluster connection does not keep together.
            return Self::script_only(connection);
        }
        Self::with(connection, Capability::default())
    }

    /// The same, but fixed windows are judged by the script too, even where the server has INCREX.
    ///
    /// Such windows lie under keys of another kind: let all processes that share them choose alike.
    #[must_use]
    pub fn script_only(connection: impl Into<Connection>) -> Self {
        Self::with(connection.into(), Capability::unused())
    }

    fn with(connection: Connection, counters: Capability) -> Self {
        Self(Arc::new(Inner {
            lanes: Lanes::new(&connection),
            counters,
            script: Script::new(),
            connection,
        }))
    }

    /// What Redis calls the keys that may hold the counter of `key`: for operators, and for tests that look behind the
    /// store.
    ///
    /// One, or two for a fixed window: the script's, and the one that INCREX counts in.
    #[must_use]
    pub fn redis_keys(key: &Key<'_>) -> Vec<Vec<u8>> {
        let mut names = vec![key::name(key)];
        if key.space().family() == Family::FixedWindow {
            names.push(key::counter(key));
        }
        names
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
        #[cfg(feature = "cluster")]
        if self.0.connection.has_slots() {
            let mut existed = 0;
            for master in self.0.connection.masters().await? {
                existed += self.0.reset_matching(&pattern, Some(&master)).await?;
            }
            return Ok(existed);
        }
        self.0.reset_matching(&pattern, None).await
    }
}

impl Lanes {
    fn new(connection: &Connection) -> Self {
        #[cfg(feature = "cluster")]
        if connection.has_slots() {
            return Self::BySlot(Mutex::default());
        }
        let _ = connection;
        Self::One(Arc::default(), Arc::default())
    }

    /// The lane for a batch.
    fn lane(&self, questions: &[Question]) -> Result<Arc<Lane>> {
        match self {
            Self::One(script, counters) => Ok(match questions {
                [question] if question.count.is_some() => counters.clone(),
                _ => script.clone(),
            }),
            #[cfg(feature = "cluster")]
            Self::BySlot(lanes) => {
                let mut slots = questions
                    .iter()
                    .map(|question| Slot::for_key(&question.name));
                let slot = slots.next();
                let Some(slot) = slot.filter(|slot| slots.all(|other| other == *slot)) else {
                    return Err(Error::new(
                        ErrorKind::Unsupported,
                        "a cluster judges only keys of one subject as one batch; \
                         ask for each subject in a batch of its own",
                    )
                    .with_store(STORE));
                };
                let mut lanes = lanes.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(lanes.entry(slot).or_default().clone())
            }
        }
    }
}

impl Inner {
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
        let mut answer = self.connection.query(&command).await;
        if answer.as_ref().is_err_and(Failure::is_no_script) {
            let command = request.command(&self.script, How::Text);
            answer = self.connection.query(&command).await;
        }
        let value = self.noticed(answer)?;
        Reply::new(value, request.times())
    }

    /// Counts hits in the server's own counters.
    pub(crate) async fn count(&self, tally: Tally) -> Result<Counted, Failure> {
        let counted = self.noticed(tally.count(&self.connection).await)?;
        if counted.is_refused() {
            self.counters.forget();
        }
        Ok(counted)
    }

    /// After any trouble, another server may be the one that answers next.
    fn noticed<T>(&self, answer: Result<T, Failure>) -> Result<T, Failure> {
        if answer.is_err() {
            self.counters.forget();
        }
        answer
    }

    /// Whether `batch` is about windows that the server's own counters can keep, and it has them.
    ///
    /// An instant that the caller names is judged by the script alone: counters live by the server's clock.
    async fn counts(&self, batch: &Batch<'_>) -> Result<bool, Failure> {
        let countable = |check: &Check<'_>| request::is_countable(check.policy.rule());
        if batch.instant().is_some() || !batch.checks().iter().any(countable) {
            return Ok(false);
        }
        self.counters.ask(&self.connection).await
    }

    /// Deletes keys that lie in one slot; returns how many there were.
    async fn unlink(&self, names: &[Vec<u8>]) -> Result<u64> {
        let mut command = redis::cmd("UNLINK");
        command.arg(names);
        read(self.connection.query(&command).await?)
    }

    /// Deletes all keys that match `pattern`, of one node of a cluster or of the one server there is.
    async fn reset_matching(&self, pattern: &[u8], node: Option<&(String, u16)>) -> Result<u64> {
        let (mut cursor, mut existed) = (0u64, 0);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(pattern);
            scan.arg("COUNT").arg(SCAN_STEP);
            let answer = match node {
                #[cfg(feature = "cluster")]
                Some(node) => self.connection.query_node(&scan, node).await?,
                _ => self.connection.query(&scan).await?,
            };
            let (next, found): (u64, Vec<Vec<u8>>) = read(answer)?;
            // One by one: in a cluster they lie in several slots.
            for name in found {
                existed += self.unlink(&[name]).await?;
            }
            if next == 0 {
                return Ok(existed);
            }
            cursor = next;
        }
    }
}

fn read<T: FromRedisValue>(answer: Value) -> Result<T> {
    T::from_redis_value(answer).map_err(|error| {
        Error::new(
            ErrorKind::Other,
            "the server's answer is not what it should be",
        )
        .with_store(STORE)
        .with_source(error)
    })
}

impl Store for RedisStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let counters = self.0.counts(&batch).await?;
        let questions = Question::of_batch(&batch, counters);
        let lane = self.0.lanes.lane(&questions)?;
        match batch.instant() {
            None => lane.ask(&self.0, questions).await,
            // One instant per call: what is judged at an instant of its own travels alone.
            at => self.0.ask_alone(at, &questions).await,
        }
    }

    /// Deletes exactly these keys, one by one.
    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut existed = 0;
        for key in keys {
            existed += self.0.unlink(&Self::redis_keys(key)).await?.min(1);
        }
        Ok(existed)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL.with_atomic_any_keys(!self.0.connection.has_slots())
    }
}
