//! Response headers that tell clients where they stand.
//!
//! Two families say the same thing to different clients, each with a switch of its own on [`Headers`]:
//! `X-RateLimit-*`, which everybody reads, and the fields of draft-ietf-httpapi-ratelimit-headers-11.

mod advertised;
mod fields;
mod partition;
mod service_limit;
mod unit;

pub(crate) use advertised::{Advertised, Reach};
pub(crate) use fields::delay_seconds;
pub use partition::PartitionKey;
pub use unit::QuotaUnit;

use http::Response;
use tollgate_core::Decision;

use crate::rate_limit::RateLimit;

/// Which headers a limited response carries.
///
/// Both families are on unless switched off:
///
/// | family | headers | says |
/// |---|---|---|
/// | [`x_rate_limit`](Self::x_rate_limit) | `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset` | the numbers of the one policy that binds |
/// | [`rate_limit`](Self::rate_limit) | `RateLimit-Policy`, `RateLimit` | every policy, in order: [draft 11](https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-11) |
///
/// A family that the handler has set already, with one of its headers or all of them, is left as the handler set it.
/// Where layers are stacked, the outer layer adds its policies in front of what the inner ones wrote, and the policy
/// that binds is looked for among all of them.
///
/// Nothing is written where no counter was asked: for exempt requests, and where a
/// [`FailureMode`](tollgate_core::FailureMode) decided. `Retry-After` is no matter of this type: every denial has it
/// that waiting can help.
///
/// ```
/// use tollgate_axum::{Headers, PartitionKey, QuotaUnit};
///
/// let headers = Headers::default()
///     .x_rate_limit(false)
///     .quota_unit(QuotaUnit::CONTENT_BYTES)
///     .partition_key(PartitionKey::Digest);
/// assert_ne!(headers, Headers::none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Headers {
    x_rate_limit: bool,
    rate_limit: bool,
    shadow: bool,
    quota_unit: QuotaUnit,
    partition_key: PartitionKey,
}

impl Default for Headers {
    fn default() -> Self {
        Self {
            x_rate_limit: true,
            rate_limit: true,
            ..Self::none()
        }
    }
}

impl Headers {
    /// No headers at all: clients learn nothing but from a denial.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            x_rate_limit: false,
            rate_limit: false,
            shadow: false,
            quota_unit: QuotaUnit::REQUESTS,
            partition_key: PartitionKey::Hidden,
        }
    }

    /// Whether to write `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`.
    ///
    /// The first two count units. The third is the instant at which the key is as good as never seen, in seconds since
    /// the Unix epoch on the store's clock, rounded up.
    #[must_use]
    pub fn x_rate_limit(self, on: bool) -> Self {
        Self {
            x_rate_limit: on,
            ..self
        }
    }

    /// Whether to write `RateLimit-Policy` and `RateLimit`.
    ///
    /// `q` is what fits at once, and `w` the seconds in which that much is given back: for a window or a log they are
    /// limit and period, for a bucket with a burst they are the burst and the time it takes to refill. `r` is what is
    /// left, and `t` the seconds until more than that is left.
    #[must_use]
    pub fn rate_limit(self, on: bool) -> Self {
        Self {
            rate_limit: on,
            ..self
        }
    }

    /// Whether to name the policies in [shadow mode](tollgate_core::Policy::shadow) that would have denied, in
    /// `X-RateLimit-Shadow`. Off unless switched on.
    ///
    /// The value is a list of strings (RFC 9651, section 3.1), and the header is left out where there are none. It tells
    /// clients what is planned, so that they can see to it before it is enforced.
    #[must_use]
    pub fn shadow(self, on: bool) -> Self {
        Self { shadow: on, ..self }
    }

    /// What one unit is: the parameter `qu`. Left out for [`QuotaUnit::REQUESTS`], which a client assumes.
    #[must_use]
    pub fn quota_unit(self, unit: QuotaUnit) -> Self {
        Self {
            quota_unit: unit,
            ..self
        }
    }

    /// Whether to tell which counter was charged: the parameter `pk`. [Hidden](PartitionKey::Hidden) unless set.
    #[must_use]
    pub fn partition_key(self, partition_key: PartitionKey) -> Self {
        Self {
            partition_key,
            ..self
        }
    }

    /// Adds to `response` what `decision` about `subject` says.
    ///
    /// The layer does this by itself; it is for handlers that ask a limiter of their own. They may do so for one
    /// response several times, innermost limiter first.
    pub fn write<B>(&self, decision: &Decision<'_>, subject: &[u8], response: &mut Response<B>) {
        let limit = RateLimit::of(decision);
        Advertised::of(limit.policies(), self, subject, Reach::FurtherOut).write(response);
    }
}
