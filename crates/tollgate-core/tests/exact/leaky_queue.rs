//! Hits that wait for their delay leave a leaky bucket one after the other, at the steady rate.

use proptest::prelude::*;
use tollgate_core::{Algorithm, Rule, Timestamp};

use crate::draw::{cases, open_quotas, policy};
use crate::model::{Exact, exact};
use crate::script::{forwards, timed_units};
use crate::subject::{Subject, at};

/// A hit in the queue: when it came, when its first unit leaves and when its last has, in exact time.
struct Queued {
    units: u64,
    leaves: Exact,
    gone: Exact,
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn delayed_hits_leave_first_in_first_out_at_the_steady_rate(
        quota in open_quotas(),
        (start, steps) in timed_units(forwards(), 40),
    ) {
        let policy = policy(Algorithm::LeakyBucket, quota);
        let Rule::Bucket(rule) = policy.rule() else {
            panic!("a bucket");
        };
        let tick = rule.tick();
        let interval = exact(quota.period_micros()) / exact(quota.limit());
        let mut subject = Subject::new(&policy);
        let mut queue: Vec<Queued> = Vec::new();
        let (mut now, mut last) = (start, None);
        for (moves, units) in steps {
            now = moves.from(now, &policy, last.as_ref());
            let remaining = last.map_or(quota.capacity(), |answer: crate::subject::Answer| answer.remaining);
            let units = units.count(quota.capacity(), remaining);
            let answer = subject.hit(now, units);
            last = Some(answer);
            if !answer.allowed || answer.delay == u64::MAX {
                continue;
            }

            // The bucket sees whole ticks, and tells the first one at which the hit has nothing in front of it.
            let seen = exact(now.as_micros() / tick * tick);
            let leaves = queue.last().map_or(seen.clone(), |before| before.gone.clone().max(seen.clone()));
            let told = exact(now.as_micros()) + exact(answer.delay);
            let first_tick = (&leaves / exact(tick)).ceil() * exact(tick);
            prop_assert_eq!(told, first_tick.max(exact(now.as_micros())));

            let gone = &leaves + &interval * exact(units);
            queue.push(Queued { units, leaves, gone });

            // What has not left yet never exceeds the queue's places.
            let waiting = queue.iter().map(|hit| {
                let part = (&hit.gone - hit.leaves.clone().max(seen.clone())) / &interval;
                part.max(exact(0)).min(exact(hit.units))
            });
            prop_assert!(waiting.sum::<Exact>() <= exact(quota.capacity()));
        }
        for pair in queue.windows(2) {
            prop_assert!(&pair[1].leaves - &pair[0].leaves >= &interval * exact(pair[0].units));
        }
    }
}

/// Ten a minute leave every six seconds, to the microsecond.
#[test]
fn a_burst_into_a_queue_of_ten_leaves_every_six_seconds() {
    let ten = "10/minute".parse().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::LeakyBucket, ten));
    let now = at(1_000_000_000_000_000);
    let delays: Vec<u64> = (0..10).map(|_| subject.hit(now, 1).delay).collect();
    let expected: Vec<u64> = (0..10).map(|place| place * 6_000_000).collect();
    assert_eq!(delays, expected);
    assert!(!subject.hit(now, 1).allowed);
    assert_eq!(subject.hit(now, 1).delay, 0);
}

/// Seven a second cannot leave at whole microseconds; each leaves at the first one after its turn, so none drifts.
#[test]
fn delays_at_seven_a_second_are_rounded_up_and_do_not_drift() {
    let seven = "7/second".parse().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::LeakyBucket, seven));
    let now: Timestamp = at(1_000_000_000_000_000);
    let delays: Vec<u64> = (0..7).map(|_| subject.hit(now, 1).delay).collect();
    assert_eq!(
        delays,
        [0, 142_858, 285_715, 428_572, 571_429, 714_286, 857_143]
    );
}
