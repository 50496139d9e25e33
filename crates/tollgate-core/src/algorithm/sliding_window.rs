//! Sliding window counter: this window's count, plus the last one's as far as it still overlaps.
//!
//! With `e` microseconds of the window gone, the estimate is `floor(previous * (P - e) / P) + count`.

use crate::algorithm::{Op, Verdict};
use crate::time::Timestamp;

/// The state of a sliding-window key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindowState {
    /// When the current window began. Windows lie end to end from the first hit.
    pub start: Timestamp,
    /// Units charged in the current window; at most 2^53 - 1.
    pub count: u64,
    /// Units charged in the window before; at most 2^53 - 1.
    pub previous: u64,
}

/// A sliding window's numbers, worked out once per policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindowRule {
    limit: u64,
    period: u64,
}

impl SlidingWindowRule {
    pub(crate) const fn new(limit: u64, period: u64) -> Self {
        Self { limit, period }
    }

    /// The most one hit can take: `L`.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Microseconds in a window: `P`.
    #[must_use]
    pub const fn period(&self) -> u64 {
        self.period
    }

    /// Judges `op` on `state` at `now`: what to keep (`None` leaves the state as it is), and the verdict.
    #[must_use]
    pub fn step(
        &self,
        state: Option<SlidingWindowState>,
        now: Timestamp,
        op: Op,
    ) -> (Option<SlidingWindowState>, Verdict) {
        let windows =
            state
                .and_then(|state| self.advance(state, now))
                .unwrap_or(SlidingWindowState {
                    start: now,
                    count: 0,
                    previous: 0,
                });
        match op {
            Op::Hit(cost) if self.admits(&windows, now, cost.get()) => {
                let charged = SlidingWindowState {
                    count: windows.count + cost.get(),
                    ..windows
                };
                (Some(charged), Verdict::sliding_window(true, charged))
            }
            Op::Hit(_) => {
                let rewound = state.filter(|state| now < state.start).map(|_| windows);
                (rewound, Verdict::sliding_window(false, windows))
            }
            Op::Peek(cost) => {
                let allowed = self.admits(&windows, now, cost.get());
                (None, Verdict::sliding_window(allowed, windows))
            }
            Op::Settle(settlement) => {
                let settled = SlidingWindowState {
                    count: settlement.settle_count(windows.count, windows.start),
                    ..windows
                };
                let kept = (settled != windows).then_some(settled);
                (kept, Verdict::sliding_window(true, settled))
            }
        }
    }

    /// What the previous window still weighs when `gone` microseconds of the current one have passed.
    fn weight(&self, previous: u64, gone: u64) -> u64 {
        let left = self.period.saturating_sub(gone);
        let product = u128::from(previous) * u128::from(left);
        // At most `previous`, so it always fits.
        u64::try_from(product / u128::from(self.period)).unwrap_or(previous)
    }

    pub(crate) fn estimate(&self, state: &SlidingWindowState, now: Timestamp) -> u64 {
        let gone = now.as_micros().saturating_sub(state.start.as_micros());
        self.weight(state.previous, gone)
            .saturating_add(state.count)
    }

    /// The windows around `now`; `None` once nothing charged counts any more. A window from the future begins now.
    pub(crate) fn advance(
        &self,
        state: SlidingWindowState,
        now: Timestamp,
    ) -> Option<SlidingWindowState> {
        let rolled = if now < state.start {
            SlidingWindowState {
                start: now,
                ..state
            }
        } else {
            let gone = now.as_micros() - state.start.as_micros();
            if gone < self.period {
                state
            } else if gone - self.period < self.period {
                let start =
                    Timestamp::saturating_from_micros(state.start.as_micros() + self.period);
                SlidingWindowState {
                    start,
                    count: 0,
                    previous: state.count,
                }
            } else {
                return None;
            }
        };
        (self.estimate(&rolled, now) > 0).then_some(rolled)
    }

    fn admits(&self, state: &SlidingWindowState, now: Timestamp, cost: u64) -> bool {
        cost <= self.limit && self.estimate(state, now) <= self.limit - cost
    }

    /// Microseconds from `at` until a hit of `cost` fits; `None` if it never will.
    pub(crate) fn retry_after(&self, verdict: &Verdict, at: Timestamp, cost: u64) -> Option<u64> {
        let room = self.limit.checked_sub(cost)?;
        Some(self.until_estimate(&verdict.windows(), at, room))
    }

    /// Microseconds from `at` until nothing charged counts any more, which is as good as never seen.
    pub(crate) fn reset_after(&self, state: &SlidingWindowState, at: Timestamp) -> u64 {
        self.until_estimate(state, at, 0)
    }

    /// Microseconds from `at` until the estimate is at most `target`, if nobody hits.
    fn until_estimate(&self, state: &SlidingWindowState, at: Timestamp, target: u64) -> u64 {
        if self.estimate(state, at) <= target {
            return 0;
        }
        let start = state.start.as_micros();
        let instant = match target.checked_sub(state.count) {
            Some(room) => start + self.gone_until_weight(state.previous, room),
            // This window alone is too much: wait until it has become the previous one.
            None => start + self.period + self.gone_until_weight(state.count, target),
        };
        instant.saturating_sub(at.as_micros())
    }

    /// How much of a window must be gone until `previous`, which is more than `target`, weighs no more than that.
    ///
    /// `floor(previous * left / P) <= target` holds as long as `left <= ceil((target + 1) * P / previous) - 1`.
    fn gone_until_weight(&self, previous: u64, target: u64) -> u64 {
        let numerator = (u128::from(target) + 1) * u128::from(self.period);
        let left = numerator.div_ceil(u128::from(previous)) - 1;
        // `left < P`, because `target < previous`.
        self.period - u64::try_from(left).unwrap_or(self.period)
    }
}
