//! What the switches do, and when nothing is written.

use std::future::ready;

use futures::executor::block_on;
use tollgate_axum::{Headers, PartitionKey, QuotaUnit};
use tollgate_core::{
    Algorithm, Batch, Capabilities, Error, ErrorKind, FailureMode, Key, Limiter, Result, Store,
    Verdicts,
};

use crate::setup::{Gate, list, lists, numbers, policy, respond};
use crate::structured::Value;

/// A store that is away.
#[derive(Debug)]
struct Away;

impl Store for Away {
    fn apply<'a>(&'a self, _: Batch<'a>) -> impl Future<Output = Result<Verdicts>> + Send + 'a {
        ready(Err(Error::new(ErrorKind::Unavailable, "nobody listens")))
    }

    fn reset<'a>(&'a self, _: &'a [Key<'a>]) -> impl Future<Output = Result<u64>> + Send + 'a {
        ready(Err(Error::new(ErrorKind::Unavailable, "nobody listens")))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::LEAST
    }
}

fn gate() -> Gate {
    Gate::new(policy("api", Algorithm::FixedWindow, "5/minute"))
}

#[test]
fn each_family_has_a_switch_of_its_own() {
    let gate = gate();
    let decision = gate.hit();
    for (x_rate_limit, rate_limit) in [(true, true), (true, false), (false, true), (false, false)] {
        let headers = Headers::none()
            .x_rate_limit(x_rate_limit)
            .rate_limit(rate_limit);
        let response = respond(&decision, &headers);
        assert_eq!(numbers(response.headers()).is_some(), x_rate_limit);
        assert_eq!(lists(response.headers()).is_some(), rate_limit);
        let expected = if x_rate_limit { 3 } else { 0 } + if rate_limit { 2 } else { 0 };
        assert_eq!(response.headers().len(), expected);
    }
    assert_eq!(respond(&decision, &Headers::default()).headers().len(), 5);
}

#[test]
fn the_unit_is_told_unless_clients_assume_it() {
    let gate = gate();
    let decision = gate.hit();
    for (unit, expected) in [
        (QuotaUnit::REQUESTS, r#""api";q=5;w=60"#),
        (
            QuotaUnit::CONTENT_BYTES,
            r#""api";q=5;qu="content-bytes";w=60"#,
        ),
        (
            QuotaUnit::CONCURRENT_REQUESTS,
            r#""api";q=5;qu="concurrent-requests";w=60"#,
        ),
        (
            QuotaUnit::new(r#"to"kens\"#).unwrap(),
            r#""api";q=5;qu="to\"kens\\";w=60"#,
        ),
    ] {
        let response = respond(&decision, &Headers::default().quota_unit(unit));
        assert_eq!(lists(response.headers()).unwrap().0, expected);
    }
}

#[test]
fn a_unit_that_no_field_can_carry_is_refused_with_the_reason() {
    for (name, reason) in [
        ("", "1 to 64 bytes, not 0"),
        (&*"u".repeat(65), "1 to 64 bytes, not 65"),
        ("to\nkens", "character 3"),
        ("jetons d\u{e9}", "character 9"),
    ] {
        let error = QuotaUnit::new(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_eq!(
        QuotaUnit::new(&"u".repeat(64)).unwrap().to_string().len(),
        64
    );
}

/// `printf 'user:42' | sha256sum` begins with these 16 bytes.
#[test]
fn the_partition_key_is_in_both_fields_as_its_setting_says() {
    let digest = b"\xea\x3f\xd4\x3b\xe1\xe5\x7d\x62\xe1\x63\xda\xe1\x9f\xc7\x40\xbd".to_vec();
    let gate = gate();
    let decision = gate.hit();
    for (setting, expected) in [
        (PartitionKey::Hidden, None),
        (PartitionKey::Subject, Some(b"user:42".to_vec())),
        (PartitionKey::Digest, Some(digest)),
    ] {
        let response = respond(&decision, &Headers::default().partition_key(setting));
        for field in ["ratelimit-policy", "ratelimit"] {
            let items = list(response.headers(), field);
            assert_eq!(
                items[0].get("pk").cloned(),
                expected.clone().map(Value::Bytes)
            );
        }
    }
}

#[test]
fn a_long_subject_does_not_make_a_long_header() {
    let gate = gate();
    let headers = Headers::default().partition_key(PartitionKey::Subject);
    for (length, expected) in [(256, 256), (257, 32), (100_000, 32)] {
        let subject = vec![b'\n'; length];
        let decision = gate.limiter.hit_now(&subject).unwrap();
        let mut response = http::Response::new(());
        headers.write(&decision, &subject, &mut response);
        let Some(Value::Bytes(key)) = list(response.headers(), "ratelimit")[0].get("pk").cloned()
        else {
            panic!("a partition key is a byte sequence");
        };
        assert_eq!(key.len(), expected);
    }
}

#[test]
fn where_the_failure_mode_decides_no_number_is_known() {
    for (mode, status) in [(FailureMode::Open, 200), (FailureMode::Closed, 503)] {
        let quota = policy("api", Algorithm::FixedWindow, "5/minute");
        let limiter = Limiter::new(Away, quota).on_failure(mode);
        let decision = block_on(limiter.hit("user:42")).unwrap();
        let response = respond(&decision, &Headers::default());
        assert_eq!(response.status(), status);
        assert_eq!(response.headers().len(), 0, "{:?}", response.headers());
    }
}
