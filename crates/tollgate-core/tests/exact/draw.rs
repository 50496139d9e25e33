//! Legal quotas and policies of every size, drawn so that large and small numbers are equally likely.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{Algorithm, Policy, Quota};

/// A property's cases; the variable `PROPTEST_CASES` asks for another number.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return ProptestConfig::default();
    }
    ProptestConfig::with_cases(cases)
}

const DAY_MILLIS: u64 = 86_400_000;

/// Numbers up to 10^`digits`, those of every length equally likely.
pub(crate) fn of_any_size(digits: u32) -> impl Strategy<Value = u64> {
    (0..=digits).prop_flat_map(|digits| 1..=10_u64.pow(digits))
}

fn periods() -> impl Strategy<Value = Duration> {
    let whole_units = select(vec![
        1,
        1_000,
        60_000,
        3_600_000,
        DAY_MILLIS,
        7 * DAY_MILLIS,
    ]);
    let counted = whole_units.prop_flat_map(|unit| {
        of_any_size(11).prop_map(move |count| unit * (1 + count % (400 * DAY_MILLIS / unit)))
    });
    let ends = select(vec![1, 400 * DAY_MILLIS]);
    prop_oneof![6 => counted, 1 => ends].prop_map(Duration::from_millis)
}

fn limits() -> impl Strategy<Value = u64> {
    let ends = select(vec![0, 1, Quota::MAX_LIMIT]);
    prop_oneof![3 => 1..=12_u64, 6 => of_any_size(12), 1 => ends]
}

/// Every legal quota may come, and no other.
pub(crate) fn quotas() -> impl Strategy<Value = Quota> {
    let burst = proptest::option::of(prop_oneof![1..=12_u64, of_any_size(12)]);
    (limits(), periods(), burst).prop_filter_map("too fine", |(limit, period, burst)| {
        let quota = Quota::new(limit, period).ok()?;
        match burst {
            Some(burst) if limit > 0 => quota.with_burst(burst).ok(),
            _ => Some(quota),
        }
    })
}

/// Quotas that admit something.
pub(crate) fn open_quotas() -> impl Strategy<Value = Quota> {
    quotas().prop_filter("blocked", |quota| quota.limit() > 0)
}

/// A policy of `algorithm`, which drops the burst where the algorithm has none.
pub(crate) fn policy(algorithm: Algorithm, quota: Quota) -> Policy {
    let quota = match algorithm {
        Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra => quota,
        Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingLog => {
            Quota::new(quota.limit(), quota.period()).expect("legal without its burst")
        }
    };
    Policy::new("drawn", algorithm, quota).expect("a legal policy")
}

fn with_alignment(policy: Policy, utc_offset_minutes: Option<i32>) -> Policy {
    match utc_offset_minutes {
        Some(minutes) if policy.algorithm() == Algorithm::FixedWindow => {
            policy.aligned(minutes).expect("a legal offset")
        }
        _ => policy,
    }
}

/// Policies of all algorithms; some fixed windows follow the calendar.
pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    let offset = proptest::option::of(-1_080..=1_080_i32);
    (select(Algorithm::ALL.to_vec()), quotas(), offset)
        .prop_map(|(algorithm, quota, offset)| with_alignment(policy(algorithm, quota), offset))
}

/// Policies that admit something.
pub(crate) fn open_policies() -> impl Strategy<Value = Policy> {
    policies().prop_filter("blocked", |policy| policy.quota().limit() > 0)
}
