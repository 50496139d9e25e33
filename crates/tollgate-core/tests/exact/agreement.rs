//! Token bucket, leaky bucket and GCRA are one machine, and it is the one that ITU-T I.371 describes.

use num_bigint::BigInt;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Policy, Quota, Rule, Timestamp};

use crate::draw::{cases, open_quotas, policy};
use crate::model::{Exact, exact};
use crate::play::Player;
use crate::script::{actions, anywhere, forwards, scripts, timed_units};
use crate::subject::{Answer, Subject};

/// The generic cell rate algorithm by its theoretical arrival time, in exact microseconds.
///
/// A unit arrives every `P / L`; a hit may come `B` of them early.
struct ByArrivalTime {
    interval: Exact,
    tolerance: Exact,
    tick: u64,
    arrival: Exact,
}

impl ByArrivalTime {
    fn new(quota: Quota, tick: u64) -> Self {
        let interval = exact(quota.period_micros()) / exact(quota.limit());
        Self {
            tolerance: &interval * exact(quota.capacity()),
            interval,
            tick,
            arrival: exact(0),
        }
    }

    fn hit(&mut self, now: Timestamp, units: u64) -> Answer {
        let (now, tick) = (now.as_micros(), exact(self.tick));
        let seen = exact(now / self.tick) * &tick;
        let cost = &self.interval * exact(units);
        let earliest = self.arrival.clone().max(seen.clone());
        let next = &earliest + &cost;
        let allowed = &next - &seen <= self.tolerance;
        if allowed {
            self.arrival = next.clone();
        }
        // The first tick at or after an exact instant, told from the clock's own reading.
        let wait_until = |instant: Exact| {
            let ticks = (instant / &tick).ceil() * &tick;
            to_u64(&(ticks - exact(now)).max(exact(0)).to_integer())
        };
        let retry_after = match allowed {
            true => Some(0),
            false if cost > self.tolerance => None,
            false => Some(wait_until(&next - &self.tolerance)),
        };
        let ahead = (&self.arrival - &seen).max(exact(0));
        let left = (&self.tolerance - &ahead) / &self.interval;
        Answer {
            allowed,
            remaining: to_u64(&left.floor().to_integer()),
            retry_after,
            reset_after: if ahead == exact(0) {
                0
            } else {
                wait_until(self.arrival.clone())
            },
            delay: 0,
        }
    }
}

fn to_u64(number: &BigInt) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn tick(policy: &Policy) -> u64 {
    match policy.rule() {
        Rule::Bucket(rule) => rule.tick(),
        other => panic!("a bucket, not {other:?}"),
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn gcra_answers_what_arithmetic_on_arrival_times_answers(
        quota in open_quotas(),
        (start, steps) in timed_units(forwards(), 40),
    ) {
        let policy = policy(Algorithm::Gcra, quota);
        let mut core = Subject::new(&policy);
        let mut other = ByArrivalTime::new(quota, tick(&policy));
        let (mut now, mut last) = (start, None);
        for (moves, units) in steps {
            now = moves.from(now, &policy, last.as_ref());
            let remaining = last.map_or(quota.capacity(), |answer| answer.remaining);
            let units = units.count(quota.capacity(), remaining);
            let answer = core.hit(now, units);
            prop_assert_eq!(answer, other.hit(now, units));
            last = Some(answer);
        }
    }

    #[test]
    fn the_three_buckets_agree_hit_for_hit_and_only_the_leaky_one_delays(
        quota in open_quotas(),
        (start, steps) in scripts(anywhere(), actions(), 40),
    ) {
        let mut token_bucket = Player::new(&policy(Algorithm::TokenBucket, quota), start);
        let mut leaky_bucket = Player::new(&policy(Algorithm::LeakyBucket, quota), start);
        let mut gcra = Player::new(&policy(Algorithm::Gcra, quota), start);
        for step in steps {
            let answer = token_bucket.play(step);
            prop_assert_eq!(answer, gcra.play(step));
            prop_assert!(answer.is_none_or(|answer| answer.delay == 0));
            let leaky = leaky_bucket.play(step);
            prop_assert_eq!(answer, leaky.map(|leaky| Answer { delay: 0, ..leaky }));
            prop_assert_eq!(&token_bucket.subject.state, &leaky_bucket.subject.state);
        }
    }
}
