//! A whole store from two functions: load, and compare-and-swap.

use std::future::Future;
use std::time::Duration;

use crate::algorithm::State;
use crate::batch::{Batch, Verdicts};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::store::{Capabilities, Store};
use crate::time::Timestamp;

/// What a backend must be able to do so that [`CasStore`] makes a store of it.
///
/// Values are opaque bytes and are compared whole; there is no version to keep.
pub trait CasBackend: std::fmt::Debug + Send + Sync + 'static {
    /// Reads the backend's clock and the values of `keys`, in their order.
    ///
    /// # Errors
    /// The backend's own trouble.
    fn load<'a>(&'a self, keys: &'a [Key<'a>]) -> impl Future<Output = Result<Loaded>> + Send + 'a;

    /// Carries out all of `writes` if every key still holds what its write expects, otherwise none of them.
    ///
    /// Returns whether it did. One atomic step, whatever else goes on.
    ///
    /// # Errors
    /// The backend's own trouble.
    fn swap<'a>(
        &'a self,
        writes: &'a [CasWrite<'a>],
    ) -> impl Future<Output = Result<bool>> + Send + 'a;

    /// Whether [`swap`](Self::swap) is atomic over any keys, or only over those of one subject.
    fn atomic_any_keys(&self) -> bool;
}

/// What a [`CasBackend`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The backend's clock.
    pub now: Timestamp,
    /// The values of the keys asked for, in their order.
    pub values: Vec<Option<Vec<u8>>>,
}

/// One key's part of a swap.
#[derive(Clone, Debug)]
pub struct CasWrite<'a> {
    /// The key.
    pub key: Key<'a>,
    /// What it must still hold; `None` for nothing.
    pub expected: Option<Vec<u8>>,
    /// What it is to hold; `None` deletes it.
    pub value: Option<Vec<u8>>,
    /// After this long the key may be dropped, and not before.
    pub expires_after: Duration,
}

/// A [`Store`] over a [`CasBackend`]: core's own algorithms in a loop of load and swap.
///
/// Exact like every store, at the price of two trips a hit, and of a repeated pair whenever somebody else wrote the key
/// in between. After [`MAX_ATTEMPTS`](Self::MAX_ATTEMPTS) of them a call ends with
/// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict), having charged nothing. A store for hot keys judges natively.
#[derive(Clone, Debug)]
pub struct CasStore<B>(B);

impl<B: CasBackend> CasStore<B> {
    /// How often one call loads and swaps before it gives up.
    pub const MAX_ATTEMPTS: u32 = 256;

    /// Keeps a state that is judged at an instant the caller names at least this long, since the backend's clock
    /// knows nothing of that instant.
    const VIRTUAL_TIME_FLOOR: Duration = Duration::from_secs(60);

    /// A store over `backend`.
    pub const fn new(backend: B) -> Self {
        Self(backend)
    }

    /// The backend.
    pub const fn backend(&self) -> &B {
        &self.0
    }

    async fn attempt(&self, batch: &Batch<'_>, keys: &[Key<'_>]) -> Result<Option<Verdicts>> {
        let loaded = self.load(keys).await?;
        let now = batch.instant().unwrap_or(loaded.now);
        let before = loaded
            .values
            .iter()
            .map(|value| value.as_deref().map(State::decode).transpose())
            .collect::<Result<Vec<_>>>()?;
        let mut after = before.clone();
        let verdicts = batch.step(&mut after, now);

        let mut writes = Vec::new();
        let states = before.iter().zip(&after).zip(loaded.values);
        for (check, ((before, after), expected)) in batch.checks().iter().zip(states) {
            if before == after {
                continue;
            }
            let lives = after
                .as_ref()
                .map_or(0, |state| check.policy.rule().reset_after(state, now));
            let floor = batch
                .instant()
                .map_or(Duration::ZERO, |_| Self::VIRTUAL_TIME_FLOOR);
            writes.push(CasWrite {
                key: check.key,
                expected,
                value: after.as_ref().map(State::encode),
                expires_after: Duration::from_micros(lives).max(floor),
            });
        }
        let done = writes.is_empty() || self.0.swap(&writes).await?;
        Ok(done.then_some(verdicts))
    }

    async fn load(&self, keys: &[Key<'_>]) -> Result<Loaded> {
        let loaded = self.0.load(keys).await?;
        if loaded.values.len() != keys.len() {
            return Err(Error::new(
                ErrorKind::Other,
                format!(
                    "the backend was asked for {} keys and answered {}",
                    keys.len(),
                    loaded.values.len()
                ),
            ));
        }
        Ok(loaded)
    }

    fn conflict() -> Error {
        Error::new(
            ErrorKind::Conflict,
            format!(
                "others wrote the same keys {} times in a row; nothing was charged",
                Self::MAX_ATTEMPTS
            ),
        )
    }
}

impl<B: CasBackend> Store for CasStore<B> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let keys: Vec<Key<'a>> = batch.checks().iter().map(|check| check.key).collect();
        for _ in 0..Self::MAX_ATTEMPTS {
            if let Some(verdicts) = self.attempt(&batch, &keys).await? {
                return Ok(verdicts);
            }
        }
        Err(Self::conflict())
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut existed = 0;
        for key in keys {
            existed += u64::from(self.reset_one(*key).await?);
        }
        Ok(existed)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL.with_atomic_any_keys(self.0.atomic_any_keys())
    }
}

impl<B: CasBackend> CasStore<B> {
    async fn reset_one(&self, key: Key<'_>) -> Result<bool> {
        for _ in 0..Self::MAX_ATTEMPTS {
            let loaded = self.load(&[key]).await?;
            let Some(expected) = loaded.values.into_iter().next().flatten() else {
                return Ok(false);
            };
            let write = CasWrite {
                key,
                expected: Some(expected),
                value: None,
                expires_after: Duration::ZERO,
            };
            if self.0.swap(&[write]).await? {
                return Ok(true);
            }
        }
        Err(Self::conflict())
    }
}
