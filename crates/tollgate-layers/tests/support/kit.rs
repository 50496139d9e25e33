//! The conformance kit, played on what a wrapper makes of a store.

use tollgate_conformance::{
    BoxError, CaseResult, Ending, Harness, Held, Offer, Offered, Options, Outage, Plant, run,
};
use tollgate_core::{
    Batch, Capabilities, Clock, ErrorKind, Key, Result, SharedStore, Store, SystemClock, Timestamp,
    Verdicts,
};

use super::{FarStore, Mood, memory_store};

/// What becomes of calls while the store inside is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outages {
    /// They end in an error that may pass, and once the store is back they are answered again.
    AreErrors,
    /// The wrapper answers them.
    AreAnswered,
}

/// Plays every case on what `wrap` makes of a store in the process, and of one that is asked by futures only.
///
/// # Panics
/// If a case fails, or is left out because something to play it with is missing.
pub fn passes_the_kit<S: Store>(
    outages: Outages,
    wrap: impl Fn(SharedStore) -> S + Clone + Send + Sync + 'static,
) {
    for near in [true, false] {
        let wrap = wrap.clone();
        let harness = Wrapping {
            near,
            outages,
            wrap,
        };
        let options = Options::from_env().unwrap().require_all(true);
        let results = run(harness, &[], &options);
        let failed: Vec<_> = results.iter().filter_map(failure).collect();
        assert!(failed.is_empty(), "near: {near}\n{}", failed.join("\n"));
        assert!(results.len() > 100, "only {} cases", results.len());
    }
}

fn failure(case: &CaseResult) -> Option<String> {
    match &case.ending {
        Ending::Failed(why) => Some(format!("{}: {why}", case.name)),
        _ => None,
    }
}

struct Wrapping<W> {
    near: bool,
    outages: Outages,
    wrap: W,
}

/// What the wrapper made, and what it made it of.
#[derive(Debug)]
struct Wrapped<S> {
    store: S,
    inside: SharedStore,
}

impl<W, S> Wrapping<W>
where
    W: Fn(SharedStore) -> S,
{
    fn around(&self, inside: SharedStore) -> Wrapped<S> {
        Wrapped {
            store: (self.wrap)(inside.clone()),
            inside,
        }
    }
}

impl<W, S> Harness for Wrapping<W>
where
    W: Fn(SharedStore) -> S + Send + Sync + 'static,
    S: Store,
{
    type Store = Wrapped<S>;

    fn name(&self) -> &str {
        if self.near {
            "in the process"
        } else {
            "far away"
        }
    }

    async fn store(&self) -> std::result::Result<Wrapped<S>, BoxError> {
        Ok(self.around(if self.near {
            SharedStore::new(memory_store())
        } else {
            SharedStore::new(FarStore::new())
        }))
    }

    async fn peer(&self, store: &Wrapped<S>) -> Offered<Wrapped<S>> {
        Ok(Offer::Given(self.around(store.inside.clone())))
    }

    async fn backend_time(&self, _: &Wrapped<S>) -> Offered<Timestamp> {
        Ok(Offer::Given(SystemClock.now()))
    }

    async fn held(&self, _: &Wrapped<S>, _: &Key<'_>) -> Offered<Held> {
        Ok(Offer::NotApplicable("a wrapper leaves that to the store"))
    }

    async fn lose_expiry(&self, _: &Wrapped<S>, _: &Key<'_>) -> Offered<()> {
        Ok(Offer::NotApplicable("a wrapper leaves that to the store"))
    }

    async fn plant(&self, _: &Wrapped<S>, _: &Key<'_>, _: Plant<'_>) -> Offered<()> {
        Ok(Offer::NotApplicable("a wrapper leaves that to the store"))
    }

    async fn outage(&self) -> Offered<Outage<Wrapped<S>>> {
        if self.outages == Outages::AreAnswered {
            return Ok(Offer::NotApplicable("the wrapper answers during an outage"));
        }
        let inside = FarStore::new();
        let store = self.around(SharedStore::new(inside.clone()));
        let (away, back) = (inside.clone(), inside);
        let switch = |store: &FarStore, mood| {
            store.be(mood);
            async { Ok(()) }
        };
        Ok(Offer::Given(Outage::new(
            store,
            move || switch(&away, Mood::Fails(ErrorKind::Unavailable)),
            move || switch(&back, Mood::Well),
        )))
    }
}

impl<S: Store> Store for Wrapped<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.store.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        self.store.apply_now(batch)
    }
}
