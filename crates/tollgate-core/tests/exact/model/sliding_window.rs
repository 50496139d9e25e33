//! Windows end to end, of which the last but one fades.

use super::{Correction, Exact, MAX_STORED, Micros, Model, exact};

#[derive(Clone, Debug)]
pub(crate) struct SlidingWindow {
    limit: u64,
    period: Micros,
    start: Micros,
    /// Units in the window that begins at `start`.
    count: u64,
    /// Units in the one before.
    previous: u64,
}

impl SlidingWindow {
    pub(crate) fn new(limit: u64, period: u64) -> Self {
        Self {
            limit,
            period: period.into(),
            start: 0,
            count: 0,
            previous: 0,
        }
    }

    /// The same windows as they lie around `now`, one period after the other.
    fn around(&self, now: Micros) -> Self {
        let mut windows = self.clone();
        windows.start = windows.start.min(now);
        if now >= windows.start + 3 * windows.period {
            windows.previous = 0;
            windows.count = 0;
            windows.start = now;
        }
        while now >= windows.start + windows.period {
            windows.start += windows.period;
            windows.previous = windows.count;
            windows.count = 0;
        }
        windows
    }

    /// Opens the window around `now`; where nothing counts any more, it begins now.
    fn open(&mut self, now: Micros) {
        let fresh = self.is_fresh(now);
        *self = self.around(now);
        if fresh {
            self.start = now;
            self.previous = 0;
        }
    }
}

impl Model for SlidingWindow {
    fn capacity(&self) -> u64 {
        self.limit
    }

    fn used(&self, now: Micros) -> Exact {
        let windows = self.around(now);
        let gone = now - windows.start;
        let fading = exact(windows.previous) * exact(self.period - gone) / exact(self.period);
        fading.floor() + exact(windows.count)
    }

    fn is_fresh(&self, now: Micros) -> bool {
        self.used(now) == exact(0)
    }

    fn is_ahead_of(&self, now: Micros) -> bool {
        self.start > now
    }

    fn rewind(&mut self, now: Micros) {
        self.start = self.start.min(now);
    }

    fn charge(&mut self, now: Micros, units: u64) {
        self.open(now);
        self.count = self.count.saturating_add(units).min(MAX_STORED);
    }

    fn is_beyond_debt(&self, now: Micros) -> bool {
        self.around(now).count == MAX_STORED
    }

    fn give_back(&mut self, now: Micros, units: u64, correction: &Correction) {
        let mut opened = self.clone();
        opened.open(now);
        let left = opened.count.saturating_sub(units);
        if correction.charged_at >= opened.start && left != opened.count {
            *self = Self {
                count: left,
                ..opened
            };
        }
    }
}
