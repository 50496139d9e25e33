//! Built-in traffic: patterns in which the algorithms differ, sized by the first policy's quota.

use clap::ValueEnum;
use tollgate_core::Timestamp;

use crate::usage::UsageError;

/// Most hits a pattern may have; a larger limit is refused rather than played for hours.
const MAX_HITS: u128 = 10_000_000;
const FLOOD_STRANGERS: u64 = 1000;
const FLOOD_FACTOR: u64 = 50;

/// Names the shape of the built-in traffic. L is the limit and P the period of the first policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// One client: 1 hit at 0, L - 1 hits just before P, L hits just after P (P/60 on either side)
    BoundaryBurst,
    /// Three clients with evenly spaced hits at half, once and twice the limit's rate, for 5 P
    Steady,
    /// Three clients with bursts of L every P, of L every P/2 and of 2 L every 2 P, for 6 P
    Bursty,
    /// A regular client at half the rate for 4 P; from P to 3 P also 1,000 strangers and one client at 25 times the rate
    Flood,
}

impl Pattern {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BoundaryBurst => "boundary-burst",
            Self::Steady => "steady",
            Self::Bursty => "bursty",
            Self::Flood => "flood",
        }
    }

    /// The hits of the pattern in the order of their times, starting at 1970-01-01T00:00:00Z.
    ///
    /// A limit of 0 is played as if it were 1: there has to be some traffic to block.
    ///
    /// # Errors
    ///
    /// The limit asks for more hits than a pattern may have.
    pub(crate) fn schedule(self, limit: u64, period_micros: u64) -> Result<Schedule, UsageError> {
        let trains = self.trains(limit.max(1), period_micros);
        let hits: u128 = trains
            .iter()
            .map(|train| u128::from(train.bursts) * u128::from(train.size))
            .sum();
        if hits > MAX_HITS {
            return Err(UsageError(format!(
                "the pattern {} needs {hits} hits for a limit of {limit}; at most {MAX_HITS} are played",
                self.name()
            )));
        }
        Ok(Schedule {
            next: trains.iter().map(|_| Next::default()).collect(),
            trains,
        })
    }

    fn trains(self, limit: u64, period: u64) -> Vec<Train> {
        match self {
            Self::BoundaryBurst => {
                let margin = period / 60;
                let burst = |start, size| Train {
                    start,
                    size,
                    ..Train::one("client")
                };
                vec![
                    burst(0, 1),
                    burst(period - margin, limit - 1),
                    burst(period + margin, limit),
                ]
            }
            Self::Steady => {
                let evenly = |name, bursts, periods, hits| Train {
                    bursts,
                    every: (periods * period, hits),
                    ..Train::one(name)
                };
                vec![
                    evenly("half-rate", (5 * limit).div_ceil(2), 2, limit),
                    evenly("full-rate", 5 * limit, 1, limit),
                    evenly("double-rate", 10 * limit, 1, 2 * limit),
                ]
            }
            Self::Bursty => {
                let bursts = |name, bursts, size, every| Train {
                    every,
                    bursts,
                    size,
                    ..Train::one(name)
                };
                vec![
                    bursts("limit-each-period", 6, limit, (period, 1)),
                    bursts("limit-each-half-period", 12, limit, (period, 2)),
                    bursts("double-each-second-period", 3, 2 * limit, (2 * period, 1)),
                ]
            }
            Self::Flood => {
                let flooded = |name, hits| Train {
                    start: period,
                    bursts: hits,
                    every: (2 * period, hits),
                    ..Train::one(name)
                };
                vec![
                    Train {
                        bursts: 2 * limit,
                        every: (2 * period, limit),
                        ..Train::one("regular")
                    },
                    flooded("flooder", FLOOD_FACTOR * limit),
                    Train {
                        is_crowd: true,
                        ..flooded("stranger", FLOOD_STRANGERS)
                    },
                ]
            }
        }
    }
}

/// Bursts of one client, or of one client each, at even distances.
#[derive(Debug)]
struct Train {
    name: &'static str,
    /// Every burst is a new client's.
    is_crowd: bool,
    start: u64,
    /// Microseconds between bursts, as a fraction.
    every: (u64, u64),
    bursts: u64,
    /// Hits of one burst.
    size: u64,
}

impl Train {
    fn one(name: &'static str) -> Self {
        Self {
            name,
            is_crowd: false,
            start: 0,
            every: (0, 1),
            bursts: 1,
            size: 1,
        }
    }

