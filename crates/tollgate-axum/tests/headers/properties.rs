//! What holds of the headers whatever the policies, the costs and the times.

use std::time::Duration;

use futures::executor::block_on;
use http::HeaderMap;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_axum::Headers;
use tollgate_core::{
    Algorithm, Decision, Limiter, ManualClock, Policies, Policy, PolicyDecision, Quota, Timestamp,
};
use tollgate_memory::MemoryStore;

use crate::setup::{Gate, list, number, respond};
use crate::structured::Item;

const MICROS: u128 = 1_000_000;

fn quotas() -> impl Strategy<Value = Quota> {
    let number = || prop_oneof![1..=20_u64, 1..=10_000_u64, 1..=Quota::MAX_LIMIT];
    let limit = prop_oneof![1 => Just(0), 19 => number()];
    let period = prop_oneof![
        1..=2_000_u64,
        (1..=2_000_u64).prop_map(|s| s * 1_000),
        1..=34_560_000_000_u64
    ];
    let burst = proptest::option::of(number());
    (limit, period, burst).prop_filter_map("too fine", |(limit, millis, burst)| {
        let quota = Quota::new(limit, Duration::from_millis(millis)).ok()?;
        match burst {
            Some(burst) if limit > 0 => quota.with_burst(burst).ok(),
            _ => Some(quota),
        }
    })
}

/// A policy of any algorithm under any legal name.
fn policies() -> impl Strategy<Value = Policy> {
    let name = prop_oneof!["[ -~]{1,128}", r#"["\\,;=:() ]{1,12}"#];
    (name, select(Algorithm::ALL.to_vec()), quotas()).prop_map(|(name, algorithm, quota)| {
        Policy::new(&name, algorithm, quota)
            .or_else(|_| {
                let plain =
                    Quota::new(quota.limit(), quota.period()).expect("legal without its burst");
                Policy::new(&name, algorithm, plain)
            })
            .expect("a legal policy")
    })
}

fn lists_of_policies() -> impl Strategy<Value = Policies> {
    let policies = proptest::collection::vec(policies(), 1..=4);
    policies.prop_filter_map("two of one name", |policies| Policies::new(policies).ok())
}

/// Milliseconds to let pass, and the units of the hit that follows.
fn scripts() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let pause = prop_oneof![Just(0), 0..=50_u64, 0..=100_000_u64, 0..=10_000_000_u64];
    let units = prop_oneof![4 => Just(1), 3 => 1..=12_u64, 1 => 1..=Quota::MAX_LIMIT];
    proptest::collection::vec((pause, units), 1..=30)
}

fn seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(MICROS))
        .expect("in range")
        .max(1)
}

/// `q` in every `w` seconds is no more than the rate, and a shorter `w` would be more.
fn check_policy(item: &Item, policy: &Policy) {
    assert_eq!(item.name, policy.name());
    let (quota, window) = (item.number("q").expect("q"), item.number("w"));
    assert_eq!(item.keys().len(), 1 + usize::from(window.is_some()));
    assert_eq!(quota, policy.quota().capacity());
    let (limit, period) = (
        policy.quota().limit(),
        u128::from(policy.quota().period_micros()),
    );
    let Some(window) = window else {
        // Left out only where it has more than 15 digits.
        assert!(u128::from(quota) * period > u128::from(limit) * 999_999_999_999_999 * MICROS);
        return;
    };
    assert!(window >= 1);
    if limit > 0 {
        let earned = |window: u64| u128::from(limit) * u128::from(window) * MICROS;
        let due = u128::from(quota) * period;
        assert!(due <= earned(window), "{policy}: {item:?}");
        assert!(due > earned(window - 1), "{policy}: {item:?}");
    }
}

