//! The erased store: any store behind one type.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::algorithm::Verdict;
use crate::batch::{Batch, Check, Verdicts};
use crate::error::Result;
use crate::key::Key;
use crate::store::{Capabilities, Store};
use crate::time::Timestamp;

/// Any [`Store`] behind one type, shared by cloning.
///
/// What an application keeps in its state when the store is chosen at run time. A store that answers in process is
/// asked without boxing a future; any other call boxes one.
#[derive(Clone)]
pub struct SharedStore(Arc<dyn ErasedStore>);

impl SharedStore {
    /// Wraps a store.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Store for SharedStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        match self.0.apply_now(&batch) {
            Some(answer) => answer,
            None => self.0.apply(batch).await,
        }
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        self.0.apply_now(batch)
    }
}

impl<S: Store> Store for Arc<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        (**self).apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        (**self).reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        (**self).apply_now(batch)
    }
}

impl<S: crate::InProcessStore> crate::InProcessStore for Arc<S> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        (**self).judge(batch)
    }

    #[inline]
    fn judge_at_hand(&self, check: &Check<'_>) -> Option<(Timestamp, Verdict)> {
        (**self).judge_at_hand(check)
    }
}

/// The object-safe twin of [`Store`].
#[async_trait]
trait ErasedStore: fmt::Debug + Send + Sync {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts>;
    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64>;
    fn capabilities(&self) -> Capabilities;
    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>>;
}

#[async_trait]
impl<S: Store> ErasedStore for S {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        Store::apply(self, batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        Store::reset(self, keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Store::capabilities(self)
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        Store::apply_now(self, batch)
    }
}
