//! How the numbers are spelled in header fields.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{Integer, KeyRef, ListSerializer, StringRef, key_ref};
use tollgate_core::Policy;

use super::service_limit::ServiceLimit;
use super::{Advertised, QuotaUnit};

static X_RATE_LIMIT: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];
static RATE_LIMIT: [HeaderName; 2] = [
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("ratelimit"),
];

static SHADOW: [HeaderName; 1] = [HeaderName::from_static("x-ratelimit-shadow")];

const QUOTA: &KeyRef = key_ref("q");
const UNIT: &KeyRef = key_ref("qu");
const WINDOW: &KeyRef = key_ref("w");
const PARTITION: &KeyRef = key_ref("pk");
const REMAINING: &KeyRef = key_ref("r");
const EFFECTIVE_WINDOW: &KeyRef = key_ref("t");

/// A wait as the delay-seconds of RFC 9110, section 10.2.3: rounded up, and never "at once".
pub(crate) fn delay_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).max(1)
}

/// Headers that are written together or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    XRateLimit,
    RateLimit,
    Shadow,
}

impl Family {
    pub(super) const ALL: [Self; 3] = [Self::XRateLimit, Self::RateLimit, Self::Shadow];

    fn names(self) -> &'static [HeaderName] {
        match self {
            Self::XRateLimit => &X_RATE_LIMIT,
            Self::RateLimit => &RATE_LIMIT,
            Self::Shadow => &SHADOW,
        }
    }

    /// Whether any header of the family is there.
    pub(super) fn is_set(self, headers: &HeaderMap) -> bool {
        self.names().iter().any(|name| headers.contains_key(name))
    }

    /// Puts the family into `headers`, in place of what was there. Nothing happens where there is nothing to say.
    pub(super) fn write(self, advertised: &Advertised, headers: &mut HeaderMap) {
        let limits = advertised.limits.iter();
        match self {
            Self::XRateLimit => {
                let wanted = limits.filter(|limit| limit.headers.x_rate_limit);
                insert(&X_RATE_LIMIT, numbers(wanted), headers);
            }
            Self::RateLimit => {
                let wanted = limits.filter(|limit| limit.headers.rate_limit);
                insert(&RATE_LIMIT, lists(wanted), headers);
            }
            Self::Shadow => insert(&SHADOW, names(&advertised.shadows), headers),
        }
    }
}

fn insert<const N: usize>(
    names: &'static [HeaderName; N],
    values: Option<[HeaderValue; N]>,
    headers: &mut HeaderMap,
) {
    for (name, value) in names.iter().zip(values.into_iter().flatten()) {
        headers.insert(name, value);
    }
}

/// Limit, remaining and reset of the policy that binds.
fn numbers<'a>(limits: impl Iterator<Item = &'a ServiceLimit>) -> Option<[HeaderValue; 3]> {
    let binding = limits.reduce(|binding, other| {
        if other.status.binds_before(&binding.status) {
            other
        } else {
            binding
        }
    })?;
    let remaining = binding.status.remaining();
    Some([binding.capacity(), remaining, binding.reset_seconds].map(number))
}

/// A number, allocated once and to measure.
fn number(number: u64) -> HeaderValue {
    let mut digits = itoa::Buffer::new();
    HeaderValue::from_str(digits.format(number)).expect("digits are ASCII")
}

/// The lists of policies and of service limits (the draft's sections 3 and 4).
fn lists<'a>(limits: impl Iterator<Item = &'a ServiceLimit>) -> Option<[HeaderValue; 2]> {
    let mut limits = limits.peekable();
    limits.peek()?;
    // As long as most lists are, so that they are written without being moved.
    let mut texts = [(); 2].map(|()| String::with_capacity(64));
    let [mut policies, mut service_limits] = texts.each_mut().map(ListSerializer::with_buffer);
    for limit in limits {
        limit.write_policy(&mut policies);
        limit.write_service_limit(&mut service_limits);
    }
    policies.finish()?;
    Some(texts.map(value))
}

/// The names of policies, as a list of strings.
fn names(policies: &[Policy]) -> Option<[HeaderValue; 1]> {
    let mut list = ListSerializer::new();
    for policy in policies {
        let _ = list.bare_item(string(policy.name()));
    }
    Some([value(list.finish()?)])
}

fn value(list: String) -> HeaderValue {
    HeaderValue::try_from(list).expect("structured fields are ASCII")
}

impl ServiceLimit {
    fn write_policy(&self, list: &mut ListSerializer<&mut String>) {
        let unit = &self.headers.quota_unit;
        let unit = (*unit != QuotaUnit::REQUESTS).then(|| (UNIT, string(unit.as_str())));
        let window = Integer::try_from(self.window_seconds()).ok();
        let _ = list
            .bare_item(string(self.status.policy().name()))
            .parameter(QUOTA, quantity(self.capacity()))
            .parameters(unit)
            .parameters(window.map(|seconds| (WINDOW, seconds)))
            .parameters(self.partition());
    }

    fn write_service_limit(&self, list: &mut ListSerializer<&mut String>) {
        let window = self.effective_window_seconds();
        let window = window.and_then(|seconds| Integer::try_from(seconds).ok());
        let _ = list
            .bare_item(string(self.status.policy().name()))
            .parameter(REMAINING, quantity(self.status.remaining()))
            .parameters(window.map(|seconds| (EFFECTIVE_WINDOW, seconds)))
            .parameters(self.partition());
    }

    fn partition(&self) -> Option<(&'static KeyRef, &[u8])> {
        let key = self.partition_key.as_ref()?;
        Some((PARTITION, key.as_ref()))
    }
}

fn string(text: &str) -> &StringRef {
    StringRef::from_str(text).expect("names of policies and units are printable ASCII")
}

/// As many units as a structured field can tell, if there are more.
fn quantity(units: u64) -> Integer {
    Integer::try_from(units).unwrap_or(Integer::MAX)
}
