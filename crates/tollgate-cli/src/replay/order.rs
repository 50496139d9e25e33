//! Puts hits into the order of their times, as far as a bounded window allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use tollgate_core::{Cost, Timestamp};

use super::subjects::SubjectId;

/// Most hits held back at a time, about 32 bytes each. Beyond it the earliest leaves before its window is over.
pub(crate) const MAX_HELD_HITS: usize = 500_000;

/// One request of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) time: Timestamp,
    pub(crate) subject: SubjectId,
    pub(crate) cost: Cost,
}

/// Hits that came too late to be put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) hits: u64,
    /// How far the latest of them lay behind the newest time of the log.
    pub(crate) longest: Duration,
}

/// Holds hits back until nothing within the window can come before them.
///
/// Hits leave in the order of their times, those of equal time in the order they came. A hit from before what has
/// already left takes the time of the last that left, so time never runs backwards.
#[derive(Debug)]
pub(crate) struct Reorder {
    window: Duration,
    capacity: usize,
    held: BinaryHeap<Reverse<Held>>,
    arrived: u64,
    newest: Timestamp,
    /// Time of the last hit that left.
    clock: Timestamp,
    late: Late,
}

/// Sorted by time, then arrival; the rest is no longer looked at, for no two arrivals are equal.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    time: Timestamp,
    arrival: u64,
    subject: SubjectId,
    cost: Cost,
}

impl Reorder {
    pub(crate) fn new(window: Duration, capacity: usize) -> Self {
        Self {
            window,
            capacity,
            held: BinaryHeap::new(),
            arrived: 0,
            newest: Timestamp::EPOCH,
            clock: Timestamp::EPOCH,
            late: Late::default(),
        }
    }

    pub(crate) fn push(&mut self, hit: Hit) {
        if hit.time < self.clock {
            self.late.hits += 1;
            self.late.longest = self
                .late
                .longest
                .max(self.newest.saturating_since(hit.time));
        }
        self.newest = self.newest.max(hit.time);
        let time = hit.time.max(self.clock);
        self.held.push(Reverse(Held {
            time,
            arrival: self.arrived,
            subject: hit.subject,
            cost: hit.cost,
        }));
        self.arrived += 1;
    }

    /// The next hit that nothing within the window can precede any more.
    pub(crate) fn pop_ready(&mut self) -> Option<Hit> {
        let Reverse(earliest) = self.held.peek()?;
        let is_due = self.newest.saturating_since(earliest.time) >= self.window;
        if is_due || self.held.len() > self.capacity {
            self.pop()
        } else {
            None
        }
    }

    /// The earliest hit held, due or not: for the end of the traffic.
    pub(crate) fn pop(&mut self) -> Option<Hit> {
        let Reverse(held) = self.held.pop()?;
        self.clock = held.time;
        Some(Hit {
            time: held.time,
            subject: held.subject,
            cost: held.cost,
        })
    }

    pub(crate) fn late(&self) -> Late {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::subjects::Subjects;
    use super::*;

    fn play(window_seconds: u64, capacity: usize, seconds: &[u64]) -> (Vec<(u64, u64)>, Late) {
        let subject = Subjects::default().id_of("client").unwrap();
        let mut reorder = Reorder::new(Duration::from_secs(window_seconds), capacity);
        let mut left = Vec::new();
        for (index, second) in (0..).zip(seconds) {
            let time = Timestamp::from_micros(second * 1_000_000).unwrap();
            // The cost tells which hit it was, counted from 1.
            reorder.push(Hit {
                time,
                subject,
                cost: Cost::new(index + 1).unwrap(),
            });
            left.extend(std::iter::from_fn(|| reorder.pop_ready()));
        }
        left.extend(std::iter::from_fn(|| reorder.pop()));
        (
            left.iter()
                .map(|hit| (hit.time.as_micros() / 1_000_000, hit.cost.get() - 1))
                .collect(),
            reorder.late(),
        )
    }

    #[test]
    fn hits_within_the_window_are_put_in_order_and_equal_times_stay_in_file_order() {
        let (left, late) = play(60, 100, &[100, 40, 100, 70, 40]);
        assert_eq!(left, [(40, 1), (40, 4), (70, 3), (100, 0), (100, 2)]);
        assert_eq!(late, Late::default());
    }

    #[test]
    fn a_hit_later_than_the_window_is_counted_and_played_at_the_current_time() {
        let (left, late) = play(60, 100, &[10, 100, 161, 50, 170]);
        assert_eq!(left, [(10, 0), (100, 1), (100, 3), (161, 2), (170, 4)]);
        assert_eq!(
            late,
            Late {
                hits: 1,
                longest: Duration::from_secs(111)
            }
        );
    }

    #[test]
    fn without_a_window_everything_leaves_at_once() {
        let (left, late) = play(0, 100, &[10, 9, 11]);
        assert_eq!(left, [(10, 0), (10, 1), (11, 2)]);
        assert_eq!(late.hits, 1);
    }

    #[test]
    fn a_full_window_lets_the_earliest_go_early() {
        let (left, late) = play(60, 2, &[3, 4, 2, 1]);
        assert_eq!(left, [(2, 2), (2, 3), (3, 0), (4, 1)]);
        assert_eq!(
            late,
            Late {
                hits: 1,
                longest: Duration::from_secs(3)
            }
        );
    }

    #[test]
    fn one_time_far_in_the_future_does_not_stop_the_others() {
        let (left, late) = play(60, 100, &[1, 1_000_000, 2, 3]);
        assert_eq!(left, [(1, 0), (2, 2), (3, 3), (1_000_000, 1)]);
        assert_eq!(late.hits, 0);
    }

    proptest! {
        #[test]
        fn every_hit_leaves_once_and_time_never_runs_backwards(
            seconds in proptest::collection::vec(0..300_u64, 0..200),
            window in 0..120_u64,
            capacity in 1..50_usize,
        ) {
            let (left, _) = play(window, capacity, &seconds);
            prop_assert!(left.is_sorted_by_key(|(second, _)| *second));
            let mut indices: Vec<u64> = left.iter().map(|(_, index)| *index).collect();
            indices.sort_unstable();
            prop_assert!(indices.into_iter().eq(0..u64::try_from(seconds.len()).unwrap()));
        }

        #[test]
        fn disorder_within_the_window_is_sorted_stably(
            steps in proptest::collection::vec((0..30_u64, 0..60_u64), 0..200),
        ) {
            let mut newest = 60;
            let seconds: Vec<u64> = steps.iter().map(|(step, lag)| { newest += step; newest - lag }).collect();
            let (left, late) = play(60, 1000, &seconds);
            let mut expected: Vec<(u64, u64)> = seconds.iter().copied().zip(0..).collect();
            expected.sort_by_key(|(second, _)| *second);
            prop_assert_eq!(left, expected);
            prop_assert_eq!(late.hits, 0);
        }
    }
}
