//! Stores as they are met in the field: far away, and out of order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Semaphore;
use tollgate_memory::{
    Batch, Capabilities, Error, ErrorKind, InProcessStore, Key, MemoryStore, Result, Store,
    Verdicts,
};

/// A store that only a future can ask, as over a network.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    store: MemoryStore,
    broken: Arc<AtomicBool>,
    calls: Arc<AtomicU32>,
    gate: Arc<Semaphore>,
}

impl Remote {
    pub(crate) fn new() -> Self {
        Self {
            store: MemoryStore::new(),
            broken: Arc::default(),
            calls: Arc::default(),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// One that answers no call until [`let_in`](Self::let_in) is called for it.
    pub(crate) fn held() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            ..Self::new()
        }
    }

    pub(crate) fn let_in(&self, calls: usize) {
        self.gate.add_permits(calls);
    }

    pub(crate) fn break_down(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }

    /// How often it was asked.
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    async fn travel(&self) -> Result<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        if self.broken.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, "cut off"));
        }
        Ok(())
    }
}

impl Store for Remote {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.travel().await?;
        self.store.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.travel().await?;
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}
