//! The default clock: the processor's time stamp counter, tied to the wall clock.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Clock, SystemClock, Timestamp};

/// The processor's time stamp counter, read through [quanta], tied to the operating system's wall clock.
///
/// A reading costs a third of one of the operating system's. Once a second, whoever reads the clock compares it with
/// the wall clock and takes that over: so it follows steps of the wall clock, in either direction, within a second, and
/// never drifts by more than the counter does in one second (some microseconds). Where the processor has no counter to
/// rely on, quanta reads the operating system's monotonic clock instead.
///
/// The counter is calibrated when the first clock of a process is made, which takes some milliseconds at most.
///
/// [quanta]: https://docs.rs/quanta
#[derive(Debug)]
pub struct TscClock {
    counter: quanta::Clock,
    origin: u64,
    /// Wall time at the counter's origin, in microseconds since the epoch; wraps where that lies before the epoch.
    wall_at_origin: AtomicU64,
    /// Counter time of the next comparison, in nanoseconds since the origin.
    next_comparison: AtomicU64,
}

const COMPARE_EVERY: u64 = 1_000_000_000;

impl TscClock {
    /// A clock that shows the wall time.
    #[must_use]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Self {
            counter,
            origin,
            wall_at_origin: AtomicU64::new(SystemClock.now().as_micros()),
            next_comparison: AtomicU64::new(COMPARE_EVERY),
        }
    }

    #[inline]
    fn nanos(&self) -> u64 {
        self.counter.delta_as_nanos(self.origin, self.counter.raw())
    }

    #[cold]
    fn compare(&self) {
        let nanos = self.nanos();
        let wall = SystemClock.now().as_micros();
        self.wall_at_origin
            .store(wall.wrapping_sub(nanos / 1_000), Ordering::Relaxed);
        self.next_comparison
            .store(nanos + COMPARE_EVERY, Ordering::Relaxed);
    }
}

impl Default for TscClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TscClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let nanos = self.nanos();
        if nanos >= self.next_comparison.load(Ordering::Relaxed) {
            self.compare();
        }
        let wall_at_origin = self.wall_at_origin.load(Ordering::Relaxed);
        Timestamp::saturating_from_micros(wall_at_origin.wrapping_add(nanos / 1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_the_wall_time() {
        let clock = TscClock::new();
        let before = SystemClock.now().as_micros();
        let shown = clock.now().as_micros();
        // A second of slack: this is about the epoch and the unit, not about the machine's load.
        assert!(shown.abs_diff(before) < 1_000_000);
    }

    #[test]
    fn it_follows_the_wall_clock_after_it_was_wrong() {
        let clock = TscClock::new();
        clock.wall_at_origin.store(5, Ordering::Relaxed);
        assert!(clock.now().as_micros() < 1_000_000_000_000);
        clock.next_comparison.store(0, Ordering::Relaxed);
        assert!(clock.now().as_micros() > 1_000_000_000_000);
    }
}
