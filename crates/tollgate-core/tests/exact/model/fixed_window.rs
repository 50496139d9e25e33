//! A list of charges that is torn up when its window is over.

use super::{Correction, Exact, MAX_STORED, Micros, Model, exact};

#[derive(Clone, Debug)]
pub(crate) struct FixedWindow {
    limit: u64,
    period: Micros,
    /// How far the calendar's windows begin after a multiple of the period, in microseconds; `None` for windows that
    /// begin with the first hit.
    phase: Option<Micros>,
    window: Option<(Micros, Vec<u64>)>,
}

impl FixedWindow {
    pub(crate) fn new(limit: u64, period: u64, utc_offset_minutes: Option<i32>) -> Self {
        let period = Micros::from(period);
        Self {
            limit,
            period,
            phase: utc_offset_minutes.map(|minutes| phase(period, minutes)),
            window: None,
        }
    }

    /// When a window that is entered at `now` begins; before the epoch counts as at the epoch.
    fn beginning(&self, now: Micros) -> Micros {
        match self.phase {
            None => now,
            Some(phase) => {
                let windows = (now + self.period - phase) / self.period;
                (windows * self.period + phase).saturating_sub(self.period)
            }
        }
    }

    /// Whether the stored window is the one around `now`.
    fn is_open(&self, now: Micros) -> bool {
        match (&self.window, self.phase) {
            (None, _) => false,
            (Some((start, _)), None) => now < start + self.period,
            (Some((start, _)), Some(_)) => *start >= self.beginning(now),
        }
    }

    /// The window around `now`, opened if there is none.
    fn open(&mut self, now: Micros) -> &mut Vec<u64> {
        if !self.is_open(now) {
            self.window = Some((self.beginning(now), Vec::new()));
        }
        self.rewind(now);
        &mut self.window.as_mut().expect("just opened").1
    }
}

/// Local time is `utc_offset_minutes` ahead, so its midnights come that much earlier. Weeks begin on a Monday.
fn phase(period: Micros, utc_offset_minutes: i32) -> Micros {
    let minute = 60_000_000;
    let week = 7 * 24 * 60 * minute;
    let monday = 4 * 24 * 60 * minute;
    let period = i128::try_from(period).expect("within 400 days");
    let first = if period % week == 0 { monday } else { 0 };
    let local = first - i128::from(utc_offset_minutes) * minute;
    Micros::try_from(local.rem_euclid(period)).expect("not negative")
}

fn sum(charges: &[u64]) -> u64 {
    charges.iter().fold(0, |sum: u64, units| {
        sum.saturating_add(*units).min(MAX_STORED)
    })
}

impl Model for FixedWindow {
    fn capacity(&self) -> u64 {
        self.limit
    }

    fn used(&self, now: Micros) -> Exact {
        match &self.window {
            Some((_, charges)) if self.is_open(now) => exact(sum(charges)),
            _ => exact(0),
        }
    }

    fn is_fresh(&self, now: Micros) -> bool {
        !self.is_open(now)
    }

    fn is_ahead_of(&self, now: Micros) -> bool {
        self.window.as_ref().is_some_and(|(start, _)| *start > now)
    }

    fn rewind(&mut self, now: Micros) {
        let beginning = self.beginning(now);
        if let Some((start, _)) = &mut self.window
            && *start > now
        {
            *start = beginning;
        }
    }

    fn charge(&mut self, now: Micros, units: u64) {
        self.open(now).push(units);
    }

    fn is_beyond_debt(&self, now: Micros) -> bool {
        self.used(now) == exact(MAX_STORED)
    }

    fn give_back(&mut self, now: Micros, units: u64, correction: &Correction) {
        let Some((start, charges)) = self.window.clone() else {
            return;
        };
        // A window from the future is the one around now.
        let begins = if start > now {
            self.beginning(now)
        } else {
            start
        };
        if !self.is_open(now) || correction.charged_at < begins {
            return;
        }
        let left = sum(&charges).saturating_sub(units);
        if left != sum(&charges) {
            *self.open(now) = vec![left];
        }
    }
}
