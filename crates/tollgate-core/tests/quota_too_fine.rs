//! Quotas that are in range and yet refused, because no bucket counts them exactly.
//!
//! 999 999 999 989 is prime, so it shares nothing with any period: one unit weighs as much as the period has ticks.

use std::time::Duration;

use tollgate_core::{Algorithm, ParseQuotaErrorKind as Kind, Policy, Quota, QuotaError, Rule};

const PRIME: u64 = 999_999_999_989;
const DAY: Duration = Duration::from_secs(86_400);

fn too_fine(limit: u64, period: Duration, capacity: u64) -> QuotaError {
    QuotaError::TooFine {
        limit,
        period,
        capacity,
    }
}

/// Unit weight, drain per tick, tick in microseconds and weight of the full bucket.
fn numbers(quota: Quota) -> (u64, u64, u64, u64) {
    let policy = Policy::new("numbers", Algorithm::TokenBucket, quota).expect("legal");
    let Rule::Bucket(rule) = policy.rule() else {
        panic!("a token bucket is a bucket");
    };
    (rule.unit(), rule.drain(), rule.tick(), rule.full())
}

#[test]
fn a_prime_trillion_in_400_days_is_too_fine_for_any_tick() {
    // In ticks of a second a unit weighs 34 560 000, and 10^12 of them 3.5 * 10^19; 2^52 is 4.5 * 10^15.
    let error = Quota::new(PRIME, 400 * DAY).unwrap_err();
    assert_eq!(error, too_fine(PRIME, 400 * DAY, PRIME));
    assert_eq!(
        error.to_string(),
        "999999999989 units at 999999999989 in 34560000s are too fine to be counted exactly; \
         expected a rounder limit, a period in whole seconds, or a smaller burst"
    );
}

#[test]
fn text_points_at_the_number_that_would_have_to_change() {
    let error = " 999999999989/400 days".parse::<Quota>().unwrap_err();
    assert_eq!(error.kind(), Kind::Value(too_fine(PRIME, 400 * DAY, PRIME)));
    assert_eq!((error.column(), error.found()), (2, "999999999989"));

    let error = "1/400 days burst 130312490".parse::<Quota>().unwrap_err();
    assert_eq!(
        error.kind(),
        Kind::Value(too_fine(1, 400 * DAY, 130_312_490))
    );
    assert_eq!((error.column(), error.found()), (18, "130312490"));
}

#[test]
fn a_round_trillion_in_400_days_is_legal() {
    // gcd(10^12, 3.456 * 10^13) = 4 * 10^10.
    let quota = Quota::new(Quota::MAX_LIMIT, 400 * DAY).expect("legal");
    assert_eq!(numbers(quota), (864, 25, 1, 864_000_000_000_000));
    assert_eq!("1000000000000/400 days".parse(), Ok(quota));
}

#[test]
fn a_small_burst_makes_a_fine_limit_legal_in_text_in_code_and_in_a_file() {
    let quota = Quota::new_with_burst(PRIME, 400 * DAY, 1_000).expect("legal");
    assert_eq!(quota.capacity(), 1_000);
    // At a microsecond a tick 1000 units would weigh 3.456 * 10^16, so a tick is 10 us.
    assert_eq!(
        numbers(quota),
        (3_456_000_000_000, PRIME, 10, 3_456_000_000_000_000)
    );
    assert_eq!("999999999989/400 days burst 1000".parse(), Ok(quota));
    #[cfg(feature = "serde")]
    {
        let map = r#"{"limit": 999999999989, "period": "400 days", "burst": 1000}"#;
        assert_eq!(serde_json::from_str::<Quota>(map).unwrap(), quota);
    }
}

#[test]
fn a_burst_is_refused_for_its_own_sake_first() {
    assert_eq!(
        Quota::new_with_burst(PRIME, 400 * DAY, 0),
        Err(QuotaError::BurstZero)
    );
    assert_eq!(
        Quota::new_with_burst(0, DAY, 1),
        Err(QuotaError::BurstWhileBlocked)
    );
    assert_eq!(
        Quota::new_with_burst(Quota::MAX_LIMIT + 1, DAY, 1),
        Err(QuotaError::LimitTooLarge {
            limit: Quota::MAX_LIMIT + 1
        })
    );
    assert_eq!(
        Quota::new_with_burst(1, Duration::ZERO, 1),
        Err(QuotaError::PeriodZero)
    );
    assert_eq!(
        Quota::new_with_burst(PRIME, DAY, PRIME),
        Err(too_fine(PRIME, DAY, PRIME))
    );
}

#[test]
fn a_full_bucket_may_weigh_2_52_and_no_more() {
    // 1024 ms are 2^13 * 125 us: at 125 of them a unit weighs 2^13, and 2^39 units weigh 2^52 to the last one.
    let period = Duration::from_millis(1_024);
    let most = 1 << 39;
    assert_eq!(
        numbers(Quota::new_with_burst(125, period, most).expect("legal")),
        (8_192, 1, 1, 1 << 52)
    );
    // One more, and time is counted in ticks of 10 us.
    assert_eq!(
        numbers(Quota::new_with_burst(125, period, most + 1).expect("legal")),
        (4_096, 5, 10, 4_096 * (most + 1))
    );

    // In 400 days the coarsest tick there is is a second, and beyond it there is none.
    let year = 400 * DAY;
    let (unit, most) = (34_560_000, (1_u64 << 52) / 34_560_000);
    assert_eq!(
        numbers(Quota::new_with_burst(1, year, most).expect("legal")),
        (unit, 1, 1_000_000, unit * most)
    );
    assert_eq!(
        Quota::new_with_burst(1, year, most + 1),
        Err(too_fine(1, year, most + 1))
    );
}

#[test]
fn every_limit_up_to_130_million_over_whole_seconds_is_legal() {
    for limit in [129_999_999, 130_000_000, 129_999_997] {
        for seconds in [1, 7, 86_399, 34_559_999, 34_560_000] {
            assert!(Quota::new(limit, Duration::from_secs(seconds)).is_ok());
        }
    }
}

#[test]
fn the_constructors_that_cannot_fail_make_legal_quotas_only() {
    let (hour, week) = (Duration::from_secs(3_600), 7 * DAY);
    for limit in [0, 1, 999_983, u32::MAX - 4, u32::MAX] {
        let legal = |period| Quota::new(limit.into(), period).expect("legal");
        assert_eq!(Quota::per_second(limit), legal(Duration::from_secs(1)));
        assert_eq!(Quota::per_minute(limit), legal(Duration::from_secs(60)));
        assert_eq!(Quota::per_hour(limit), legal(hour));
        assert_eq!(Quota::per_day(limit), legal(DAY));
        assert_eq!(Quota::per_week(limit), legal(week));
    }
}
