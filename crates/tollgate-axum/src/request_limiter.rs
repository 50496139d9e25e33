//! Asking a limiter from a handler.

use std::convert::Infallible;
use std::fmt;

use axum_core::body::Body;
use axum_core::extract::{FromRef, FromRequestParts};
use axum_core::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use tollgate_core::{Decision, Error, Limiter, SharedStore, Store};

use crate::denial::{Denial, DenialFormat};
use crate::headers::Headers;
use crate::rate_limit::RateLimit;
use crate::refusal::Refusal;

/// A limiter from the router's state, for a handler that knows better than a layer whom to limit and for what: an
/// extractor.
///
/// What it denies is a response already, as a layer would give it, so `?` is all that a handler needs:
///
/// ```
/// use axum::{Router, extract::FromRef, routing::post};
/// use tollgate_axum::{NotAdmitted, RequestLimiter};
/// use tollgate_memory::{Limiter, MemoryStore, Quota, SharedStore};
///
/// #[derive(Clone)]
/// struct App {
///     limiter: Limiter,
/// }
///
/// impl FromRef<App> for Limiter {
///     fn from_ref(app: &App) -> Self {
///         app.limiter.clone()
///     }
/// }
///
/// async fn invite(limiter: RequestLimiter, email: String) -> Result<String, NotAdmitted> {
///     let limit = limiter.hit(&email).await?;
///     Ok(format!("invited; {} more today", limit.remaining()))
/// }
///
/// let limiter = Limiter::new(SharedStore::new(MemoryStore::new()), "3/day".parse::<Quota>()?).scope("invite");
/// let app: Router = Router::new().route("/invite", post(invite)).with_state(App { limiter });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Whoever wants the bare numbers takes the `Limiter` itself, by axum's `State`.
#[derive(Clone, Debug)]
pub struct RequestLimiter<S = SharedStore> {
    limiter: Limiter<S>,
    method: Method,
    /// `Accept` and nothing else.
    request: HeaderMap,
}

impl<S: Store> RequestLimiter<S> {
    /// Takes one unit for `subject`, or answers like a layer that denies.
    ///
    /// # Errors
    /// [`NotAdmitted`]: the answer, for a denial as for a limiter that cannot be asked like this.
    pub async fn hit(
        &self,
        subject: impl AsRef<[u8]> + Send + Sync,
    ) -> Result<RateLimit, NotAdmitted> {
        let decision = self.limiter.hit(&subject).await;
        self.answer(decision, subject.as_ref())
    }

    /// Takes `units` for `subject`: all of them or none.
    ///
    /// # Errors
    /// As [`hit`](Self::hit); zero units are answered with `500 Internal Server Error`.
    pub async fn hit_n(
        &self,
        subject: impl AsRef<[u8]> + Send + Sync,
        units: u64,
    ) -> Result<RateLimit, NotAdmitted> {
        let decision = self.limiter.hit_n(&subject, units).await;
        self.answer(decision, subject.as_ref())
    }

    /// The limiter, for its other verbs.
    pub const fn limiter(&self) -> &Limiter<S> {
        &self.limiter
    }

    fn answer(
        &self,
        decision: Result<Decision<'_>, Error>,
        subject: &[u8],
    ) -> Result<RateLimit, NotAdmitted> {
        let decision = match decision {
            Ok(decision) => decision,
            Err(error) => return Err(self.deny(&Refusal::unanswered(&error).denial)),
        };
        let limit = RateLimit::of(&decision);
        let Some(denial) = Denial::of(&decision) else {
            return Ok(limit);
        };
        let mut denied = self.deny(&denial);
        Headers::default().write(&decision, subject, &mut denied.response);
        Err(denied)
    }

    fn deny(&self, denial: &Denial) -> NotAdmitted {
        let format = DenialFormat::Negotiate;
        NotAdmitted {
            response: Box::new(denial.to_response(format, &self.method, &self.request)),
        }
    }
}

impl<S, St> FromRequestParts<St> for RequestLimiter<S>
where
    S: Store,
    Limiter<S>: FromRef<St>,
    St: Sync,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &St) -> Result<Self, Infallible> {
        let mut request = HeaderMap::new();
        for accept in parts.headers.get_all(header::ACCEPT) {
            request.append(header::ACCEPT, accept.clone());
        }
        Ok(Self {
            limiter: Limiter::from_ref(state),
            method: parts.method.clone(),
            request,
        })
    }
}

/// The answer to a request that a [`RequestLimiter`] does not admit: a response with everything a layer's would have.
#[must_use = "return it from the handler"]
pub struct NotAdmitted {
    response: Box<http::Response<Bytes>>,
}

impl IntoResponse for NotAdmitted {
    fn into_response(self) -> Response {
        self.response.map(Body::from)
    }
}

impl fmt::Debug for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NotAdmitted")
            .field(&self.response.status())
            .finish()
    }
}
