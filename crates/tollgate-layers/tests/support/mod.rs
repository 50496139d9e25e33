//! A store that fails, hangs or dawdles when it is told to, and what a test hears of it.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test target uses a part of it"
)]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tollgate_core::{
    Batch, Capabilities, Error, ErrorKind, InProcessStore, Key, Result, Store, SystemClock,
    Timestamp, Verdict, Verdicts,
};
use tollgate_memory::MemoryStore;

pub mod kit;
pub mod line;
pub mod world;

/// How a [`FarStore`] behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Well,
    Fails(ErrorKind),
    Hangs,
    Takes(Duration),
}

/// A memory store that is asked like one in the network: only by a future, which is not ready at once.
///
/// Clones are the same store. As an [`InProcessStore`] it judges at once, in the same mood.
#[derive(Clone, Debug)]
pub struct FarStore {
    memory: MemoryStore<SystemClock>,
    mood: Arc<Mutex<Mood>>,
    calls: Arc<AtomicU64>,
}

/// A memory store whose clock a test can read as well.
pub fn memory_store() -> MemoryStore<SystemClock> {
    MemoryStore::builder().clock(SystemClock).build().unwrap()
}

impl FarStore {
    pub fn new() -> Self {
        Self {
            memory: memory_store(),
            mood: Arc::new(Mutex::new(Mood::Well)),
            calls: Arc::default(),
        }
    }

    /// Changes the mood of calls that begin from now on.
    pub fn be(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    /// How often it was asked.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn mood(&self) -> Mood {
        self.calls.fetch_add(1, Ordering::SeqCst);
        *self.mood.lock()
    }

    async fn travel(&self) -> Result<()> {
        match self.mood() {
            Mood::Well => tokio::task::yield_now().await,
            Mood::Fails(kind) => return Err(failure(kind)),
            Mood::Hangs => std::future::pending().await,
            Mood::Takes(time) => tokio::time::sleep(time).await,
        }
        Ok(())
    }
}

/// An error with a cause, as drivers have it.
fn failure(kind: ErrorKind) -> Error {
    Error::new(kind, "it was told to fail")
        .with_store("far")
        .with_source(std::io::Error::other("the cable is cut"))
}

impl Store for FarStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.travel().await?;
        self.memory.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.travel().await?;
        self.memory.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }
}

impl InProcessStore for FarStore {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        match self.mood() {
            Mood::Fails(kind) => Err(failure(kind)),
            Mood::Well | Mood::Hangs | Mood::Takes(_) => self.memory.judge(batch),
        }
    }

    fn judge_at_hand(&self, check: &tollgate_core::Check<'_>) -> Option<(Timestamp, Verdict)> {
        match self.mood() {
            Mood::Well => self.memory.judge_at_hand(check),
            Mood::Fails(_) | Mood::Hangs | Mood::Takes(_) => None,
        }
    }
}
