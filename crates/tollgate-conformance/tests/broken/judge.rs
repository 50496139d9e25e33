//! A store whose judgement is a function, so that a fault is written down in a few lines.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tollgate_conformance::{BoxError, Harness, Offer, Offered};
use tollgate_core::{
    Batch, Capabilities, Clock, Key, Result, State, Store, SystemClock, Timestamp, Verdicts,
};

/// What a [`Judged`] store keeps.
#[derive(Debug, Default)]
pub(crate) struct States(pub(crate) HashMap<Vec<u8>, State>);

impl States {
    /// The states of the keys of `batch`.
    pub(crate) fn of(&self, batch: &Batch<'_>) -> Vec<Option<State>> {
        let keys = batch.checks().iter().map(|check| check.key.encode());
        keys.map(|key| self.0.get(&key).cloned()).collect()
    }

    /// Keeps `states` for the keys of `batch`.
    pub(crate) fn keep(&mut self, batch: &Batch<'_>, states: Vec<Option<State>>) {
        for (check, state) in batch.checks().iter().zip(states) {
            match state {
                Some(state) => self.0.insert(check.key.encode(), state),
                None => self.0.remove(&check.key.encode()),
            };
        }
    }
}

/// Judges a batch on what a store keeps.
pub(crate) type Judge = fn(&mut States, &Batch<'_>, Timestamp) -> Verdicts;

/// How it should be done.
pub(crate) fn sound(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let mut judged = states.of(batch);
    let verdicts = batch.step(&mut judged, now);
    states.keep(batch, judged);
    verdicts
}

/// A store over a [`Judge`].
#[derive(Debug)]
pub(crate) struct Judged<C = SystemClock> {
    judge: Judge,
    clock: C,
    states: Mutex<States>,
}

impl<C: Clock> Judged<C> {
    fn judge(&self, batch: &Batch<'_>) -> Verdicts {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let now = batch.instant().unwrap_or_else(|| self.clock.now());
        (self.judge)(&mut states, batch, now)
    }
}

impl<C: Clock> Store for Judged<C> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        Ok(self.judge(&batch))
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let found = keys.iter().map(|key| states.0.remove(&key.encode()));
        Ok(found.map(|state| u64::from(state.is_some())).sum())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

/// A harness for [`Judged`] stores, each fresh.
pub(crate) struct Judging<C = SystemClock> {
    judge: Judge,
    clock: fn() -> C,
}

impl Judging {
    pub(crate) fn by(judge: Judge) -> Self {
        Self {
            judge,
            clock: || SystemClock,
        }
    }

    pub(crate) fn on<C: Clock>(clock: fn() -> C) -> Judging<C> {
        Judging {
            judge: sound,
            clock,
        }
    }
}

impl<C: Clock> Harness for Judging<C> {
    type Store = Judged<C>;

    fn name(&self) -> &str {
        "judged"
    }

    async fn store(&self) -> std::result::Result<Judged<C>, BoxError> {
        Ok(Judged {
            judge: self.judge,
            clock: (self.clock)(),
            states: Mutex::default(),
        })
    }

    async fn backend_time(&self, _: &Judged<C>) -> Offered<Timestamp> {
        Ok(Offer::Given(SystemClock.now()))
    }
}
