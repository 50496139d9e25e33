//! The clock that the age of a denial is told by.

use std::time::Instant;

use tollgate_core::{Clock, Timestamp};

/// The operating system's monotonic clock, counted from when this value was made.
///
/// It tells how much time has gone by and nothing else: steps of the wall clock do not touch it. On most systems it
/// stands still while the machine sleeps.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(Instant);

impl MonotonicClock {
    /// A clock that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Timestamp {
        let micros = u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX);
        Timestamp::saturating_from_micros(micros)
    }
}
