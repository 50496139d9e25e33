//! Faults that show only when several callers meet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task::yield_now;
use tollgate_conformance::{Family, Fresh, ReferenceStore};
use tollgate_core::{
    Batch, Capabilities, Clock, InProcessStore, Key, Result, State, Store, SystemClock, Verdicts,
};

use crate::caught;

type Map = Mutex<HashMap<Vec<u8>, State>>;

fn forget(states: &Map, keys: &[Key<'_>]) -> u64 {
    let mut states = states.lock().unwrap();
    keys.iter()
        .map(|key| u64::from(states.remove(&key.encode()).is_some()))
        .sum()
}

/// Reads, thinks, and writes what it thought.
#[derive(Debug, Default)]
struct CheckThenAct(Map);

impl Store for CheckThenAct {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let keys: Vec<Vec<u8>> = batch
            .checks()
            .iter()
            .map(|check| check.key.encode())
            .collect();
        let mut judged: Vec<Option<State>> = {
            let states = self.0.lock().unwrap();
            keys.iter().map(|key| states.get(key).cloned()).collect()
        };
        yield_now().await;
        let now = batch.instant().unwrap_or_else(|| SystemClock.now());
        let verdicts = batch.step(&mut judged, now);
        let mut states = self.0.lock().unwrap();
        for (key, state) in keys.into_iter().zip(judged) {
            if let Some(state) = state {
                states.insert(key, state);
            }
        }
        Ok(verdicts)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        Ok(forget(&self.0, keys))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

#[test]
fn a_store_that_checks_and_then_acts_is_caught() {
    let racy = Fresh::new("check-then-act", || async { Ok(CheckThenAct::default()) });
    let cases = [
        "fixed_window_admits_exactly_its_limit",
        "gcra_admits_exactly_its_limit",
        "sliding_log_charges_costs_exactly",
    ];
    caught(racy, Family::Concurrency, &cases);
}

/// Judges the whole batch, and then charges key after key.
#[derive(Debug, Default)]
struct KeyAfterKey(ReferenceStore);

impl Store for KeyAfterKey {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let mut verdicts = Vec::new();
        let mut at = batch.instant();
        for check in batch.checks() {
            yield_now().await;
            let one = self.0.judge(&Batch::of_one(check).at(at))?;
            at = Some(one.at());
            verdicts.push(one.as_slice()[0]);
        }
        Ok(Verdicts::many(at.unwrap(), verdicts.into()))
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

#[test]
fn a_store_that_shows_batches_half_charged_is_caught() {
    let store = || Fresh::new("key after key", || async { Ok(KeyAfterKey::default()) });
    caught(
        store(),
        Family::Concurrency,
        &["no_batch_is_seen_half_charged"],
    );
    caught(
        store(),
        Family::Failure,
        &["a_dropped_call_is_charged_whole_or_not_at_all"],
    );
}

/// Locks keys in the order of the batch, each while it holds the ones before.
#[derive(Debug, Default)]
struct LocksInBatchOrder {
    states: Map,
    locks: Mutex<HashMap<Vec<u8>, Arc<AsyncMutex<()>>>>,
}

impl LocksInBatchOrder {
    async fn lock(&self, key: Vec<u8>) -> OwnedMutexGuard<()> {
        let lock = Arc::clone(self.locks.lock().unwrap().entry(key).or_default());
        lock.lock_owned().await
    }
}

impl Store for LocksInBatchOrder {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let mut held = Vec::new();
        for check in batch.checks() {
            held.push(self.lock(check.key.encode()).await);
            yield_now().await;
        }
        let mut states = self.states.lock().unwrap();
        let keys: Vec<Vec<u8>> = batch
            .checks()
            .iter()
            .map(|check| check.key.encode())
            .collect();
        let mut judged: Vec<Option<State>> =
            keys.iter().map(|key| states.get(key).cloned()).collect();
        let now = batch.instant().unwrap_or_else(|| SystemClock.now());
        let verdicts = batch.step(&mut judged, now);
        for (key, state) in keys.into_iter().zip(judged) {
            if let Some(state) = state {
                states.insert(key, state);
            }
        }
        Ok(verdicts)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        Ok(forget(&self.states, keys))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

#[test]
fn a_store_whose_batches_wait_for_each_other_is_caught() {
    let locking = Fresh::new("locks in batch order", || async {
        Ok(LocksInBatchOrder::default())
    });
    let options = crate::options().patience(std::time::Duration::from_secs(3));
    let results = tollgate_conformance::run(locking, &[Family::Concurrency], &options);
    let failed = crate::failed(&results);
    let case = "batches_in_opposite_orders_wait_for_nobody_and_charge_exactly";
    assert!(failed.iter().any(|name| name == case), "{failed:?}");
}

/// Answers without a future from what it believes, and forgets to charge.
#[derive(Debug, Default)]
struct HastyShortcut(ReferenceStore);

impl Store for HastyShortcut {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.0.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        let mut judged: Vec<Option<State>> = batch
            .checks()
            .iter()
            .map(|check| self.0.state(&check.key))
            .collect();
        let now = batch.instant().unwrap_or_else(|| SystemClock.now());
        Some(Ok(batch.step(&mut judged, now)))
    }
}

#[test]
fn a_store_whose_shortcut_answers_otherwise_is_caught() {
    let hasty = || Fresh::new("hasty", || async { Ok(HastyShortcut::default()) });
    caught(
        hasty(),
        Family::Differential,
        &["answers_without_a_future_are_the_same"],
    );
    caught(
        hasty(),
        Family::Concurrency,
        &["gcra_admits_exactly_its_limit"],
    );
}

/// Reads the clock, and then waits for its turn.
#[derive(Debug, Default)]
struct ClockBeforeLock(AsyncMutex<ReferenceStore>);

impl Store for ClockBeforeLock {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let now = batch.instant().unwrap_or_else(|| SystemClock.now());
        // The last to come is the first to go.
        if now.as_micros().is_multiple_of(2) {
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        }
        self.0.lock().await.judge(&batch.at(Some(now)))
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.lock().await.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

#[test]
fn a_store_that_reads_the_clock_before_it_waits_is_caught() {
    let waiting = Fresh::new("clock before lock", || async {
        Ok(ClockBeforeLock::default())
    });
    caught(
        waiting,
        Family::Concurrency,
        &["instants_follow_the_order_of_the_charges"],
    );
}
