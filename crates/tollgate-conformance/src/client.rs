//! The harness and its stores behind one type, so that cases are compiled once and not per store.

use std::sync::Arc;

use async_trait::async_trait;
use tollgate_core::{Batch, Capabilities, Key, Result, SharedStore, Store, Timestamp, Verdicts};

use crate::harness::Harness;
use crate::offer::{BoxError, Held, Offer, Offered, Outage, Plant};

/// The object-safe twin of [`Harness`].
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    fn name(&self) -> &str;
    async fn client(&self) -> Result<Arc<dyn Client>, BoxError>;
    async fn outage(&self) -> Offered<Outage<Arc<dyn Client>>>;
}

/// A store of a harness, with the hooks into what lies behind it.
#[async_trait]
pub(crate) trait Client: Send + Sync {
    /// The store, always asked by [`Store::apply`].
    fn by_future(&self) -> SharedStore;
    /// The store, asked by [`Store::apply_now`] where it has that.
    fn at_once(&self) -> SharedStore;
    async fn peer(&self) -> Offered<Arc<dyn Client>>;
    async fn backend_time(&self) -> Offered<Timestamp>;
    async fn held(&self, key: &Key<'_>) -> Offered<Held>;
    async fn lose_expiry(&self, key: &Key<'_>) -> Offered<()>;
    async fn plant(&self, key: &Key<'_>, plant: Plant<'_>) -> Offered<()>;
}

/// Any harness as a [`Backend`].
pub(crate) struct Erased<H>(pub(crate) Arc<H>);

impl<H: Harness> Erased<H> {
    fn wrap(&self, store: H::Store) -> Arc<dyn Client> {
        Arc::new(ErasedClient {
            harness: Arc::clone(&self.0),
            store: Arc::new(store),
        })
    }
}

#[async_trait]
impl<H: Harness> Backend for Erased<H> {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn client(&self) -> Result<Arc<dyn Client>, BoxError> {
        Ok(self.wrap(self.0.store().await?))
    }

    async fn outage(&self) -> Offered<Outage<Arc<dyn Client>>> {
        let offer = self.0.outage().await?;
        Ok(offer.map(|outage| outage.map(|store| self.wrap(store))))
    }
}

struct ErasedClient<H: Harness> {
    harness: Arc<H>,
    store: Arc<H::Store>,
}

#[async_trait]
impl<H: Harness> Client for ErasedClient<H> {
    fn by_future(&self) -> SharedStore {
        SharedStore::new(ByFuture(Arc::clone(&self.store)))
    }

    fn at_once(&self) -> SharedStore {
        SharedStore::new(Arc::clone(&self.store))
    }

    async fn peer(&self) -> Offered<Arc<dyn Client>> {
        let offer = self.harness.peer(&self.store).await?;
        Ok(offer.map(|store| Erased(Arc::clone(&self.harness)).wrap(store)))
    }

    async fn backend_time(&self) -> Offered<Timestamp> {
        self.harness.backend_time(&self.store).await
    }

    async fn held(&self, key: &Key<'_>) -> Offered<Held> {
        self.harness.held(&self.store, key).await
    }

    async fn lose_expiry(&self, key: &Key<'_>) -> Offered<()> {
        self.harness.lose_expiry(&self.store, key).await
    }

    async fn plant(&self, key: &Key<'_>, plant: Plant<'_>) -> Offered<()> {
        self.harness.plant(&self.store, key, plant).await
    }
}

impl<T> Offer<T> {
    fn map<U>(self, map: impl FnOnce(T) -> U) -> Offer<U> {
        match self {
            Self::Given(given) => Offer::Given(map(given)),
            Self::NotOffered => Offer::NotOffered,
            Self::NotApplicable(why) => Offer::NotApplicable(why),
        }
    }
}

/// A store without its shortcut: [`SharedStore`] would take it whenever there is one.
#[derive(Debug)]
struct ByFuture<S>(Arc<S>);

impl<S: Store> Store for ByFuture<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        // A store in this process never waits, and a case that waits for it to change its mind could not be stopped.
        tokio::task::consume_budget().await;
        self.0.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}
