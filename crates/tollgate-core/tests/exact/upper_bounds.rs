//! No algorithm ever admits more than it says, however the hits are timed.

use proptest::prelude::*;
use tollgate_core::{Algorithm, Policy, Rule, Timestamp};

use crate::draw::{cases, open_quotas, policy};
use crate::play::Player;
use crate::script::{Action, Move, Step, Units, forwards, scripts, units};
use crate::subject::{Subject, at};

/// When something was admitted, and how much, in microseconds and units.
type Admitted = Vec<(u128, u128)>;

fn admitted(policy: &Policy, start: Timestamp, steps: Vec<Step>) -> Admitted {
    let mut player = Player::new(policy, start);
    let mut admitted = Vec::new();
    for step in steps {
        let before = player.remaining();
        let capacity = policy.rule().capacity();
        let answer = player.play(step).expect("only hits are played");
        let Action::Hit(units) = step.action else {
            panic!("only hits are played");
        };
        if answer.allowed {
            let at = player.now.as_micros();
            admitted.push((at.into(), units.count(capacity, before).into()));
        }
    }
    admitted
}

fn hits() -> impl Strategy<Value = (Timestamp, Vec<Step>)> {
    // Mostly as much as still fits, so that the bounds are reached.
    let greedy =
        prop_oneof![2 => units(), 3 => Just(Units::Remaining(0)), 1 => Just(Units::Capacity(0))];
    scripts(forwards(), greedy.prop_map(Action::Hit), 60)
}

/// The most that was admitted in any half-open window of `period`.
fn most_in_a_window(admitted: &Admitted, period: u128) -> u128 {
    let in_window_before = |end: u128| {
        let inside = admitted
            .iter()
            .filter(|(at, _)| *at <= end && end - *at < period);
        inside.map(|(_, units)| units).sum()
    };
    admitted
        .iter()
        .map(|(at, _)| in_window_before(*at))
        .max()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_sliding_log_admits_at_most_the_limit_in_every_window_of_one_period(
        quota in open_quotas(),
        (start, steps) in hits(),
    ) {
        let admitted = admitted(&policy(Algorithm::SlidingLog, quota), start, steps);
        let most = most_in_a_window(&admitted, quota.period_micros().into());
        prop_assert!(most <= quota.limit().into(), "{most} of {}", quota.limit());
    }

    #[test]
    fn a_fixed_window_admits_at_most_the_limit_per_window_and_twice_that_in_any_period(
        quota in open_quotas(),
        (start, steps) in hits(),
    ) {
        let admitted = admitted(&policy(Algorithm::FixedWindow, quota), start, steps);
        let (limit, period) = (u128::from(quota.limit()), u128::from(quota.period_micros()));
        prop_assert!(most_in_a_window(&admitted, period) <= 2 * limit);
        let mut rest = &admitted[..];
        while let [(opened, _), ..] = rest {
            let (window, later) = rest.split_at(rest.partition_point(|(at, _)| at - opened < period));
            prop_assert!(window.iter().map(|(_, units)| units).sum::<u128>() <= limit);
            rest = later;
        }
    }

    #[test]
    fn an_aligned_fixed_window_admits_at_most_the_limit_between_two_boundaries(
        quota in open_quotas(),
        offset in -1_080..=1_080_i32,
        (start, steps) in hits(),
    ) {
        let policy = policy(Algorithm::FixedWindow, quota).aligned(offset).expect("legal");
        let Rule::FixedWindow(rule) = policy.rule() else {
            panic!("a fixed window");
        };
        let phase = u128::from(rule.phase().expect("aligned"));
        let period = u128::from(quota.period_micros());
        let mut windows = std::collections::BTreeMap::<u128, u128>::new();
        for (at, units) in admitted(&policy, start, steps) {
            *windows.entry((at + period - phase) / period).or_default() += units;
        }
        prop_assert!(windows.values().all(|units| *units <= quota.limit().into()));
    }

    #[test]
    fn a_sliding_window_admits_less_than_twice_the_limit_in_any_period(
        quota in open_quotas(),
        (start, steps) in hits(),
    ) {
        let admitted = admitted(&policy(Algorithm::SlidingWindow, quota), start, steps);
        let most = most_in_a_window(&admitted, quota.period_micros().into());
        prop_assert!(most < 2 * u128::from(quota.limit()), "{most}");
    }

    /// At most the burst and what drains in between, over every stretch of time that begins and ends with a hit.
    #[test]
    fn a_bucket_admits_at_most_the_burst_and_the_refill_over_any_time(
        quota in open_quotas(),
        (start, steps) in hits(),
    ) {
        let policy = policy(Algorithm::TokenBucket, quota);
        let Rule::Bucket(rule) = policy.rule() else {
            panic!("a bucket");
        };
        let tick = u128::from(rule.tick());
        let admitted = admitted(&policy, start, steps);
        for (index, (first, _)) in admitted.iter().enumerate() {
            let mut sum = 0;
            for (last, units) in &admitted[index..] {
                sum += units;
                let drained = (last / tick - first / tick) * tick * u128::from(quota.limit());
                let most = u128::from(quota.capacity()) * u128::from(quota.period_micros()) + drained;
                prop_assert!(sum * u128::from(quota.period_micros()) <= most);
            }
        }
    }
}

/// One at 0 s and nine at 9.999999 s fill a window of 10 s; as they fade, ten more fit into the next one.
#[test]
fn a_sliding_window_lets_one_less_than_twice_the_limit_through_in_the_worst_period() {
    let ten = "10/10 seconds".parse().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::SlidingWindow, ten));
    let start = 1_000_000_000_000_000;
    let mut admitted: Admitted = Vec::new();
    let mut hit = |micros: u64, times: usize| {
        for _ in 0..times {
            if subject.hit(at(start + micros), 1).allowed {
                admitted.push((micros.into(), 1));
            }
        }
    };
    hit(0, 1);
    hit(9_999_999, 9);
    for tenth in 100..200 {
        hit(tenth * 100_000, 10);
    }
    hit(19_999_998, 10);
    assert_eq!(most_in_a_window(&admitted, 10_000_000), 19);
}

#[test]
fn a_fixed_window_lets_twice_the_limit_through_around_a_boundary() {
    let minute = "60/minute".parse().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::FixedWindow, minute));
    let start = 1_000_000_000_000_000;
    assert!(subject.hit(at(start), 1).allowed);
    assert!(subject.hit(at(start + 59_000_000), 59).allowed);
    assert!(subject.hit(at(start + 60_000_000), 60).allowed);
    assert!(!subject.hit(at(start + 60_000_000), 1).allowed);
}

/// The script's own promise, on which the bounds above rest: time only goes forwards.
#[test]
fn a_retry_move_never_goes_back() {
    let policy = policy(Algorithm::Gcra, "1/s".parse().expect("legal"));
    let now = at(5);
    assert_eq!(Move::Retry(-1).from(now, &policy, None), now);
}
