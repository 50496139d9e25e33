//! A store so plain that it can be seen to be right.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_core::{
    Batch, Capabilities, Clock, InProcessStore, Key, Result, State, Store, SystemClock, Verdicts,
};

/// A store so plain that it can be seen to be right: a map under one lock, and [`Batch::step`].
///
/// What the kit holds other stores against. It is not for production: it never forgets a key, and every call takes the
/// same lock.
///
/// ```
/// use std::time::Duration;
/// use tollgate_conformance::ReferenceStore;
/// use tollgate_core::{Limiter, ManualClock, Quota};
///
/// let clock = ManualClock::default();
/// let limiter = Limiter::new(ReferenceStore::new(clock.clone()), Quota::per_minute(1));
/// assert!(limiter.hit_now("alice")?.is_allowed());
/// assert!(!limiter.hit_now("alice")?.is_allowed());
/// clock.advance(Duration::from_secs(60));
/// assert!(limiter.hit_now("alice")?.is_allowed());
/// # Ok::<(), tollgate_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ReferenceStore<C = SystemClock> {
    clock: C,
    states: Mutex<HashMap<Vec<u8>, State>>,
}

impl<C: Clock> ReferenceStore<C> {
    /// An empty store that judges by `clock`.
    #[must_use]
    pub fn new(clock: C) -> Self {
        Self {
            clock,
            states: Mutex::default(),
        }
    }

    /// What is held under `key`.
    #[must_use]
    pub fn state(&self, key: &Key<'_>) -> Option<State> {
        self.lock().get(&key.encode()).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, keys: &[Key<'_>]) -> u64 {
        let mut states = self.lock();
        keys.iter()
            .map(|key| u64::from(states.remove(&key.encode()).is_some()))
            .sum()
    }
}

impl Default for ReferenceStore {
    /// An empty store that judges by the operating system's clock.
    fn default() -> Self {
        Self::new(SystemClock)
    }
}

impl<C: Clock> InProcessStore for ReferenceStore<C> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let mut states = self.lock();
        let now = batch.instant().unwrap_or_else(|| self.clock.now());
        let keys: Vec<Vec<u8>> = batch
            .checks()
            .iter()
            .map(|check| check.key.encode())
            .collect();
        let mut judged: Vec<Option<State>> = keys.iter().map(|key| states.remove(key)).collect();
        let verdicts = batch.step(&mut judged, now);
        for (key, state) in keys.into_iter().zip(judged) {
            if let Some(state) = state {
                states.insert(key, state);
            }
        }
        Ok(verdicts)
    }
}

impl<C: Clock> Store for ReferenceStore<C> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        Ok(self.forget(keys))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        Some(self.judge(batch))
    }
}
