//! Clocks a caller may bring.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::time::Timestamp;

/// A source of instants. It may step in either direction; no algorithm minds.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The instant now.
    fn now(&self) -> Timestamp;
}

/// The operating system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    /// The wall clock; the epoch if the machine believes to be before it.
    #[inline]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::saturating_from_micros(
            u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX),
        )
    }
}

/// A clock that stands still until it is told to move: for tests of code that uses a limiter.
///
/// Clones show the same time.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Clock, ManualClock};
///
/// let clock = ManualClock::default();
/// let seen_elsewhere = clock.clone();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(seen_elsewhere.now(), clock.now());
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(start.as_micros())))
    }

    /// Moves the clock on, to the end of the range at most.
    pub fn advance(&self, by: Duration) {
        let moved = |now| Some((Timestamp::saturating_from_micros(now) + by).as_micros());
        // The closure always returns a value, so the update cannot fail.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// Shows 2001-09-09T01:46:40Z, a round number of seconds (10^9) far from either end of the range.
    fn default() -> Self {
        Self::new(Timestamp::saturating_from_micros(1_000_000_000_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::saturating_from_micros(self.0.load(Ordering::SeqCst))
    }
}
