//! A bucket that holds fractions of a unit and drains `L / P` of one every microsecond.

use num_bigint::BigInt;

use super::{Correction, Exact, MAX_STORED, Micros, Model, exact};

#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    capacity: u64,
    /// Units a microsecond.
    rate: Exact,
    tick: Micros,
    /// The most a debt can come to.
    most: Exact,
    updated: Micros,
    used: Exact,
}

impl Bucket {
    pub(crate) fn new(limit: u64, period: u64, capacity: u64) -> Self {
        let rate = exact(limit) / exact(period);
        let (tick, weight) = (0..=6)
            .map(|zeros| 10_u64.pow(zeros))
            .filter(|tick| period.is_multiple_of(*tick))
            .map(|tick| (tick, weight_of_a_unit(&rate, tick)))
            .find(|(_, weight)| weight * BigInt::from(capacity) <= BigInt::from(1_u64 << 52))
            .expect("a legal quota has a tick");
        Self {
            capacity,
            rate,
            tick: tick.into(),
            most: exact(MAX_STORED) / exact(weight),
            updated: 0,
            used: exact(0),
        }
    }

    fn drained(&self, from: Micros, to: Micros) -> Exact {
        let ticks = (to / self.tick).saturating_sub(from / self.tick);
        exact(ticks * self.tick) * &self.rate
    }
}

/// The smallest weight of a unit with which a whole weight drains in every tick: the denominator of the rate per tick.
fn weight_of_a_unit(rate: &Exact, tick: u64) -> BigInt {
    (rate * exact(tick)).denom().clone()
}

impl Model for Bucket {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn used(&self, now: Micros) -> Exact {
        (&self.used - self.drained(self.updated, now)).max(exact(0))
    }

    fn is_fresh(&self, now: Micros) -> bool {
        // What is blocked for good is as good as never seen.
        self.capacity == 0 || self.used(now) == exact(0)
    }

    fn is_ahead_of(&self, now: Micros) -> bool {
        self.updated > now
    }

    fn rewind(&mut self, now: Micros) {
        self.updated = self.updated.min(now);
    }

    fn charge(&mut self, now: Micros, units: u64) {
        self.used = (self.used(now) + exact(units)).min(self.most.clone());
        self.updated = now;
    }

    fn is_beyond_debt(&self, now: Micros) -> bool {
        self.used(now) == self.most
    }

    fn give_back(&mut self, now: Micros, units: u64, correction: &Correction) {
        let drained = self.drained(correction.charged_at, now);
        let undrained = (&correction.used_after - drained).max(exact(0));
        let back = exact(units).min(undrained);
        let settled = (self.used(now) - back).max(exact(0));
        if settled != self.used(now) {
            self.used = settled;
            self.updated = now;
        }
    }
}
