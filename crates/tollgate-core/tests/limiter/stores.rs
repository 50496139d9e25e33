//! Stores for the tests: one that works, one that fails as it is told, one that answers nonsense, and a stand-in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tollgate_core::{
    Batch, Capabilities, Clock, Error, ErrorKind, InProcessStore, Key, ManualClock, Result, Source,
    State, Store, Timestamp, Verdicts,
};

pub(crate) const START: u64 = 1_700_000_000_000_000;

pub(crate) fn start() -> Timestamp {
    Timestamp::from_micros(START).expect("in range")
}

/// A map behind a lock, judged by [`Batch::step`] and a clock that the test moves.
#[derive(Debug)]
pub(crate) struct MapStore<C: Clock = ManualClock> {
    pub(crate) clock: C,
    states: Mutex<HashMap<Vec<u8>, State>>,
}

impl MapStore {
    pub(crate) fn shared() -> Arc<Self> {
        Self::with_clock(ManualClock::new(start()))
    }
}

impl<C: Clock> MapStore<C> {
    pub(crate) fn with_clock(clock: C) -> Arc<Self> {
        Arc::new(Self {
            clock,
            states: Mutex::default(),
        })
    }

    /// How many keys there are.
    pub(crate) fn keys(&self) -> usize {
        self.states.lock().expect("no test panics inside").len()
    }
}

impl<C: Clock> InProcessStore for MapStore<C> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let now = batch.instant().unwrap_or_else(|| self.clock.now());
        let mut stored = self.states.lock().expect("no test panics inside");
        let keys = batch.checks().iter().map(|check| check.key.encode());
        let keys: Vec<_> = keys.collect();
        let mut states: Vec<_> = keys.iter().map(|key| stored.get(key).cloned()).collect();
        let verdicts = batch.step(&mut states, now);
        for (key, state) in keys.into_iter().zip(states) {
            if let Some(state) = state {
                stored.insert(key, state);
            }
        }
        Ok(verdicts)
    }
}

impl<C: Clock> Store for MapStore<C> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut stored = self.states.lock().expect("no test panics inside");
        let existed = keys
            .iter()
            .filter(|key| stored.remove(&key.encode()).is_some());
        Ok(u64::try_from(existed.count()).expect("few keys"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

/// Fails with `kind` as often as it is told, and works after that.
#[derive(Debug)]
pub(crate) struct FailingStore<S> {
    kind: ErrorKind,
    failures_left: AtomicU32,
    calls: AtomicU32,
    stands_in: bool,
    inner: S,
}

impl<S> FailingStore<S> {
    pub(crate) fn new(kind: ErrorKind, failures: u32, inner: S) -> Self {
        Self {
            kind,
            failures_left: AtomicU32::new(failures),
            calls: AtomicU32::new(0),
            stands_in: false,
            inner,
        }
    }

    /// Claims that something stands in for it, which then fails as well.
    pub(crate) fn with_a_stand_in(self) -> Self {
        Self {
            stands_in: true,
            ..self
        }
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn fail(&self) -> Result<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let left = self.failures_left.load(Ordering::SeqCst);
        if left == 0 {
            return Ok(());
        }
        self.failures_left.store(left - 1, Ordering::SeqCst);
        Err(Error::new(self.kind, "told to fail")
            .with_store("failing")
            .with_source(std::io::Error::other("the cause")))
    }
}

impl<S: InProcessStore> InProcessStore for FailingStore<S> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        self.fail()?;
        self.inner.judge(batch)
    }
}

impl<S: Store> Store for FailingStore<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.fail()?;
        self.inner.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.fail()?;
        self.inner.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities().with_fallback(self.stands_in)
    }
}

/// Charges, and then answers one check too many.
#[derive(Debug)]
pub(crate) struct MiscountingStore(pub(crate) Arc<MapStore>);

impl Store for MiscountingStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let verdicts = self.0.judge(&batch)?;
        let mut list = verdicts.as_slice().to_vec();
        list.push(list[0]);
        Ok(Verdicts::many(verdicts.at(), list.into()))
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

/// Answers from what stands in for a store that is away.
#[derive(Debug)]
pub(crate) struct StandIn(pub(crate) Arc<MapStore>);

impl Store for StandIn {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        Ok(self.0.judge(&batch)?.with_source(Source::Fallback))
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL.with_fallback(true)
    }
}
