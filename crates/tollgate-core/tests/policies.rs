//! What makes a policy, and what does not.

use tollgate_core::{Algorithm, ErrorKind, FailureMode, Policies, Policy, Quota, Rule};

fn fixed_window(text: &str) -> Policy {
    Policy::new(
        "window",
        Algorithm::FixedWindow,
        text.parse().expect("legal"),
    )
    .expect("legal")
}

fn refusal<T: std::fmt::Debug>(result: Result<T, tollgate_core::Error>) -> String {
    let error = result.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    error.to_string()
}

#[test]
fn a_name_is_1_to_128_printable_ascii_characters() {
    let named = |name: &str| Policy::new(name, Algorithm::Gcra, Quota::per_minute(1));
    assert_eq!(
        named("per user, \"gold\" ~").unwrap().name(),
        "per user, \"gold\" ~"
    );
    assert!(named(&"n".repeat(128)).is_ok());
    assert_eq!(
        refusal(named(&"n".repeat(129))),
        "invalid input: a policy name has 1 to 128 characters, not 129"
    );
    assert!(refusal(named("")).contains("not 0"));
    assert!(refusal(named("caf\u{e9}")).contains("character 4"));
    assert!(refusal(named("a\nb")).contains("character 2"));
    assert!(refusal(named("\u{7f}")).contains("character 1"));
}

#[test]
fn only_buckets_have_a_burst() {
    let quota = Quota::per_second(5).with_burst(20).unwrap();
    for algorithm in Algorithm::ALL {
        let policy = Policy::new("burst", algorithm, quota);
        match algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra => {
                assert_eq!(policy.unwrap().rule().capacity(), 20);
            }
            Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingLog => {
                let message = refusal(policy);
                assert!(message.contains("asks for 20"), "{message}");
            }
        }
    }
}

#[test]
fn only_a_fixed_window_follows_the_calendar() {
    for algorithm in Algorithm::ALL {
        let policy = Policy::new("calendar", algorithm, Quota::per_day(5)).unwrap();
        let aligned = policy.aligned(0);
        assert_eq!(aligned.is_ok(), algorithm == Algorithm::FixedWindow);
    }
}

#[test]
fn a_utc_offset_lies_within_18_hours() {
    for minutes in [-1_080, -1, 0, 330, 1_080] {
        let policy = fixed_window("5/day").aligned(minutes).unwrap();
        assert_eq!(policy.utc_offset_minutes(), Some(minutes));
    }
    for minutes in [-1_081, 1_081, i32::MAX, i32::MIN] {
        let message = refusal(fixed_window("5/day").aligned(minutes));
        assert!(message.contains(&minutes.to_string()), "{message}");
    }
}

/// The epoch was midnight on a Thursday, so Mondays begin four days after a multiple of a week.
#[test]
fn calendar_windows_begin_at_local_midnight_and_weeks_on_a_monday() {
    const HOUR: u64 = 3_600_000_000;
    let phase = |text: &str, minutes| match fixed_window(text).aligned(minutes).unwrap().rule() {
        Rule::FixedWindow(rule) => rule.phase(),
        other => panic!("a fixed window, not {other:?}"),
    };
    assert_eq!(phase("5/day", 0), Some(0));
    assert_eq!(phase("5/day", 120), Some(22 * HOUR));
    assert_eq!(phase("5/day", -300), Some(5 * HOUR));
    assert_eq!(phase("5/hour", 330), Some(HOUR / 2));
    assert_eq!(phase("5/week", 0), Some(96 * HOUR));
    assert_eq!(phase("5/week", 120), Some(94 * HOUR));
    assert_eq!(phase("5/2 weeks", 0), Some(96 * HOUR));
    assert_eq!(phase("5/8 days", 0), Some(0));
    assert_eq!(phase("5/7 hours", 480), Some(6 * HOUR));
}

