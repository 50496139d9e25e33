//! Requests that may not go on.

use std::error::Error as StdError;

use http::request::Parts;
use tollgate_core::Error;

use crate::denial::Denial;
use crate::headers::Advertised;
use crate::key::KeyError;
use crate::rate_limit::RateLimit;
use crate::respond::Refused;

/// Why a request does not go on, and what its answer advertises.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) denial: Denial,
    pub(crate) limit: Option<RateLimit>,
    pub(crate) advertised: Advertised,
}

impl Refusal {
    pub(crate) fn denied(denial: Denial, limit: RateLimit, advertised: Advertised) -> Self {
        Self {
            denial,
            limit: Some(limit),
            advertised,
        }
    }

    #[cold]
    pub(crate) fn no_identity() -> Self {
        tracing::error!(
            "a request is refused, since nothing in it tells who sent it; use another key, or say with `on_missing_key` \
             what becomes of such requests"
        );
        Self::internal()
    }

    #[cold]
    pub(crate) fn unknown_identity(error: &KeyError) -> Self {
        let error: &dyn StdError = error;
        tracing::error!(
            error,
            "a request is refused, since it cannot be told who sent it"
        );
        Self::internal()
    }

    #[cold]
    pub(crate) fn unknown_tier(error: &(dyn StdError + 'static)) -> Self {
        tracing::error!(error, "a request is refused, since its tier cannot be told");
        Self::internal()
    }

    #[cold]
    pub(crate) fn unanswered(error: &Error) -> Self {
        let error: &dyn StdError = error;
        tracing::error!(
            error,
            "a request is refused, since the limiter cannot be asked like this"
        );
        Self::internal()
    }

    /// What the responder is told, and what its answer advertises.
    pub(crate) fn of(self, parts: Parts) -> (Refused, Advertised) {
        let Self {
            denial,
            limit,
            advertised,
        } = self;
        let refused = Refused {
            denial,
            limit,
            parts,
        };
        (refused, advertised)
    }

    /// The cause is in the log, and not in the answer.
    fn internal() -> Self {
        Self {
            denial: Denial::internal(),
            limit: None,
            advertised: Advertised::default(),
        }
    }
}
