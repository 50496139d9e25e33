//! The contract of a store.

use std::fmt;
use std::future::Future;

use crate::algorithm::Verdict;
use crate::batch::{Batch, Check, Verdicts};
use crate::error::Result;
use crate::key::Key;
use crate::time::Timestamp;

/// Keeps the counters and judges batches on them.
///
/// A store MUST:
/// 1. answer exactly as [`Batch::step`] does on the states it keeps, at one reading of its own clock;
/// 2. judge and charge a batch as one: no other call sees it half done, all of its hits are charged or none;
/// 3. write nothing for a peek, and charge nothing for a denied hit;
/// 4. keep a state at least until it is as good as never seen ([`Rule::reset_after`](crate::Rule::reset_after)), and
///    let every key expire some time after. Expiry is garbage collection: no answer depends on when it happens;
/// 5. tell keys apart by all of their parts ([`Key::encode`], or [`Key::digest`] with [`Key::subject`]);
/// 6. report its own trouble as an [`Error`](crate::Error) and stop: what that means for the caller is the limiter's
///    [`FailureMode`](crate::FailureMode), not the store's business. The error says whether a charge may have happened.
///
/// Dropping the future of [`apply`](Self::apply) may leave the batch charged or uncharged, but nothing in between, and
/// touches no other call.
///
/// The kit in `tollgate-conformance` checks all of it. To start with two functions instead, see
/// [`CasStore`](crate::CasStore).
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Judges every check of `batch` at one instant; charges all of its hits or none. One round trip.
    ///
    /// # Errors
    /// The store's own trouble, never a denial.
    fn apply<'a>(&'a self, batch: Batch<'a>) -> impl Future<Output = Result<Verdicts>> + Send + 'a;

    /// Forgets `keys`, as if they had never been seen. Returns how many there were to forget.
    ///
    /// # Errors
    /// The store's own trouble.
    fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> impl Future<Output = Result<u64>> + Send + 'a;

    /// What this store can do beyond the least.
    fn capabilities(&self) -> Capabilities;

    /// Answers without a future where the store lies in this process.
    ///
    /// An optimisation, never other semantics: `Some` is what [`apply`](Self::apply) would have answered.
    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        let _ = batch;
        None
    }
}

/// A store in this process, which answers at once: [`Limiter::hit_now`](crate::Limiter::hit_now) needs one.
pub trait InProcessStore: Store {
    /// What [`Store::apply`] answers, without a future.
    ///
    /// # Errors
    /// As [`Store::apply`].
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts>;

    /// Judges one check by the store's own clock if that needs little: the key is at hand and nothing else is due.
    ///
    /// An optimisation, never other semantics: `Some` is the instant and the verdict that [`judge`](Self::judge) would
    /// have answered to a batch of this check, and `None` means that nothing was done. Where it is inlined, neither a
    /// batch nor a list of verdicts is built for the hit of an ordinary key.
    #[inline]
    fn judge_at_hand(&self, check: &Check<'_>) -> Option<(Timestamp, Verdict)> {
        let _ = check;
        None
    }
}

/// What a store can do beyond the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Capabilities {
    /// It judges at an instant the caller names, not only by its own clock.
    pub virtual_time: bool,
    /// A batch may hold any keys. Without it, only keys of one subject are sure to be judged as one.
    pub atomic_any_keys: bool,
    /// Something stands in for it when it fails: [`FailureMode::Fallback`](crate::FailureMode::Fallback) needs that.
    pub fallback: bool,
}

impl Capabilities {
    /// Everything a store can do by itself: all but [`fallback`](Self::fallback).
    pub const ALL: Self = Self {
        virtual_time: true,
        atomic_any_keys: true,
        fallback: false,
    };

    /// Only what every store can do.
    pub const LEAST: Self = Self {
        virtual_time: false,
        atomic_any_keys: false,
        fallback: false,
    };

    /// The same with or without virtual time.
    #[must_use]
    pub const fn with_virtual_time(self, virtual_time: bool) -> Self {
        Self {
            virtual_time,
            ..self
        }
    }

    /// The same with or without batches over any keys.
    #[must_use]
    pub const fn with_atomic_any_keys(self, atomic_any_keys: bool) -> Self {
        Self {
            atomic_any_keys,
            ..self
        }
    }

    /// The same with or without something that stands in when the store fails.
    #[must_use]
    pub const fn with_fallback(self, fallback: bool) -> Self {
        Self { fallback, ..self }
    }
}