/// Stores that judge natively read these numbers.
#[test]
fn a_rule_shows_the_numbers_it_judges_by() {
    let quota = "10/15 seconds".parse().unwrap();
    for algorithm in Algorithm::ALL {
        let policy = Policy::new("numbers", algorithm, quota).unwrap();
        match policy.rule() {
            Rule::Bucket(rule) => {
                assert_eq!(
                    (rule.capacity(), rule.unit(), rule.drain()),
                    (10, 1_500_000, 1)
                );
                assert_eq!((rule.tick(), rule.full()), (1, 15_000_000));
            }
            Rule::FixedWindow(rule) => {
                assert_eq!(
                    (rule.limit(), rule.period(), rule.phase()),
                    (10, 15_000_000, None)
                );
            }
            Rule::SlidingWindow(rule) => {
                assert_eq!((rule.limit(), rule.period()), (10, 15_000_000));
            }
            Rule::SlidingLog(rule) => assert_eq!((rule.limit(), rule.period()), (10, 15_000_000)),
        }
        assert_eq!(policy.rule().capacity(), 10);
    }
}

#[test]
fn a_bare_quota_is_a_token_bucket_named_default() {
    let policy = Policy::from(Quota::per_minute(10));
    assert_eq!(policy.to_string(), "default: token-bucket 10/minute");
    assert_eq!(policy.failure_mode(), None);
    let policy = policy.on_failure(FailureMode::Closed);
    assert_eq!(policy.failure_mode(), Some(FailureMode::Closed));
}

#[test]
fn a_limiter_has_1_to_64_policies_each_with_a_name_of_its_own() {
    let named = |index: usize| {
        Policy::new(&format!("p{index}"), Algorithm::Gcra, Quota::per_minute(1)).unwrap()
    };
    assert_eq!(Policies::new((0..64).map(named)).unwrap().len(), 64);
    assert!(refusal(Policies::new((0..65).map(named))).contains("not 65"));
    assert!(refusal(Policies::new(Vec::<Policy>::new())).contains("not 0"));
    assert!(refusal(Policies::new([named(1), named(2), named(1)])).contains("\"p1\""));
}

#[test]
fn an_algorithm_is_read_by_its_name_only() {
    for algorithm in Algorithm::ALL {
        assert_eq!(
            algorithm.to_string().parse::<Algorithm>().unwrap(),
            algorithm
        );
    }
    for text in ["", "Gcra", "GCRA", "token_bucket", "leaky", " gcra"] {
        let message = refusal(text.parse::<Algorithm>());
        assert!(
            message.contains(&format!("{text:?}; expected one of fixed-window")),
            "{message}"
        );
    }
}

#[test]
fn another_quota_leaves_the_rest_of_a_policy_as_it_is() {
    let daily = fixed_window("10/day")
        .aligned(120)
        .unwrap()
        .on_failure(FailureMode::Closed);
    let wider = daily.clone().with_quota("20/day".parse().unwrap()).unwrap();
    assert_eq!(wider.rule().capacity(), 20);
    assert_eq!(wider.name(), daily.name());
    assert_eq!(wider.utc_offset_minutes(), Some(120));
    assert_eq!(wider.failure_mode(), Some(FailureMode::Closed));
    assert_eq!(wider.with_quota(daily.quota()).unwrap(), daily);
    let burst = "20/day burst 30".parse().unwrap();
    assert!(refusal(daily.with_quota(burst)).contains("asks for 30"));
}

#[test]
fn a_policy_is_enforced_until_it_is_put_in_shadow_mode_and_says_so() {
    let policy = fixed_window("5/day");
    assert!(!policy.is_shadow());
    let shadow = policy.clone().shadow();
    assert!(shadow.is_shadow());
    assert_ne!(policy, shadow);
    assert_eq!(shadow.to_string(), "window: fixed-window 5/day (shadow)");
    let shadow = shadow.aligned(60).unwrap().on_failure(FailureMode::Closed);
    assert!(shadow.is_shadow());
}
