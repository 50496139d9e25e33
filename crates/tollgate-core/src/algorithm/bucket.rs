//! The bucket: one machine behind `TokenBucket`, `LeakyBucket` and `Gcra`.
//!
//! With `g = gcd(L, P)` a unit of cost weighs `u = P / g`, and `d = L / g` drains in every tick of time. All of it is
//! whole, so a full bucket is full to the last unit at any odd rate. A tick is one microsecond, or the smallest of
//! 10 us, 100 us, ... 1 s that divides the period and keeps `B * u` within 2^52 (stores count in doubles).

use crate::algorithm::{MAX_STORED, Op, Settlement, Verdict};
use crate::time::Timestamp;

/// The state of a bucket key: how full it was, when, and in which weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BucketState {
    /// When `level` was true.
    pub updated: Timestamp,
    /// How full the bucket was, in weights; at most 2^53 - 1.
    pub level: u64,
    /// What one unit of cost weighed then. A policy that weighs otherwise converts, rounding up.
    pub unit: u64,
}

/// A bucket's numbers, worked out once per policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BucketRule {
    capacity: u64,
    unit: u64,
    drain: u64,
    tick: u64,
    full: u64,
}

const MAX_FULL: u128 = 1 << 52;
const TICKS: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

impl BucketRule {
    /// The numbers for `limit` per `period` microseconds with room for `capacity`; `None` if no tick keeps them exact.
    pub(crate) const fn new(limit: u64, period: u64, capacity: u64) -> Option<Self> {
        let mut i = 0;
        while i < TICKS.len() {
            let tick = TICKS[i];
            i += 1;
            if !period.is_multiple_of(tick) {
                continue;
            }
            let ticks = period / tick;
            let divisor = gcd(limit, ticks);
            let unit = ticks / divisor;
            let full = capacity as u128 * unit as u128;
            if full <= MAX_FULL {
                return Some(Self {
                    capacity,
                    unit,
                    drain: limit / divisor,
                    tick,
                    full: capacity * unit,
                });
            }
        }
        None
    }

    /// The most one hit can take: `B`.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What one unit of cost weighs: `u`.
    #[must_use]
    pub const fn unit(&self) -> u64 {
        self.unit
    }

    /// What drains in one tick: `d`.
    #[must_use]
    pub const fn drain(&self) -> u64 {
        self.drain
    }

    /// Microseconds in one tick.
    #[must_use]
    pub const fn tick(&self) -> u64 {
        self.tick
    }

    /// The weight of a full bucket, `B * u`, at most 2^52.
    #[must_use]
    pub const fn full(&self) -> u64 {
        self.full
    }

    /// Judges `op` on `state` at `now`: what to keep (`None` leaves the state as it is), and the verdict.
    #[must_use]
    // Inlined into a store's own hit, the state stays in registers: a third of a hit in memory.
    #[inline(always)]
    pub fn step(
        &self,
        state: Option<BucketState>,
        now: Timestamp,
        op: Op,
    ) -> (Option<BucketState>, Verdict) {
        let level = match &state {
            Some(state) => self.level_at(state, now),
            None => 0,
        };
        match op {
            Op::Hit(cost) => {
                if self.admits(level, cost.get()) {
                    let charged = self.at_level(level + cost.get() * self.unit, now);
                    return (Some(charged), Verdict::bucket(true, charged.level));
                }
                let rewound = state
                    .filter(|state| now < state.updated)
                    .map(|_| self.at_level(level, now));
                (rewound, Verdict::bucket(false, level))
            }
            Op::Peek(cost) => (None, Verdict::bucket(self.admits(level, cost.get()), level)),
            Op::Settle(settlement) => {
                let settled = self.settled(level, now, &settlement);
                let kept = (settled != level).then(|| self.at_level(settled, now));
                (kept, Verdict::bucket(true, settled))
            }
        }
    }

    #[inline]
    const fn ticks_at(&self, time: Timestamp) -> u64 {
        // Nearly every rule ticks in microseconds, and a division costs more than the rest of a hit.
        if self.tick == 1 {
            time.as_micros()
        } else {
            time.as_micros() / self.tick
        }
    }

    #[inline]
    const fn drained(&self, from: Timestamp, to: Timestamp) -> u64 {
        self.ticks_at(to)
            .saturating_sub(self.ticks_at(from))
            .saturating_mul(self.drain)
    }

    /// The level at `now`: converted to this rule's weights, then drained. Time that runs backwards drains nothing.
    #[inline]
    pub(crate) fn level_at(&self, state: &BucketState, now: Timestamp) -> u64 {
        let level = if state.unit == self.unit {
            state.level
        } else {
            self.convert(state)
        };
        level.saturating_sub(self.drained(state.updated, now))
    }

    #[cold]
    fn convert(&self, state: &BucketState) -> u64 {
        state
            .level
            .div_ceil(state.unit.max(1))
            .saturating_mul(self.unit)
            .min(MAX_STORED)
    }

    #[inline]
    const fn admits(&self, level: u64, cost: u64) -> bool {
        cost <= self.capacity && level <= self.full - cost * self.unit
    }

    #[inline]
    pub(crate) const fn at_level(&self, level: u64, now: Timestamp) -> BucketState {
        BucketState {
            updated: now,
            level,
            unit: self.unit,
        }
    }

    /// The level once a hit's real cost is known.
    ///
    /// What was charged too much is given back as far as the hit's own units have not drained yet, first in first out;
    /// they end at the level the hit left behind. What was used on top is charged even past the limit.
    #[cold]
    fn settled(&self, level: u64, now: Timestamp, settlement: &Settlement) -> u64 {
        let charged = settlement.charged.get();
        if settlement.actual > charged {
            let extra = (settlement.actual - charged).saturating_mul(self.unit);
            return level.saturating_add(extra).min(MAX_STORED);
        }
        let undrained = settlement
            .mark
            .saturating_sub(self.drained(settlement.charged_at, now));
        let unused = (charged - settlement.actual).saturating_mul(self.unit);
        level.saturating_sub(unused.min(undrained))
    }

    /// Microseconds from `at` until a hit of `cost` fits; `None` if it never will.
    pub(crate) fn retry_after(&self, verdict: &Verdict, at: Timestamp, cost: u64) -> Option<u64> {
        if cost > self.capacity {
            return None;
        }
        self.until_level(verdict.level(), self.full - cost * self.unit, at)
    }

    /// Microseconds from `at` until the bucket is empty, which is as good as never seen.
    pub(crate) fn reset_after(&self, level: u64, at: Timestamp) -> u64 {
        self.until_level(level, 0, at).unwrap_or(0)
    }

    /// Microseconds until what stood before the hit has left the queue: the delay of a leaky bucket.
    pub(crate) fn delay(&self, verdict: &Verdict, at: Timestamp, charged: u64) -> u64 {
        self.reset_after(
            verdict
                .level()
                .saturating_sub(charged.saturating_mul(self.unit)),
            at,
        )
    }

    /// Microseconds from `at` until the level is down to `target`; `u64::MAX` if it takes longer than that, which is
    /// half a million years. `None` if it never gets there.
    fn until_level(&self, level: u64, target: u64, at: Timestamp) -> Option<u64> {
        if level <= target {
            return Some(0);
        }
        if self.drain == 0 {
            return None;
        }
        let ticks = (level - target).div_ceil(self.drain);
        let instant = u128::from(self.ticks_at(at) + ticks) * u128::from(self.tick);
        Some(u64::try_from(instant - u128::from(at.as_micros())).unwrap_or(u64::MAX))
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
