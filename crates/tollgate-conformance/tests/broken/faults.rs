//! Faults in how trouble is told, and in what becomes of a dropped call.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::yield_now;
use tollgate_conformance::{Family, Fresh, ReferenceStore};
use tollgate_core::{
    Batch, Capabilities, CasStore, Error, ErrorKind, Key, Result, Store, Timestamp, Verdicts,
};

use crate::caught;
use crate::map_harness::{MapBackend, MapHarness};

/// What a store over a map does with a call that failed.
type Excuse = fn(&Excusing, &Batch<'_>, Error) -> Result<Verdicts>;

/// A store over a map that makes something of its trouble.
#[derive(Debug)]
struct Excusing {
    inner: CasStore<MapBackend>,
    excuse: Excuse,
    has_failed: AtomicBool,
}

impl Excusing {
    fn new(backend: MapBackend, excuse: Excuse) -> Self {
        Self {
            inner: CasStore::new(backend),
            excuse,
            has_failed: AtomicBool::new(false),
        }
    }
}

impl Store for Excusing {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        match self.inner.apply(batch).await {
            Err(error) => (self.excuse)(self, &batch, error),
            Ok(_) if self.has_failed.load(Ordering::SeqCst) => (self.excuse)(self, &batch, away()),
            answer => answer,
        }
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.inner.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}

fn away() -> Error {
    Error::new(ErrorKind::Unavailable, "the map is away").with_store("map")
}

#[track_caller]
fn excuses(client: fn(MapBackend) -> Excusing, cases: &[&str]) {
    caught(MapHarness::new("excusing", client), Family::Failure, cases);
}

#[test]
fn a_store_that_admits_what_it_cannot_count_is_caught() {
    let client = |backend| {
        Excusing::new(backend, |_, batch, _| {
            let mut never_seen = vec![None; batch.checks().len()];
            Ok(batch.step(&mut never_seen, Timestamp::EPOCH))
        })
    };
    excuses(
        client,
        &[
            "an_outage_is_never_taken_for_an_answer",
            "an_outage_is_an_error_that_may_pass",
        ],
    );
}

#[test]
fn a_store_that_calls_an_outage_permanent_is_caught() {
    let client = |backend| {
        Excusing::new(backend, |_, _, _| {
            Err(Error::new(ErrorKind::Other, "it broke").with_store("map"))
        })
    };
    excuses(client, &["an_outage_is_an_error_that_may_pass"]);
}

#[test]
fn a_store_whose_errors_do_not_say_where_they_come_from_is_caught() {
    let client = |backend| {
        Excusing::new(backend, |_, _, _| {
            Err(Error::new(ErrorKind::Unavailable, "it broke"))
        })
    };
    excuses(client, &["an_outage_is_an_error_that_may_pass"]);
}

#[test]
fn a_store_that_never_comes_back_after_an_outage_is_caught() {
    let client = |backend| {
        Excusing::new(backend, |store, _, error| {
            store.has_failed.store(true, Ordering::SeqCst);
            Err(error)
        })
    };
    excuses(client, &["service_resumes_after_an_outage"]);
}

#[test]
fn a_store_that_charges_and_says_that_it_has_not_is_caught() {
    let client = |backend| {
        Excusing::new(backend, |store, batch, error| {
            // What a lost answer looks like: the server has charged, and nobody heard of it.
            let backend = store.inner.backend();
            backend.set_away(false);
            let charged = futures_now(store.inner.apply(*batch));
            backend.set_away(true);
            charged.and(Err(error))
        })
    };
    excuses(client, &["an_error_that_says_nothing_was_charged_is_right"]);
}

#[test]
fn a_store_that_panics_in_an_outage_is_caught() {
    let client = |backend| Excusing::new(backend, |_, _, error| panic!("{error}"));
    excuses(client, &["an_outage_is_an_error_that_may_pass"]);
}

/// The result of a future that has nothing to wait for.
fn futures_now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("a map answers at once"),
    }
}

/// Takes one call at a time, and does not notice when a caller goes away.
#[derive(Debug, Default)]
struct OneAtATime {
    inner: ReferenceStore,
    busy: AtomicBool,
}

impl Store for OneAtATime {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        while self.busy.swap(true, Ordering::SeqCst) {
            yield_now().await;
        }
        yield_now().await;
        let answer = self.inner.apply(batch).await;
        self.busy.store(false, Ordering::SeqCst);
        answer
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.inner.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

#[test]
fn a_store_that_a_dropped_call_leaves_locked_is_caught() {
    let waiting = Fresh::new("one at a time", || async { Ok(OneAtATime::default()) });
    let options = crate::options().patience(std::time::Duration::from_secs(2));
    let results = tollgate_conformance::run(waiting, &[Family::Failure], &options);
    let failed = crate::failed(&results);
    assert!(
        failed
            .iter()
            .any(|name| name == "a_store_outlives_many_dropped_calls"),
        "{failed:?}"
    );
}

/// Says that it can do less than it does, or does less than it says.
#[derive(Debug)]
struct Pretending {
    inner: ReferenceStore,
    capabilities: Capabilities,
}

impl Store for Pretending {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.inner.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.inner.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

#[test]
fn a_store_that_does_what_it_says_it_cannot_is_caught() {
    let pretending = Fresh::new("pretending", || async {
        Ok(Pretending {
            inner: ReferenceStore::default(),
            capabilities: Capabilities::LEAST,
        })
    });
    let cases = [
        "a_named_instant_is_refused_where_it_cannot_be_judged_at",
        "keys_that_cannot_be_judged_as_one_are_refused",
    ];
    caught(pretending, Family::Failure, &cases);
}
