//! Stores that watch, hold back or spoil what goes through them, around a real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::channel::oneshot;
use futures::executor::block_on;
use tokio::sync::Mutex;
use tollgate_core::{
    Algorithm, Batch, Capabilities, Check, Cost, Error, Key, ManualClock, Op, Policy, Quota,
    Result, Source, Space, Store, Verdicts,
};
use tollgate_memory::MemoryStore;

pub(crate) type Memory = MemoryStore<ManualClock>;

pub(crate) fn memory(clock: &ManualClock) -> Memory {
    MemoryStore::builder().clock(clock.clone()).build().unwrap()
}

/// Counts the calls that reach the store.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    pub(crate) store: Arc<S>,
    calls: Arc<AtomicU64>,
}

impl<S: Store> Counted<S> {
    pub(crate) fn new(store: S) -> Self {
        Self {
            store: Arc::new(store),
            calls: Arc::default(),
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

impl<S: Store> Store for Counted<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.store.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

/// Judges at once, and keeps the next answer back until it is let go.
#[derive(Clone, Debug)]
pub(crate) struct Held<S> {
    pub(crate) store: S,
    answers: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
}

impl<S: Store> Held<S> {
    pub(crate) fn new(store: S) -> Self {
        Self {
            store,
            answers: Arc::default(),
        }
    }

    /// Keeps the answer to the next call back until the sender is used or dropped.
    pub(crate) fn hold_next(&self) -> oneshot::Sender<()> {
        let (release, held) = oneshot::channel();
        *block_on(self.answers.lock()) = Some(held);
        release
    }
}

impl<S: Store> Store for Held<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let held = self.answers.lock().await.take();
        let answer = self.store.apply(batch).await;
        if let Some(held) = held {
            let _ = held.await;
        }
        answer
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

type Spoil = dyn Fn(&Batch<'_>, Result<Verdicts>) -> Result<Verdicts> + Send + Sync;

/// Changes what the store answers.
#[derive(Clone)]
pub(crate) struct Spoilt<S> {
    pub(crate) store: S,
    spoil: Arc<Spoil>,
}

impl<S> Spoilt<S> {
    pub(crate) fn from_source(store: S, source: Source) -> Self {
        Self {
            store,
            spoil: Arc::new(move |_, answer| answer.map(|verdicts| verdicts.with_source(source))),
        }
    }

    /// Carries settlements out, and fails them all the same.
    pub(crate) fn lost_settlements(store: S, error: fn() -> Error) -> Self {
        let spoil = move |batch: &Batch<'_>, answer: Result<Verdicts>| match batch.checks() {
            [check] if matches!(check.op, Op::Settle(_)) => Err(error()),
            _ => answer,
        };
        Self {
            store,
            spoil: Arc::new(spoil),
        }
    }
}

impl<S: std::fmt::Debug> std::fmt::Debug for Spoilt<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(f)
    }
}

impl<S: Store> Store for Spoilt<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        (self.spoil)(&batch, self.store.apply(batch).await)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

/// A policy and the space of its keys, to ask a store without a limiter.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) policy: Policy,
    pub(crate) space: Space,
}

impl Counter {
    pub(crate) fn new(algorithm: Algorithm, quota: Quota) -> Self {
        Self::named("tested", algorithm, quota)
    }

    pub(crate) fn named(name: &str, algorithm: Algorithm, quota: Quota) -> Self {
        let policy = Policy::new(name, algorithm, quota).unwrap();
        let space = Space::new("", "", &policy);
        Self { policy, space }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key::new(&self.space, b"someone").unwrap()
    }

    pub(crate) fn check(&self, op: Op) -> Check<'_> {
        Check {
            key: self.key(),
            policy: &self.policy,
            op,
        }
    }

    pub(crate) fn ask(&self, store: &impl Store, op: Op) -> Verdicts {
        block_on(store.apply(Batch::of_one(&self.check(op)))).unwrap()
    }

    pub(crate) fn hit(&self, store: &impl Store, units: u64) -> Verdicts {
        self.ask(store, hit(units))
    }
}

pub(crate) fn hit(units: u64) -> Op {
    Op::Hit(Cost::new(units).unwrap())
}

pub(crate) fn peek(units: u64) -> Op {
    Op::Peek(Cost::new(units).unwrap())
}
