//! A limiter whose clock stands still, and what its decisions become.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use http::{HeaderMap, Response};
use tollgate_axum::{Denial, Headers};
use tollgate_core::{
    Algorithm, Clock, Decision, Limiter, ManualClock, Policies, Policy, Quota, Timestamp,
};
use tollgate_memory::MemoryStore;

use crate::structured::{Item, parse_list};

/// When the clock starts: a whole second, so that roundings show.
pub(crate) const START_SECONDS: u64 = 1_700_000_000;

/// A limiter on a store of its own.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) clock: ManualClock,
    pub(crate) limiter: Limiter<MemoryStore>,
}

impl Gate {
    pub(crate) fn new(policies: impl Into<Policies>) -> Self {
        let start = Timestamp::from_micros(START_SECONDS * 1_000_000).unwrap();
        let clock = ManualClock::new(start);
        let limiter = Limiter::new(MemoryStore::new(), policies).clock(clock.clone());
        Self { clock, limiter }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    pub(crate) fn hit(&self) -> Decision<'_> {
        self.hit_n(1)
    }

    pub(crate) fn hit_n(&self, units: u64) -> Decision<'_> {
        self.limiter.hit_n_now("user:42", units).unwrap()
    }
}

pub(crate) fn policy(name: &str, algorithm: Algorithm, quota: &str) -> Policy {
    Policy::new(name, algorithm, quota.parse().unwrap()).unwrap()
}

pub(crate) fn quota(limit: u64, millis: u64, burst: u64) -> Quota {
    Quota::new_with_burst(limit, Duration::from_millis(millis), burst).unwrap()
}

/// What a client gets for `decision`: the denial's answer or an empty 200, with the headers written.
pub(crate) fn respond(decision: &Decision<'_>, headers: &Headers) -> Response<()> {
    let mut response = Response::new(());
    if let Some(denial) = Denial::of(decision) {
        *response.status_mut() = denial.status();
        denial.write_retry_after(response.headers_mut());
    }
    headers.write(decision, b"user:42", &mut response);
    response
}

/// The headers of [`respond`] with everything at its default.
pub(crate) fn headers_of(decision: &Decision<'_>) -> HeaderMap {
    respond(decision, &Headers::default()).headers().clone()
}

/// The one value of a header; `None` if it is not there.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let values: Vec<_> = headers.get_all(name).iter().collect();
    assert!(values.len() <= 1, "{name} is there {} times", values.len());
    values.first().map(|value| value.to_str().unwrap())
}

/// The one value of a header, which is nothing but digits.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let text = text(headers, name)?;
    assert!(
        text.bytes().all(|byte| byte.is_ascii_digit()),
        "{name}: {text}"
    );
    Some(text.parse().unwrap())
}

pub(crate) fn list(headers: &HeaderMap, name: &str) -> Vec<Item> {
    text(headers, name).map_or(Vec::new(), |text| parse_list(text).unwrap())
}

/// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds since the clock's start.
pub(crate) fn numbers(headers: &HeaderMap) -> Option<(u64, u64, u64)> {
    Some((
        number(headers, "x-ratelimit-limit")?,
        number(headers, "x-ratelimit-remaining")?,
        number(headers, "x-ratelimit-reset")? - START_SECONDS,
    ))
}

pub(crate) fn lists(headers: &HeaderMap) -> Option<(&str, &str)> {
    Some((
        text(headers, "ratelimit-policy")?,
        text(headers, "ratelimit")?,
    ))
}
