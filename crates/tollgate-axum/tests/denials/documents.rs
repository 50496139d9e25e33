//! The documents, word for word.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};
use tollgate_axum::{Denial, DenialFormat, DenialReason};
use tollgate_core::{
    Algorithm, Batch, Capabilities, Error, ErrorKind, FailureMode, Key, Limiter, ManualClock,
    Policies, Policy, Quota, Result, Store, Timestamp, Verdicts,
};
use tollgate_memory::MemoryStore;

/// A store that fails with words that must not reach a client.
#[derive(Debug)]
struct Away;

const SECRET: &str = "postgres://limits:hunter2@10.0.0.7 is away";

impl Store for Away {
    fn apply<'a>(&'a self, _: Batch<'a>) -> impl Future<Output = Result<Verdicts>> + Send + 'a {
        ready(Err(Error::new(ErrorKind::Unavailable, SECRET)))
    }

    fn reset<'a>(&'a self, _: &'a [Key<'a>]) -> impl Future<Output = Result<u64>> + Send + 'a {
        ready(Err(Error::new(ErrorKind::Unavailable, SECRET)))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::LEAST
    }
}

fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, Algorithm::FixedWindow, quota.parse().unwrap()).unwrap()
}

fn limiter(policies: impl Into<Policies>) -> Limiter<MemoryStore> {
    let start = Timestamp::from_micros(1_700_000_000_000_000).unwrap();
    Limiter::new(MemoryStore::new(), policies).clock(ManualClock::new(start))
}

/// The denial of the second hit of two.
fn second(limiter: &Limiter<MemoryStore>) -> Denial {
    let first = limiter.hit_now("user:42").unwrap();
    assert_eq!(Denial::of(&first), None);
    Denial::of(&limiter.hit_now("user:42").unwrap()).unwrap()
}

fn exceeded() -> Denial {
    second(&limiter(policy("login", "1/minute")))
}

fn respond(denial: &Denial, format: DenialFormat) -> Response<Bytes> {
    denial.to_response(format, &Method::GET, &HeaderMap::new())
}

fn document(denial: &Denial) -> Value {
    serde_json::from_slice(respond(denial, DenialFormat::Problem).body()).unwrap()
}

fn header<'a>(response: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap())
}

#[test]
fn a_used_up_quota_is_a_429_that_names_the_policy_and_the_wait() {
    let denial = exceeded();
    assert_eq!(denial.reason(), DenialReason::QuotaExceeded);
    assert_eq!(denial.retry_after(), Some(Duration::from_secs(60)));
    assert_eq!(denial.violated(), ["login"]);
    let response = respond(&denial, DenialFormat::Problem);
    assert_eq!(response.status(), 429);
    assert_eq!(
        header(&response, "content-type"),
        Some("application/problem+json")
    );
    assert_eq!(header(&response, "retry-after"), Some("60"));
    let expected = concat!(
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
        r#""title":"Quota Exceeded","status":429,"#,
        r#""detail":"The quota is used up. Try again in 60 seconds.","#,
        r#""violated-policies":["login"]}"#,
    );
    assert_eq!(response.body(), expected);
}

#[test]
fn only_what_denied_is_violated_and_the_wait_is_the_longest() {
    let policies = [
        policy("a", "1/minute"),
        policy("b", "100/day"),
        policy("c", "1/second"),
    ];
    let denial = second(&limiter(Policies::new(policies).unwrap()));
    assert_eq!(document(&denial)["violated-policies"], json!(["a", "c"]));
    assert_eq!(denial.retry_after(), Some(Duration::from_secs(60)));
}

#[test]
fn a_wait_below_a_second_is_told_as_one() {
    let quota = Quota::new(1, Duration::from_millis(90)).unwrap();
    let denial = second(&limiter(quota));
    let response = respond(&denial, DenialFormat::Problem);
    assert_eq!(header(&response, "retry-after"), Some("1"));
    assert_eq!(
        denial.detail(),
        "The quota is used up. Try again in 1 second."
    );
}