fn check_lists(gate: &Gate, decision: &Decision<'_>, headers: &HeaderMap) {
    let (policies, limits) = (
        list(headers, "ratelimit-policy"),
        list(headers, "ratelimit"),
    );
    let each: Vec<_> = decision.each().collect();
    assert_eq!((policies.len(), limits.len()), (each.len(), each.len()));
    for ((policy, limit), decision) in policies.iter().zip(&limits).zip(&each) {
        check_policy(policy, decision.policy());
        assert_eq!(limit.name, decision.policy().name());
        assert_eq!(limit.number("r"), Some(decision.remaining()));
        assert!(limit.number("r") <= policy.number("q"));
        let Some(wait) = limit.number("t") else {
            assert_eq!(limit.keys(), ["r"]);
            assert_eq!(decision.limit(), 0);
            continue;
        };
        assert_eq!(limit.keys(), ["r", "t"]);
        assert!(wait >= 1);
        let last = Timestamp::MAX.saturating_since(gate.now()).as_secs();
        if decision.remaining() < decision.limit() && wait < last {
            let limiter = later(gate, wait);
            let then = limiter.peek_now("user:42").expect("the store answers");
            let same = then
                .each()
                .find(|other| other.policy() == decision.policy());
            assert!(same.expect("the same policies").remaining() > decision.remaining());
        }
    }
}

/// The same limiter, some seconds later.
fn later(gate: &Gate, seconds: u64) -> Limiter<MemoryStore> {
    let then = gate.now() + Duration::from_secs(seconds);
    gate.limiter.clone().clock(ManualClock::new(then))
}

fn check_numbers(decision: &Decision<'_>, headers: &HeaderMap) {
    let limit = number(headers, "x-ratelimit-limit").expect("a limit");
    let remaining = number(headers, "x-ratelimit-remaining").expect("what is left");
    assert!(remaining <= limit);
    assert_eq!((limit, remaining), (decision.limit(), decision.remaining()));
    let reset_at = decision.reset_at().expect("a store answered").as_micros();
    assert_eq!(
        number(headers, "x-ratelimit-reset"),
        Some(reset_at.div_ceil(1_000_000))
    );
}

fn check_retry_after(gate: &Gate, decision: &Decision<'_>, units: u64, headers: &HeaderMap) {
    let told = number(headers, "retry-after");
    let wait = decision.retry_after().filter(|_| !decision.is_allowed());
    assert_eq!(told, wait.map(seconds));
    let Some(told) = told else {
        return;
    };
    assert!(told >= 1);
    for (item, decision) in list(headers, "ratelimit").iter().zip(decision.each()) {
        assert!(
            decision.is_allowed() || item.number("t") <= Some(told),
            "{item:?}"
        );
    }
    if gate.now() + Duration::from_secs(told) < Timestamp::MAX {
        let limiter = later(gate, told);
        let then = block_on(limiter.peek_n("user:42", units)).expect("the store answers");
        assert!(then.is_allowed());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_number_is_whole_in_range_and_true(policies in lists_of_policies(), script in scripts()) {
        let gate = Gate::new(policies);
        for (pause, units) in script {
            gate.advance(pause);
            let decision = gate.hit_n(units);
            let response = respond(&decision, &Headers::default());
            let headers = response.headers();
            check_lists(&gate, &decision, headers);
            check_numbers(&decision, headers);
            check_retry_after(&gate, &decision, units, headers);
        }
    }

    #[test]
    fn stacked_layers_list_all_policies_outermost_first(
        inner in lists_of_policies(),
        outer in lists_of_policies(),
        units in 1..=5_u64,
    ) {
        let gates = [Gate::new(inner), Gate::new(outer)];
        let decisions = gates.each_ref().map(|gate| gate.hit_n(units));
        let mut response = http::Response::new(());
        for decision in &decisions {
            Headers::default().write(decision, b"user:42", &mut response);
        }
        let headers = response.headers();
        let names: Vec<_> = list(headers, "ratelimit").into_iter().map(|item| item.name).collect();
        let all = decisions[1].each().chain(decisions[0].each());
        let expected: Vec<_> = all.map(|decision| decision.policy().name().to_owned()).collect();
        prop_assert_eq!(names, expected);

        let [inner, outer] = decisions.each_ref().map(Decision::binding);
        let told = (number(headers, "x-ratelimit-limit"), number(headers, "x-ratelimit-remaining"));
        let of = |decision: &PolicyDecision<'_>| {
            (Some(decision.limit()), Some(decision.remaining()))
        };
        prop_assert!(told == of(&inner) || told == of(&outer));
        if inner.is_allowed() && outer.is_allowed() {
            prop_assert_eq!(told.1, of(&inner).1.min(of(&outer).1));
        } else if inner.is_allowed() {
            prop_assert_eq!(told, of(&outer));
        } else if outer.is_allowed() {
            prop_assert_eq!(told, of(&inner));
        }
    }
}
