//! What a client is told that is not let through.

mod document;
mod format;

pub use format::DenialFormat;

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use tollgate_core::Decision;

use crate::headers::delay_seconds;

/// Why a request is not let through, in what its client may know.
///
/// It holds policy names and waiting times. Nothing of the request is in it, and nothing of an error: those go to the
/// log alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    reason: DenialReason,
    violated: Vec<String>,
    retry_after: Option<Duration>,
}

/// The kind of a [`Denial`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialReason {
    /// The quota is used up for now: 429.
    QuotaExceeded,
    /// The request costs more than its quota ever holds, or the quota is zero: 429, and waiting is no use.
    NeverFits,
    /// The store could not be asked, and the failure mode denies: 503.
    ReducedCapacity,
    /// Nobody could be named to limit, or the limiter is set up wrongly: 500.
    Internal,
}

impl Denial {
    /// What `decision` denies; `None` if it admits.
    #[must_use]
    pub fn of(decision: &Decision<'_>) -> Option<Self> {
        if decision.is_allowed() {
            return None;
        }
        let reason = match decision.error() {
            Some(_) => DenialReason::ReducedCapacity,
            None if decision.is_never() => DenialReason::NeverFits,
            None => DenialReason::QuotaExceeded,
        };
        let waiting_helps = reason == DenialReason::QuotaExceeded;
        let violated = decision.violated();
        Some(Self {
            reason,
            violated: violated
                .map(|decision| decision.policy().name().to_owned())
                .collect(),
            retry_after: decision.retry_after().filter(|_| waiting_helps),
        })
    }

    /// The answer where nobody could be named to limit, or where the limiter reported an error instead of a decision.
    ///
    /// It says no more than that, whatever the error was.
    #[must_use]
    pub const fn internal() -> Self {
        Self {
            reason: DenialReason::Internal,
            violated: Vec::new(),
            retry_after: None,
        }
    }

    /// The kind.
    #[must_use]
    pub const fn reason(&self) -> DenialReason {
        self.reason
    }

    /// The status code that goes with the reason.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self.reason {
            DenialReason::QuotaExceeded | DenialReason::NeverFits => StatusCode::TOO_MANY_REQUESTS,
            DenialReason::ReducedCapacity => StatusCode::SERVICE_UNAVAILABLE,
            DenialReason::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The names of the policies that denied, in the limiter's order.
    #[must_use]
    pub fn violated(&self) -> &[String] {
        &self.violated
    }

    /// How long to wait until the same request is admitted, to the microsecond; `None` where waiting is no use or
    /// nobody knows.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Writes `Retry-After` if there is something to wait for: whole seconds, rounded up, at least 1.
    ///
    /// Never earlier than the `t` of any policy that denied.
    pub fn write_retry_after(&self, headers: &mut HeaderMap) {
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(delay_seconds(wait)));
        }
    }
}
