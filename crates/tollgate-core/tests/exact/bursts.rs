//! A burst of `B` admits exactly `B`, and the refill loses nothing, at any odd rate.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Algorithm, Quota, Rule, Timestamp};

use crate::draw::{cases, of_any_size, open_quotas, policy};
use crate::subject::{Subject, at};

const BUCKETS: [Algorithm; 3] = [
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
    Algorithm::Gcra,
];
const START: u64 = 1_700_000_000_123_457;

fn quota(text: &str) -> Quota {
    text.parse().expect("legal")
}

/// Hits at one instant with costs of `step` until nothing fits, then with a cost of one.
fn admitted_at_once(subject: &mut Subject, now: Timestamp, step: u64) -> u64 {
    let mut admitted = 0;
    for units in [step, 1] {
        while subject.hit(now, units).allowed {
            admitted += units;
        }
    }
    admitted
}

#[test]
fn a_burst_admits_exactly_its_size_at_odd_rates() {
    let bursts = [
        ("7/second", 1),
        ("999983/day", 1),
        ("300000000/second", 999_983),
        ("1/400 days", 1),
        ("1/365 days burst 1000", 1),
        ("999999999989/400 days burst 1000", 7),
        ("1000000000000/400 days", 999_999_937),
        ("1000000000000/ms", 999_999_937),
        ("3/1001 ms burst 17", 1),
        ("11/7 ms", 1),
    ];
    for (text, step) in bursts {
        for algorithm in BUCKETS {
            let mut subject = Subject::new(&policy(algorithm, quota(text)));
            let admitted = admitted_at_once(&mut subject, at(START), step);
            assert_eq!(admitted, quota(text).capacity(), "{text} as {algorithm}");
        }
    }
}

/// A refill that drops its remainder loses hits when it is asked often.
#[test]
fn a_poll_at_any_interval_loses_nothing_of_the_refill() {
    for interval in [10, 59, 61, 119, 1_000] {
        let mut subject = Subject::new(&policy(Algorithm::TokenBucket, quota("1/600 ms")));
        let mut admitted = 0;
        let mut now = START;
        while now < START + 6_000_000 {
            admitted += u64::from(subject.hit(at(now), 1).allowed);
            now += interval;
        }
        // One at once, and one more after each full period but the last, which ends with the test.
        assert_eq!(admitted, 10, "polled every {interval} us");
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_burst_admits_exactly_its_size_at_every_legal_rate(
        quota in open_quotas(),
        algorithm in proptest::sample::select(BUCKETS.to_vec()),
        start in crate::script::starts(),
        share in 1..=40_u64,
    ) {
        let mut subject = Subject::new(&policy(algorithm, quota));
        // No more than forty large hits and as many single ones.
        let step = quota.capacity().div_ceil(share);
        let mut admitted = 0;
        while admitted < quota.capacity() {
            let units = step.min(quota.capacity() - admitted);
            prop_assert!(subject.hit(start, units).allowed);
            admitted += units;
        }
        prop_assert!(!subject.hit(start, 1).allowed);
    }

    /// Whoever takes all there is whenever he looks gets the burst and every unit of the refill, to the tick.
    #[test]
    fn a_greedy_client_gets_the_burst_and_every_whole_unit_that_drained(
        quota in open_quotas(),
        start in 1_000_000_000_000_000..=4_000_000_000_000_000_u64,
        waits in proptest::collection::vec(of_any_size(13), 1..40),
    ) {
        let policy = policy(Algorithm::TokenBucket, quota);
        let Rule::Bucket(rule) = policy.rule() else {
            panic!("a bucket");
        };
        let (tick, limit, period) = (rule.tick(), u128::from(quota.limit()), u128::from(quota.period_micros()));
        let mut subject = Subject::new(&policy);
        prop_assert!(subject.hit(at(start), quota.capacity()).allowed);
        let mut taken = 0;
        let mut now = start;
        for wait in waits {
            now = (now + wait).min(Timestamp::MAX.as_micros());
            let drained = u128::from((now / tick - start / tick) * tick) * limit;
            if drained > (taken + u128::from(quota.capacity())) * period {
                // The bucket has run empty, and what drained after that is nobody's.
                break;
            }
            let due = u64::try_from(drained / period - taken).expect("no more than fits");
            if due > 0 {
                prop_assert!(subject.hit(at(now), due).allowed);
            }
            prop_assert!(!subject.hit(at(now), 1).allowed);
            taken += u128::from(due);
        }
    }
}

#[test]
fn a_day_of_999983_hits_is_served_in_full_and_not_one_more() {
    // The bucket starts full, so a day admits the burst and one day's refill.
    let day = Duration::from_secs(86_400);
    let mut subject = Subject::new(&policy(Algorithm::Gcra, quota("999983/day")));
    let mut admitted = 0;
    for minute in 0..=1_440 {
        let now = at(START) + Duration::from_secs(60 * minute);
        admitted += admitted_at_once(&mut subject, now, 101);
    }
    assert_eq!(admitted, 2 * 999_983);
    assert!(!subject.hit(at(START) + day, 1).allowed);
}
