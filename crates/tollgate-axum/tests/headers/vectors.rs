//! Answers worked out by hand, one algorithm at a time.

use tollgate_axum::Headers;
use tollgate_core::{Algorithm, Policies, Policy, Quota};

use crate::setup::{Gate, headers_of, lists, number, numbers, policy, quota, respond, text};

/// One hit of 2 per 60 s in a window that begins with it: one is left until the window ends in 60 s.
#[test]
fn a_fixed_window_names_its_end() {
    let gate = Gate::new(policy("default-policy", Algorithm::FixedWindow, "2/minute"));
    let headers = headers_of(&gate.hit());
    let expected = (
        r#""default-policy";q=2;w=60"#,
        r#""default-policy";r=1;t=60"#,
    );
    assert_eq!(lists(&headers), Some(expected));
    assert_eq!(numbers(&headers), Some((2, 1, 60)));
}

/// Ten per minute drain one in 6 s. After one hit the bucket is full again in 6 s, after two in 12 s; but the next unit
/// is back after 6 s both times.
#[test]
fn a_bucket_names_the_next_unit_and_resets_when_it_is_full() {
    let gate = Gate::new(Quota::per_minute(10));
    let headers = headers_of(&gate.hit());
    let expected = (r#""default";q=10;w=60"#, r#""default";r=9;t=6"#);
    assert_eq!(lists(&headers), Some(expected));
    assert_eq!(numbers(&headers), Some((10, 9, 6)));

    let headers = headers_of(&gate.hit());
    assert_eq!(lists(&headers).unwrap().1, r#""default";r=8;t=6"#);
    assert_eq!(numbers(&headers), Some((10, 8, 12)));
}

/// 20 per second refill a burst of 100 in 5 s; 100 per minute refill a burst of 5 in 3 s. Either way `q` in every `w` is
/// the rate, and `q` at once is what fits.
#[test]
fn a_burst_is_the_quota_and_the_time_it_takes_to_refill_the_window() {
    for (text, policy_field) in [
        ("20/second burst 100", r#""burst";q=100;w=5"#),
        ("100/minute burst 5", r#""burst";q=5;w=3"#),
        // 10/3 s, rounded up.
        ("3/second burst 10", r#""burst";q=10;w=4"#),
        ("10/second burst 5", r#""burst";q=5;w=1"#),
    ] {
        for algorithm in [
            Algorithm::TokenBucket,
            Algorithm::LeakyBucket,
            Algorithm::Gcra,
        ] {
            let gate = Gate::new(policy("burst", algorithm, text));
            assert_eq!(
                lists(&headers_of(&gate.hit())).unwrap().0,
                policy_field,
                "{algorithm}"
            );
        }
    }
}

/// Ten per minute, all used at 0 s. At 60 s they are those of the last window and weigh `floor(10 * 60 / 60)`, all ten; a
/// microsecond later they weigh nine. At 63 s they weigh `floor(10 * 57 / 60)`, nine, and one more is admitted. The
/// estimate falls again when they weigh less than nine: when less than 54 s are left to them, a microsecond after 66 s.
#[test]
fn a_sliding_window_names_when_its_estimate_falls() {
    let gate = Gate::new(policy("smooth", Algorithm::SlidingWindow, "10/minute"));
    let _ = gate.hit_n(10);
    gate.advance(60_000);
    let headers = headers_of(&gate.hit());
    assert_eq!(lists(&headers).unwrap().1, r#""smooth";r=0;t=1"#);
    assert_eq!(text(&headers, "retry-after"), Some("1"));

    gate.advance(3_000);
    let headers = headers_of(&gate.hit());
    assert_eq!(number(&headers, "retry-after"), None);
    assert_eq!(lists(&headers).unwrap().1, r#""smooth";r=0;t=4"#);
}

/// Five per minute: three at 0 s, two at 20 s. A sixth at 30 s has to wait for the three, which leave at 60 s. The hits
/// at 20 s tell the latest: all are gone at 80 s.
#[test]
fn a_sliding_log_names_when_what_was_denied_fits_and_otherwise_when_it_is_empty() {
    let gate = Gate::new(policy("exact", Algorithm::SlidingLog, "5/minute"));
    let _ = gate.hit_n(3);
    gate.advance(20_000);
    let headers = headers_of(&gate.hit_n(2));
    assert_eq!(lists(&headers).unwrap().1, r#""exact";r=0;t=60"#);
    assert_eq!(numbers(&headers), Some((5, 0, 80)));

    gate.advance(10_000);
    let headers = headers_of(&gate.hit());
    assert_eq!(lists(&headers).unwrap().1, r#""exact";r=0;t=30"#);
    assert_eq!(text(&headers, "retry-after"), Some("30"));
}

/// One unit in 90 ms, two at once. Two calls pass, the third has 90 ms to wait: a full second, never zero. After 100 ms
/// one unit is back, and 10 ms of the next.
#[test]
fn waits_below_a_second_are_a_second() {
    let quota = quota(1, 90, 2);
    let gate = Gate::new(Policy::new("short", Algorithm::Gcra, quota).unwrap());
    for (status, remaining) in [(200, 1), (200, 0), (429, 0)] {
        let response = respond(&gate.hit(), &Headers::default());
        let headers = response.headers();
        assert_eq!(response.status(), status);
        // Full again after 90 ms or 180 ms, which lies within the second that follows.
        assert_eq!(numbers(headers), Some((2, remaining, 1)));
        let retry_after = text(headers, "retry-after");
        assert_eq!(retry_after, (status == 429).then_some("1"));
        let limit = format!(r#""short";r={remaining};t=1"#);
        assert_eq!(lists(headers), Some((r#""short";q=2;w=1"#, limit.as_str())));
    }
    gate.advance(100);
    for status in [200, 429] {
        assert_eq!(respond(&gate.hit(), &Headers::default()).status(), status);
    }
}

/// Nothing is used, so nothing resets: the time is the least there is, not zero and not left out.
#[test]
fn a_full_quota_has_a_second_to_wait_for() {
    let gate = Gate::new(policy("free", Algorithm::FixedWindow, "5/minute"));
    let headers = headers_of(&gate.limiter.peek_now("nobody").unwrap());
    assert_eq!(lists(&headers).unwrap().1, r#""free";r=5;t=1"#);
    assert_eq!(numbers(&headers), Some((5, 5, 0)));
}

/// The last microsecond of a window: it ends now for every practical purpose, and still no number is zero or below.
#[test]
fn a_window_about_to_end_has_a_second_to_wait_for() {
    let gate = Gate::new(policy("old", Algorithm::FixedWindow, "1/minute"));
    let _ = gate.hit();
    gate.clock
        .advance(std::time::Duration::from_micros(59_999_999));
    let headers = headers_of(&gate.hit());
    assert_eq!(text(&headers, "retry-after"), Some("1"));
    assert_eq!(lists(&headers).unwrap().1, r#""old";r=0;t=1"#);
    assert_eq!(numbers(&headers), Some((1, 0, 60)));
    gate.clock.advance(std::time::Duration::from_micros(1));
    assert!(gate.hit().is_allowed());
}

#[test]
fn a_quota_of_zero_has_nothing_to_wait_for() {
    let gate = Gate::new(policy("shut", Algorithm::TokenBucket, "0/hour"));
    let response = respond(&gate.hit(), &Headers::default());
    assert_eq!(response.status(), 429);
    let headers = response.headers();
    assert_eq!(
        lists(headers),
        Some((r#""shut";q=0;w=3600"#, r#""shut";r=0"#))
    );
    assert_eq!(numbers(headers), Some((0, 0, 0)));
    assert_eq!(text(headers, "retry-after"), None);
}

#[test]
fn a_cost_that_never_fits_has_no_retry_after() {
    let gate = Gate::new(policy("small", Algorithm::TokenBucket, "3/minute"));
    let response = respond(&gate.hit_n(4), &Headers::default());
    assert_eq!(response.status(), 429);
    assert_eq!(text(response.headers(), "retry-after"), None);
    assert_eq!(numbers(response.headers()), Some((3, 3, 0)));
}

/// 100 a day and 2 a second. While both admit, the fewest remaining binds; a denial binds before that.
#[test]
fn the_binding_policy_has_the_numbers_and_every_policy_its_item() {
    let policies = [
        policy("daily", Algorithm::FixedWindow, "100/day"),
        policy("burst", Algorithm::FixedWindow, "2/second"),
    ];
    let gate = Gate::new(Policies::new(policies).unwrap());
    let headers = headers_of(&gate.hit());
    assert_eq!(numbers(&headers), Some((2, 1, 1)));
    let expected = (
        r#""daily";q=100;w=86400, "burst";q=2;w=1"#,
        r#""daily";r=99;t=86400, "burst";r=1;t=1"#,
    );
    assert_eq!(lists(&headers), Some(expected));

    let _ = gate.hit();
    gate.advance(400);
    let headers = headers_of(&gate.hit());
    assert_eq!(numbers(&headers), Some((2, 0, 1)));
    // 600 ms, although another policy names a day.
    assert_eq!(text(&headers, "retry-after"), Some("1"));
}

/// Both deny: the one that takes longest binds, and the wait is its own.
#[test]
fn among_denials_the_longest_binds() {
    let policies = [
        policy("second", Algorithm::FixedWindow, "1/second"),
        policy("minute", Algorithm::FixedWindow, "1/minute"),
    ];
    let gate = Gate::new(Policies::new(policies).unwrap());
    let _ = gate.hit();
    let headers = headers_of(&gate.hit());
    assert_eq!(numbers(&headers), Some((1, 0, 60)));
    assert_eq!(text(&headers, "retry-after"), Some("60"));
}
