//! What a refused request is answered.

use std::fmt;
use std::future::{Future, ready};

use axum_core::body::Body;
use axum_core::response::IntoResponse;
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderMap, Response};

use crate::denial::{Denial, DenialFormat};
use crate::rate_limit::RateLimit;

/// A request that may not go on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refused {
    /// Why, in what its client may know.
    pub denial: Denial,
    /// What the policies said; `None` if none was asked, since nobody could be named to limit or the limiter was set up
    /// wrongly.
    pub limit: Option<RateLimit>,
    /// The request's head.
    pub parts: Parts,
}

impl Refused {
    /// The head of a response: its headers are added where the responder has not set them.
    fn complete(denial: &Denial, headers: &mut HeaderMap) {
        if !headers.contains_key(RETRY_AFTER) {
            denial.write_retry_after(headers);
        }
    }
}

/// Answers requests that may not go on.
///
/// Closures are made one by [`on_refusal`](crate::RateLimitLayer::on_refusal). Implement it for answers whose body is not
/// axum's.
///
/// The layer adds the headers of [`Headers`](crate::Headers) that the answer does not have. `Retry-After` is the
/// responder's to write: [`Denial::write_retry_after`].
pub trait Respond<B>: Clone + Send + Sync + 'static {
    /// The answer.
    fn respond(&self, refused: Refused) -> impl Future<Output = Response<B>> + Send;

    /// The same answer at once, from responders that never wait; the others give the request back.
    ///
    /// An optimisation, never other semantics.
    ///
    /// # Errors
    /// What was passed, from responders that have to wait.
    #[expect(
        clippy::result_large_err,
        reason = "the request goes on by the other way; a box would cost more than the move"
    )]
    fn respond_now(&self, refused: Refused) -> Result<Response<B>, Refused> {
        Err(refused)
    }
}

/// Answers with a problem document (RFC 9457), or what else the client accepts: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProblemDocument {
    pub(crate) format: DenialFormat,
}

impl ProblemDocument {
    fn answer<B: From<Bytes>>(self, refused: &Refused) -> Response<B> {
        let Refused { denial, parts, .. } = refused;
        let response = denial.to_response(self.format, &parts.method, &parts.headers);
        response.map(B::from)
    }
}

impl<B: From<Bytes> + Send> Respond<B> for ProblemDocument {
    fn respond(&self, refused: Refused) -> impl Future<Output = Response<B>> + Send {
        ready(self.answer(&refused))
    }

    fn respond_now(&self, refused: Refused) -> Result<Response<B>, Refused> {
        Ok(self.answer(&refused))
    }
}

/// Answers with what a closure returns: see [`RateLimitLayer::on_refusal`](crate::RateLimitLayer::on_refusal).
#[derive(Clone)]
pub struct RespondWith<F>(pub(crate) F);

impl<F, A> Respond<Body> for RespondWith<F>
where
    F: Fn(Refused) -> A + Clone + Send + Sync + 'static,
    A: IntoResponse,
{
    fn respond(&self, refused: Refused) -> impl Future<Output = Response<Body>> + Send {
        ready(self.answer(refused))
    }

    fn respond_now(&self, refused: Refused) -> Result<Response<Body>, Refused> {
        Ok(self.answer(refused))
    }
}

impl<F, A> RespondWith<F>
where
    F: Fn(Refused) -> A,
    A: IntoResponse,
{
    fn answer(&self, refused: Refused) -> Response<Body> {
        let denial = refused.denial.clone();
        let mut response = (self.0)(refused).into_response();
        Refused::complete(&denial, response.headers_mut());
        response
    }
}

impl<F> fmt::Debug for RespondWith<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespondWith").finish_non_exhaustive()
    }
}

/// Answers with what a closure's future returns: see
/// [`RateLimitLayer::on_refusal_async`](crate::RateLimitLayer::on_refusal_async).
#[derive(Clone)]
pub struct RespondWithAsync<F>(pub(crate) F);

impl<F, A> Respond<Body> for RespondWithAsync<F>
where
    F: Fn(Refused) -> A + Clone + Send + Sync + 'static,
    A: Future<Output: IntoResponse> + Send,
{
    async fn respond(&self, refused: Refused) -> Response<Body> {
        let denial = refused.denial.clone();
        let mut response = (self.0)(refused).await.into_response();
        Refused::complete(&denial, response.headers_mut());
        response
    }
}

impl<F> fmt::Debug for RespondWithAsync<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespondWithAsync").finish_non_exhaustive()
    }
}
