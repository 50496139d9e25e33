//! What comes of a quota.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{Algorithm, ErrorKind, Family, Policy, Quota};
use tollgate_layers::Share;

fn shared(algorithm: Algorithm, quota: &str, share: &str) -> String {
    let policy = Policy::new("p", algorithm, quota.parse().unwrap()).unwrap();
    let shared = share.parse::<Share>().unwrap().policy(&policy);
    shared.quota().to_string()
}

#[test]
fn a_window_keeps_its_period_and_has_the_floor_of_its_share_but_at_least_one_unit() {
    for algorithm in [
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
    ] {
        assert_eq!(shared(algorithm, "100/minute", "1/4"), "25/minute");
        assert_eq!(shared(algorithm, "10/minute", "1/4"), "2/minute");
        assert_eq!(shared(algorithm, "10/minute", "3/4"), "7/minute");
        assert_eq!(shared(algorithm, "3/minute", "1/4"), "1/minute");
        assert_eq!(shared(algorithm, "0/minute", "1/4"), "0/minute");
        assert_eq!(shared(algorithm, "10/minute", "1/1"), "10/minute");
    }
}

#[test]
fn a_bucket_refills_at_exactly_its_share_of_the_rate() {
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::Gcra,
    ] {
        assert_eq!(shared(algorithm, "100/minute", "1/4"), "25/minute");
        assert_eq!(shared(algorithm, "10/minute", "1/4"), "5/2 minutes burst 2");
        assert_eq!(shared(algorithm, "3/minute", "1/4"), "3/4 minutes burst 1");
        assert_eq!(
            shared(algorithm, "20/s burst 100", "1/4"),
            "5/second burst 25"
        );
        assert_eq!(shared(algorithm, "20/s burst 3", "1/4"), "5/second burst 1");
        assert_eq!(shared(algorithm, "0/minute", "1/4"), "0/minute");
        // A quarter of three in 400 days is one in 533, which is no legal period: then it is one in 400.
        assert_eq!(shared(algorithm, "3/400 days", "1/4"), "1/400 days");
    }
}

#[test]
fn an_aligned_window_stays_aligned() {
    let policy = Policy::new("day", Algorithm::FixedWindow, Quota::per_day(8))
        .unwrap()
        .aligned(120)
        .unwrap();
    let shared = Share::of(1, 2).unwrap().policy(&policy);
    let alone = Policy::new("day", Algorithm::FixedWindow, Quota::per_day(4))
        .unwrap()
        .aligned(120)
        .unwrap();
    assert_eq!(shared, alone);
}

#[test]
fn what_is_no_share_is_refused_with_what_would_be() {
    for text in [
        "0/4",
        "5/4",
        "1/0",
        "1",
        "1/4/2",
        "quarter",
        "-1/4",
        "",
        "1/4294967296",
    ] {
        let error = text.parse::<Share>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}");
        assert!(error.to_string().contains("such as 1/4, not"), "{error}");
    }
    assert_eq!(
        " 1 / 4 ".parse::<Share>().unwrap(),
        Share::of(1, 4).unwrap()
    );
}

fn of_any_size(digits: u32) -> impl Strategy<Value = u64> {
    (0..=digits).prop_flat_map(|digits| 1..=10_u64.pow(digits))
}

fn policies() -> impl Strategy<Value = Policy> {
    let algorithm = select(Algorithm::ALL.to_vec());
    let burst = proptest::option::of(of_any_size(12));
    let millis = of_any_size(10).prop_map(|millis| millis.min(400 * 86_400_000));
    (algorithm, of_any_size(12), millis, burst).prop_filter_map(
        "too fine",
        |(algorithm, limit, millis, burst)| {
            let period = Duration::from_millis(millis);
            let quota = match burst.filter(|_| algorithm.family() == Family::Bucket) {
                Some(burst) => Quota::new_with_burst(limit, period, burst).ok()?,
                None => Quota::new(limit, period).ok()?,
            };
            Policy::new("any", algorithm, quota).ok()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn of_any_legal_policy_the_share_is_legal_and_no_more_than_that_or_one_unit(
        policy in policies(),
        (part, whole) in of_any_size(9).prop_flat_map(|whole| (1..=whole, Just(whole))),
    ) {
        let share = Share::of(u32::try_from(part).unwrap(), u32::try_from(whole).unwrap()).unwrap();
        let shared = share.policy(&policy);
        prop_assert_eq!(shared.algorithm(), policy.algorithm());
        let (all, some) = (policy.quota(), shared.quota());
        let portion = |units: u64| u128::from(units) * u128::from(part);
        let whole = u128::from(whole);
        let burst = u128::from(some.capacity());
        prop_assert!(burst * whole <= portion(all.capacity()) || burst == 1);
        // Rates, compared crosswise: some.limit / some.period <= all.limit / all.period * part / whole.
        let rate = u128::from(some.limit()) * u128::from(all.period_micros()) * whole;
        let most = portion(all.limit()) * u128::from(some.period_micros());
        prop_assert!(rate <= most || some.limit() == 1);
        prop_assert!(some.capacity() >= 1 && some.limit() >= 1);
    }
}
