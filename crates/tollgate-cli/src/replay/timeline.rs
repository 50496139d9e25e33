//! Admitted and denied hits over time, in a bounded number of bins.

use tollgate_core::Timestamp;

const MAX_BINS: usize = 300;
const MILLISECOND: u64 = 1000;
const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

/// Widths people count in. Each divides the next, so that whole bins can be joined; beyond a day they double.
const WIDTHS: [u64; 16] = [
    MILLISECOND,
    5 * MILLISECOND,
    10 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    5 * SECOND,
    15 * SECOND,
    60 * SECOND,
    5 * 60 * SECOND,
    15 * 60 * SECOND,
    3600 * SECOND,
    3 * 3600 * SECOND,
    6 * 3600 * SECOND,
    DAY,
];

/// Hits within one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
}

/// Counts per bin for several runs over the same hits.
///
/// Bins start narrow and are joined whenever the time they span needs more than [`MAX_BINS`] of them. They lie at
/// multiples of their width since 1970, so that a bin of an hour is an hour of the clock (UTC).
#[derive(Debug)]
pub(crate) struct Timeline {
    width: u64,
    /// Number of the first bin, counted from 1970.
    first: u64,
    runs: Vec<Vec<Bin>>,
}

impl Timeline {
    /// No bin is narrower than `finest_micros`, the distance at which times can be told apart.
    pub(crate) fn new(runs: usize, finest_micros: u64) -> Self {
        let width = WIDTHS
            .into_iter()
            .find(|width| *width >= finest_micros)
            .unwrap_or(DAY);
        Self {
            width,
            first: 0,
            runs: vec![Vec::new(); runs],
        }
    }

    /// Makes room for the hits at `time`, which is never before an earlier call's.
    pub(crate) fn advance(&mut self, time: Timestamp) {
        let micros = time.as_micros();
        if self.runs.iter().all(Vec::is_empty) {
            self.first = micros / self.width;
        }
        while (micros / self.width).saturating_sub(self.first) >= max_bins() {
            self.widen();
        }
        let last =
            usize::try_from((micros / self.width).saturating_sub(self.first)).unwrap_or(MAX_BINS);
        for bins in &mut self.runs {
            if bins.len() <= last {
                bins.resize(last + 1, Bin::default());
            }
        }
    }

    /// Counts one hit of a run at the time last advanced to.
    pub(crate) fn count(&mut self, run: usize, is_admitted: bool) {
        let Some(bin) = self.runs[run].last_mut() else {
            return;
        };
        if is_admitted {
            bin.admitted += 1;
        } else {
            bin.denied += 1;
        }
    }

    fn widen(&mut self) {
        let width = WIDTHS
            .into_iter()
            .find(|width| *width > self.width)
            .unwrap_or(self.width.saturating_mul(2));
        let factor = width / self.width;
        let first = self.first / factor;
        for bins in &mut self.runs {
            let mut joined: Vec<Bin> = Vec::new();
            for (number, bin) in (self.first..).zip(bins.iter()) {
                let index = usize::try_from(number / factor - first).unwrap_or(MAX_BINS);
                joined.resize(index + 1, Bin::default());
                joined[index].admitted += bin.admitted;
                joined[index].denied += bin.denied;
            }
            *bins = joined;
        }
        self.width = width;
        self.first = first;
    }

    /// Microseconds that a bin spans.
    pub(crate) fn width_micros(&self) -> u64 {
        self.width
    }

    /// Microseconds since 1970 at which the first bin starts.
    pub(crate) fn start_micros(&self) -> u64 {
        self.first * self.width
    }

    pub(crate) fn bins(&self, run: usize) -> &[Bin] {
        &self.runs[run]
    }
}

fn max_bins() -> u64 {
    u64::try_from(MAX_BINS).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn timeline_of(micros: &[u64], finest: u64) -> Timeline {
        let mut timeline = Timeline::new(1, finest);
        for micros in micros {
            timeline.advance(Timestamp::from_micros(*micros).unwrap());
            timeline.count(0, true);
        }
        timeline
    }

    #[test]
    fn every_width_divides_the_next() {
        for pair in WIDTHS.windows(2) {
            assert_eq!(pair[1] % pair[0], 0, "{pair:?}");
        }
    }

    #[test]
    fn bins_widen_as_the_time_grows() {
        let cases = [
            (SECOND, MILLISECOND, 5 * MILLISECOND),
            (SECOND, SECOND, SECOND),
            (61 * SECOND, MILLISECOND, 500 * MILLISECOND),
            (4 * DAY, SECOND, 3600 * SECOND),
            (365 * DAY, SECOND, 2 * DAY),
        ];
        for (span, finest, width) in cases {
            assert_eq!(
                timeline_of(&[0, span], finest).width_micros(),
                width,
                "{span}"
            );
        }
    }

    #[test]
    fn bins_of_an_hour_are_hours_of_the_clock() {
        let start = 1_431_857_103 * SECOND;
        let timeline = timeline_of(&[start, start + 4 * DAY], SECOND);
        assert_eq!(timeline.start_micros() % (3600 * SECOND), 0);
        assert!(
            (timeline.start_micros()..timeline.start_micros() + timeline.width_micros())
                .contains(&start)
        );
    }

    proptest! {
        #[test]
        fn no_hit_is_lost_and_each_lies_in_its_bin(
            start in 0..4_000_000_000_000_000_u64,
            steps in proptest::collection::vec(0..100_000_000_000_u64, 1..100),
        ) {
            let mut at = start;
            let times: Vec<u64> = steps.iter().map(|step| { at += step; at }).collect();
            let timeline = timeline_of(&times, SECOND);
            prop_assert!(timeline.bins(0).len() <= MAX_BINS);
            for (number, bin) in (0..).zip(timeline.bins(0)) {
                let from = timeline.start_micros() + number * timeline.width_micros();
                let inside = times.iter().filter(|time| (from..from + timeline.width_micros()).contains(*time));
                prop_assert_eq!(bin.admitted, u64::try_from(inside.count()).unwrap());
            }
        }
    }
}
