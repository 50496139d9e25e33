//! A store with or without a wrapper, as one type.

use tollgate_core::{Batch, Capabilities, Key, Result, Store, Verdicts};

#[derive(Debug)]
pub(super) enum Either<W, S> {
    Wrapped(W),
    Bare(S),
}

impl<W: Store, S: Store> Store for Either<W, S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        match self {
            Self::Wrapped(store) => store.apply(batch).await,
            Self::Bare(store) => store.apply(batch).await,
        }
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        match self {
            Self::Wrapped(store) => store.reset(keys).await,
            Self::Bare(store) => store.reset(keys).await,
        }
    }

    fn capabilities(&self) -> Capabilities {
        match self {
            Self::Wrapped(store) => store.capabilities(),
            Self::Bare(store) => store.capabilities(),
        }
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        match self {
            Self::Wrapped(store) => store.apply_now(batch),
            Self::Bare(store) => store.apply_now(batch),
        }
    }
}
