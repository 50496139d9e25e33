//! Fixed window: a count that starts over with every window.

use crate::algorithm::{Op, Verdict};
use crate::time::Timestamp;

/// The state of a fixed-window key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindowState {
    /// When the window began.
    pub start: Timestamp,
    /// Units charged in it; at most 2^53 - 1.
    pub count: u64,
}

/// A fixed window's numbers, worked out once per policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindowRule {
    limit: u64,
    period: u64,
    /// Microseconds after a multiple of the period at which calendar windows begin; `None` begins at the first hit.
    phase: Option<u64>,
}

impl FixedWindowRule {
    pub(crate) const fn new(limit: u64, period: u64, phase: Option<u64>) -> Self {
        Self {
            limit,
            period,
            phase,
        }
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

    /// Where calendar windows begin, in microseconds after a multiple of the period since the Unix epoch.
    ///
    /// `None` if windows begin at the first admitted hit.
    #[must_use]
    pub const fn phase(&self) -> Option<u64> {
        self.phase
    }

    /// Judges `op` on `state` at `now`: what to keep (`None` leaves the state as it is), and the verdict.
    #[must_use]
    pub fn step(
        &self,
        state: Option<FixedWindowState>,
        now: Timestamp,
        op: Op,
    ) -> (Option<FixedWindowState>, Verdict) {
        let live = state.and_then(|state| self.advance(state, now));
        let window = live.unwrap_or_else(|| FixedWindowState {
            start: self.fresh_start(now),
            count: 0,
        });
        match op {
            Op::Hit(cost) if self.admits(&window, cost.get()) => {
                let charged = FixedWindowState {
                    count: window.count + cost.get(),
                    ..window
                };
                (Some(charged), Verdict::fixed_window(true, Some(charged)))
            }
            Op::Hit(_) => {
                let rewound = state.filter(|state| now < state.start).map(|_| window);
                (rewound, Verdict::fixed_window(false, live))
            }
            Op::Peek(cost) => (
                None,
                Verdict::fixed_window(self.admits(&window, cost.get()), live),
            ),
            Op::Settle(settlement) => {
                let settled = FixedWindowState {
                    count: settlement.settle_count(window.count, window.start),
                    ..window
                };
                let kept = (settled != window).then_some(settled);
                (kept, Verdict::fixed_window(true, kept.or(live)))
            }
        }
    }

    /// Microseconds since the calendar window around `now` began.
    fn since_boundary(&self, now: Timestamp, phase: u64) -> u64 {
        (now.as_micros() + self.period - phase) % self.period
    }

    fn fresh_start(&self, now: Timestamp) -> Timestamp {
        match self.phase {
            None => now,
            Some(phase) => Timestamp::saturating_from_micros(
                now.as_micros()
                    .saturating_sub(self.since_boundary(now, phase)),
            ),
        }
    }

    /// The window around `now`, if the stored one is it. A window from the future begins now.
    pub(crate) fn advance(
        &self,
        state: FixedWindowState,
        now: Timestamp,
    ) -> Option<FixedWindowState> {
        let start = self.fresh_start(now);
        match self.phase {
            Some(_) => (state.start >= start).then_some(FixedWindowState {
                start,
                count: state.count,
            }),
            None if now < state.start => Some(FixedWindowState {
                start,
                count: state.count,
            }),
            None => (now.as_micros() - state.start.as_micros() < self.period).then_some(state),
        }
    }

    const fn admits(&self, state: &FixedWindowState, cost: u64) -> bool {
        state.count <= self.limit && cost <= self.limit - state.count
    }

    /// Microseconds from `at` until a denied hit of `cost` fits; `None` if it never will.
    pub(crate) fn retry_after(&self, verdict: &Verdict, at: Timestamp, cost: u64) -> Option<u64> {
        // What does not fit into this window fits into the next one.
        (cost <= self.limit).then(|| self.reset_after(verdict, at))
    }

    /// Microseconds from `at` until the window is over; zero if there is none.
    pub(crate) fn reset_after(&self, verdict: &Verdict, at: Timestamp) -> u64 {
        verdict
            .window_start()
            .map_or(0, |start| self.window_left(start, at))
    }

    /// Microseconds from `at` until the window that began at `start` is over.
    pub(crate) fn window_left(&self, start: Timestamp, at: Timestamp) -> u64 {
        match self.phase {
            // Counted from `at`: a window around the epoch begins before the first instant there is.
            Some(phase) => self.period - self.since_boundary(at, phase),
            None => (start.as_micros() + self.period).saturating_sub(at.as_micros()),
        }
    }
}