    fn time_of(&self, burst: u64) -> u128 {
        let (micros, per) = self.every;
        u128::from(self.start) + u128::from(burst) * u128::from(micros) / u128::from(per)
    }
}

/// One hit of a pattern, cost 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatternHit {
    pub(crate) time: Timestamp,
    pub(crate) subject: String,
}

/// The hits of a pattern, one after the other.
#[derive(Debug)]
pub(crate) struct Schedule {
    trains: Vec<Train>,
    next: Vec<Next>,
}

#[derive(Debug, Default)]
struct Next {
    burst: u64,
    hit: u64,
}

impl Iterator for Schedule {
    type Item = PatternHit;

    fn next(&mut self) -> Option<PatternHit> {
        let (train, next) = self
            .trains
            .iter()
            .zip(&mut self.next)
            .filter(|(train, next)| next.burst < train.bursts && train.size > 0)
            .min_by_key(|(train, next)| train.time_of(next.burst))?;
        let micros = u64::try_from(train.time_of(next.burst)).unwrap_or(u64::MAX);
        let subject = if train.is_crowd {
            format!("{}-{}", train.name, next.burst + 1)
        } else {
            train.name.to_owned()
        };
        next.hit += 1;
        if next.hit == train.size {
            *next = Next {
                burst: next.burst + 1,
                hit: 0,
            };
        }
        Some(PatternHit {
            time: Timestamp::saturating_from_micros(micros),
            subject,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SECOND: u64 = 1_000_000;

    fn hits(pattern: Pattern, limit: u64, period_micros: u64) -> Vec<PatternHit> {
        pattern.schedule(limit, period_micros).unwrap().collect()
    }

    /// Hits by client.
    fn by_subject(hits: &[PatternHit]) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for hit in hits {
            *counts.entry(hit.subject.as_str()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn the_boundary_burst_of_ten_per_minute_is_1_9_10_hits_at_0_59_61_seconds() {
        let mut at = BTreeMap::new();
        for hit in hits(Pattern::BoundaryBurst, 10, 60 * SECOND) {
            *at.entry(hit.time.as_micros() / SECOND).or_insert(0) += 1;
        }
        assert_eq!(at, BTreeMap::from([(0, 1), (59, 9), (61, 10)]));
    }

    #[test]
    fn steady_traffic_is_evenly_spaced_at_three_rates() {
        let hits = hits(Pattern::Steady, 10, 60 * SECOND);
        assert_eq!(
            by_subject(&hits),
            BTreeMap::from([("half-rate", 25), ("full-rate", 50), ("double-rate", 100)])
        );
        let full: Vec<u64> = hits
            .iter()
            .filter(|hit| hit.subject == "full-rate")
            .map(|hit| hit.time.as_micros())
            .collect();
        assert!(full.into_iter().eq((0..50).map(|index| index * 6 * SECOND)));
    }

    #[test]
    fn bursty_and_flood_have_the_clients_they_promise() {
        let bursty = hits(Pattern::Bursty, 10, 60 * SECOND);
        let expected = [
            ("limit-each-period", 60),
            ("limit-each-half-period", 120),
            ("double-each-second-period", 60),
        ];
        assert_eq!(by_subject(&bursty), BTreeMap::from(expected));

        let flood = hits(Pattern::Flood, 10, 60 * SECOND);
        let counts = by_subject(&flood);
        assert_eq!(counts.len(), 1002);
        assert_eq!(
            (
                counts["regular"],
                counts["flooder"],
                counts["stranger-1000"]
            ),
            (20, 500, 1)
        );
    }

    #[test]
    fn times_never_run_backwards_at_odd_limits_and_the_extremes() {
        let patterns = Pattern::value_variants();
        for pattern in patterns {
            for (limit, period) in [
                (0, 1000),
                (1, 1000),
                (7, SECOND),
                (999, 400 * 86_400 * SECOND),
            ] {
                let hits = hits(*pattern, limit, period);
                assert!(!hits.is_empty());
                assert!(
                    hits.is_sorted_by_key(|hit| hit.time),
                    "{pattern:?} {limit}/{period}"
                );
            }
        }
    }

    #[test]
    fn a_limit_that_would_take_hours_is_refused() {
        let error = Pattern::BoundaryBurst
            .schedule(1_000_000_000_000, SECOND)
            .unwrap_err();
        assert!(error.to_string().contains("at most 10000000"), "{error}");
    }
}
