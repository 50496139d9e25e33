//! How a store is brought to the kit.

use std::future::Future;

use tollgate_core::{Key, Store, Timestamp};

use crate::offer::{BoxError, Held, Offer, Offered, Outage, Plant};

/// How a store is brought to the kit.
///
/// [`name`](Self::name) and [`store`](Self::store) are all that is needed: [`main`](crate::main) makes a harness of
/// those two. The other methods are hooks. Each gives some cases a way to look behind the store; without it those cases
/// are left out and say so. Every call is made on the kit's one tokio runtime.
pub trait Harness: Send + Sync + 'static {
    /// The store under test.
    type Store: Store;

    /// The name of the store, as it stands in the conformance matrix.
    fn name(&self) -> &str;

    /// A store for one case.
    ///
    /// It may be fresh or share a backend with all others: every case keeps to keys under a random prefix of its own
    /// and nothing is ever flushed.
    fn store(&self) -> impl Future<Output = Result<Self::Store, BoxError>> + Send;

    /// Another client of the backend behind `store`: other connections, nothing shared but what the backend holds.
    fn peer(&self, store: &Self::Store) -> impl Future<Output = Offered<Self::Store>> + Send {
        let _ = store;
        async { Ok(Offer::NotOffered) }
    }

    /// The clock that `store` is to judge by, read in another way than through the store.
    fn backend_time(&self, store: &Self::Store) -> impl Future<Output = Offered<Timestamp>> + Send {
        let _ = store;
        async { Ok(Offer::NotOffered) }
    }

    /// What the backend of `store` holds under `key`.
    fn held(
        &self,
        store: &Self::Store,
        key: &Key<'_>,
    ) -> impl Future<Output = Offered<Held>> + Send {
        let _ = (store, key);
        async { Ok(Offer::NotOffered) }
    }

    /// Takes the expiry from what the backend of `store` holds under `key`, as a crash or a restored backup may.
    fn lose_expiry(
        &self,
        store: &Self::Store,
        key: &Key<'_>,
    ) -> impl Future<Output = Offered<()>> + Send {
        let _ = (store, key);
        async { Ok(Offer::NotOffered) }
    }

    /// Puts `plant` under `key` in the backend of `store`, with an expiry of at least an hour.
    fn plant(
        &self,
        store: &Self::Store,
        key: &Key<'_>,
        plant: Plant<'_>,
    ) -> impl Future<Output = Offered<()>> + Send {
        let _ = (store, key, plant);
        async { Ok(Offer::NotOffered) }
    }

    /// A store whose backend serves no other case, with the means to take it away.
    fn outage(&self) -> impl Future<Output = Offered<Outage<Self::Store>>> + Send {
        async { Ok(Offer::NotOffered) }
    }
}

/// The harness without hooks that [`main`](crate::main) and [`Fresh::new`] make of a name and a function.
#[derive(Clone, Copy, Debug)]
pub struct Fresh<F> {
    name: &'static str,
    make: F,
}

impl<F> Fresh<F> {
    /// A harness that calls `make` for the store of each case.
    pub const fn new(name: &'static str, make: F) -> Self {
        Self { name, make }
    }
}

impl<F, Making, S> Harness for Fresh<F>
where
    F: Fn() -> Making + Send + Sync + 'static,
    Making: Future<Output = Result<S, BoxError>> + Send,
    S: Store,
{
    type Store = S;

    fn name(&self) -> &str {
        self.name
    }

    fn store(&self) -> impl Future<Output = Result<S, BoxError>> + Send {
        (self.make)()
    }
}
