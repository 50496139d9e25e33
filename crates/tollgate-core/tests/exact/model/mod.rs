//! The six algorithms once more, slowly: in exact rational numbers, from the definitions alone.
//!
//! Nothing here is clever. There are no weights and no common divisors: usage is a fraction of a unit, a log is a list,
//! and whoever wants to know when something fits tries an instant. What core answers in integers must be the same.

mod bucket;
mod fixed_window;
mod sliding_log;
mod sliding_window;

use num_bigint::BigInt;
use num_rational::Ratio;
use tollgate_core::{Algorithm, Policy};

pub(crate) use bucket::Bucket;
use fixed_window::FixedWindow;
use sliding_log::SlidingLog;
use sliding_window::SlidingWindow;

/// An exact number.
pub(crate) type Exact = Ratio<BigInt>;
/// Microseconds since the epoch. Wide, because a debt may be paid long after the last instant of any clock.
pub(crate) type Micros = u128;

/// The largest number a state holds; a debt beyond it is forgiven.
const MAX_STORED: u64 = (1 << 53) - 1;

pub(crate) fn exact(number: impl Into<BigInt>) -> Exact {
    Exact::from_integer(number.into())
}

/// A charge that is corrected once its real cost is known.
#[derive(Clone, Debug)]
pub(crate) struct Correction {
    pub(crate) charged_at: Micros,
    pub(crate) charged: u64,
    /// What the key had used right after the charge.
    pub(crate) used_after: Exact,
    pub(crate) actual: u64,
}

/// One key.
pub(crate) trait Model {
    /// The most that fits at once.
    fn capacity(&self) -> u64;
    /// What counts against the capacity at `now`, if nothing else happens until then.
    fn used(&self, now: Micros) -> Exact;
    /// Whether nobody could tell the key from one never seen, if nothing else happens until `now`.
    fn is_fresh(&self, now: Micros) -> bool;
    /// Whether the stored time lies after `now`.
    fn is_ahead_of(&self, now: Micros) -> bool;
    /// Moves the stored time back to `now`.
    fn rewind(&mut self, now: Micros);
    /// Charges `units` at `now`.
    fn charge(&mut self, now: Micros, units: u64);
    /// Whether so much is owed that no more can be stored.
    fn is_beyond_debt(&self, now: Micros) -> bool;
    /// Gives back up to `units` of an earlier charge, where they still count.
    fn give_back(&mut self, now: Micros, units: u64, correction: &Correction);

    /// Corrects an earlier charge. What changes nothing writes nothing.
    fn settle(&mut self, now: Micros, correction: &Correction) {
        let (actual, charged) = (correction.actual, correction.charged);
        if actual < charged {
            self.give_back(now, charged - actual, correction);
        } else if actual > charged && !self.is_beyond_debt(now) {
            self.charge(now, actual - charged);
        }
    }

    fn fits(&self, now: Micros, units: u64) -> bool {
        self.used(now) + exact(units) <= exact(self.capacity())
    }

    /// Charges `units` if they fit; otherwise at most moves the stored time back.
    fn hit(&mut self, now: Micros, units: u64) -> bool {
        let fits = self.fits(now, units);
        if self.is_ahead_of(now) {
            self.rewind(now);
        }
        if fits {
            self.charge(now, units);
        }
        fits
    }

    /// Whole units left.
    fn remaining(&self, now: Micros) -> BigInt {
        let left = exact(self.capacity()) - self.used(now);
        left.max(exact(0)).floor().to_integer()
    }
}

pub(crate) fn model(policy: &Policy) -> Box<dyn Model> {
    let (limit, period) = (policy.quota().limit(), policy.quota().period_micros());
    match policy.algorithm() {
        Algorithm::FixedWindow => {
            Box::new(FixedWindow::new(limit, period, policy.utc_offset_minutes()))
        }
        Algorithm::SlidingWindow => Box::new(SlidingWindow::new(limit, period)),
        Algorithm::SlidingLog => Box::new(SlidingLog::new(limit, period)),
        Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra => {
            Box::new(Bucket::new(limit, period, policy.quota().capacity()))
        }
    }
}