#[test]
fn a_cost_that_never_fits_says_that_waiting_is_no_use() {
    let too_much = limiter(policy("small", "3/minute"));
    let blocked = limiter(policy("shut", "0/minute"));
    for (limiter, name) in [(too_much, "small"), (blocked, "shut")] {
        let denial = Denial::of(&limiter.hit_n_now("user:42", 4).unwrap()).unwrap();
        assert_eq!(denial.reason(), DenialReason::NeverFits);
        assert_eq!(denial.retry_after(), None);
        let response = respond(&denial, DenialFormat::Problem);
        assert_eq!(response.status(), 429);
        assert_eq!(header(&response, "retry-after"), None);
        let expected = json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Quota Exceeded",
            "status": 429,
            "detail": "The request asks for more than its quota ever allows. Waiting will not help.",
            "violated-policies": [name],
        });
        assert_eq!(document(&denial), expected);
    }
}

#[test]
fn a_store_that_is_away_is_a_503_without_a_time_or_a_cause() {
    let limiter = Limiter::new(Away, policy("api", "5/minute")).on_failure(FailureMode::Closed);
    let decision = block_on(limiter.hit("user:42")).unwrap();
    let denial = Denial::of(&decision).unwrap();
    let response = respond(&denial, DenialFormat::Problem);
    assert_eq!(response.status(), 503);
    assert_eq!(header(&response, "retry-after"), None);
    let expected = json!({
        "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        "title": "Temporary Reduced Capacity",
        "status": 503,
        "detail": "The service cannot take this request at the moment. Try again later.",
        "violated-policies": ["api"],
    });
    assert_eq!(document(&denial), expected);

    let limiter = Limiter::new(Away, policy("api", "5/minute")).on_failure(FailureMode::Open);
    assert_eq!(Denial::of(&block_on(limiter.hit("user:42")).unwrap()), None);
}

#[test]
fn an_error_is_a_500_that_says_nothing_of_it() {
    let denial = Denial::internal();
    assert_eq!(respond(&denial, DenialFormat::Problem).status(), 500);
    let expected = json!({
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "detail": "The request could not be processed.",
    });
    assert_eq!(document(&denial), expected);
}

#[test]
fn text_has_the_same_in_lines() {
    let response = respond(&exceeded(), DenialFormat::Text);
    assert_eq!(
        header(&response, "content-type"),
        Some("text/plain; charset=utf-8")
    );
    let expected = "Quota Exceeded\nThe quota is used up. Try again in 60 seconds.\nViolated policies: \"login\"\n";
    assert_eq!(response.body(), expected);
    let response = respond(&Denial::internal(), DenialFormat::Text);
    let expected = "Internal Server Error\nThe request could not be processed.\n";
    assert_eq!(response.body(), expected);
}

#[test]
fn plain_json_is_the_same_document() {
    let (problem, plain) = (DenialFormat::Problem, DenialFormat::Json);
    let response = respond(&exceeded(), plain);
    assert_eq!(header(&response, "content-type"), Some("application/json"));
    assert_eq!(response.body(), respond(&exceeded(), problem).body());
}

#[test]
fn names_with_quotes_and_backslashes_stay_one_string() {
    let names = [r#"a", "b"#, r"back\slash\", "</script>", " "];
    let policies = names.map(|name| policy(name, "1/minute"));
    let denial = second(&limiter(Policies::new(policies).unwrap()));
    assert_eq!(document(&denial)["violated-policies"], json!(names));
    let text = respond(&denial, DenialFormat::Text);
    let text = std::str::from_utf8(text.body()).unwrap();
    assert_eq!(
        text.lines().nth(2),
        Some(r#"Violated policies: "a\", \"b", "back\\slash\\", "</script>", " ""#)
    );
}

#[test]
fn no_cache_keeps_a_denial_and_one_that_was_negotiated_says_by_what() {
    for (format, vary) in [
        (DenialFormat::Negotiate, Some("accept")),
        (DenialFormat::Problem, None),
        (DenialFormat::Json, None),
        (DenialFormat::Text, None),
    ] {
        let response = respond(&exceeded(), format);
        assert_eq!(header(&response, "cache-control"), Some("no-store"));
        assert_eq!(header(&response, "vary"), vary);
    }
}

#[test]
fn the_answer_to_head_is_that_to_get_without_the_document() {
    for format in [DenialFormat::Problem, DenialFormat::Text] {
        let get = respond(&exceeded(), format);
        let head = exceeded().to_response(format, &Method::HEAD, &HeaderMap::new());
        assert_eq!(head.status(), 429);
        assert!(head.body().is_empty());
        let length = get.body().len().to_string();
        assert_eq!(header(&head, "content-length"), Some(length.as_str()));
        for (name, value) in get.headers() {
            assert_eq!(head.headers().get(name), Some(value));
        }
    }
}
