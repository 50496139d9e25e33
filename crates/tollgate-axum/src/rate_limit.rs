//! What a handler may know of the limits its request passed.

use std::convert::Infallible;
use std::time::Duration;

use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use smallvec::SmallVec;
use tollgate_core::Decision;

use crate::status::PolicyStatus;

/// What the limits around a handler said to its request.
///
/// An extractor: a handler that takes it learns how much its client has left. Where layers are stacked, it holds the
/// policies of all of them, outermost first.
///
/// ```
/// use tollgate_axum::RateLimit;
///
/// async fn search(limit: RateLimit) -> String {
///     format!("{} of {} left", limit.remaining(), limit.limit())
/// }
/// # fn assert_handler<H: axum::handler::Handler<T, ()>, T>(_: H) {}
/// # assert_handler(search);
/// ```
///
/// Take an `Option<RateLimit>` where requests may be exempt.
#[derive(Clone, Debug)]
pub struct RateLimit {
    policies: SmallVec<[PolicyStatus; 1]>,
    degraded: bool,
}

impl RateLimit {
    pub(crate) fn of(decision: &Decision<'_>) -> Self {
        Self {
            policies: decision
                .each()
                .map(|each| PolicyStatus::of(&each))
                .collect(),
            degraded: decision.is_degraded(),
        }
    }

    /// Leaves it in the request, after what the layers further out have left there.
    pub(crate) fn leave(self, parts: &mut Parts) {
        if let Some(outer) = parts.extensions.get_mut::<Self>() {
            outer.policies.extend(self.policies);
            outer.degraded |= self.degraded;
        } else {
            parts.extensions.insert(self);
        }
    }

    /// Whether a layer further out has left one in the request.
    pub(crate) fn is_in(parts: &Parts) -> bool {
        parts.extensions.get::<Self>().is_some()
    }

    /// Every policy, in order; never empty.
    #[must_use]
    pub fn policies(&self) -> &[PolicyStatus] {
        &self.policies
    }

    /// The policy that binds: among those that deny the one that takes longest, otherwise the one with the fewest units
    /// left; the first where they tie. One in shadow mode only if all are.
    #[must_use]
    pub fn binding(&self) -> &PolicyStatus {
        let first = &self.policies[0];
        self.policies[1..].iter().fold(first, |binding, other| {
            if other.binds_before(binding) {
                other
            } else {
                binding
            }
        })
    }

    /// The most units the binding policy lets through at once: its burst, or its limit.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.binding().limit()
    }

    /// Units left under the binding policy.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.binding().remaining()
    }

    /// The time until the binding policy's key is as good as never seen.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        self.binding().reset_after()
    }

    /// Whether a limiter's answer was given without the store that should have given it.
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.degraded
    }
}

/// No limiter has judged the request: there is no layer around the handler, or the request is exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no rate limit was applied to this request; put a `RateLimitLayer` around the route, and take an \
     `Option<RateLimit>` where requests may be exempt"
)]
pub struct NoRateLimit;

impl IntoResponse for NoRateLimit {
    fn into_response(self) -> Response {
        tracing::error!("{self}");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

impl<St: Sync> FromRequestParts<St> for RateLimit {
    type Rejection = NoRateLimit;

    async fn from_request_parts(parts: &mut Parts, _state: &St) -> Result<Self, NoRateLimit> {
        parts.extensions.get().cloned().ok_or(NoRateLimit)
    }
}

impl<St: Sync> OptionalFromRequestParts<St> for RateLimit {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &St,
    ) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get().cloned())
    }
}
