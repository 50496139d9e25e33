//! A plain list of hits, read from end to end every time.

use super::{Correction, Exact, MAX_STORED, Micros, Model, exact};

#[derive(Clone, Debug)]
pub(crate) struct SlidingLog {
    limit: u64,
    period: Micros,
    hits: Vec<(Micros, u64)>,
}

impl SlidingLog {
    pub(crate) fn new(limit: u64, period: u64) -> Self {
        Self {
            limit,
            period: period.into(),
            hits: Vec::new(),
        }
    }

    /// Units of the hits less than a period old; what lies in the future is.
    fn live(&self, now: Micros) -> u64 {
        let live = self.hits.iter().filter(|(at, _)| now < at + self.period);
        live.map(|(_, units)| units).sum()
    }
}

impl Model for SlidingLog {
    fn capacity(&self) -> u64 {
        self.limit
    }

    fn used(&self, now: Micros) -> Exact {
        exact(self.live(now))
    }

    fn is_fresh(&self, now: Micros) -> bool {
        self.live(now) == 0
    }

    fn is_ahead_of(&self, now: Micros) -> bool {
        self.hits.iter().any(|(at, _)| *at > now)
    }

    fn rewind(&mut self, now: Micros) {
        for (at, _) in &mut self.hits {
            *at = now.min(*at);
        }
        // What has expired stays so, even if the clock steps back to when it counted.
        self.hits.retain(|(at, _)| now < at + self.period);
    }

    fn charge(&mut self, now: Micros, units: u64) {
        self.rewind(now);
        let room = MAX_STORED - self.live(now);
        self.hits.push((now, units.min(room)));
    }

    fn is_beyond_debt(&self, now: Micros) -> bool {
        self.used(now) == exact(MAX_STORED)
    }

    fn give_back(&mut self, _now: Micros, units: u64, correction: &Correction) {
        let mut back = units;
        for (at, units) in &mut self.hits {
            if *at == correction.charged_at {
                let part = back.min(*units);
                *units -= part;
                back -= part;
            }
        }
    }
}
