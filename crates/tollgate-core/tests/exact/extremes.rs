//! The ends of every range: nothing overflows, and what is stored stays readable.

use std::time::Duration;

use tollgate_core::{Algorithm, Quota, State, Timestamp};

use crate::draw::policy;
use crate::subject::{Subject, at};

const DAY: Duration = Duration::from_secs(86_400);
const YEARLY: Duration = Duration::from_secs(400 * 86_400);

fn quota(limit: u64, period: Duration, burst: Option<u64>) -> Quota {
    let quota = Quota::new(limit, period).expect("legal");
    burst.map_or(quota, |burst| quota.with_burst(burst).expect("legal"))
}

fn extreme_quotas() -> Vec<Quota> {
    let millisecond = Duration::from_millis(1);
    vec![
        quota(0, millisecond, None),
        quota(0, YEARLY, None),
        quota(1, millisecond, None),
        quota(1, YEARLY, None),
        quota(1, YEARLY, Some(130_000_000)),
        quota(1, millisecond, Some(Quota::MAX_BURST)),
        quota(Quota::MAX_LIMIT, millisecond, None),
        quota(Quota::MAX_LIMIT, millisecond, Some(1)),
        quota(Quota::MAX_LIMIT, YEARLY, None),
        quota(Quota::MAX_LIMIT, YEARLY, Some(1)),
    ]
}

fn is_readable(subject: &Subject) -> bool {
    let Some(state) = &subject.state else {
        return true;
    };
    State::decode(&state.encode()).is_ok_and(|decoded| decoded == *state)
}

#[test]
fn no_quota_time_or_cost_at_the_end_of_its_range_overflows() {
    let instants = [
        Timestamp::EPOCH,
        at(1),
        at(1_700_000_000_000_000),
        at(Timestamp::MAX.as_micros() - 1),
        Timestamp::MAX,
    ];
    let costs = [1, 2, Quota::MAX_LIMIT - 1, Quota::MAX_LIMIT, u64::MAX];
    for quota in extreme_quotas() {
        for algorithm in Algorithm::ALL {
            let mut subject = Subject::new(&policy(algorithm, quota));
            let capacity = subject.policy.rule().capacity();
            for now in instants.into_iter().chain(instants.into_iter().rev()) {
                for units in costs {
                    let answer = subject.hit(now, units);
                    assert!(answer.remaining <= capacity);
                    assert_eq!(answer.retry_after.is_none(), units > capacity);
                    assert!(is_readable(&subject), "{subject:?}");
                }
            }
        }
    }
}

#[test]
fn a_debt_ends_at_the_largest_number_a_store_counts_exactly() {
    for quota in extreme_quotas()
        .into_iter()
        .filter(|quota| quota.limit() > 0)
    {
        for algorithm in Algorithm::ALL {
            let mut subject = Subject::new(&policy(algorithm, quota));
            let now = at(1_700_000_000_000_000);
            for later in 0..3 {
                let now = now + Duration::from_micros(later);
                let Some(charge) = subject.clone().reserve(now, 1) else {
                    assert!(later > 0, "a fresh key admits one unit");
                    continue;
                };
                let answer = subject.settle(now, charge, u64::MAX);
                assert_eq!(answer.remaining, 0);
                assert!(is_readable(&subject), "{subject:?}");
                let answer = subject.settle(now + Duration::from_micros(1), charge, u64::MAX);
                assert_eq!(answer.remaining, 0);
                assert!(is_readable(&subject), "{subject:?}");
            }
        }
    }
}

#[test]
fn a_log_in_full_debt_takes_on_no_more_and_stays_readable() {
    let mut subject = Subject::new(&policy(Algorithm::SlidingLog, quota(10, DAY, None)));
    let now = at(1_700_000_000_000_000);
    let charge = subject.reserve(now, 1).expect("fresh");
    subject.settle(now, charge, u64::MAX);
    let before = subject.state.clone();
    let answer = subject.settle(now + Duration::from_secs(1), charge, u64::MAX);
    assert_eq!(subject.state, before);
    assert_eq!(
        u128::from(answer.reset_after),
        (DAY - Duration::from_secs(1)).as_micros()
    );
    assert!(is_readable(&subject));
}

#[test]
fn logs_are_equal_if_their_hits_are_wherever_their_totals_began() {
    let rule = policy(Algorithm::SlidingLog, quota(10, DAY, None));
    let mut old = Subject::new(&rule);
    old.hit(at(0), 5);
    old.hit(at(0) + DAY, 3);
    let mut new = Subject::new(&rule);
    new.hit(at(0) + DAY, 3);
    assert_eq!(old.state, new.state);
    new.hit(at(0) + DAY, 1);
    assert_ne!(old.state, new.state);
}

/// 130 000 000 units at one per 400 days drain in 52 000 000 000 days: 4.4 * 10^21 microseconds, which no `u64` holds.
#[test]
fn a_wait_of_millions_of_years_is_told_as_the_longest_there_is() {
    let slow = quota(1, YEARLY, Some(130_000_000));
    let mut subject = Subject::new(&policy(Algorithm::LeakyBucket, slow));
    let now = at(1_700_000_000_000_000);
    assert!(subject.hit(now, 129_999_999).allowed);
    let answer = subject.hit(now, 1);
    assert_eq!((answer.delay, answer.reset_after), (u64::MAX, u64::MAX));
    let answer = subject.hit(now, 1);
    assert_eq!(answer.retry_after, Some(400 * 86_400_000_000));
    let answer = subject.hit(now, 130_000_000);
    assert_eq!(answer.retry_after, Some(u64::MAX));
}
